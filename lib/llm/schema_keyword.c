#include "llm/schema_keyword.h"

#include "chathist/base/decimal.h"

#define ANY (~0U)
#define OBJECT (1U << JSON_OBJECT)
#define ARRAY (1U << JSON_ARRAY)
#define STRING (1U << JSON_STRING)
#define NUMBER (1U << JSON_NUMBER)

static const struct schema_keyword keywords[KW_COUNT] = {
    [KW_ID] = {"$id", FORM_TEXT, 0, false},
    [KW_REF] = {"$ref", FORM_TEXT, ANY, true},
    [KW_ANCHOR] = {"$anchor", FORM_NAME, 0, false},
    [KW_DYNAMIC_REF] = {"$dynamicRef", FORM_TEXT, ANY, true},
    [KW_DYNAMIC_ANCHOR] = {"$dynamicAnchor", FORM_NAME, 0, false},
    [KW_DEFS] = {"$defs", FORM_SCHEMAS_BY, 0, false},
    [KW_TYPE] = {"type", FORM_TYPES, ANY, false},
    [KW_ENUM] = {"enum", FORM_ARRAY, ANY, false},
    [KW_CONST] = {"const", FORM_ANY, ANY, false},
    [KW_MULTIPLE_OF] = {"multipleOf", FORM_DIVISOR, NUMBER, false},
    [KW_MAXIMUM] = {"maximum", FORM_NUMBER, NUMBER, false},
    [KW_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", FORM_NUMBER, NUMBER, false},
    [KW_MINIMUM] = {"minimum", FORM_NUMBER, NUMBER, false},
    [KW_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", FORM_NUMBER, NUMBER, false},
    [KW_MAX_LENGTH] = {"maxLength", FORM_COUNT, STRING, false},
    [KW_MIN_LENGTH] = {"minLength", FORM_COUNT, STRING, false},
    [KW_PATTERN] = {"pattern", FORM_REGEX, STRING, false},
    [KW_MAX_ITEMS] = {"maxItems", FORM_COUNT, ARRAY, false},
    [KW_MIN_ITEMS] = {"minItems", FORM_COUNT, ARRAY, false},
    [KW_UNIQUE_ITEMS] = {"uniqueItems", FORM_BOOL, ARRAY, false},
    [KW_MAX_CONTAINS] = {"maxContains", FORM_COUNT, 0, false},
    [KW_MIN_CONTAINS] = {"minContains", FORM_COUNT, 0, false},
    [KW_MAX_PROPERTIES] = {"maxProperties", FORM_COUNT, OBJECT, false},
    [KW_MIN_PROPERTIES] = {"minProperties", FORM_COUNT, OBJECT, false},
    [KW_REQUIRED] = {"required", FORM_NAMES, OBJECT, false},
    [KW_DEPENDENT_REQUIRED] = {"dependentRequired", FORM_NAMES_BY, OBJECT, false},
    [KW_PROPERTIES] = {"properties", FORM_SCHEMAS_BY, OBJECT, false},
    [KW_PATTERN_PROPERTIES] = {"patternProperties", FORM_SCHEMAS_FOR, OBJECT, false},
    [KW_ADDITIONAL_PROPERTIES] = {"additionalProperties", FORM_SCHEMA, OBJECT, false},
    [KW_PROPERTY_NAMES] = {"propertyNames", FORM_SCHEMA, OBJECT, false},
    [KW_DEPENDENT_SCHEMAS] = {"dependentSchemas", FORM_SCHEMAS_BY, OBJECT, true},
    [KW_PREFIX_ITEMS] = {"prefixItems", FORM_SCHEMAS, ARRAY, false},
    [KW_ITEMS] = {"items", FORM_SCHEMA, ARRAY, false},
    [KW_CONTAINS] = {"contains", FORM_SCHEMA, ARRAY, false},
    [KW_ALL_OF] = {"allOf", FORM_SCHEMAS, ANY, true},
    [KW_ANY_OF] = {"anyOf", FORM_SCHEMAS, ANY, true},
    [KW_ONE_OF] = {"oneOf", FORM_SCHEMAS, ANY, true},
    [KW_NOT] = {"not", FORM_SCHEMA, ANY, true},
    [KW_IF] = {"if", FORM_SCHEMA, ANY, true},
    [KW_THEN] = {"then", FORM_SCHEMA, 0, true},
    [KW_ELSE] = {"else", FORM_SCHEMA, 0, true},
    [KW_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", FORM_SCHEMA, OBJECT, false},
    [KW_UNEVALUATED_ITEMS] = {"unevaluatedItems", FORM_SCHEMA, ARRAY, false},
};

enum schema_keyword_id schema_keyword_find(struct str raw_key)
{
    int id = 0;

    while (id < KW_COUNT && !json_key_is(raw_key, keywords[id].name))
        id++;
    return (enum schema_keyword_id)id;
}

const struct schema_keyword *schema_keyword_at(enum schema_keyword_id id)
{
    return &keywords[id];
}

/* ---- types ---- */

static const struct {
    const char *name, *shown;
    unsigned bit;
} types[] = {
    {"string", "a string", SCHEMA_STRING},
    {"number", "a number", SCHEMA_NUMBER},
    {"integer", "an integer", SCHEMA_INTEGER},
    {"boolean", "a boolean", SCHEMA_BOOLEAN},
    {"object", "an object", SCHEMA_OBJECT},
    {"array", "an array", SCHEMA_ARRAY},
    {"null", "null", SCHEMA_NULL},
};
#define TYPES (sizeof types / sizeof *types)

static unsigned type_named(struct str string)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name = json_text(string, &scratch);
    unsigned bit = 0;

    for (size_t i = 0; i < TYPES && name.p; i++)
        if (str_eq_c(name, types[i].name))
            bit = types[i].bit;
    buf_release(&scratch);
    return bit;
}

unsigned schema_types_of(struct str value)
{
    unsigned set = type_named(value);

    if (json_type(value) == JSON_ARRAY)
        for (struct json_iter it = json_iter(value); json_next(&it);)
            set |= type_named(it.value);
    return set;
}

unsigned schema_types_have(struct str value)
{
    struct decimal d;

    switch (json_type(value)) {
    case JSON_NULL:
        return SCHEMA_NULL;
    case JSON_BOOL:
        return SCHEMA_BOOLEAN;
    case JSON_STRING:
        return SCHEMA_STRING;
    case JSON_ARRAY:
        return SCHEMA_ARRAY;
    case JSON_OBJECT:
        return SCHEMA_OBJECT;
    case JSON_NUMBER:
        d = decimal_of(value);
        return SCHEMA_NUMBER | (decimal_is_integer(&d) ? SCHEMA_INTEGER : 0U);
    case JSON_INVALID:
        break;
    }
    return 0;
}

void schema_add_types(struct buf *out, unsigned set)
{
    const char *between = "";

    for (size_t i = 0; i < TYPES; i++) {
        if (!(set & types[i].bit))
            continue;
        buf_addf(out, "%s%s", between, types[i].shown);
        between = " or ";
    }
}

/* ---- values of keywords ---- */

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_USAGE, "%s", why);
}

