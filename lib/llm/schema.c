#include "chathist/llm/schema.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"

/* How many schemas one check may apply. A schema whose branches multiply can exceed it. */
#define STEPS_MAX 5000000
/* How many schemas may be applied inside each other; the depth of the answer is JSON_DEPTH. */
#define DEPTH_MAX (2 * JSON_DEPTH)
/* Integers up to this are exact in double precision. */
#define EXACT_MAX 9007199254740992.0
/* How much of an expected value a message shows, in code points. */
#define SHOWN_MAX 200

/* An expression of a keyword `pattern`. */
struct pattern {
    const cJSON *keyword;
    struct regex *regex;
};

struct schema {
    struct buf text;
    struct str value; /* the JSON value in `text` */
    cJSON *root;
    char *file; /* for messages; NULL */
    struct buf unchecked;
    struct pattern *patterns;
    size_t patterns_count, patterns_cap;
};

/* ---- values ---- */

/* The length of the escape at `p` if cJSON decodes it correctly, else 0: cJSON would cut the string
 * at U+0000, and refuse the whole text because of half a surrogate pair. */
static size_t good_escape(const char *p, const char *end)
{
    int32_t unit;

    if (p[1] != 'u')
        return 2;
    unit = json_hex4(p + 2, end);
    if (!json_is_surrogate(unit))
        return unit == 0 ? 0 : 6;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return 0;
    return json_pair(unit, json_hex4(p + 8, end)) < 0 ? 0 : 12;
}

/* Parses a value that json_check accepted. Escapes that cJSON cannot represent become U+FFFD.
 * Returns NULL if a number has more than 63 characters, which some versions of cJSON refuse. */
static cJSON *parse(struct str value)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    const char *p = value.p, *end = p + value.n, *escape;
    cJSON *parsed;

    while ((escape = memchr(p, '\\', (size_t)(end - p)))) {
        size_t n = good_escape(escape, end);

        buf_add(&text, p, (size_t)(escape - p));
        if (n)
            buf_add(&text, escape, n);
        else
            buf_add_c(&text, "\\ufffd");
        p = escape + (n ? n : 6);
    }
    buf_add(&text, p, (size_t)(end - p));
    parsed = cJSON_ParseWithLengthOpts(buf_c(&text), text.len + 1, NULL, true);
    buf_release(&text);
    return parsed;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_integer(double d)
{
    return d >= EXACT_MAX || d <= -EXACT_MAX || d == (double)(int64_t)d;
}

static const struct type {
    const char *name, *shown;
    int mask; /* of cJSON's types */
} types[] = {
    {"string", "a string", cJSON_String},
    {"number", "a number", cJSON_Number},
    {"integer", "an integer", cJSON_Number},
    {"boolean", "a boolean", cJSON_True | cJSON_False},
    {"object", "an object", cJSON_Object},
    {"array", "an array", cJSON_Array},
    {"null", "null", cJSON_NULL},
};
#define TYPES (sizeof types / sizeof *types)

/* Returns NULL if the value does not name a type. */
static const struct type *type_named(const cJSON *name)
{
    for (size_t i = 0; i < TYPES && cJSON_IsString(name); i++)
        if (strcmp(types[i].name, name->valuestring) == 0)
            return &types[i];
    return NULL;
}

/* ---- places and mistakes ---- */

/* A walk through a schema while it is loaded, or through an answer while it is checked. */
struct walk {
    struct schema *schema;
    struct buf path; /* the JSON pointer (RFC 6901) to the present place */
    size_t level;    /* how many names and indexes it has */
    struct buf why;  /* the last mistake: `/items/3: is not a number` */
    size_t why_level;
    size_t depth, steps; /* how many schemas are being applied, and how many were applied */
    bool stopped;        /* the check cannot be finished; `why` says so */
};

static void walk_release(struct walk *w)
{
    buf_release(&w->path);
    buf_release(&w->why);
}

/* Moves to a member or an element. Returns the length of the path for leave(). */
static size_t enter(struct walk *w, const cJSON *part, size_t index)
{
    size_t len = w->path.len;

    w->level++;
    buf_add_byte(&w->path, '/');
    if (!part->string)
        buf_add_number(&w->path, index);
    for (const char *p = part->string; p && *p; p++)
        if (*p == '~' || *p == '/')
            buf_add_c(&w->path, *p == '~' ? "~0" : "~1");
        else
            buf_add_byte(&w->path, *p);
    return len;
}

