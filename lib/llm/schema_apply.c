#include "llm/schema_apply.h"

#include "chathist/base/json_same.h"
#include "chathist/base/regex.h"
#include "llm/schema_assert.h"
#include "llm/schema_keyword.h"
#include "llm/schema_link.h"

/* ---- schemas for the value itself ---- */

static bool apply_here(const struct schema_at *at, struct str schema)
{
    return schema_apply(at->run, schema, at->place, at->got, at->marks);
}

/* The same, with nothing said when it does not hold. */
static bool try_here(const struct schema_at *at, struct str schema)
{
    size_t quiet = at->run->quiet;
    bool held;

    at->run->quiet++;
    held = apply_here(at, schema);
    at->run->quiet = quiet;
    return held;
}

static bool all_of(const struct schema_at *at)
{
    for (struct json_iter it = json_iter(at->want); json_next(&it);)
        if (!apply_here(at, it.value))
            return false;
    return true;
}

/*
 * Of what is wrong with each of several schemas, that is told which lies deepest, for it comes of
 * the schema that was meant. At the value itself it would be no better than to say that none holds.
 */
struct deepest {
    struct buf why;
    size_t depth;
};

static bool try_one(const struct schema_at *at, struct str schema, struct deepest *deepest)
{
    struct schema_run *run = at->run;
    bool held = apply_here(at, schema);

    if (run->quiet || run->stopped)
        return held;
    if (!held && run->why_depth > deepest->depth) {
        deepest->depth = run->why_depth;
        buf_clear(&deepest->why);
        buf_add_str(&deepest->why, buf_str(&run->why));
    }
    schema_forget(run);
    return held;
}

static bool fail_any(const struct schema_at *at, const char *keyword, const struct deepest *deepest)
{
    struct schema_run *run = at->run;

    if (run->quiet || run->stopped || deepest->why.len == 0)
        return schema_fail(run, at->place, "matches none of '%s'", keyword);
    buf_add_str(&run->why, buf_str(&deepest->why));
    run->why_depth = deepest->depth;
    return false;
}

static bool any_of(const struct schema_at *at)
{
    struct deepest deepest = {BUF_INIT(BUF_LINE), schema_place_depth(at->place)};
    bool any = false;

    for (struct json_iter it = json_iter(at->want); json_next(&it);) {
        any = try_one(at, it.value, &deepest) || any;
        /* Each that holds tells what it has looked at, if anybody asks. */
        if (at->run->stopped || (any && !at->marks))
            break;
    }
    if (!any)
        fail_any(at, "anyOf", &deepest);
    buf_release(&deepest.why);
    return any;
}

static bool one_of(const struct schema_at *at)
{
    struct deepest deepest = {BUF_INIT(BUF_LINE), schema_place_depth(at->place)};
    size_t count = 0, first = 0, second = 0, i = 0;

    for (struct json_iter it = json_iter(at->want); json_next(&it) && count < 2; i++) {
        if (!try_one(at, it.value, &deepest))
            continue;
        if (count++ == 0)
            first = i;
        else
            second = i;
    }
    if (count == 0)
        fail_any(at, "oneOf", &deepest);
    else if (count == 2)
        schema_fail(at->run, at->place, "matches two of 'oneOf', %zu and %zu", first, second);
    buf_release(&deepest.why);
    return count == 1;
}

static bool check_not(const struct schema_at *at)
{
    struct schema_at blind = *at;

    blind.marks = NULL;
    return !try_here(&blind, at->want) ||
           schema_fail(at->run, at->place, "is what 'not' rules out");
}

static bool check_if(const struct schema_at *at)
{
    struct str next = json_get(at->node->value, try_here(at, at->want) ? "then" : "else");

    return !next.p || apply_here(at, next);
}

static bool dependent_schemas(const struct schema_at *at)
{
    for (struct json_iter it = json_iter(at->want); json_next(&it);)
        if (json_get_same(at->got, it.key).p && !apply_here(at, it.value))
            return false;
    return true;
}

/* ---- schemas for members ---- */

