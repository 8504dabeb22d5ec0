#include "llm/structured.h"

#include <string.h>

#include "chathist/base/json.h"

/* How many schemas are looked at, each as often as it is referred to: beyond it a schema counts as
 * recursive. */
#define SCHEMAS_MAX 10000
#define DEPTH_MAX 100

/* What a service takes. */
struct dialect {
    const char *const *keywords; /* with any value; NULL ends */
    const char *const *one_of;   /* with an array of schemas */
    bool all_required;           /* of an object's properties */
    bool recursive;
    bool few_items; /* minItems is 0 or 1 */
};

static const char *const strict_keywords[] = {
    "type",    "enum",    "const",    "title",    "description",      "required",
    "pattern", "format",  "minimum",  "maximum",  "exclusiveMinimum", "exclusiveMaximum",
    "$ref",    "$schema", "minItems", "maxItems", "multipleOf",       "additionalProperties",
    NULL};
static const char *const strict_lists[] = {"anyOf", NULL};
static const struct dialect strict = {strict_keywords, strict_lists, true, true, false};

static const char *const anthropic_keywords[] = {
    "type", "enum",    "const",    "title",   "description",          "required", "format",
    "$ref", "$schema", "minItems", "default", "additionalProperties", NULL};
static const char *const anthropic_lists[] = {"anyOf", "allOf", NULL};
static const struct dialect anthropic = {anthropic_keywords, anthropic_lists, false, false, true};

struct walk {
    const struct dialect *dialect;
    struct str root;
    size_t count, depth;
};

static bool fits(struct walk *w, struct str schema);

static bool is_among(struct str key, const char *const *names)
{
    while (*names && !json_key_is(key, *names))
        names++;
    return *names != NULL;
}

static bool all_fit(struct walk *w, struct str schemas)
{
    for (struct json_iter it = json_iter(schemas); json_next(&it);)
        if (!fits(w, it.value))
            return false;
    return true;
}

/* References of the form that all services know: to a definition of the whole. */
static bool ref_fits(struct walk *w, struct str ref)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str rest = json_text(ref, &scratch), target;
    bool known = str_eq_c(rest, "#");

    if (str_starts(rest, STR("#/$defs/")) || str_starts(rest, STR("#/definitions/"))) {
        struct str name;

        str_cut(&rest, '/');
        target =
            json_get(w->root, str_eq_c(str_cut(&rest, '/'), "$defs") ? "$defs" : "definitions");
        name = rest;
        known = !memchr(name.p, '/', name.n) && !memchr(name.p, '~', name.n) &&
                !memchr(name.p, '%', name.n);
        rest = STR_NONE;
        for (struct json_iter it = json_iter(target); known && json_next(&it);)
            if (str_eq(it.key, name))
                rest = it.value;
        known = rest.p != NULL;
    }
    /* A definition is looked at where it stands; in its other places only for what is recursive. */
    if (known && !w->dialect->recursive)
        known = rest.p && json_type(rest) == JSON_OBJECT && fits(w, rest);
    buf_release(&scratch);
    return known;
}

static bool keyword_fits(struct walk *w, struct str key, struct str value)
{
    int64_t n;

    if (json_key_is(key, "properties") || json_key_is(key, "$defs") ||
        json_key_is(key, "definitions"))
        return all_fit(w, value);
    if (json_key_is(key, "items"))
        return fits(w, value);
    if (is_among(key, w->dialect->one_of))
        return all_fit(w, value);
    if (json_key_is(key, "$ref") && !ref_fits(w, value))
        return false;
    if (json_key_is(key, "minItems") && w->dialect->few_items)
        return json_int(value, &n) && n <= 1;
    return is_among(key, w->dialect->keywords);
}

static bool requires(struct str schema, struct str raw_key)
{
    for (struct json_iter it = json_iter(json_get(schema, "required")); json_next(&it);)
        if (it.value.n >= 2 && str_eq((struct str){it.value.p + 1, it.value.n - 2}, raw_key))
            return true;
    return false;
}