static void leave(struct walk *w, size_t len)
{
    w->level--;
    buf_truncate(&w->path, len);
}

/* Notes a mistake at the present place. Returns false. */
static bool mistake(struct walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool mistake(struct walk *w, const char *fmt, ...)
{
    va_list ap;

    buf_clear(&w->why);
    buf_add_str(&w->why, buf_str(&w->path));
    buf_add_c(&w->why, w->path.len ? ": " : "");
    va_start(ap, fmt);
    buf_vaddf(&w->why, fmt, ap);
    va_end(ap);
    w->why_level = w->level;
    return false;
}

/* The check cannot be finished. Returns false. */
static bool give_up(struct walk *w, const char *why)
{
    w->stopped = true;
    return mistake(w, "%s", why);
}

/* ---- keywords ---- */

/* A value in the answer that a schema is applied to. */
struct target {
    const cJSON *value;
    const cJSON *schema; /* an object */
};

static bool apply(struct walk *w, const cJSON *schema, const cJSON *value);

/* Notes a mistake with the value that a keyword wants. Returns false. */
static bool mismatch(struct walk *w, const char *what, const cJSON *want)
{
    char *text = cJSON_PrintUnformatted(want);
    struct str all = str_of(text), shown = utf8_first(all, SHOWN_MAX);

    mistake(w, "%s%.*s%s", what, (int)shown.n, shown.p, shown.n < all.n ? "…" : "");
    cJSON_free(text);
    return false;
}

static bool check_type(struct walk *w, const struct target *t, const cJSON *want)
{
    struct buf names = BUF_INIT(BUF_SMALL);
    bool held = false;

    for (const cJSON *name = cJSON_IsArray(want) ? want->child : want; name && !held;
         name = cJSON_IsArray(want) ? name->next : NULL) {
        const struct type *type = type_named(name);

        held = (t->value->type & type->mask) &&
               (strcmp(type->name, "integer") != 0 || is_integer(t->value->valuedouble));
        buf_addf(&names, "%s%s", names.len ? " or " : "", type->shown);
    }
    if (!held)
        mistake(w, "is not %s", buf_c(&names));
    buf_release(&names);
    return held;
}

/* Are two values the same? Counts the steps; the answer is wrong if they exceed STEPS_MAX.
 * cJSON_Compare is no alternative: it accepts numbers that are only close. */
static bool same_value(struct walk *w, const cJSON *a, const cJSON *b)
{
    const cJSON *y = b->child;
    int size = cJSON_GetArraySize(a);

    w->steps += (size_t)size + 1;
    if (w->steps > STEPS_MAX || (a->type & 0xff) != (b->type & 0xff) ||
        size != cJSON_GetArraySize(b))
        return false;
    if (cJSON_IsNumber(a))
        return a->valuedouble == b->valuedouble;
    if (cJSON_IsString(a))
        return strcmp(a->valuestring, b->valuestring) == 0;
    for (const cJSON *x = a->child; x; x = x->next, y = y->next) {
        const cJSON *other = cJSON_IsObject(b) ? member(b, x->string) : y;

        w->steps += cJSON_IsObject(b) ? (size_t)size : 1;
        if (!other || !same_value(w, x, other))
            return false;
    }
    return true;
}

static bool check_enum(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *one = want->child; one; one = one->next)
        if (same_value(w, one, t->value))
            return true;
    return mismatch(w, "is none of ", want);
}

static bool check_const(struct walk *w, const struct target *t, const cJSON *want)
{
    return same_value(w, want, t->value) || mismatch(w, "is not ", want);
}

static bool check_bound(struct walk *w, const struct target *t, const cJSON *want)
{
    static const struct {
        const char *keyword;
        int least, most; /* how the value may compare with the bound */
        const char *otherwise;
    } bounds[] = {
        {"minimum", 0, 1, "is less than "},
        {"maximum", -1, 0, "is more than "},
        {"exclusiveMinimum", 1, 1, "is not more than "},
        {"exclusiveMaximum", -1, -1, "is not less than "},
    };
    double got = t->value->valuedouble, bound = want->valuedouble;
    int order = got < bound ? -1 : got > bound;
    size_t i = 0;

    while (strcmp(bounds[i].keyword, want->string) != 0)
        i++;
    return (order >= bounds[i].least && order <= bounds[i].most) ||
           mismatch(w, bounds[i].otherwise, want);
}

