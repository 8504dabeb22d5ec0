#include "chathist/search/match_context.h"

#include "test.h"

/* Feeds a history: from the left to the right the newest to the oldest, a letter for the session, a
 * capital for a hit. Wants the groups, each newest first, as places counted from 1. */
static void check(size_t before, size_t after, const char *messages, const char *want)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct match_context a;

    match_context_init(&a, before, after);
    for (size_t i = 0; messages[i]; i++) {
        bool hit = messages[i] >= 'A' && messages[i] <= 'Z';
        char session = (char)(messages[i] | 0x20);

        match_context_add(&a, (struct str){&session, 1},
                          (struct context_item){(off_t)i + 1, 1, hit, 0});
    }
    for (size_t i = 0; i < a.count; i++) {
        buf_add_c(&got, i > 0 ? "/" : "");
        for (size_t k = 0; k < a.groups[i].count; k++)
            buf_addf(&got, "%s%d%s", k > 0 ? " " : "", (int)a.groups[i].at[k].at,
                     a.groups[i].at[k].hit ? "*" : "");
    }
    if (!CHECK_STR(buf_c(&got), want))
        fprintf(stderr, "    of   %s\n", messages);
    match_context_release(&a);
    buf_release(&got);
}

TEST(messages_before_and_after)
{
    check(1, 1, "aaAaa", "2 3* 4");
    check(2, 0, "aaAaa", "3* 4 5");
    check(0, 2, "aaAaa", "1 2 3*");
    check(9, 9, "aaAaa", "1 2 3* 4 5");
    check(1, 1, "aaa", "");
    check(1, 1, "A", "1*");
    check(0, 0, "aAa", "2*");
}

TEST(groups_that_touch_are_one)
{
    check(1, 1, "aAaaAa", "1 2* 3 4 5* 6");
    check(1, 1, "aAaaaAa", "1 2* 3/5 6* 7");
    check(0, 0, "AA", "1* 2*");
    check(0, 0, "AaA", "1*/3*");
    check(2, 0, "AaAaaa", "1* 2 3* 4 5");
    check(0, 3, "aAaaaA", "1 2* 3 4 5 6*");
    check(0, 3, "aAaaaaA", "1 2*/4 5 6 7*");
    check(1, 0, "AAaa", "1* 2* 3");
}

TEST(each_session_by_itself)
{
    check(1, 1, "ababAbab", "3 5* 7");
    check(1, 1, "aBabAb", "2* 4/3 5*");
    check(2, 0, "AbBaba", "1* 4 6/3* 5");
    check(1, 1, "aabbBAaa", "4 5*/2 6* 7");
}

TEST(it_knows_when_it_has_all)
{
    struct match_context a;

    match_context_init(&a, 2, 0);
    CHECK(!match_context_wants_more(&a));
    match_context_add(&a, STR("a"), (struct context_item){1, 1, true, 0});
    match_context_add(&a, STR("b"), (struct context_item){2, 1, true, 0});
    match_context_add(&a, STR("a"), (struct context_item){3, 1, true, 0});
    match_context_add(&a, STR("a"), (struct context_item){4, 1, false, 0});
    match_context_add(&a, STR("a"), (struct context_item){5, 1, false, 0});
    CHECK(match_context_wants_more(&a));
    match_context_add(&a, STR("b"), (struct context_item){6, 1, false, 0});
    match_context_add(&a, STR("c"), (struct context_item){7, 1, false, 0});
    CHECK(match_context_wants_more(&a));
    match_context_add(&a, STR("b"), (struct context_item){8, 1, false, 0});
    CHECK(!match_context_wants_more(&a));
    match_context_release(&a);

    match_context_init(&a, 0, 5);
    match_context_add(&a, STR("a"), (struct context_item){1, 1, true, 0});
    CHECK(!match_context_wants_more(&a));
    match_context_release(&a);
}
