#include "llm/schema_assert.h"

#include <stdlib.h>

#include "chathist/base/decimal.h"
#include "chathist/base/json_same.h"
#include "chathist/base/mem.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"

/* The most of a wanted value that a message shows, in code points. */
#define SHOWN_MAX 200

/* Adds a value of the schema for a message. */
static void add_shown(struct buf *out, struct str value)
{
    struct buf compact = BUF_INIT(BUF_LINE);
    struct str all, shown;

    json_add_compact(&compact, value);
    all = buf_str(&compact);
    shown = utf8_first(all, SHOWN_MAX);
    buf_add_str(out, shown);
    if (shown.n < all.n)
        buf_add_c(out, "…");
    buf_release(&compact);
}

static bool fail_with(const struct schema_at *at, const char *what, struct str value)
{
    struct buf text = BUF_INIT(BUF_LINE);

    if (!at->run->quiet) {
        add_shown(&text, value);
        schema_fail(at->run, at->place, "%s%s", what, buf_c(&text));
    }
    buf_release(&text);
    return false;
}

/* ---- any value ---- */

static bool check_type(const struct schema_at *at)
{
    unsigned types = schema_types_of(at->want);
    struct buf names = BUF_INIT(BUF_SMALL);
    bool held = schema_types_have(at->got) & types;

    if (!held) {
        schema_add_types(&names, types);
        schema_fail(at->run, at->place, "is not %s", buf_c(&names));
    }
    buf_release(&names);
    return held;
}

static bool check_enum(const struct schema_at *at)
{
    for (struct json_iter it = json_iter(at->want); json_next(&it);)
        if (json_same(it.value, at->got))
            return true;
    return fail_with(at, "is none of ", at->want);
}

/* ---- numbers ---- */

static bool check_bound(enum schema_keyword_id id, const struct schema_at *at)
{
    struct decimal got = decimal_of(at->got), want = decimal_of(at->want);
    int order = decimal_compare(&got, &want);

    switch (id) {
    case KW_MAXIMUM:
        return order <= 0 || fail_with(at, "is more than ", at->want);
    case KW_EXCLUSIVE_MAXIMUM:
        return order < 0 || fail_with(at, "is not less than ", at->want);
    case KW_MINIMUM:
        return order >= 0 || fail_with(at, "is less than ", at->want);
    case KW_EXCLUSIVE_MINIMUM:
        return order > 0 || fail_with(at, "is not more than ", at->want);
    default:
        return decimal_is_multiple(&got, &want) || fail_with(at, "is no multiple of ", at->want);
    }
}

/* ---- strings ---- */

static bool check_pattern(const struct schema_at *at)
{
    struct regex *re = schema_index_pattern(at->run->schema, at->want);
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = json_text(at->got, &scratch);
    struct err e = ERR_INIT;
    size_t start, len;
    int found = regex_find(re, text, 0, true, &start, &len, &e);

    if (found == 0)
        fail_with(at, "does not match the pattern ", at->want);
    else if (found < 0)
        schema_stop(at->run, at->place, err_text(&e));
    err_release(&e);
    buf_release(&scratch);
    return found == 1;
}

/* ---- how many ---- */

static size_t count_parts(struct str value)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(value);
    size_t count = 0;

    if (json_type(value) == JSON_STRING)
        count = utf8_count(json_text(value, &scratch));
    while (json_next(&it))
        count++;
    buf_release(&scratch);
    return count;
}

static bool check_count(const struct schema_at *at, bool at_most, const char *parts)
{
    size_t count = count_parts(at->got);
    int64_t bound;

    /* A bound beyond 64 bits is beyond what is counted. */
    if (!json_int(at->want, &bound))
        bound = INT64_MAX;
    if (at_most ? (uint64_t)count <= (uint64_t)bound : (uint64_t)count >= (uint64_t)bound)
        return true;
    return schema_fail(at->run, at->place, "has %zu %s%s, not at %s %lld", count, parts,
                       count == 1 ? "" : "s", at_most ? "most" : "least", (long long)bound);
}

static bool check_unique(const struct schema_at *at)
{
    struct buf texts = BUF_INIT(JSON_SAME_MAX);
    struct keymap seen = {0};
    size_t *ends = NULL, cap = 0, count = 0, start = 0, first = 0, again = 0;
    bool unique = true;

    if (!json_is_true(at->want))
        return true;
    for (struct json_iter it = json_iter(at->got); json_next(&it); count++) {
        json_add_same(&texts, it.value);
        ends = mem_grow(ends, &cap, count + 1, sizeof *ends);
        ends[count] = texts.len;
    }
    for (; again < count && unique; start = ends[again++]) {
        struct str text = {buf_c(&texts) + start, ends[again] - start};
        size_t *other = keymap_find(&seen, text);

        unique = !other;
        if (other)
            first = *other;
        else
            keymap_set(&seen, text, again);
    }
    keymap_release(&seen);
    free(ends);
    if (texts.overflow)
        unique =
            schema_stop(at->run, at->place, "is too large to look for items that are the same");
    buf_release(&texts);
    return unique ||
           schema_fail(at->run, at->place, "items %zu and %zu are the same", first, again - 1);
}

/* ---- names of members ---- */

static struct str raw_name(struct str string)
{
    return (struct str){string.p + 1, string.n - 2};
}

static bool has_all(const struct schema_at *at, struct str names)
{
    for (struct json_iter it = json_iter(names); json_next(&it);)
        if (!json_get_same(at->got, raw_name(it.value)).p)
            return fail_with(at, "has no ", it.value);
    return true;
}

static bool check_dependent(const struct schema_at *at)
{
    for (struct json_iter it = json_iter(at->want); json_next(&it);)
        if (json_get_same(at->got, it.key).p && !has_all(at, it.value))
            return false;
    return true;
}

bool schema_assert(enum schema_keyword_id id, const struct schema_at *at)
{
    switch (id) {
    case KW_TYPE:
        return check_type(at);
    case KW_ENUM:
        return check_enum(at);
    case KW_CONST:
        return json_same(at->want, at->got) || fail_with(at, "is not ", at->want);
    case KW_MULTIPLE_OF:
    case KW_MAXIMUM:
    case KW_EXCLUSIVE_MAXIMUM:
    case KW_MINIMUM:
    case KW_EXCLUSIVE_MINIMUM:
        return check_bound(id, at);
    case KW_MAX_LENGTH:
    case KW_MIN_LENGTH:
        return check_count(at, id == KW_MAX_LENGTH, "character");
    case KW_PATTERN:
        return check_pattern(at);
    case KW_MAX_ITEMS:
    case KW_MIN_ITEMS:
        return check_count(at, id == KW_MAX_ITEMS, "item");
    case KW_UNIQUE_ITEMS:
        return check_unique(at);
    case KW_MAX_PROPERTIES:
    case KW_MIN_PROPERTIES:
        return check_count(at, id == KW_MAX_PROPERTIES, "member");
    case KW_REQUIRED:
        return has_all(at, at->want);
    case KW_DEPENDENT_REQUIRED:
        return check_dependent(at);
    default:
        return true;
    }
}
