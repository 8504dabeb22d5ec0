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
#include "chathist/llm/provider.h"

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
    unsigned fits; /* the dialects that accept it, bits of enum schema_dialect */
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
            buf_set(&deepest, buf_str(&w->why));
        }
    }
    if (!any && !w->stopped) {
        mistake(w, "matches none of 'anyOf'");
        if (deepest.len > 0) {
            buf_set(&w->why, buf_str(&deepest));
            w->why_level = level;
        }
    }
    buf_release(&deepest);
    return any;
}

/* Returns true for `#`, and for `#/...` without a percent sign: a JSON pointer (RFC 6901). Other
 * references are names of anchors and are not checked. */
static bool is_pointer(const char *ref)
{
    return ref[0] == '#' && (ref[1] == '\0' || (ref[1] == '/' && !strchr(ref, '%')));
}

/* Adds a part of a pointer, in which ~1 stands for / and ~0 for ~. */
static void add_part(struct buf *out, struct str part)
{
    for (size_t i = 0; i < part.n; i++)
        if (part.p[i] == '~' && i + 1 < part.n)
            buf_add_byte(out, part.p[++i] == '1' ? '/' : '~');
        else
            buf_add_byte(out, part.p[i]);
}

/* Returns the value that a pointer leads to, or NULL if it leads nowhere. */
static cJSON *follow(const struct schema *s, const char *ref)
{
    struct str rest = str_of(ref);
    cJSON *at = s->root;

    (void)str_cut(&rest, '/');
    while (at && rest.p) {
        struct buf name = BUF_INIT(SIZE_MAX);
        cJSON *part = at->child;

        add_part(&name, str_cut(&rest, '/'));
        if (cJSON_IsArray(at))
            part = cJSON_GetArrayItem(at, (int)strtol(buf_c(&name), NULL, 10));
        while (part && cJSON_IsObject(at) && strcmp(part->string, buf_c(&name)) != 0)
            part = part->next;
        at = part;
        buf_release(&name);
    }
    return at;
}

