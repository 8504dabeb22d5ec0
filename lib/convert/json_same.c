#include "convert/json_same.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"

/* A member of an object, to be sorted. */
struct member {
    struct str name; /* decoded; its bytes are in a buf of all names */
    struct str value;
    size_t place;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
    int order = n ? memcmp(x->name.p, y->name.p, n) : 0;

    if (order)
        return order;
    if (x->name.n != y->name.n)
        return x->name.n < y->name.n ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* Returns the JSON string whose text between the quotes is the raw key. */
static struct str key_string(struct str raw_key)
{
    return (struct str){raw_key.p - 1, raw_key.n + 2};
}

static void add_object(struct buf *out, struct str object)
{
    struct buf names = BUF_INIT(JSON_SAME_MAX);
    struct member *members = NULL;
    size_t count = 0, cap = 0, at = 0;

    for (struct json_iter it = json_iter(object); json_next(&it); count++) {
        size_t start = names.len;

        members = mem_grow(members, &cap, count + 1, sizeof *members);
        json_decode(key_string(it.key), &names);
        members[count] = (struct member){{NULL, names.len - start}, it.value, count};
    }
    for (size_t i = 0; i < count; at += members[i++].name.n)
        members[i].name.p = buf_c(&names) + at;
    if (count)
        qsort(members, count, sizeof *members, compare_members);
    buf_add_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && str_eq(members[i].name, members[i + 1].name))
            continue;
        json_add_string(out, members[i].name);
        buf_add_byte(out, ':');
        json_add_same(out, members[i].value);
        buf_add_byte(out, ',');
    }
    buf_add_byte(out, '}');
    free(members);
    buf_release(&names);
}

static void add_string(struct buf *out, struct str string)
{
    struct buf scratch = BUF_INIT(JSON_SAME_MAX);

    json_add_string(out, json_text(string, &scratch));
    buf_release(&scratch);
}

/* Numbers with more digits than a double has are the same only if their texts are. */
static void add_number(struct buf *out, struct str number)
{
    int64_t n;

    if (json_int(number, &n))
        buf_addf(out, "%lld", (long long)n);
    else if (number.n <= DBL_DECIMAL_DIG)
        buf_addf(out, "%.17g", strtod(number.p, NULL));
    else
        buf_add_str(out, number);
}

void json_add_same(struct buf *out, struct str value)
{
    struct json_iter it = json_iter(value);

    switch (json_type(value)) {
    case JSON_OBJECT:
        add_object(out, value);
        break;
    case JSON_ARRAY:
        buf_add_byte(out, '[');
        while (json_next(&it)) {
            json_add_same(out, it.value);
            buf_add_byte(out, ',');
        }
        buf_add_byte(out, ']');
        break;
    case JSON_STRING:
        add_string(out, value);
        break;
    case JSON_NUMBER:
        add_number(out, value);
        break;
    default:
        buf_add_str(out, value);
    }
}
