#include "chathist/convert/formats.h"

#include <stddef.h>
#include <string.h>

#include "convert/export_anthropic.h"
#include "convert/export_html.h"
#include "chathist/convert/export_json.h"
#include "convert/export_jsonl.h"
#include "chathist/convert/export_md.h"
#include "convert/export_openai.h"
#include "convert/export_txt.h"

const struct export_format *const export_formats[] = {
    &export_md,  &export_html,   &export_json,      &export_jsonl,
    &export_txt, &export_openai, &export_anthropic, NULL,
};

const struct export_format *export_format_named(struct str name)
{
    for (size_t i = 0; export_formats[i]; i++)
        if (str_eq_c(name, export_formats[i]->name))
            return export_formats[i];
    return NULL;
}

const struct export_format *export_format_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (!dot)
        return NULL;
    for (size_t i = 0; export_formats[i]; i++)
        if (strcmp(dot + 1, export_formats[i]->suffix) == 0)
            return export_formats[i];
    if (strcmp(dot, ".htm") == 0)
        return &export_html;
    return strcmp(dot, ".markdown") == 0 ? &export_md : NULL;
}

void export_format_names(struct buf *out)
{
    for (size_t i = 0; export_formats[i]; i++) {
        if (i > 0)
            buf_add_c(out, export_formats[i + 1] ? ", " : " or ");
        buf_add_c(out, export_formats[i]->name);
    }
}