/* An object says that there is nothing else in it. */
static bool is_closed(const struct walk *w, struct str schema)
{
    struct str type = json_get(schema, "type"), properties = json_get(schema, "properties");
    bool object = properties.p || str_eq_c(type, "\"object\"");

    for (struct json_iter it = json_iter(type); json_next(&it);)
        object = object || str_eq_c(it.value, "\"object\"");
    if (!object)
        return !json_get(schema, "additionalProperties").p;
    if (!str_eq_c(json_get(schema, "additionalProperties"), "false"))
        return false;
    for (struct json_iter it = json_iter(properties); w->dialect->all_required && json_next(&it);)
        if (!requires(schema, it.key))
            return false;
    return true;
}

static bool fits(struct walk *w, struct str schema)
{
    bool held;

    if (json_type(schema) != JSON_OBJECT || !is_closed(w, schema) || w->count++ > SCHEMAS_MAX ||
        w->depth > DEPTH_MAX)
        return false;
    w->depth++;
    held = true;
    for (struct json_iter it = json_iter(schema); held && json_next(&it);)
        held = keyword_fits(w, it.key, it.value);
    w->depth--;
    return held;
}

static bool schema_fits(const struct dialect *dialect, struct str schema)
{
    struct walk w = {dialect, schema, 0, 0};

    return fits(&w, schema);
}

/* The schema without `$schema`. */
static cJSON *sent(struct str schema)
{
    cJSON *t = cjson_object();
    struct buf name = BUF_INIT(BUF_LINE);

    for (struct json_iter it = json_iter(schema); json_next(&it);) {
        buf_clear(&name);
        json_decode((struct str){it.key.p - 1, it.key.n + 2}, &name);
        if (!str_eq_c(buf_str(&name), "$schema"))
            cjson_set_raw(t, buf_c(&name), it.value);
    }
    buf_release(&name);
    return t;
}

void structured_set_response_format(cJSON *body, struct str schema)
{
    cJSON *format = cjson_object(), *inner = cjson_object();
    bool is_object =
        str_eq_c(json_get(schema, "type"), "\"object\"") && !json_get(schema, "anyOf").p;

    cjson_set_text(inner, "name", STR("answer"));
    cjson_set(inner, "schema", sent(schema));
    cjson_set(inner, "strict", cJSON_CreateBool(is_object && schema_fits(&strict, schema)));
    cjson_set_text(format, "type", STR("json_schema"));
    cjson_set(format, "json_schema", inner);
    cjson_set(body, "response_format", format);
}

void structured_set_json_object(cJSON *body, struct str schema)
{
    cJSON *format = cjson_object();

    cjson_set_text(format, "type", STR("json_object"));
    cjson_set(format, "schema", sent(schema));
    cjson_set(body, "response_format", format);
}

/* The models of Anthropic's before the first that can, by their names; another server's, too, can
 * not be expected to. */
static bool model_can(const char *model)
{
    static const char *const older[] = {
        "claude-2",          "claude-instant",  "claude-3",        "claude-sonnet-4-0",
        "claude-sonnet-4-2", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2",
    };

    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (strstr(model, older[i]))
            return false;
    return strstr(model, "claude-") != NULL;
}

bool structured_set_output_config(cJSON *body, struct str schema, const char *model)
{
    cJSON *config, *format;

    if (!model_can(model) || !schema_fits(&anthropic, schema))
        return false;
    config = cjson_object();
    format = cjson_object();
    cjson_set_text(format, "type", STR("json_schema"));
    cjson_set(format, "schema", sent(schema));
    cjson_set(config, "format", format);
    cjson_set(body, "output_config", config);
    return true;
}

void structured_add_instruction(struct buf *system, struct str schema)
{
    cJSON *t = sent(schema);

    if (system->len > 0)
        buf_add_c(system, "\n\n");
    buf_add_c(system,
              "Answer with one JSON value and nothing else: no words before or after it, no "
              "code fence. It must be valid against this JSON Schema:\n");
    cjson_print(t, system);
    cJSON_Delete(t);
}
