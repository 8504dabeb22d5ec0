/* The end of a thread, read backwards, is that of the thread that is read forward. */
#include "chathist/history/thread.h"

#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "draw.h"
#include "history/session_index.h"
#include "test.h"
#include "scratch.h"
#include "scratch_history.h"

/* Adds a line of a conversation in which anything may be said about earlier and later lines. */
static void add_line(struct buf *b, int i, bool odd, int padding)
{
    static const char *const roles[] = {"user",      "assistant", "assistant", "user",
                                        "assistant", "tool",      "system",    "critic"};
    const char *role = roles[draw(odd ? 8 : 6)];

    if (draw(60) == 0)
        buf_add_c(b, draw(2) ? "bad line of s\n" : "{\"session_id\":\"\\u0073\n");
    if (draw(3) == 0)
        buf_addf(b,
                 "{\"id\":\"o%d\",\"session_id\":\"t\",\"timestamp\":\"t\",\"role\":\"user\","
                 "\"content\":\"s %0*d\",\"replaces\":[\"%d\"]}\n",
                 i, padding, i, i - 1);
    buf_addf(b,
             "{\"id\":\"%d\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"%s\","
             "\"content\":\"%0*d\"",
             draw(40) ? i : i - 3, role, padding, i);
    if (draw(odd ? 4 : 20) == 0)
        buf_addf(b, ",\"%s\":[\"%d\",\"%d\"]", draw(9) ? "replaces" : "rep\\u006caces",
                 i - (int)draw(8), i - (int)draw(30));
    if (draw(3) && strcmp(role, "user") != 0)
        buf_addf(b, ",\"reply_to\":\"%d\"", i - (int)draw(odd ? 40 : 4));
    if (odd && draw(100) == 0)
        buf_add_c(b, ",\"reset\":true");
    buf_add_c(b, "}\n");
}

static void fill(int lines, int padding)
{
    bool odd = draw(2) == 0;
    struct buf b = BUF_INIT(SIZE_MAX);

    made = lines;
    /* At times the only system line is the first. */
    if (draw(2))
        buf_add_c(&b, "{\"id\":\"x\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"system\","
                      "\"content\":\"first\"}\n");
    for (int i = 0; i < lines; i++)
        add_line(&b, i, odd, padding);
    scratch_put("h", buf_c(&b));
    unlink("h.idx");
    buf_release(&b);
}

static struct str newest_system(const struct thread *t)
{
    for (size_t i = t->count; i-- > 0;)
        if (t->at[i].role == ROLE_SYSTEM)
            return t->at[i].line;
    return STR_NONE;
}

static bool same(struct str a, struct str b)
{
    return a.p && b.p ? str_eq(a, b) : !a.p && !b.p;
}

/* Is it the end of all, and no shorter than was wished for? */
static bool is_end(const struct tail *t, const struct thread *all, const struct tail_wish *wish)
{
    size_t skipped = all->count - t->thread.count;
    struct str system = newest_system(&t->thread);

    if (t->thread.count > all->count || (t->whole && skipped > 0))
        return false;
    for (size_t i = 0; i < t->thread.count; i++)
        if (!str_eq(t->thread.at[i].line, all->at[skipped + i].line))
            return false;
    if (!system.p && t->system.count > 0)
        system = t->system.at[0].line;
    return !wish->system || same(system, newest_system(all));
}

static void check(const struct tail_wish *wish, bool *cut)
{
    struct history plain = history;
    struct thread all;
    struct tail t;

    plain.index = NULL;
    CHECK_INT(thread_find(&all, &plain, STR("s"), wish->raw, NULL), 0);
    if (CHECK_INT(tail_load(&t, &history, STR("s"), wish, NULL), 0)) {
        CHECK(is_end(&t, &all, wish));
        CHECK(!t.whole || t.thread.count == all.count);
        *cut = *cut || !t.whole;
        tail_release(&t);
    }
    thread_release(&all);
}

static void check_many(int histories, int lines, int padding)
{
    bool cut = false;

    scratch_enter();
    for (int i = 0; i < histories; i++) {
        fill(lines, padding);
        for (size_t n = 1; n < 80; n += 1 + n / 2) {
            struct tail_wish wish = {.messages = n, .bytes = SIZE_MAX, .raw = draw(5) == 0};

            wish.system = !wish.raw && draw(2);
            check(&wish, &cut);
            wish.bytes = 1 + draw(4000);
            check(&wish, &cut);
        }
    }
    CHECK(cut);
    scratch_leave();
}

TEST(the_end_of_a_thread_is_that_of_the_whole)
{
    check_many(150, 120, 1);
}

TEST(an_index_makes_no_difference)
{
    struct session_index x;

    check_many(5, 1000, 400);
    scratch_enter();
    fill(1000, 400);
    if (CHECK(session_index_open(&x, &history)))
        session_index_close(&x);
    scratch_leave();
}

TEST(bad_lines_are_those_behind_the_oldest_line_that_was_read)
{
    struct tail_wish wish = {.messages = 3, .bytes = SIZE_MAX};
    struct tail by_index, by_scan;
    struct history plain = history;

    scratch_enter();
    plain.index = NULL;
    for (int i = 0; i < 8; i++) {
        fill(1000, 400);
        CHECK_INT(tail_load(&by_index, &history, STR("s"), &wish, NULL), 0);
        CHECK_INT(tail_load(&by_scan, &plain, STR("s"), &wish, NULL), 0);
        CHECK_INT(by_index.thread.bad_lines, by_scan.thread.bad_lines);
        CHECK_INT(by_index.thread.all, by_scan.thread.all);
        CHECK_INT(by_index.thread.count, by_scan.thread.count);
        tail_release(&by_index);
        tail_release(&by_scan);
        wish.messages = 1 + draw(400);
    }
    scratch_leave();
}

TEST(little_is_read)
{
    struct tail_wish wish = {.messages = 4, .bytes = SIZE_MAX};
    struct buf b = BUF_INIT(SIZE_MAX);
    struct tail t;

    scratch_enter();
    for (int i = 0; i < 2000; i++)
        buf_addf(&b,
                 "{\"id\":\"%d\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"%s\","
                 "\"content\":\"%0200d\",\"reply_to\":\"%d\"}\n",
                 i, i % 2 ? "assistant" : "user", i, i - 1);
    scratch_put("h", buf_c(&b));
    CHECK_INT(tail_load(&t, &history, STR("s"), &wish, NULL), 0);
    CHECK_INT(t.thread.count, 4);
    CHECK_INT(t.thread.all, 4);
    CHECK(!t.whole);
    tail_release(&t);
    CHECK_INT(tail_load(&t, &history, STR("absent"), &wish, NULL), 0);
    CHECK_INT(t.thread.count, 0);
    CHECK(t.whole);
    tail_release(&t);
    buf_release(&b);
    scratch_leave();
}
