/*
 * The header lines that repeat parts of a message, so that a gateway can route it without reading
 * its JSON.
 *
 * Source: modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http,
 * "Request Metadata": Mcp-Method, Mcp-Name, and Mcp-Param-NAME for each parameter of a tool whose
 * schema has `"x-mcp-header": "NAME"`. Servers of earlier revisions ignore these headers.
 */
#include "mcp/client.h"

#include <inttypes.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/llm/http.h"

#define ANNOTATION "x-mcp-header"
/* How deep the objects of a schema are looked through. json_check has a limit, too. */
#define DEPTH_MAX 64

/* "Value Encoding": a value that is not safe in a header is encoded in base64. */
static void add_header_line(struct buf *out, const char *prefix, struct str name, struct str value)
{
    bool safe = !(str_starts(value, STR("=?base64?")) && str_ends(value, STR("?="))) &&
                !str_starts(value, STR(" ")) && !str_ends(value, STR(" "));

    for (size_t i = 0; i < value.n; i++)
        safe = safe && value.p[i] >= ' ' && value.p[i] <= '~';
    buf_addf(out, "%s%.*s: ", prefix, (int)name.n, name.p);
    if (safe) {
        buf_add_str(out, value);
    } else {
        buf_add_c(out, "=?base64?");
        buf_add_base64(out, value);
        buf_add_c(out, "?=");
    }
    buf_add_byte(out, '\n');
}

/* Adds the lines of the parameters of this schema, an object's, whose value is `args`: of those
 * that are a text, an integer or a boolean. */
static void add_parameter_lines(struct buf *out, struct str schema, struct str args, int depth)
{
    struct json_iter it = json_iter(json_get(schema, "properties"));

    while (depth < DEPTH_MAX && json_next(&it)) {
        struct buf key = BUF_INIT(SIZE_MAX), name = BUF_INIT(SIZE_MAX), text = BUF_INIT(SIZE_MAX);
        struct str value, annotation = json_get(it.value, ANNOTATION);
        bool named = json_type(annotation) == JSON_STRING;
        int64_t n;

        json_decode_body(it.key, &key);
        value = json_get(args, buf_c(&key));
        if (named && json_int(value, &n))
            buf_addf(&text, "%" PRId64, n);
        else if (named && !json_decode(value, &text) && json_type(value) == JSON_BOOL)
            buf_add_str(&text, value);
        if (named && (json_type(value) == JSON_STRING || text.len > 0))
            add_header_line(out, "Mcp-Param-", json_text(annotation, &name), buf_str(&text));
        if (json_type(value) == JSON_OBJECT)
            add_parameter_lines(out, it.value, value, depth + 1);
        buf_release(&key);
        buf_release(&name);
        buf_release(&text);
    }
}

void mcp_add_headers(struct buf *out, const char *method, const char *tool, struct str schema,
                     struct str args)
{
    add_header_line(out, "Mcp-Method", STR(""), str_of(method));
    if (!tool)
        return;
    add_header_line(out, "Mcp-Name", STR(""), str_of(tool));
    if (schema.n > 0)
        add_parameter_lines(out, schema, args, 0);
}

/* ---- the rules ---- */

/* The name must differ from those before it, also in lower case. */
static bool annotation_valid(struct str schema, struct str annotation, struct hash_map *names)
{
    struct buf scratch = BUF_INIT(SIZE_MAX), lower = BUF_INIT(SIZE_MAX);
    struct str name = json_text(annotation, &scratch);
    bool valid = http_name_is_token(name) &&
                 (json_has_type(schema, "string") || json_has_type(schema, "integer") ||
                  json_has_type(schema, "boolean"));

    for (size_t i = 0; i < name.n; i++)
        buf_add_byte(&lower, ascii_lower(name.p[i]));
    valid = valid && hash_map_add(names, buf_str(&lower));
    buf_release(&scratch);
    buf_release(&lower);
    return valid;
}

/* Where a value of the schema is: the schema of a parameter, the schema of the arguments, the
 * object `properties` of one of these two, or anywhere else. */
enum place { PARAMETER, ARGUMENTS, PROPERTIES, ELSEWHERE };

static bool is_valid(struct str value, enum place place, struct hash_map *names, int depth)
{
    struct json_iter it = json_iter(value);
    bool valid = true;

    if (json_type(value) != JSON_OBJECT && json_type(value) != JSON_ARRAY)
        return true;
    if (depth == DEPTH_MAX)
        return false;
    while (valid && json_next(&it)) {
        enum place below = ELSEWHERE;

        if (place == PROPERTIES)
            below = PARAMETER;
        else if (place != ELSEWHERE && json_key_is(it.key, "properties"))
            below = PROPERTIES;
        if (place != PROPERTIES && json_type(value) == JSON_OBJECT &&
            json_key_is(it.key, ANNOTATION))
            valid = place == PARAMETER && annotation_valid(value, it.value, names);
        valid = valid && is_valid(it.value, below, names, depth + 1);
    }
    return valid;
}

bool mcp_mirror_valid(struct str schema)
{
    struct hash_map names = {0};
    bool valid = is_valid(schema, ARGUMENTS, &names, 0);

    hash_map_release(&names);
    return valid;
}
