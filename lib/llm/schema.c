#include "chathist/llm/schema.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
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

struct schema {
    struct buf text;
    struct str value; /* the JSON value in `text` */
    cJSON *root;
    struct buf unchecked;
    unsigned fits; /* the dialects that accept it, bits of enum schema_dialect */
};

/* Parses a value that json_check accepted. Returns NULL if a number has more than 63 characters,
 * which some versions of cJSON refuse. */
static cJSON *parse_checked(struct str value)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    cJSON *parsed;

    json_add_plain(&text, value);
    parsed = cJSON_ParseWithLengthOpts(buf_c(&text), text.len + 1, NULL, true);
    buf_release(&text);
    return parsed;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const struct type {
    const char *name, *shown;
    int mask; /* bits of cJSON's types */
} types[] = {
    {"string", "a string", cJSON_String},
    {"number", "a number", cJSON_Number},
    {"integer", "an integer", cJSON_Number},
    {"boolean", "a boolean", cJSON_True | cJSON_False},
    {"object", "an object", cJSON_Object},
    {"array", "an array", cJSON_Array},
    {"null", "null", cJSON_NULL},
};

/* Returns NULL if the value does not name a type. */
static const struct type *type_named(const cJSON *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types && cJSON_IsString(name); i++)
        if (strcmp(types[i].name, name->valuestring) == 0)
            return &types[i];
    return NULL;
}

/* ---- mistakes ---- */

/* A walk through a schema while it is loaded, or through an answer while it is checked. */
struct walk {
    struct schema *schema;
    struct buf why;      /* the last mistake: `/items/3: is not a number` */
    size_t level;        /* how many names and indexes its path has */
    size_t depth, steps; /* how many schemas are being applied, and how many were applied */
};

/* Notes a mistake. Returns false. */
static bool mistake(struct walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool mistake(struct walk *w, const char *fmt, ...)
{
    va_list ap;

    buf_clear(&w->why);
    va_start(ap, fmt);
    buf_vaddf(&w->why, fmt, ap);
    va_end(ap);
    w->level = 0;
    return false;
}

/* Puts the name or the index of the part that has the mistake before its path, which is a JSON
 * pointer (RFC 6901). Returns false. */
static bool mistake_in(struct walk *w, const cJSON *part, size_t index)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    buf_add_byte(&text, '/');
    if (!part->string)
        buf_add_number(&text, index);
    for (const char *p = part->string; p && *p; p++)
        if (*p == '~' || *p == '/')
            buf_add_c(&text, *p == '~' ? "~0" : "~1");
        else
            buf_add_byte(&text, *p);
    buf_add_c(&text, w->level++ > 0 ? "" : ": ");
    buf_add_str(&text, buf_str(&w->why));
    buf_release(&w->why);
    w->why = text;
    return false;
}

/* Notes a mistake with the value that a keyword wants. Returns false. */
static bool mismatch(struct walk *w, const char *what, const cJSON *want)
{
    char *text = cJSON_PrintUnformatted(want);
    struct str all = str_of(text), shown = utf8_first(all, SHOWN_MAX);

    mistake(w, "%s%.*s%s", what, (int)shown.n, shown.p, shown.n < all.n ? "…" : "");
    cJSON_free(text);
    return false;
}

/* ---- keywords ---- */

/* A value in the answer that a schema is applied to. */
struct target {
    const cJSON *value;
    const cJSON *schema; /* an object */
};

static bool apply(struct walk *w, const cJSON *schema, const cJSON *value);

static bool check_type(struct walk *w, const struct target *t, const cJSON *want)
{
    struct buf names = BUF_INIT(BUF_SMALL);
    double d = t->value->valuedouble;
    bool held = false;

    for (const cJSON *name = cJSON_IsArray(want) ? want->child : want; name && !held;
         name = name == want ? NULL : name->next) {
        const struct type *type = type_named(name);

        held = (t->value->type & type->mask) &&
               (strcmp(type->name, "integer") != 0 || d >= EXACT_MAX || d <= -EXACT_MAX ||
                d == (double)(int64_t)d);
        buf_addf(&names, "%s%s", names.len ? " or " : "", type->shown);
    }
    if (!held)
        mistake(w, "is not %s", buf_c(&names));
    buf_release(&names);
    return held;
}