static int check_names(struct str value, struct err *e)
{
    if (json_type(value) != JSON_ARRAY)
        return refuse(e, "is not an array of strings");
    for (struct json_iter it = json_iter(value); json_next(&it);)
        if (json_type(it.value) != JSON_STRING)
            return refuse(e, "is not an array of strings");
    return 0;
}

static int check_types(struct str value, struct err *e)
{
    struct json_iter it = json_iter(value);
    bool any = json_type(value) == JSON_STRING;

    if (any && !schema_types_of(value))
        return refuse(e, "names no type");
    if (json_type(value) == JSON_ARRAY) {
        while (json_next(&it)) {
            any = true;
            if (!type_named(it.value))
                return refuse(e, "names no type");
        }
    }
    return any ? 0 : refuse(e, "is neither a type nor an array of types");
}

static int check_number(enum schema_form form, struct str value, struct err *e)
{
    struct decimal d;

    if (json_type(value) != JSON_NUMBER)
        return refuse(e, "is not a number");
    d = decimal_of(value);
    if (form == FORM_COUNT && (d.negative || !decimal_is_integer(&d)))
        return refuse(e, "is not an integer from 0 on");
    if (form == FORM_DIVISOR && (d.negative || d.digits == 0))
        return refuse(e, "is not above 0");
    if (form == FORM_DIVISOR && d.digits > DECIMAL_DIVISOR_DIGITS)
        return refuse(e, "has more than 18 digits");
    return 0;
}

static bool is_name_char(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '-' || c == '.');
}

/* Section 8.2.2: ^[A-Za-z_][-A-Za-z0-9._]*$ */
static int check_name(struct str value, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name = json_text(value, &scratch);
    bool valid = name.n > 0;

    for (size_t i = 0; i < name.n; i++)
        valid = valid && is_name_char(name.p[i], i == 0);
    buf_release(&scratch);
    return valid ? 0 : refuse(e, "is no name of an anchor");
}

static int check_type(enum json_type type, struct str value, struct err *e)
{
    if (json_type(value) == type)
        return 0;
    return refuse(e, type == JSON_STRING   ? "is not a string"
                     : type == JSON_BOOL   ? "is not a boolean"
                     : type == JSON_OBJECT ? "is not an object"
                                           : "is not an array");
}

int schema_keyword_check(enum schema_keyword_id id, struct str value, struct err *e)
{
    struct json_iter it = json_iter(value);

    switch (keywords[id].form) {
    case FORM_BOOL:
        return check_type(JSON_BOOL, value, e);
    case FORM_TEXT:
    case FORM_REGEX:
        return check_type(JSON_STRING, value, e);
    case FORM_NAME:
        return check_name(value, e);
    case FORM_NUMBER:
    case FORM_DIVISOR:
    case FORM_COUNT:
        return check_number(keywords[id].form, value, e);
    case FORM_TYPES:
        return check_types(value, e);
    case FORM_ARRAY:
        return check_type(JSON_ARRAY, value, e);
    case FORM_NAMES:
        return check_names(value, e);
    case FORM_NAMES_BY:
        if (check_type(JSON_OBJECT, value, e) < 0)
            return -1;
        while (json_next(&it))
            if (check_names(it.value, e) < 0)
                return -1;
        return 0;
    case FORM_SCHEMAS:
        if (check_type(JSON_ARRAY, value, e) < 0)
            return -1;
        return json_next(&it) ? 0 : refuse(e, "is empty");
    case FORM_SCHEMAS_BY:
    case FORM_SCHEMAS_FOR:
        return check_type(JSON_OBJECT, value, e);
    case FORM_ANY:
    case FORM_SCHEMA: /* whether it is one, the index finds */
        break;
    }
    return 0;
}