/* 19.99 is a multiple of 0.01, although the quotient is not an integer in double precision. */
static bool check_multiple(struct walk *w, const struct target *t, const cJSON *want)
{
    double quotient = t->value->valuedouble / want->valuedouble, nearest, distance;

    if (quotient < 0)
        quotient = -quotient;
    /* Also true if the quotient is not a number. */
    if (!(quotient < EXACT_MAX))
        return true;
    nearest = (double)(int64_t)(quotient + 0.5);
    distance = quotient < nearest ? nearest - quotient : quotient - nearest;
    return distance <= 4 * DBL_EPSILON * nearest || mismatch(w, "is not a multiple of ", want);
}

/* minLength, maxLength, minItems and maxItems */
static bool check_count(struct walk *w, const struct target *t, const cJSON *want)
{
    bool string = cJSON_IsString(t->value), most = str_starts(str_of(want->string), STR("max"));
    size_t count =
        string ? utf8_count(str_of(t->value->valuestring)) : (size_t)cJSON_GetArraySize(t->value);

    if (most ? (double)count <= want->valuedouble : (double)count >= want->valuedouble)
        return true;
    return mistake(w, "has %zu %s%s, not at %s %.0f", count, string ? "character" : "item",
                   count == 1 ? "" : "s", most ? "most" : "least", want->valuedouble);
}

static bool check_pattern(struct walk *w, const struct target *t, const cJSON *want)
{
    const struct pattern *p = w->schema->patterns;
    struct err e = ERR_INIT;
    size_t start, len;
    int found;

    while (p->keyword != want)
        p++;
    found = regex_find(p->regex, str_of(t->value->valuestring), 0, true, &start, &len, &e);
    if (found == 0)
        mismatch(w, "does not match the pattern ", want);
    else if (found < 0)
        give_up(w, err_text(&e));
    err_release(&e);
    return found == 1;
}

static bool check_required(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *name = want->child; name; name = name->next)
        if (!member(t->value, name->valuestring))
            return mismatch(w, "has no ", name);
    return true;
}

/* Applies a schema to a member or an element of the target. */
static bool apply_to_part(struct walk *w, const cJSON *schema, const cJSON *part, size_t index)
{
    size_t len = enter(w, part, index);
    bool held = apply(w, schema, part);

    leave(w, len);
    return held;
}

static bool check_properties(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *part = t->value->child; part; part = part->next) {
        const cJSON *schema = member(want, part->string);

        if (schema && !apply_to_part(w, schema, part, 0))
            return false;
    }
    return true;
}

/* patternProperties would decide which members are additional, but is not checked. */
static bool check_additional(struct walk *w, const struct target *t, const cJSON *want)
{
    const cJSON *named = member(t->schema, "properties");

    if (member(t->schema, "patternProperties"))
        return true;
    for (const cJSON *part = t->value->child; part; part = part->next)
        if (!member(named, part->string) && !apply_to_part(w, want, part, 0))
            return false;
    return true;
}

/* The first items belong to prefixItems, and that is not checked. */
static bool check_items(struct walk *w, const struct target *t, const cJSON *want)
{
    size_t i = 0;

    if (member(t->schema, "prefixItems"))
        return true;
    for (const cJSON *part = t->value->child; part; part = part->next)
        if (!apply_to_part(w, want, part, i++))
            return false;
    return true;
}

static bool check_unique(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *x = t->value->child; x && cJSON_IsTrue(want); x = x->next)
        for (const cJSON *y = x->next; y && w->steps <= STEPS_MAX; y = y->next)
            if (same_value(w, x, y))
                return mismatch(w, "has two items ", x);
    return true;
}

/* If no schema holds, the message is about the mistake that lies deepest in the value, because that
 * schema is most likely the one that was meant. */
static bool check_any_of(struct walk *w, const struct target *t, const cJSON *want)
{
    struct buf deepest = BUF_INIT(SIZE_MAX);
    size_t level = w->level;
    bool any = false;

    for (const cJSON *schema = want->child; schema && !any && !w->stopped; schema = schema->next) {
        any = apply(w, schema, t->value);
        if (!any && w->why_level > level) {
            level = w->why_level;
            buf_clear(&deepest);
            buf_add_str(&deepest, buf_str(&w->why));
        }
    }
    if (!any && !w->stopped) {
        mistake(w, "matches none of 'anyOf'");
        if (deepest.len > 0) {
            buf_clear(&w->why);
            buf_add_str(&w->why, buf_str(&deepest));
            w->why_level = level;
        }
    }
    buf_release(&deepest);
    return any;
}