/* cJSON_Compare accepts numbers that are only close. Inside arrays and objects that is good enough.
 * */
static bool is_same(const cJSON *a, const cJSON *b)
{
    return cJSON_IsNumber(a) && cJSON_IsNumber(b) ? a->valuedouble == b->valuedouble
                                                  : cJSON_Compare(a, b, true);
}

static bool check_enum(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *one = want->child; one; one = one->next)
        if (is_same(one, t->value))
            return true;
    return mismatch(w, "is none of ", want);
}

static bool check_const(struct walk *w, const struct target *t, const cJSON *want)
{
    return is_same(want, t->value) || mismatch(w, "is not ", want);
}

/* minimum, maximum, exclusiveMinimum and exclusiveMaximum */
static bool check_bound(struct walk *w, const struct target *t, const cJSON *want)
{
    bool least = strstr(want->string, "inimum"), exclusive = want->string[0] == 'e';
    double got = t->value->valuedouble, bound = want->valuedouble;

    if (least ? got > bound : got < bound)
        return true;
    if (exclusive)
        return mismatch(w, least ? "is not more than " : "is not less than ", want);
    return got == bound || mismatch(w, least ? "is less than " : "is more than ", want);
}

/* minItems and maxItems */
static bool check_count(struct walk *w, const struct target *t, const cJSON *want)
{
    bool most = want->string[1] == 'a';
    int count = cJSON_GetArraySize(t->value);

    return (most ? count <= want->valuedouble : count >= want->valuedouble) ||
           mistake(w, "has %d item%s, not at %s %.0f", count, count == 1 ? "" : "s",
                   most ? "most" : "least", want->valuedouble);
}

static bool check_required(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *name = want->child; name; name = name->next)
        if (!member(t->value, name->valuestring))
            return mismatch(w, "has no ", name);
    return true;
}

