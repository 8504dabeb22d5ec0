#include "browse/list.h"

#include "chathist/base/file.h"

#include <stdlib.h>

#include "chathist/base/time.h"
#include "test.h"
#include "scratch.h"

#define HISTORIES 3

static char paths[HISTORIES][4] = {"a", "b", "c"};

static void begin(struct browse_source *s, struct history *histories)
{
    scratch_enter();
    for (size_t i = 0; i < HISTORIES; i++) {
        histories[i] = (struct history){
            .dir_fd = FILE_CWD, .pointer_fd = FILE_CWD, .path = paths[i], .cancel_fd = -1};
        scratch_put(paths[i], "");
    }
    browse_source_init(s, histories, HISTORIES);
}

static void end(struct browse_source *s)
{
    browse_source_release(s);
    scratch_leave();
}

/* Adds sessions of one line each, `letter`0 and so on, used each so many seconds. */
static void put(size_t history, size_t from, size_t to, int64_t start, int64_t seconds)
{
    struct buf b = scratch_get(paths[history]);

    for (size_t i = from; i < to; i++) {
        buf_addf(&b, "{\"id\":\"m\",\"session_id\":\"%s%zu\",\"timestamp\":\"", paths[history], i);
        time_add_iso(&b, (start + (int64_t)i * seconds) * TIME_SECOND);
        buf_add_c(&b, "\",\"role\":\"user\",\"content\":\"text\"}\n");
    }
    scratch_put_bytes(paths[history], b.data, b.len);
    buf_release(&b);
}

static void put_all(void)
{
    put(0, 0, 700, 1000, 30);
    put(1, 0, 1500, 7000, 10);
    put(2, 0, 3, 1, 1);
}

static struct browse_sessions read_some(struct browse_source *s, bool all, size_t first,
                                        size_t count, const char *keep)
{
    struct browse_wish wish = {.all = all, .first = first, .count = count, .number = s->number};
    struct browse_sessions out = {0};

    if (keep)
        browse_sought_set(&wish.keep, BROWSE_ANY_HISTORY, str_of(keep));
    CHECK_INT(browse_source_read(s, &wish, &out, NULL), 0);
    browse_wish_release(&wish);
    return out;
}

TEST(one_history_is_its_list)
{
    struct history histories[HISTORIES];
    struct browse_source s;
    struct browse_sessions got;

    begin(&s, histories);
    put_all();
    got = read_some(&s, false, 100, 10, "a650");
    CHECK_INT(got.total, 700);
    CHECK_INT(got.keep.place, 49);
    CHECK_INT(got.keep.count, 1);
    browse_sessions_release(&got);
    got = read_some(&s, false, 100, 10, "b1");
    CHECK_INT(got.keep.place, SIZE_MAX);
    CHECK_INT(got.first, 100);
    CHECK_INT(got.count, 10);
    CHECK(str_eq_c(got.at[0].id, "a599") && str_eq_c(got.at[9].id, "a590"));
    CHECK(browse_sessions_at(&got, 99) == NULL && browse_sessions_at(&got, 110) == NULL);
    CHECK(browse_sessions_at(&got, 105) == &got.at[5]);
    browse_sessions_release(&got);
    got = read_some(&s, false, 695, 10, NULL);
    CHECK_INT(got.first, 690);
    CHECK_INT(got.count, 10);
    browse_sessions_release(&got);
    end(&s);
}

TEST(several_are_merged_by_time)
{
    struct history histories[HISTORIES];
    struct browse_source s;
    struct browse_sessions all, part;

    begin(&s, histories);
    put_all();
    all = read_some(&s, true, 0, 5000, NULL);
    CHECK_INT(all.total, 2203);
    CHECK_INT(all.count, 2203);
    for (size_t i = 1; i < all.count; i++)
        CHECK(all.at[i - 1].used >= all.at[i].used);
    CHECK(str_eq_c(all.at[0].id, "b1499") && str_eq_c(all.at[2202].id, "c0"));
    /* Each part of it, in any order, and each place. */
    for (size_t i = 0; i < 40; i++) {
        size_t first = i * 977 % 2190;
        char keep[16];

        snprintf(keep, sizeof keep, "%.*s", (int)all.at[first + 5].id.n, all.at[first + 5].id.p);
        part = read_some(&s, true, first, 10, keep);
        CHECK_INT(part.first, first);
        CHECK_INT(part.count, 10);
        for (size_t k = 0; k < part.count; k++)
            CHECK(str_eq(part.at[k].id, all.at[first + k].id));
        CHECK_INT(part.keep.place, first + 5);
        browse_sessions_release(&part);
    }
    browse_sessions_release(&all);
    end(&s);
}

TEST(what_has_changed_is_another_list)
{
    struct history histories[HISTORIES];
    struct browse_source s;
    struct browse_sessions one, two;

    begin(&s, histories);
    put_all();
    one = read_some(&s, false, 0, 10, NULL);
    two = read_some(&s, false, 0, 10, NULL);
    CHECK_INT(one.number, two.number);
    browse_sessions_release(&two);
    /* Only what is in the list counts. */
    put(1, 1500, 1501, 7000, 10);
    two = read_some(&s, false, 0, 10, NULL);
    CHECK_INT(one.number, two.number);
    browse_sessions_release(&two);
    put(0, 700, 1400, 1000, 30);
    two = read_some(&s, false, 0, 10, "a650");
    CHECK(one.number != two.number);
    CHECK_INT(two.total, 1400);
    CHECK_INT(two.keep.place, 749);
    browse_sessions_release(&two);
    /* With other places, what is to be kept is where it is looked at. */
    browse_sessions_release(&one);
    put(0, 1400, 1401, 1000, 30);
    {
        struct browse_wish wish = {.count = 100, .number = s.number};

        one = (struct browse_sessions){0};
        browse_sought_set(&wish.keep, 0, STR("a650"));
        CHECK_INT(browse_source_read(&s, &wish, &one, NULL), 0);
        CHECK_INT(one.first, 700);
        CHECK_INT(one.count, 100);
        browse_wish_release(&wish);
    }
    browse_sessions_release(&one);
    one = read_some(&s, true, 0, 10, NULL);
    CHECK_INT(one.total, 1401 + 1501 + 3);
    browse_sessions_release(&one);
    end(&s);
}