/* Is the reference of the form that is checked: `#`, `#/$defs/NAME` or `#/definitions/NAME`, where
 * NAME has no escapes? */
static bool is_simple_ref(const char *ref)
{
    struct str name = str_of(ref);

    if (str_starts(name, STR("#/$defs/")) || str_starts(name, STR("#/definitions/")))
        return !strpbrk(strchr(ref + 2, '/') + 1, "/~%");
    return str_eq_c(name, "#");
}

/* Returns the schema that a reference of that form leads to, or NULL. */
static const cJSON *follow(const struct schema *s, const char *ref)
{
    if (strcmp(ref, "#") == 0)
        return s->root;
    return member(member(s->root, ref[2] == '$' ? "$defs" : "definitions"), strrchr(ref, '/') + 1);
}

static bool check_ref(struct walk *w, const struct target *t, const cJSON *want)
{
    return !is_simple_ref(want->valuestring) ||
           apply(w, follow(w->schema, want->valuestring), t->value);
}

#define ANY 0xff

/* What the value of a keyword is. */
enum form {
    FORM_ANY,
    FORM_BOOL,
    FORM_NUMBER,
    FORM_DIVISOR,
    FORM_COUNT,
    FORM_REGEX,
    FORM_REF,
    FORM_TYPES,
    FORM_ARRAY,
    FORM_NAMES,
    FORM_SCHEMA,
    FORM_SCHEMA_LIST,
    FORM_SCHEMA_MAP,
};

static const struct keyword {
    const char *name;
    enum form form;
    int applies; /* the types of values that it is checked for; 0 if it is never checked */
    bool (*check)(struct walk *w, const struct target *t, const cJSON *want);
} keywords[] = {
    {"type", FORM_TYPES, ANY, check_type},
    {"enum", FORM_ARRAY, ANY, check_enum},
    {"const", FORM_ANY, ANY, check_const},
    {"anyOf", FORM_SCHEMA_LIST, ANY, check_any_of},
    {"$ref", FORM_REF, ANY, check_ref},
    {"minimum", FORM_NUMBER, cJSON_Number, check_bound},
    {"maximum", FORM_NUMBER, cJSON_Number, check_bound},
    {"exclusiveMinimum", FORM_NUMBER, cJSON_Number, check_bound},
    {"exclusiveMaximum", FORM_NUMBER, cJSON_Number, check_bound},
    {"multipleOf", FORM_DIVISOR, cJSON_Number, check_multiple},
    {"minLength", FORM_COUNT, cJSON_String, check_count},
    {"maxLength", FORM_COUNT, cJSON_String, check_count},
    {"pattern", FORM_REGEX, cJSON_String, check_pattern},
    {"required", FORM_NAMES, cJSON_Object, check_required},
    {"properties", FORM_SCHEMA_MAP, cJSON_Object, check_properties},
    {"additionalProperties", FORM_SCHEMA, cJSON_Object, check_additional},
    {"items", FORM_SCHEMA, cJSON_Array, check_items},
    {"minItems", FORM_COUNT, cJSON_Array, check_count},
    {"maxItems", FORM_COUNT, cJSON_Array, check_count},
    {"uniqueItems", FORM_BOOL, cJSON_Array, check_unique},
    {"$defs", FORM_SCHEMA_MAP, 0, NULL},
    {"definitions", FORM_SCHEMA_MAP, 0, NULL},
    {"format", FORM_ANY, 0, NULL},
    {"title", FORM_ANY, 0, NULL},
    {"description", FORM_ANY, 0, NULL},
    {"default", FORM_ANY, 0, NULL},
    {"examples", FORM_ANY, 0, NULL},
    {"deprecated", FORM_ANY, 0, NULL},
    {"readOnly", FORM_ANY, 0, NULL},
    {"writeOnly", FORM_ANY, 0, NULL},
    {"$schema", FORM_ANY, 0, NULL},
    {"$id", FORM_ANY, 0, NULL},
    {"$comment", FORM_ANY, 0, NULL},
};

/* Returns NULL for a keyword that is not known. */
static const struct keyword *keyword_named(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return &keywords[i];
    return NULL;
}

static bool apply_keywords(struct walk *w, const struct target *t)
{
    for (const cJSON *want = t->schema->child; want; want = want->next) {
        const struct keyword *keyword = keyword_named(want->string);

        if (keyword && (keyword->applies & t->value->type & 0xff) && !keyword->check(w, t, want))
            return false;
    }
    return true;
}