static bool check_properties(struct walk *w, const struct target *t, const cJSON *want)
{
    for (const cJSON *part = t->value->child; part; part = part->next) {
        const cJSON *schema = member(want, part->string);

        if (schema && !apply(w, schema, part))
            return mistake_in(w, part, 0);
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
        if (!member(named, part->string) && !apply(w, want, part))
            return mistake_in(w, part, 0);
    return true;
}

/* The first items belong to prefixItems, and that is not checked. */
static bool check_items(struct walk *w, const struct target *t, const cJSON *want)
{
    size_t i = 0;

    if (member(t->schema, "prefixItems"))
        return true;
    for (const cJSON *part = t->value->child; part; part = part->next, i++)
        if (!apply(w, want, part))
            return mistake_in(w, part, i);
    return true;
}

/* If no schema holds, the message is about the mistake that lies deepest in the value, because that
 * schema is most likely the one that was meant. */
static bool check_any_of(struct walk *w, const struct target *t, const cJSON *want)
{
    struct buf deepest = BUF_INIT(SIZE_MAX);
    size_t level = 0;
    bool any = false;

    for (const cJSON *schema = want->child; schema && !any; schema = schema->next) {
        any = apply(w, schema, t->value);
        if (!any && w->level > level) {
            level = w->level;
            buf_set(&deepest, buf_str(&w->why));
        }
    }
    if (!any && w->steps <= STEPS_MAX) {
        mistake(w, "matches none of 'anyOf'");
        if (level > 0)
            buf_set(&w->why, buf_str(&deepest));
        w->level = level;
    }
    buf_release(&deepest);
    return any;
}

/* Returns whether this is `#`, `#/$defs/NAME` or `#/definitions/NAME`, as model providers accept.
 * Other references are not checked, and neither are names that a JSON pointer or a URL writes with
 * escapes. */
static bool is_known_ref(const char *ref)
{
    size_t n = str_starts(str_of(ref), STR("#/$defs/"))         ? 8
               : str_starts(str_of(ref), STR("#/definitions/")) ? 14
                                                                : 0;

    return strcmp(ref, "#") == 0 || (n > 0 && !strpbrk(ref + n, "/~%"));
}

/* Returns the schema that such a reference leads to, or NULL. */
static cJSON *follow_ref(const struct schema *s, const char *ref)
{
    const char *name = strrchr(ref, '/');
    const cJSON *place = member(s->root, ref[1] && ref[2] == '$' ? "$defs" : "definitions");

    return name ? cJSON_GetObjectItemCaseSensitive(place, name + 1) : s->root;
}

static bool check_ref(struct walk *w, const struct target *t, const cJSON *want)
{
    return !is_known_ref(want->valuestring) ||
           apply(w, follow_ref(w->schema, want->valuestring), t->value);
}

#define ANY 0xff

/* What the value of a keyword is. */
enum form {
    FORM_UNCHECKED, /* not checked here */
    FORM_ANY,
    FORM_NUMBER,
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
    {"required", FORM_NAMES, cJSON_Object, BOTH, check_required},
    {"properties", FORM_SCHEMA_MAP, cJSON_Object, BOTH, check_properties},
    {"additionalProperties", FORM_SCHEMA, cJSON_Object, BOTH, check_additional},
    {"items", FORM_SCHEMA, cJSON_Array, BOTH, check_items},
    {"minItems", FORM_NUMBER, cJSON_Array, BOTH, check_count},
    {"maxItems", FORM_NUMBER, cJSON_Array, STRICT, check_count},
    {"multipleOf", FORM_UNCHECKED, 0, STRICT, NULL},
    {"pattern", FORM_UNCHECKED, 0, STRICT, NULL},
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

static const struct keyword *keyword_named(const char *name)
{
    static const struct keyword unknown = {.form = FORM_UNCHECKED};

    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return &keywords[i];
    return &unknown;
}

/* Applies a schema to a value. Returns false, with the mistake noted, if the value is not valid. */
static bool apply(struct walk *w, const cJSON *schema, const cJSON *value)
{
    struct target t = {value, schema};
    bool held = true;

    if (cJSON_IsBool(schema))
        return cJSON_IsTrue(schema) || mistake(w, "is not allowed");
    if (w->depth > DEPTH_MAX)
        w->steps = STEPS_MAX; /* no other schema is applied, so that this is the last mistake */
    if (++w->steps > STEPS_MAX)
        return mistake(w, "takes too long to check");
    w->depth++;
    for (const cJSON *want = schema->child; want && held; want = want->next) {
        const struct keyword *keyword = keyword_named(want->string);

        if (keyword->applies & value->type & 0xff)
            held = keyword->check(w, &t, want);
    }
    w->depth--;
    return held;
}

/* ---- loading a schema ---- */

static const char *types_mistake(const cJSON *value)
{
    const cJSON *name = cJSON_IsArray(value) ? value->child : value;

    if (!cJSON_IsString(value) && (!cJSON_IsArray(value) || !name))
        return "is neither a type nor an array of types";
    for (; name; name = name == value ? NULL : name->next)
        if (!type_named(name))
            return "names no type";
    return NULL;
}

/* Returns the mistake in the value of a keyword, or NULL. Schemas inside it are checked elsewhere.
 * */
static const char *form_mistake(enum form form, const cJSON *value)
{
    bool strings = cJSON_IsArray(value);

    for (const cJSON *one = value->child; one; one = one->next)
        strings = strings && cJSON_IsString(one);
    switch (form) {
    case FORM_NUMBER:
        return cJSON_IsNumber(value) ? NULL : "is not a number";
    case FORM_REF:
        return cJSON_IsString(value) ? NULL : "is not a string";
    case FORM_TYPES:
        return types_mistake(value);
    case FORM_NAMES:
        return strings ? NULL : "is not an array of strings";
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

/* The state of an object in the schema while its references are followed, in the member valueint,
 * which cJSON uses for numbers only: it was entered, or left, in one of the two ways. */
#define ENTERED(deep) ((deep) ? 3 : 1)
#define LEFT(deep) ((deep) ? 4 : 2)

/* Follows the references of a schema, or with `deep` also those of the schemas inside it, whether
 * they are valid or not. Returns false if they lead back into it. Without `deep`, it would be
 * applied to the same value without end. */
static bool ends(struct walk *w, cJSON *schema, bool deep)
{
    bool held = true;

    if (!cJSON_IsObject(schema) || schema->valueint == LEFT(deep))
        return true;
    if (schema->valueint == ENTERED(deep) || w->depth > DEPTH_MAX)
        return false;
    schema->valueint = ENTERED(deep);
    w->depth++;
    for (cJSON *value = schema->child; value && held; value = value->next) {
        const struct keyword *keyword = keyword_named(value->string);

        if (!deep && keyword->applies != ANY)
            continue;
        if (keyword->form == FORM_REF && cJSON_IsString(value) && is_known_ref(value->valuestring))
            held = ends(w, follow_ref(w->schema, value->valuestring), deep);
        if (keyword->form == FORM_SCHEMA)
            held = ends(w, value, deep);
        if (keyword->form == FORM_SCHEMA_LIST || keyword->form == FORM_SCHEMA_MAP)
            for (cJSON *one = value->child; one && held; one = one->next)
                held = ends(w, one, deep);
    }
    w->depth--;
    schema->valueint = LEFT(deep);
    return held;
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

static bool load_schema(struct walk *w, cJSON *schema);

static bool load_keyword(struct walk *w, cJSON *value)
{
    const struct keyword *keyword = keyword_named(value->string);
    const char *why = form_mistake(keyword->form, value), *ref = value->valuestring;
    size_t i = 0;

    if (why)
        return mistake(w, "%s", why);
    if (keyword->form == FORM_UNCHECKED)
        add_unchecked(w->schema, value->string);
    w->schema->fits &= keyword->fits;
    if (strcmp(value->string, "minItems") == 0 && value->valuedouble > 1)
        w->schema->fits &= ~(unsigned)SCHEMA_ANTHROPIC;
    if (keyword->form == FORM_REF && *ref != '#')
        return mistake(w, "'%s' is another file, and only this one is read", ref);
    if (keyword->form == FORM_REF && !is_known_ref(ref)) {
        w->schema->fits = 0;
        add_unchecked(w->schema, "$ref");
    } else if (keyword->form == FORM_REF) {
        cJSON *target = follow_ref(w->schema, ref);

        if (!target)
            return mistake(w, "there is no '%s'", ref);
        if (!ends(w, target, false))
            return mistake(w, "'%s' refers to itself without end", ref);
    }
    if (keyword->form == FORM_SCHEMA)
        return load_schema(w, value);
    if (keyword->form != FORM_SCHEMA_LIST && keyword->form != FORM_SCHEMA_MAP)
        return true;
    for (cJSON *schema = value->child; schema; schema = schema->next, i++)
        if (!(schema->string && member(value, schema->string) != schema
                  ? mistake(w, "is there twice")
                  : load_schema(w, schema)))
            return mistake_in(w, schema, i);
    return true;
}

/* Returns whether this text is the value, or an element of it. */
static bool names(const cJSON *value, const char *text)
{
    const cJSON *one = cJSON_IsArray(value) ? value->child : value;

    for (; one; one = one == value ? NULL : one->next)
        if (cJSON_IsString(one) && strcmp(one->valuestring, text) == 0)
            return true;
    return false;
}

/* Checks the value of each keyword in a schema and in the schemas inside it. Returns false, with
 * the mistake noted, if one is wrong. Every object has to exclude other members, and for
 * SCHEMA_STRICT it has to require all of its properties. */
static bool load_schema(struct walk *w, cJSON *schema)
{
    const cJSON *properties = member(schema, "properties");
    const cJSON *additional = member(schema, "additionalProperties");
    unsigned *fits = &w->schema->fits;

    if (!cJSON_IsBool(schema) && !cJSON_IsObject(schema))
        return mistake(w, "is not a schema: neither an object nor a boolean");
    /* `additionalProperties: false` is a keyword for the services; other booleans are schemas. */
    if (cJSON_IsBool(schema) && !(cJSON_IsFalse(schema) && schema->string &&
                                  strcmp(schema->string, "additionalProperties") == 0))
        *fits = 0;
    if (cJSON_IsBool(schema))
        return true;
    if ((properties || names(member(schema, "type"), "object")) ? !cJSON_IsFalse(additional)
                                                                : additional != NULL)
        *fits = 0;
    for (const cJSON *p = properties ? properties->child : NULL; p; p = p->next)
        if (!names(member(schema, "required"), p->string))
            *fits &= ~(unsigned)SCHEMA_STRICT;
    for (cJSON *value = schema->child; value; value = value->next)
        if (!(member(schema, value->string) == value ? load_keyword(w, value)
                                                     : mistake(w, "is there twice")))
            return mistake_in(w, value, 0);
    return true;
}

/* ---- the whole ---- */

/* Parses s->text. Returns false, with the mistake noted, if it is not a schema. */
static bool load_text(struct walk *w)
{
    struct schema *s = w->schema;
    size_t at;

    if (s->text.overflow)
        return mistake(w, "is over 64 MiB");
    if (!json_check(buf_str(&s->text), &s->value, &at))
        return mistake(w, "is not JSON at byte %zu", at);
    s->root = parse_checked(s->value);
    if (!s->root)
        return mistake(w, "has a number that is too long");
    s->fits = SCHEMA_STRICT | SCHEMA_ANTHROPIC;
    if (!load_schema(w, s->root))
        return false;
    if (!names(member(s->root, "type"), "object") || member(s->root, "anyOf"))
        s->fits &= ~(unsigned)SCHEMA_STRICT;
    if (!ends(w, s->root, true))
        s->fits &= ~(unsigned)SCHEMA_ANTHROPIC;
    return true;
}

struct schema *schema_new(struct str text, struct err *e)
{
    struct schema *s = mem_zalloc(sizeof *s);
    struct walk w = {.schema = s, .why = BUF_INIT(SIZE_MAX)};

    buf_init(&s->text, BUF_LINE);
    buf_init(&s->unchecked, BUF_SMALL);
    buf_add_str(&s->text, text);
    if (!load_text(&w)) {
        err_set(e, ERR_USAGE, "%s", buf_c(&w.why));
        schema_free(s);
        s = NULL;
    }
    buf_release(&w.why);
    return s;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    cJSON_Delete(s->root);
    buf_release(&s->text);
    buf_release(&s->unchecked);
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

int schema_check(struct schema *s, struct str answer, struct err *e)
{
    struct walk w = {.schema = s, .why = BUF_INIT(SIZE_MAX)};
    cJSON *parsed = NULL;
    struct str value;
    bool held = false;
    size_t at;

    if (!json_check(answer, &value, &at))
        mistake(&w, "is not JSON at byte %zu", at);
    else if (!(parsed = parse_checked(value)))
        mistake(&w, "has a number that is too long");
    else
        held = apply(&w, s->root, parsed);
    if (!held)
        err_set(e, ERR_FAILURE, "%s", buf_c(&w.why));
    cJSON_Delete(parsed);
    buf_release(&w.why);
    return held ? 0 : -1;
}
