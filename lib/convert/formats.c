/*
 * formats - the table of export formats, and the two that need the conversion of messages for
 * servers: what the interfaces of OpenAI and Anthropic take.
 */
#include <stddef.h>
#include <string.h>

#include "chathist/base/cjson.h"
#include "chathist/convert/export.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider_anthropic.h"
#include "chathist/llm/provider_openai.h"

/* ---- openai, anthropic: the messages of a request, one session a line ---- */

/* Returns the system prompt, or STR_NONE if it is blank: chat sends none then. */
static struct str system_prompt(const struct context *c)
{
    struct str system = {c->system, c->system_len};

    return str_trim(system).n > 0 ? system : STR_NONE;
}

/* Adds a session to c as chat would send it. Returns whether it has anything to send. */
static bool load_context(struct context *c, const struct export_session *s)
{
    context_init(c);
    for (size_t i = 0; i < s->count; i++)
        context_add(c, &s->at[i]);
    context_finish(c);
    return system_prompt(c).p || c->count > 0;
}

/* Appends a document unless it is empty, and frees it. */
static void add_document(struct export *x, cJSON *t, bool some)
{
    if (some) {
        cjson_print(t, &x->out);
        buf_add_byte(&x->out, '\n');
    }
    cJSON_Delete(t);
}

static void openai_session(struct export *x, const struct export_session *s)
{
    cJSON *t = cjson_object();
    struct context c;
    bool some = load_context(&c, s);

    cjson_set(
        t, "messages",
        openai_messages(&c, system_prompt(&c), (struct context_server){"openai", NULL}, false));
    add_document(x, t, some);
    context_release(&c);
}

static const struct export_format export_openai = {
    .name = "openai",
    .suffix = "openai.jsonl",
    .json = true,
    .grows = true,
    .session = openai_session,
};

static void anthropic_session(struct export *x, const struct export_session *s)
{
    cJSON *t = cjson_object(), *messages, *tools;
    struct context c;
    bool some = load_context(&c, s);

    anthropic_conversation(&c, "anthropic", &messages, &tools);
    if (system_prompt(&c).p)
        cjson_set_text(t, "system", system_prompt(&c));
    cjson_set(t, "messages", messages);
    if (tools)
        cjson_set(t, "tools", tools);
    add_document(x, t, some);
    context_release(&c);
}

static const struct export_format export_anthropic = {
    .name = "anthropic",
    .suffix = "anthropic.jsonl",
    .json = true,
    .grows = true,
    .session = anthropic_session,
};

/* ---- the table ---- */

const struct export_format *const export_formats[] = {
    &export_md,     &export_html,      &export_json,        &export_jsonl, &export_txt,
    &export_openai, &export_anthropic, &export_claude_code, &export_codex, &export_atif,
    NULL,
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