/* Applies a schema to a value. Returns false, with the mistake noted, if the value is not valid. */
static bool apply(struct walk *w, const cJSON *schema, const cJSON *value)
{
    struct target t = {value, schema};
    bool held;

    if (cJSON_IsBool(schema))
        return cJSON_IsTrue(schema) || mistake(w, "is not allowed");
    if (w->depth > DEPTH_MAX)
        return give_up(w, "is nested too deeply for the schema");
    w->depth++;
    held = apply_keywords(w, &t);
    w->depth--;
    if (w->steps++ > STEPS_MAX && !w->stopped)
        return give_up(w, "takes too long to check");
    return held;
}

/* ---- loading a schema ---- */

static const char *types_mistake(const cJSON *value)
{
    if (cJSON_IsString(value))
        return type_named(value) ? NULL : "names no type";
    if (!cJSON_IsArray(value) || !value->child)
        return "is neither a type nor an array of types";
    for (const cJSON *name = value->child; name; name = name->next)
        if (!type_named(name))
            return "names no type";
    return NULL;
}

static const char *names_mistake(const cJSON *value)
{
    bool strings = cJSON_IsArray(value);

    for (const cJSON *name = value->child; name; name = name->next)
        strings = strings && cJSON_IsString(name);
    return strings ? NULL : "is not an array of strings";
}

/* Returns the mistake in the value of a keyword, or NULL. Schemas inside it are checked elsewhere.
 * */
static const char *form_mistake(enum form form, const cJSON *value)
{
    switch (form) {
    case FORM_BOOL:
        return cJSON_IsBool(value) ? NULL : "is not a boolean";
    case FORM_NUMBER:
        return cJSON_IsNumber(value) ? NULL : "is not a number";
    case FORM_DIVISOR:
        return cJSON_IsNumber(value) && value->valuedouble > 0 ? NULL : "is not a number above 0";
    case FORM_COUNT:
        return cJSON_IsNumber(value) && value->valuedouble >= 0 && is_integer(value->valuedouble)
                   ? NULL
                   : "is not a non-negative integer";
    case FORM_REGEX:
    case FORM_REF:
        return cJSON_IsString(value) ? NULL : "is not a string";
    case FORM_TYPES:
        return types_mistake(value);
    case FORM_NAMES:
        return names_mistake(value);
    case FORM_SCHEMA_LIST:
        return cJSON_IsArray(value) && value->child ? NULL : "is not an array of schemas";
    case FORM_ARRAY:
        return cJSON_IsArray(value) ? NULL : "is not an array";
    case FORM_SCHEMA_MAP:
        return cJSON_IsObject(value) ? NULL : "is not an object";
    default:
        return NULL;
    }
}

static void add_unchecked(struct schema *s, const char *name)
{
    struct buf quoted = BUF_INIT(SIZE_MAX);

    buf_addf(&quoted, "'%s'", name);
    if (!str_find(buf_str(&s->unchecked), buf_str(&quoted))) {
        buf_add_c(&s->unchecked, s->unchecked.len ? ", " : "");
        buf_add_str(&s->unchecked, buf_str(&quoted));
    }
    buf_release(&quoted);
}

static bool load_pattern(struct walk *w, const cJSON *value)
{
    struct schema *s = w->schema;
    struct err why = ERR_INIT;
    struct regex *regex = regex_new_ecma(str_of(value->valuestring), &why);

    if (!regex)
        mistake(w, "%s", err_text(&why));
    err_release(&why);
    if (!regex)
        return false;
    s->patterns =
        mem_grow(s->patterns, &s->patterns_cap, s->patterns_count + 1, sizeof *s->patterns);
    s->patterns[s->patterns_count++] = (struct pattern){value, regex};
    return true;
}

static bool load_ref(struct walk *w, const char *ref)
{
    if (*ref != '#')
        return mistake(w, "'%s' is another file, and only this one is read", ref);
    if (!is_simple_ref(ref))
        add_unchecked(w->schema, "$ref");
    else if (!follow(w->schema, ref))
        return mistake(w, "there is no '%s'", ref);
    return true;
}

static bool load_schema(struct walk *w, const cJSON *schema);

