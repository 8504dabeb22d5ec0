#include "llm/structured.h"

#include <string.h>

#include "chathist/base/json.h"

/* How many schemas are examined, each once for every reference to it. A schema with more counts as
 * recursive. */
#define SCHEMAS_MAX 10000
#define DEPTH_MAX 100

/* What a service accepts. */
struct dialect {
    const char *const *keywords; /* with any value; ends with NULL */
    const char *const *one_of;   /* with an array of schemas */
    bool all_required;           /* every object has to require all of its properties */
    bool recursive;
    bool few_items; /* minItems has to be 0 or 1 */
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
    const cJSON *root;
    size_t count, depth;
};

static bool fits(struct walk *w, const cJSON *schema);

static bool is_among(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool all_fit(struct walk *w, const cJSON *schemas)
{
    for (const cJSON *schema = schemas->child; schema; schema = schema->next)
        if (!fits(w, schema))
            return false;
    return true;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* All services know references to the whole schema and to its definitions. A definition is examined
 * where it stands; where it is referred to only to find out whether the schema is recursive. */
static bool ref_fits(struct walk *w, const char *ref)
{
    const char *container = strncmp(ref, "#/$defs/", 8) == 0 ? "$defs" : "definitions";
    const cJSON *target = w->root;

    if (strcmp(ref, "#") != 0) {
        if (strncmp(ref, "#/", 2) != 0 || strncmp(ref + 2, container, strlen(container)) != 0 ||
            ref[2 + strlen(container)] != '/' || strpbrk(ref + 3 + strlen(container), "/~%"))
            return false;
        target = member(member(w->root, container), ref + 3 + strlen(container));
    }
    return target && (w->dialect->recursive || (target != w->root && fits(w, target)));
}

static bool keyword_fits(struct walk *w, const cJSON *keyword)
{
    static const char *const maps[] = {"properties", "$defs", "definitions", NULL};
    const char *name = keyword->string;

    if (is_among(name, maps) || is_among(name, w->dialect->one_of))
        return all_fit(w, keyword);
    if (strcmp(name, "items") == 0)
        return fits(w, keyword);
    if (strcmp(name, "$ref") == 0 &&
        !(cJSON_IsString(keyword) && ref_fits(w, keyword->valuestring)))
        return false;
    if (strcmp(name, "minItems") == 0 && w->dialect->few_items)
        return keyword->valuedouble <= 1;
    return is_among(name, w->dialect->keywords);
}

static bool has_text(const cJSON *array, const char *text)
{
    for (const cJSON *one = array ? array->child : NULL; one; one = one->next)
        if (cJSON_IsString(one) && strcmp(one->valuestring, text) == 0)
            return true;
    return false;
}

/* Does an object say that it has no other members? Other values need not say so. */
static bool is_closed(const struct walk *w, const cJSON *schema)
{
    const cJSON *type = member(schema, "type"), *properties = member(schema, "properties");
    const cJSON *additional = member(schema, "additionalProperties");

    if (!properties && !has_text(type, "object") &&
        !(cJSON_IsString(type) && strcmp(type->valuestring, "object") == 0))
        return !additional;
    if (!cJSON_IsFalse(additional))
        return false;
    for (const cJSON *p = properties ? properties->child : NULL; p && w->dialect->all_required;
         p = p->next)
        if (!has_text(member(schema, "required"), p->string))
            return false;
    return true;
}

static bool fits(struct walk *w, const cJSON *schema)
{
    bool held;

    if (!cJSON_IsObject(schema) || !is_closed(w, schema) || w->count++ > SCHEMAS_MAX ||
        w->depth > DEPTH_MAX)
        return false;
    w->depth++;
    held = true;
    for (const cJSON *keyword = schema->child; held && keyword; keyword = keyword->next)
        held = keyword_fits(w, keyword);
    w->depth--;
    return held;
}

static bool schema_fits(const struct dialect *dialect, struct str schema)
{
    cJSON *root = cJSON_ParseWithLength(schema.p, schema.n);
    struct walk w = {dialect, root, 0, 0};
    bool held = fits(&w, root);

    cJSON_Delete(root);
    return held;
}

/* Returns the schema without `$schema`. */
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

/* Does the model know output_config? The names are those of Anthropic's models before the field. The
 * models of other servers are not expected to know it. */
static bool knows_output_config(const char *model)
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

    if (!knows_output_config(model) || !schema_fits(&anthropic, schema))
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