static bool apply_part(const struct schema_at *at, struct str schema, const struct json_iter *part,
                       size_t i)
{
    struct schema_place place = {at->place, part->key, i};

    if (at->marks)
        schema_mark(at->marks, i);
    /* `false` for a member says that it must not be there. */
    if (str_eq(schema, STR("false")))
        return schema_fail(at->run, &place, "is not allowed");
    return schema_apply(at->run, schema, &place, part->value, NULL);
}

static bool properties(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got);

    for (size_t i = 0; json_next(&it); i++) {
        struct str schema = json_get_same(at->want, it.key);

        if (schema.p && !apply_part(at, schema, &it, i))
            return false;
    }
    return true;
}

/* Does the name of a member match the expression that is the name of another? */
static bool name_matches(const struct schema_at *at, struct str raw_pattern, struct str raw_name)
{
    struct regex *re =
        schema_index_pattern(at->run->schema, (struct str){raw_pattern.p - 1, raw_pattern.n + 2});
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name = json_text((struct str){raw_name.p - 1, raw_name.n + 2}, &scratch);
    struct err e = ERR_INIT;
    size_t start, len;
    int found = regex_find(re, name, 0, true, &start, &len, &e);

    if (found < 0)
        schema_stop(at->run, at->place, err_text(&e));
    err_release(&e);
    buf_release(&scratch);
    return found == 1;
}

static bool pattern_properties(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got);

    for (size_t i = 0; json_next(&it); i++)
        for (struct json_iter p = json_iter(at->want); json_next(&p);)
            if (name_matches(at, p.key, it.key) && !apply_part(at, p.value, &it, i))
                return false;
    return true;
}

/* Is the member one that `properties` or `patternProperties` beside the keyword is for? */
static bool is_named(const struct schema_at *at, struct str raw_name)
{
    struct json_iter p = json_iter(json_get(at->node->value, "patternProperties"));

    if (json_get_same(json_get(at->node->value, "properties"), raw_name).p)
        return true;
    while (json_next(&p))
        if (name_matches(at, p.key, raw_name))
            return true;
    return false;
}

static bool additional_properties(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got);

    for (size_t i = 0; json_next(&it); i++)
        if (!is_named(at, it.key) && !apply_part(at, at->want, &it, i))
            return false;
    return true;
}

static bool property_names(const struct schema_at *at)
{
    struct schema_at quiet = *at;

    quiet.marks = NULL;
    for (struct json_iter it = json_iter(at->got); json_next(&it);) {
        struct schema_place place = {at->place, it.key, 0};

        quiet.place = &place;
        quiet.got = (struct str){it.key.p - 1, it.key.n + 2};
        if (!try_here(&quiet, at->want))
            return schema_fail(at->run, &place, "has a name that is not allowed");
    }
    return true;
}

/* ---- schemas for elements ---- */

static bool prefix_items(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got), schemas = json_iter(at->want);

    for (size_t i = 0; json_next(&schemas) && json_next(&it); i++)
        if (!apply_part(at, schemas.value, &it, i))
            return false;
    return true;
}

static bool items(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got);
    struct json_iter prefix = json_iter(json_get(at->node->value, "prefixItems"));

    for (size_t i = 0; json_next(&it); i++)
        if (!json_next(&prefix) && !apply_part(at, at->want, &it, i))
            return false;
    return true;
}

static int64_t bound(const struct schema_at *at, const char *keyword, int64_t otherwise)
{
    struct str value = json_get(at->node->value, keyword);
    int64_t n;

    if (!value.p)
        return otherwise;
    return json_int(value, &n) ? n : INT64_MAX;
}

static bool contains(const struct schema_at *at)
{
    int64_t least = bound(at, "minContains", 1), most = bound(at, "maxContains", INT64_MAX);
    struct json_iter it = json_iter(at->got);
    size_t quiet = at->run->quiet;
    int64_t count = 0;

    at->run->quiet++;
    for (size_t i = 0; json_next(&it); i++) {
        struct schema_place place = {at->place, STR_NONE, i};

        if (!schema_apply(at->run, at->want, &place, it.value, NULL))
            continue;
        count++;
        if (at->marks)
            schema_mark(at->marks, i);
    }
    at->run->quiet = quiet;
    if (count < least || count > most)
        return schema_fail(at->run, at->place,
                           "has %lld items as 'contains' asks for, not at %s %lld",
                           (long long)count, count < least ? "least" : "most",
                           (long long)(count < least ? least : most));
    return true;
}

