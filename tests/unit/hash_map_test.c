#include "chathist/base/hash_map.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "test.h"

TEST(an_empty_map_knows_nothing)
{
    struct hash_map m = {0};

    CHECK(hash_map_find(&m, STR("a")) == NULL);
    CHECK(hash_map_find(&m, STR_NONE) == NULL);
    hash_map_release(&m);
}

TEST(a_key_has_the_number_it_was_given_last)
{
    struct hash_map m = {0};

    hash_map_set(&m, STR("a"), 1);
    hash_map_set(&m, STR("a\0b"), 2);
    hash_map_set(&m, STR_NONE, 3);
    hash_map_set(&m, STR("a"), 4);
    CHECK_INT(m.count, 3);
    CHECK_INT(*hash_map_find(&m, STR("a")), 4);
    CHECK_INT(*hash_map_find(&m, STR("a\0b")), 2);
    CHECK_INT(*hash_map_find(&m, STR("")), 3);
    CHECK(hash_map_find(&m, STR("b")) == NULL);
    *hash_map_find(&m, STR("a")) = 5;
    CHECK_INT(*hash_map_find(&m, STR("a")), 5);
    hash_map_release(&m);
}

TEST(many_keys_are_told_apart)
{
    struct hash_map m = {0};
    size_t count = 50000;
    char(*keys)[16] = mem_zalloc(count * sizeof(*keys));
    bool right = true;

    for (size_t i = 0; i < count; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key%zu", i);
        hash_map_set(&m, str_of(keys[i]), i);
    }
    CHECK_INT(m.count, count);
    for (size_t i = 0; i < count; i++) {
        const size_t *value = hash_map_find(&m, str_of(keys[i]));

        right = right && value && *value == i;
    }
    CHECK(right);
    CHECK(hash_map_find(&m, STR("key50000")) == NULL);
    hash_map_release(&m);
    free(keys);
}

TEST(copied_keys_stay_where_they_are_and_in_order)
{
    struct hash_map m = {0};
    struct buf key = BUF_INIT(SIZE_MAX);
    struct str first = STR("key0");
    size_t count = 50000;
    bool right = true;

    CHECK_INT(hash_map_number(&m, &first), 0);
    for (size_t i = 0; i < count; i++) {
        struct str text;

        buf_clear(&key);
        buf_addf(&key, "key%zu", i);
        if (i % 1000 == 1)
            buf_addf(&key, "%100000s", "");
        text = buf_str(&key);
        right = right && hash_map_number(&m, &text) == i && text.p != key.data && !text.p[text.n];
        right = right && !hash_map_add(&m, buf_str(&key));
    }
    CHECK_INT(m.count, count);
    CHECK(m.entries[0].key.p == first.p);
    CHECK_STR(first.p, "key0");
    for (size_t i = 0; i < count; i++) {
        buf_clear(&key);
        buf_addf(&key, "key%zu%s", i, i % 1000 == 1 ? " " : "");
        right = right && str_starts(m.entries[i].key, buf_str(&key)) && m.entries[i].value == i;
    }
    CHECK(right);
    CHECK(hash_map_find(&m, STR("key1")) == NULL);
    hash_map_release(&m);
    buf_release(&key);
}

TEST(values_are_zero_at_first_and_kept_when_the_array_grows)
{
    struct hash_map m = {0};
    struct buf key = BUF_INIT(SIZE_MAX);
    size_t *values = hash_map_values(&m, NULL, sizeof *values);
    bool right = values == NULL;

    for (size_t i = 0; i < 1000; i++) {
        struct str text;

        /* Two keys between the calls. */
        buf_clear(&key);
        buf_addf(&key, "other%zu", i);
        right = right && hash_map_add(&m, buf_str(&key));
        buf_clear(&key);
        buf_addf(&key, "key%zu", i);
        text = buf_str(&key);
        right = right && hash_map_number(&m, &text) == 2 * i + 1;
        values = hash_map_values(&m, values, sizeof *values);
        right = right && values[2 * i] == 0 && values[2 * i + 1] == 0;
        values[2 * i + 1] = i + 1;
    }
    for (size_t i = 0; i < 1000; i++)
        right = right && values[2 * i] == 0 && values[2 * i + 1] == i + 1;
    CHECK(right);
    free(values);
    hash_map_release(&m);
    buf_release(&key);
}
