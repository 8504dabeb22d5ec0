/*
 * json: what json_check accepts is walked, decoded, written and made compact, and must be accepted
 * and mean the same again; what it refuses must be refused at a place inside the text.
 */
#include <stdint.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str checked(const struct buf *b)
{
    struct str value = STR_NONE;

    demand(json_check(buf_str(b), &value, NULL));
    demand(str_eq(value, buf_str(b)));
    return value;
}

/* A decoded string is valid UTF-8, and the same after it was written and read. */
static void try_string(struct str value)
{
    struct buf text = BUF_INIT(SIZE_MAX), again = BUF_INIT(SIZE_MAX);
    struct buf json = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(SIZE_MAX);

    demand(json_decode(value, &text));
    demand(utf8_valid(buf_str(&text)) == text.len);
    demand(str_eq(json_text(value, &scratch), buf_str(&text)));
    json_add_string(&json, buf_str(&text));
    demand(json_decode(checked(&json), &again));
    demand(str_eq(buf_str(&text), buf_str(&again)));
    buf_clear(&again);
    buf_clear(&scratch);
    json_add_visible(&scratch, buf_str(&json));
    demand(json_decode(checked(&scratch), &again));
    demand(str_eq(buf_str(&text), buf_str(&again)));
    buf_release(&text);
    buf_release(&again);
    buf_release(&json);
    buf_release(&scratch);
}

static void try_number(struct str value)
{
    struct buf json = BUF_INIT(BUF_SMALL);
    int64_t n, again;

    if (!json_int(value, &n))
        return;
    buf_addf(&json, "%lld", (long long)n);
    demand(json_int(checked(&json), &again) && again == n);
    buf_release(&json);
}

/* Every part of a valid value is valid by itself, and is found by its key or place. */
static void try_value(struct str value)
{
    struct json_iter it = json_iter(value);
    struct str part;

    if (json_type(value) == JSON_STRING)
        try_string(value);
    else if (json_type(value) == JSON_NUMBER)
        try_number(value);
    for (size_t i = 0; json_next(&it); i++) {
        demand(json_check(it.value, &part, NULL) && str_eq(part, it.value));
        if (it.object)
            try_string((struct str){it.key.p - 1, it.key.n + 2});
        else if (i < 4)
            demand(json_at(value, i).p == it.value.p);
        try_value(it.value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct buf compact = BUF_INIT(SIZE_MAX), again = BUF_INIT(SIZE_MAX);
    struct str value;
    size_t at = SIZE_MAX;

    /* Any bytes can be made a string. */
    json_add_string(&compact, text);
    try_string(checked(&compact));
    buf_clear(&compact);
    if (json_check(text, &value, &at)) {
        try_value(value);
        json_add_compact(&compact, value);
        json_add_compact(&again, checked(&compact));
        demand(str_eq(buf_str(&compact), buf_str(&again)));
        demand(json_type(buf_str(&compact)) == json_type(value));
    } else {
        demand(at <= size);
        json_get(text, "content");
    }
    buf_release(&compact);
    buf_release(&again);
    return 0;
}
