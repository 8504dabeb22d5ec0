/* known: every entry that was added is found by its key, also after the table has grown, and among
 * others with the same key or a key that differs in its lower half only. */
#include "chathist/history/known.h"
#include "test.h"

struct entry {
    uint64_t key;
    uint64_t value;
};

TEST(entries_are_found_after_the_table_has_grown)
{
    struct known k = KNOWN_INIT(struct entry);

    for (uint64_t i = 0; i < 5000; i++) {
        struct entry *e = known_add(&k, i << 20);

        CHECK(e->value == 0);
        e->value = i;
    }
    for (uint64_t i = 0; i < 5000; i++) {
        const struct entry *e = known_find(&k, i << 20);

        CHECK(e && e->value == i);
        CHECK(!known_find(&k, i << 20 | 1));
    }
    CHECK(k.count == 5000);
    known_release(&k);
    CHECK(!known_find(&k, 0));
}

TEST(entries_with_one_key_come_in_the_order_in_which_they_were_added)
{
    struct known k = KNOWN_INIT(struct entry);
    const struct entry *e;
    size_t at = 7;
    uint64_t sum = 0;

    for (uint64_t i = 1; i <= 3; i++)
        ((struct entry *)known_add(&k, 7))->value = i;
    ((struct entry *)known_have(&k, 7 + 1024))->value = 100;
    CHECK(((struct entry *)known_have(&k, 7 + 1024))->value == 100);
    while ((e = known_next(&k, 7, &at)))
        sum = sum * 10 + e->value;
    CHECK(sum == 123);
    known_release(&k);
}

TEST(what_fills_the_room_is_taken_one_by_one)
{
    struct known k = KNOWN_INIT(struct entry);
    struct entry *room = known_room(&k, 3000);

    for (uint64_t i = 0; i < 3000; i++)
        room[i] = (struct entry){i, i};
    for (uint64_t i = 0; i < 2000; i++)
        known_commit(&k);
    CHECK(known_find(&k, 1999) && !known_find(&k, 2000));
    known_release(&k);
}

TEST(a_key_depends_on_both_texts_and_the_kind)
{
    CHECK(known_key(STR("a"), STR("bc"), 0) != known_key(STR("ab"), STR("c"), 0));
    CHECK(known_key(STR("a"), STR("b"), 0) != known_key(STR("a"), STR("b"), 1));
}