static bool check_ref(struct walk *w, const struct target *t, const cJSON *want)
{
    return !is_pointer(want->valuestring) ||
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
    int applies;   /* the types of values that it is checked for; 0 if it is never checked */
    unsigned fits; /* the dialects that have it */
    bool (*check)(struct walk *w, const struct target *t, const cJSON *want);
} keywords[] = {
#define STRICT SCHEMA_STRICT
#define BOTH (SCHEMA_STRICT | SCHEMA_ANTHROPIC)
    {"type", FORM_TYPES, ANY, BOTH, check_type},
    {"enum", FORM_ARRAY, ANY, BOTH, check_enum},
    {"const", FORM_ANY, ANY, BOTH, check_const},
    {"anyOf", FORM_SCHEMA_LIST, ANY, BOTH, check_any_of},
    {"$ref", FORM_REF, ANY, BOTH, check_ref},
    {"minimum", FORM_NUMBER, cJSON_Number, STRICT, check_bound},
    {"maximum", FORM_NUMBER, cJSON_Number, STRICT, check_bound},
    {"exclusiveMinimum", FORM_NUMBER, cJSON_Number, STRICT, check_bound},
    {"exclusiveMaximum", FORM_NUMBER, cJSON_Number, STRICT, check_bound},
    {"multipleOf", FORM_DIVISOR, cJSON_Number, STRICT, check_multiple},
    {"minLength", FORM_COUNT, cJSON_String, 0, check_count},
    {"maxLength", FORM_COUNT, cJSON_String, 0, check_count},
    {"pattern", FORM_REGEX, cJSON_String, STRICT, check_pattern},
    {"required", FORM_NAMES, cJSON_Object, BOTH, check_required},
    {"properties", FORM_SCHEMA_MAP, cJSON_Object, BOTH, check_properties},
    {"additionalProperties", FORM_SCHEMA, cJSON_Object, BOTH, check_additional},
    {"items", FORM_SCHEMA, cJSON_Array, BOTH, check_items},
    {"minItems", FORM_COUNT, cJSON_Array, BOTH, check_count},
    {"maxItems", FORM_COUNT, cJSON_Array, STRICT, check_count},
    {"uniqueItems", FORM_BOOL, cJSON_Array, 0, check_unique},
    {"$defs", FORM_SCHEMA_MAP, 0, BOTH, NULL},
    {"definitions", FORM_SCHEMA_MAP, 0, BOTH, NULL},
    {"format", FORM_ANY, 0, BOTH, NULL},
    {"title", FORM_ANY, 0, BOTH, NULL},
    {"description", FORM_ANY, 0, BOTH, NULL},
    {"default", FORM_ANY, 0, SCHEMA_ANTHROPIC, NULL},
    {"examples", FORM_ANY, 0, 0, NULL},
    {"deprecated", FORM_ANY, 0, 0, NULL},
    {"readOnly", FORM_ANY, 0, 0, NULL},
    {"writeOnly", FORM_ANY, 0, 0, NULL},
    {"$schema", FORM_ANY, 0, BOTH, NULL},
    {"$id", FORM_ANY, 0, 0, NULL},
    {"$comment", FORM_ANY, 0, 0, NULL},
#undef STRICT
#undef BOTH
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

/* The state of an object in the schema while it is loaded, in the member valueint, which cJSON uses
 * for numbers only; and while ends() visits it, in valuedouble. */
#define UNSEEN 0
#define ENTERED 1
#define LEFT 2

/* Returns false if applying the schema to a value would apply it to the same value without end. */
static bool ends(const struct schema *s, cJSON *schema, size_t depth)
{
    bool held = true;

    if (!cJSON_IsObject(schema) || schema->valuedouble == LEFT)
        return true;
    if (schema->valuedouble == ENTERED || depth > DEPTH_MAX)
        return false;
    schema->valuedouble = ENTERED;
    for (cJSON *keyword = schema->child; keyword && held; keyword = keyword->next) {
        if (strcmp(keyword->string, "$ref") == 0 && cJSON_IsString(keyword) &&
            is_pointer(keyword->valuestring)) {
            cJSON *target = follow(s, keyword->valuestring);

            held = !target || ends(s, target, depth + 1);
        }
        for (cJSON *one = strcmp(keyword->string, "anyOf") == 0 ? keyword->child : NULL;
             one && held; one = one->next)
            held = ends(s, one, depth + 1);
    }
    schema->valuedouble = LEFT;
    return held;
}

static bool load_schema(struct walk *w, cJSON *schema);

/* Loads the target of a reference, because it may be in a place that is no schema otherwise. */
static bool load_ref(struct walk *w, const char *ref)
{
    struct buf path = w->path;
    cJSON *target = is_pointer(ref) ? follow(w->schema, ref) : NULL;
    bool held;

    if (*ref != '#')
        return mistake(w, "'%s' is another file, and only this one is read", ref);
    if (!is_pointer(ref)) {
        w->schema->fits = 0;
        add_unchecked(w->schema, "$ref");
        return true;
    }
    if (!target)
        return mistake(w, "there is no '%s'", ref);
    if (!ends(w->schema, target, 0))
        return mistake(w, "'%s' refers to itself without end", ref);
    /* Services know references to the whole schema and to its definitions. */
    if (strcmp(ref, "#") != 0 && strncmp(ref, "#/$defs/", 8) != 0 &&
        strncmp(ref, "#/definitions/", 14) != 0)
        w->schema->fits = 0;
    if (target->valueint == ENTERED) /* the schema is recursive */
        w->schema->fits &= ~(unsigned)SCHEMA_ANTHROPIC;
    buf_init(&w->path, SIZE_MAX);
    buf_add_c(&w->path, ref + 1);
    held = load_schema(w, target);
    buf_release(&w->path);
    w->path = path;
    return held;
}

static bool load_keyword(struct walk *w, cJSON *value)
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
    w->schema->fits &= keyword ? keyword->fits : 0;
    if (strcmp(value->string, "minItems") == 0 && value->valuedouble > 1)
        w->schema->fits &= ~(unsigned)SCHEMA_ANTHROPIC;
    if (form == FORM_REGEX)
        return load_pattern(w, value);
    if (form == FORM_REF)
        return load_ref(w, value->valuestring);
    if (form == FORM_SCHEMA)
        return load_schema(w, value);
    if (form != FORM_SCHEMA_LIST && form != FORM_SCHEMA_MAP)
        return true;
    for (cJSON *schema = value->child; schema && held; schema = schema->next) {
        size_t len = enter(w, schema, i++);

        held = load_schema(w, schema);
        leave(w, len);
    }
    return held;
}

