#include "chat/schema_option.h"

#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

/* Returns whether the value, which names no file, is a line of fields. */
static bool is_field_line(struct str text)
{
    return text.n > 0 && text.p[0] != '{' && text.p[0] != '/' &&
           (memchr(text.p, ',', text.n) || memchr(text.p, ' ', text.n) ||
            memchr(text.p, '\n', text.n));
}

static bool is_field_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_letter(name.p[i]) && !ascii_is_digit(name.p[i]) && name.p[i] != '_' &&
            name.p[i] != '-')
            return false;
    return name.n > 0;
}

/* Returns the type as JSON Schema names it, or NULL. */
static const char *type_name(struct str type)
{
    static const struct {
        const char *ours, *name;
    } types[] = {{"str", "string"}, {"int", "integer"}, {"float", "number"}, {"bool", "boolean"}};

    if (type.n == 0)
        return "string";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_eq_c(type, types[i].ours) || str_eq_c(type, types[i].name))
            return types[i].name;
    return NULL;
}

/* Adds `"NAME":{"type":…}`. */
static int add_schema_field(struct buf *out, struct str name, struct str type,
                            struct str description, struct err *e)
{
    bool list = str_starts(type, STR("[")) && str_ends(type, STR("]"));
    struct str one = list ? str_trim((struct str){type.p + 1, type.n - 2}) : type;
    const char *known = type_name(one);

    if (!is_field_name(name))
        return err_set(e, ERR_USAGE,
                       "bad value for --schema: '%.*s' is no name: letters, digits, '_' and '-' "
                       "are expected",
                       (int)name.n, name.p);
    if (!known)
        return err_set(e, ERR_USAGE,
                       "bad value for --schema: '%.*s' has the type '%.*s': str, int, float, bool "
                       "or one of them in brackets is expected",
                       (int)name.n, name.p, (int)one.n, one.p);
    json_add_string(out, name);
    buf_addf(out, list ? ":{\"type\":\"array\",\"items\":{\"type\":\"%s\"}" : ":{\"type\":\"%s\"",
             known);
    if (description.n > 0)
        json_add_member(out, "description", description);
    buf_add_byte(out, '}');
    return 0;
}

/* Adds the schema of a line of fields. */
static int write_line(struct str text, struct buf *out, struct err *e)
{
    char separator = memchr(text.p, '\n', text.n) ? '\n' : ',';
    struct buf required = BUF_INIT(SIZE_MAX);
    int result = 0;

    buf_add_c(out, "{\"type\":\"object\",\"properties\":{");
    while (result == 0 && text.p) {
        struct str description = str_trim(str_cut(&text, separator)), type, name;

        if (description.n == 0)
            continue;
        type = str_trim(str_cut(&description, ':'));
        name = str_cut(&type, ' ');
        buf_add_c(out, required.len > 0 ? "," : "");
        buf_add_c(&required, required.len > 0 ? "," : "");
        json_add_string(&required, name);
        result = add_schema_field(out, name, str_trim(type), str_trim(description), e);
    }
    if (result == 0 && required.len == 0)
        result = err_set(e, ERR_USAGE, "bad value for --schema: a name is expected");
    buf_addf(out, "},\"required\":[%s],\"additionalProperties\":false}", buf_c(&required));
    buf_release(&required);
    return result;
}

struct schema *schema_option_read(const char *value, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    struct schema *s = NULL;
    bool there = access(value, F_OK) == 0;
    int result;

    if (!there && is_field_line(str_of(value)))
        result = write_line(str_of(value), &text, e);
    else if (!there && value[0] == '{')
        result = err_set(e, ERR_USAGE, "bad value '%s' for --schema: a file is expected", value);
    else
        result = file_read(value, &text, e) < 0 ? -1 : text_clean(&text, value, e);
    if (result < 0) {
        e->kind = ERR_USAGE;
    } else if (!(s = schema_new(buf_str(&text), &why)) || !str_starts(schema_text(s), STR("{"))) {
        err_set(e, ERR_USAGE, "cannot use schema '%s': %s", value,
                s ? "is not an object" : err_text(&why));
        schema_free(s);
        s = NULL;
    }
    buf_release(&text);
    err_release(&why);
    return s;
}