static bool unevaluated(const struct schema_at *at)
{
    struct json_iter it = json_iter(at->got);

    for (size_t i = 0; json_next(&it); i++)
        if (!schema_marked(at->marks, i) && !apply_part(at, at->want, &it, i))
            return false;
    return true;
}

/* ---- all keywords ---- */

static bool apply_keyword(enum schema_keyword_id id, const struct schema_at *at)
{
    switch (id) {
    case KW_REF:
        return apply_here(at, at->node->ref);
    case KW_DYNAMIC_REF:
        return apply_here(
            at, schema_link_dynamic(at->run->schema, at->node, at->run->scope, at->run->depth));
    case KW_ALL_OF:
        return all_of(at);
    case KW_ANY_OF:
        return any_of(at);
    case KW_ONE_OF:
        return one_of(at);
    case KW_NOT:
        return check_not(at);
    case KW_IF:
        return check_if(at);
    case KW_DEPENDENT_SCHEMAS:
        return dependent_schemas(at);
    case KW_PROPERTIES:
        return properties(at);
    case KW_PATTERN_PROPERTIES:
        return pattern_properties(at);
    case KW_ADDITIONAL_PROPERTIES:
        return additional_properties(at);
    case KW_PROPERTY_NAMES:
        return property_names(at);
    case KW_PREFIX_ITEMS:
        return prefix_items(at);
    case KW_ITEMS:
        return items(at);
    case KW_CONTAINS:
        return contains(at);
    case KW_UNEVALUATED_PROPERTIES:
    case KW_UNEVALUATED_ITEMS:
        return unevaluated(at);
    default:
        return schema_assert(id, at);
    }
}

/* Applies the keywords that come last, or the others. */
static bool apply_keywords(struct schema_at *at, bool last)
{
    unsigned type = 1U << json_type(at->got);

    for (struct json_iter it = json_iter(at->node->value); json_next(&it);) {
        enum schema_keyword_id id = schema_keyword_find(it.key);

        if (id == KW_COUNT || !(schema_keyword_at(id)->applies & type) ||
            (id == KW_UNEVALUATED_ITEMS || id == KW_UNEVALUATED_PROPERTIES) != last)
            continue;
        at->want = it.value;
        if (!apply_keyword(id, at) || at->run->stopped)
            return false;
    }
    return true;
}

static bool apply_object(struct schema_run *run, const struct schema_node *node,
                         const struct schema_place *place, struct str value,
                         struct schema_marks *marks)
{
    struct schema_marks own = {0};
    struct schema_at at = {run, node, STR_NONE, value, place, NULL};
    bool held;

    if (run->schema->unevaluated && json_iter(value).rest.n > 0) {
        schema_marks_fit(&own, value);
        at.marks = &own;
    }
    held = apply_keywords(&at, false) && (!at.marks || apply_keywords(&at, true));
    if (held && marks)
        schema_marks_join(marks, &own);
    schema_marks_release(&own);
    return held;
}

bool schema_apply(struct schema_run *run, struct str schema, const struct schema_place *place,
                  struct str value, struct schema_marks *marks)
{
    const struct schema_node *node;
    bool held;

    if (run->stopped)
        return false;
    if (str_eq(schema, STR("true")))
        return true;
    if (str_eq(schema, STR("false")))
        return schema_fail(run, place, "is not allowed");
    if (run->depth > SCHEMA_DEPTH)
        return schema_stop(run, NULL, "is nested too deeply for the schema");
    if (run->steps++ > SCHEMA_STEPS)
        return schema_stop(run, NULL, "takes too long to check");
    node = schema_index_find(run->schema, schema);
    run->scope[run->depth++] = node->resource;
    held = apply_object(run, node, place, value, marks);
    run->depth--;
    return held;
}