static bool is_in(const char *text, const cJSON *array)
{
    for (const cJSON *one = array ? array->child : NULL; one; one = one->next)
        if (cJSON_IsString(one) && strcmp(one->valuestring, text) == 0)
            return true;
    return false;
}

static bool is_object_type(const cJSON *type)
{
    return is_in("object", type) ||
           (cJSON_IsString(type) && strcmp(type->valuestring, "object") == 0);
}

/* Returns the dialects that accept the schema as far as its additional properties and its required
 * properties decide: every object has to exclude other members, and for SCHEMA_STRICT it has to
 * require all of its properties. */
static unsigned fits_as_object(const cJSON *schema)
{
    const cJSON *properties = member(schema, "properties");
    const cJSON *additional = member(schema, "additionalProperties");
    unsigned fits = SCHEMA_STRICT | SCHEMA_ANTHROPIC;

    if (!properties && !is_object_type(member(schema, "type")))
        return additional ? 0 : fits;
    for (const cJSON *p = properties ? properties->child : NULL; p; p = p->next)
        if (!is_in(p->string, member(schema, "required")))
            fits = SCHEMA_ANTHROPIC;
    return cJSON_IsFalse(additional) ? fits : 0;
}

/* Checks the value of each keyword in a schema and in the schemas inside it. Returns false, with
 * the mistake noted, if one is wrong. */
static bool load_schema(struct walk *w, cJSON *schema)
{
    bool held = true;

    if (!cJSON_IsBool(schema) && !cJSON_IsObject(schema))
        return mistake(w, "is not a schema: neither an object nor a boolean");
    if (w->depth > DEPTH_MAX)
        return mistake(w, "has references that are nested too deeply");
    /* `additionalProperties: false` is a keyword for the services; other booleans are schemas. */
    if (cJSON_IsBool(schema) && !(cJSON_IsFalse(schema) && schema->string &&
                                  strcmp(schema->string, "additionalProperties") == 0))
        w->schema->fits = 0;
    if (cJSON_IsBool(schema) || schema->valueint != UNSEEN)
        return true;
    schema->valueint = ENTERED;
    w->schema->fits &= fits_as_object(schema);
    w->depth++;
    for (cJSON *value = schema->child; value && held; value = value->next) {
        size_t len = enter(w, value, 0);

        held = load_keyword(w, value);
        leave(w, len);
    }
    w->depth--;
    schema->valueint = LEFT;
    return held;
}

/* ---- the whole ---- */

/* Of members with the same name keeps the last one, as JSON readers do. */
static void keep_last_members(cJSON *value)
{
    for (cJSON *part = value->child, *next; part; part = next) {
        bool again = false;

        next = part->next;
        for (cJSON *later = next; later && part->string && !again; later = later->next)
            again = strcmp(later->string, part->string) == 0;
        if (again)
            cJSON_Delete(cJSON_DetachItemViaPointer(value, part));
        else
            keep_last_members(part);
    }
}

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
    if (!s->root)
        return mistake(w, "has a number that is too long");
    keep_last_members(s->root);
    s->fits = SCHEMA_STRICT | SCHEMA_ANTHROPIC;
    if (!load_schema(w, s->root))
        return false;
    if (!is_object_type(member(s->root, "type")) || member(s->root, "anyOf"))
        s->fits &= ~(unsigned)SCHEMA_STRICT;
    return true;
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
    } else if (file_read(file, &text, e) < 0 || text_clean(&text, file, e) < 0) {
        e->kind = ERR_USAGE;
    } else if ((s = schema_new(buf_str(&text), &why)) && cJSON_IsObject(s->root)) {
        s->file = mem_text(file);
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

unsigned schema_fits(const struct schema *s)
{
    return s ? s->fits : 0;
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