static bool load_keyword(struct walk *w, const cJSON *value)
{
    const struct keyword *keyword = keyword_named(value->string);
    enum form form = keyword ? keyword->form : FORM_ANY;
    const char *why = form_mistake(form, value);
    bool held = true;
    size_t i = 0;

    if (why)
        return mistake(w, "%s", why);
    if (!keyword)
        add_unchecked(w->schema, value->string);
    if (form == FORM_REGEX)
        return load_pattern(w, value);
    if (form == FORM_REF)
        return load_ref(w, value->valuestring);
    if (form == FORM_SCHEMA)
        return load_schema(w, value);
    if (form != FORM_SCHEMA_LIST && form != FORM_SCHEMA_MAP)
        return true;
    for (const cJSON *schema = value->child; schema && held; schema = schema->next) {
        size_t len = enter(w, schema, i++);

        held = load_schema(w, schema);
        leave(w, len);
    }
    return held;
}

/* Checks the value of each keyword in a schema and in the schemas inside it. Returns false, with
 * the mistake noted, if one is wrong. The recursion is as deep as the text, at most JSON_DEPTH. */
static bool load_schema(struct walk *w, const cJSON *schema)
{
    bool held = true;

    if (!cJSON_IsBool(schema) && !cJSON_IsObject(schema))
        return mistake(w, "is not a schema: neither an object nor a boolean");
    for (const cJSON *value = schema->child; value && held; value = value->next) {
        size_t len = enter(w, value, 0);

        held = load_keyword(w, value);
        leave(w, len);
    }
    return held;
}

/* ---- the whole ---- */

/* Parses s->text. Returns false, with the mistake noted, if it is not a schema. */
static bool load(struct walk *w)
{
    struct schema *s = w->schema;
    size_t at;

    if (s->text.overflow)
        return mistake(w, "is over 64 MiB");
    if (!json_check(buf_str(&s->text), &s->value, &at))
        return mistake(w, "is not JSON at byte %zu", at);
    s->root = parse(s->value);
    return s->root ? load_schema(w, s->root) : mistake(w, "has a number that is too long");
}

struct schema *schema_new(struct str text, struct err *e)
{
    struct schema *s = mem_zalloc(sizeof *s);
    struct walk w = {.schema = s, .path = BUF_INIT(SIZE_MAX), .why = BUF_INIT(SIZE_MAX)};

    buf_init(&s->text, BUF_LINE);
    buf_init(&s->unchecked, BUF_SMALL);
    buf_add_str(&s->text, text);
    if (!load(&w)) {
        err_set(e, ERR_USAGE, "%s", buf_c(&w.why));
        schema_free(s);
        s = NULL;
    }
    walk_release(&w);
    return s;
}

struct schema *schema_read(const char *file, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    struct schema *s = NULL;

    if (str_starts(str_of(file), STR("{")) && access(file, F_OK) < 0) {
        err_set(e, ERR_USAGE, "bad value '%s' for --schema: a file is expected", file);
    } else if (file_read(file, &text, e) < 0) {
        e->kind = ERR_USAGE;
    } else if ((s = schema_new(buf_str(&text), &why)) && cJSON_IsObject(s->root)) {
        s->file = mem_copy(file, strlen(file));
    } else {
        err_set(e, ERR_USAGE, "cannot use schema '%s': %s", file,
                s ? "is not an object" : err_text(&why));
        schema_free(s);
        s = NULL;
    }
    buf_release(&text);
    err_release(&why);
    return s;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->patterns_count; i++)
        regex_free(s->patterns[i].regex);
    free(s->patterns);
    cJSON_Delete(s->root);
    buf_release(&s->text);
    buf_release(&s->unchecked);
    free(s->file);
    free(s);
}

struct str schema_text(const struct schema *s)
{
    return s ? s->value : STR_NONE;
}

const char *schema_unchecked(const struct schema *s)
{
    return buf_c(&s->unchecked);
}

static bool check_answer(struct walk *w, struct str answer)
{
    struct str value;
    cJSON *parsed;
    size_t at;
    bool held;

    if (!json_check(answer, &value, &at))
        return mistake(w, "is not JSON at byte %zu", at);
    parsed = parse(value);
    if (!parsed)
        return mistake(w, "has a number that is too long");
    held = apply(w, w->schema->root, parsed);
    cJSON_Delete(parsed);
    return held;
}

int schema_check(struct schema *s, struct str answer, struct err *e)
{
    struct walk w = {.schema = s, .path = BUF_INIT(SIZE_MAX), .why = BUF_INIT(SIZE_MAX)};
    bool held = check_answer(&w, answer);

    if (!held && s->file)
        err_set(e, ERR_FAILURE, "answer does not match '%s': %s", s->file, buf_c(&w.why));
    else if (!held)
        err_set(e, ERR_FAILURE, "%s", buf_c(&w.why));
    walk_release(&w);
    return held ? 0 : -1;
}
