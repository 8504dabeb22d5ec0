#include "chathist/history/thread.h"

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "test.h"
#include "scratch.h"

static char path[] = "f", root[] = "/";
static const struct history history = {.dir_fd = FILE_CWD, .path = path, .cancel_fd = -1};

static void add(struct buf *b, const char *session, const char *id, const char *role,
                const char *more)
{
    buf_addf(b,
             "{\"id\":\"%s\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"%s\","
             "\"content\":\"c\"%s%s}\n",
             id, session, role, *more ? "," : "", more);
}

/* The ids of a thread, each with a blank behind it. */
static void check_session(const char *session, bool raw, const char *want)
{
    struct thread t;
    struct buf ids = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    CHECK_INT(thread_find(&t, &history, str_of(session), raw, &e), 0);
    for (size_t i = 0; i < t.count; i++) {
        buf_add_str(&ids, t.at[i].id);
        buf_add_byte(&ids, ' ');
    }
    CHECK_STR(buf_c(&ids), want);
    CHECK_STR(err_text(&e), "");
    thread_release(&t);
    buf_release(&ids);
}

/* A line: `more` are further members. */
struct step {
    const char *id, *role, *more;
};

static void check_thread(const struct step *steps, size_t count, const char *want)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    scratch_enter();
    for (size_t i = 0; i < count; i++)
        add(&text, "s", steps[i].id, steps[i].role, steps[i].more);
    scratch_put("f", buf_c(&text));
    check_session("s", false, want);
    buf_release(&text);
    scratch_leave();
}

#define CHECK_THREAD(steps, want) check_thread(steps, sizeof(steps) / sizeof((steps)[0]), want)

TEST(a_thread_has_the_lines_of_one_session)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct thread t;

    scratch_enter();
    check_session("s", false, "");
    add(&text, "s", "1", "user", "");
    add(&text, "other", "2", "user", "\"replaces\":[\"1\"]");
    buf_add_c(&text, "garbage that mentions s\n");
    add(&text, "s", "\\u0033", "assistant", "\"x\":5");
    add(&text, "other", "4", "system", "\"reset\":true");
    scratch_put("f", buf_c(&text));
    check_session("s", false, "1 3 ");
    check_session("other", false, "4 ");
    check_session("other", true, "2 4 ");
    check_session("nobody", false, "");
    CHECK_INT(thread_find(&t, &history, STR("s"), false, NULL), 0);
    CHECK_INT(t.all, 2);
    CHECK_INT(t.bad_lines, 1);
    CHECK(str_eq(t.at[1].line, STR("{\"id\":\"\\u0033\",\"session_id\":\"s\",\"timestamp\":\"t\","
                                   "\"role\":\"assistant\",\"content\":\"c\",\"x\":5}")));
    thread_release(&t);
    buf_release(&text);
    scratch_leave();
}

TEST(replaced_lines_are_left_out)
{
    static const struct step steps[] = {
        {"u1", "user", ""},
        {"a1", "assistant", "\"reply_to\":\"u1\""},
        {"a2", "assistant", "\"reply_to\":\"u1\",\"replaces\":[\"a1\"]"},
        {"u2", "user", ""},
        {"a3", "assistant", "\"reply_to\":\"u2\""},
        {"u3", "user", "\"replaces\":[\"u2\",\"a\\u0033\"]"},
        {"a4", "assistant", "\"reply_to\":\"u3\""},
    };
    static const struct step chain[] = {
        {"u1", "user", ""},
        {"a1", "assistant", ""},
        {"a2", "assistant", "\"replaces\":[\"a1\"]"},
        {"a3", "assistant", "\"replaces\":[\"a2\"]"},
    };

    CHECK_THREAD(steps, "u1 a2 u3 a4 ");
    CHECK_THREAD(chain, "u1 a3 ");
}

TEST(a_line_of_the_same_record_stands_in_the_place_of_the_one_that_it_replaces)
{
    static const struct step steps[] = {
        {"1", "user", "\"origin\":\"x/1\""},
        {"2", "assistant", "\"origin\":\"x/2\""},
        {"3", "user", "\"origin\":\"x/3\""},
        {"4", "assistant", "\"origin\":\"x/2\",\"replaces\":[\"2\"]"},
        {"5", "user", "\"origin\":\"x/1\",\"replaces\":[\"1\"]"},
        {"6", "user", "\"origin\":\"x/4\",\"replaces\":[\"3\"]"},
        {"7", "assistant", "\"origin\":\"x/2\",\"replaces\":[\"4\"]"},
    };

    CHECK_THREAD(steps, "5 7 6 ");
}

TEST(links_that_lead_nowhere_change_nothing)
{
    static const struct step steps[] = {
        {"u1", "user", "\"replaces\":[\"u1\"]"},
        {"a1", "assistant", "\"reply_to\":\"missing\",\"replaces\":[\"missing\",\"u2\"]"},
        {"u2", "user", "\"reply_to\":\"u2\",\"replaces\":\"u1\""},
        {"a2", "assistant", "\"reply_to\":5,\"replaces\":{\"a\":\"u1\"}"},
        {"a3", "assistant", "\"reply_to\":\"u3\",\"replaces\":[5,null,[\"u1\"]]"},
        {"u3", "user", "\"replaces\":null"},
        {"a4", "assistant", "\"reply_to\":\"a4\""},
    };

    CHECK_THREAD(steps, "u1 a1 u2 a2 a3 u3 a4 ");
}

TEST(a_reset_drops_what_was_before)
{
    static const struct step steps[] = {
        {"s1", "system", ""},
        {"u1", "user", "\"reset\":true"},
        {"a1", "assistant", "\"reset\":true"},
        {"s2", "system", "\"reset\":true"},
        {"u2", "user", ""},
        {"s3", "system", "\"reset\":false"},
        {"a2", "assistant", "\"reply_to\":\"u1\""},
    };
    static const struct step twice[] = {
        {"u1", "user", ""},
        {"s1", "system", "\"reset\":true"},
        {"s2", "system", "\"reset\":true"},
    };
    static const struct step taken_back[] = {
        {"u1", "user", ""},
        {"s1", "system", "\"reset\":true"},
        {"u2", "user", "\"replaces\":[\"s1\"]"},
    };
    static const struct step first[] = {
        {"s1", "system", "\"reset\":true"},
        {"u1", "user", ""},
    };

    CHECK_THREAD(steps, "s2 u2 s3 a2 ");
    CHECK_THREAD(twice, "s2 ");
    CHECK_THREAD(taken_back, "u1 u2 ");
    CHECK_THREAD(first, "s1 u1 ");
}

TEST(turns_that_ran_at_once_are_told_apart)
{
    static const struct step steps[] = {
        {"s1", "system", ""},
        {"u1", "user", ""},
        {"u2", "user", ""},
        {"a2", "assistant", "\"reply_to\":\"u2\""},
        {"a1", "assistant", "\"reply_to\":\"u1\""},
        {"t1", "tool", "\"reply_to\":\"u1\""},
        {"t2", "tool", "\"reply_to\":\"u2\""},
        {"b1", "assistant", "\"reply_to\":\"u1\""},
        {"x", "assistant", ""},
        {"u3", "user", ""},
        {"b2", "assistant", "\"reply_to\":\"u2\""},
        {"a3", "assistant", "\"reply_to\":\"u3\""},
    };

    CHECK_THREAD(steps, "s1 u1 a1 t1 b1 u2 a2 t2 x b2 u3 a3 ");
}

TEST(a_regenerated_answer_stands_behind_its_prompt)
{
    static const struct step steps[] = {
        {"u1", "user", ""},
        {"a1", "assistant", "\"reply_to\":\"u1\""},
        {"u2", "user", ""},
        {"b1", "assistant", "\"reply_to\":\"u1\",\"replaces\":[\"a1\"]"},
    };

    CHECK_THREAD(steps, "u1 b1 u2 ");
}

/* What changes in a session `s`, whose lines are among many others if `large`, after a line. */
static void check_news(const char *mark, bool large, size_t systems, size_t resets,
                       size_t replacing, const char *newest)
{
    static const struct step steps[] = {
        {"s0", "system", ""},
        {"u1", "user", "\"reset\":true"}, /* only a system prompt resets */
        {"a1", "assistant", ""},
        {"u2", "user", "\"replaces\":[\"u1\"]"},
        {"mine", "system", "\"reset\":true"},
        {"t1", "title", "\"replaces\":[\"t0\"]"},
        {"s1", "system", "\"reset\":true"},
        {"s2", "system", "\"reset\":true,\"content\":\"\""},
        {"a2", "assistant", "\"replaces\":[\"a1\"]"},
        {"s3", "system", ""},
    };
    static char index[] = "f.idx";
    struct history h = history;
    struct thread_news n = THREAD_NEWS_INIT;
    struct hash_map own = {0};
    struct buf text = BUF_INIT(BUF_LINE);
    struct thread t;

    scratch_enter();
    h.index = index;
    h.trusted = h.dir_exists = true;
    h.now = INT64_MAX;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        for (int k = 0; large && k < 500; k++)
            add(&text, "other", "o", "system", "\"reset\":true");
        add(&text, "s", steps[i].id, steps[i].role, steps[i].more);
    }
    scratch_put("f", buf_c(&text));
    hash_map_add(&own, STR("mine"));
    CHECK_INT(thread_find(&t, &h, STR("s"), true, NULL), 0); /* makes the index */
    CHECK_INT(t.count, 10);
    thread_release(&t);
    CHECK_INT(scratch_mode("f.idx") >= 0, large);
    CHECK_INT(thread_find_news(&n, &h, STR("s"), str_of(mark), &own), 0);
    CHECK_INT(n.systems, systems);
    CHECK_INT(n.resets, resets);
    CHECK_INT(n.replacing, replacing);
    CHECK_STR(buf_c(&n.newest), newest);
    buf_release(&n.newest);
    hash_map_release(&own);
    buf_release(&text);
    scratch_leave();
}

TEST(what_changed_in_a_session_after_a_line_is_counted)
{
    for (int large = 0; large < 2; large++) {
        check_news("s0", large, 2, 2, 2, "s3");
        check_news("s1", large, 1, 1, 1, "s3");
        check_news("a2", large, 1, 0, 0, "s3");
        check_news("s3", large, 0, 0, 0, "s3");
        check_news("unknown", large, 0, 0, 0, "s3");
    }
}

TEST(a_thread_of_many_lines_takes_no_quadratic_time)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct thread t;

    scratch_enter();
    for (int i = 0; i < 100000; i++) {
        char id[32], more[96];

        snprintf(id, sizeof(id), "m%d", i);
        if (i % 2)
            snprintf(more, sizeof(more), "\"reply_to\":\"m%d\",\"replaces\":[\"m%d\",\"y%d\"]",
                     i - 1, i - 2, i);
        else
            snprintf(more, sizeof(more), "\"model\":\"m\"");
        add(&text, "s", id, i % 2 ? "assistant" : "user", more);
    }
    scratch_put("f", buf_c(&text));
    CHECK_INT(thread_find(&t, &history, STR("s"), false, NULL), 0);
    CHECK_INT(t.all, 100000);
    CHECK_INT(t.count, 50001);
    CHECK(t.count && str_eq_c(t.at[t.count - 1].id, "m99999"));
    thread_release(&t);
    buf_release(&text);
    scratch_leave();
}

TEST(an_unreadable_history_is_an_error)
{
    struct thread t;
    struct history other = {.dir_fd = FILE_CWD, .path = root, .cancel_fd = -1};
    struct err e = ERR_INIT;

    CHECK_INT(thread_find(&t, &other, STR("s"), false, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '/': is a directory");
    CHECK_INT(t.count, 0);
    err_release(&e);
    CHECK_INT(thread_find_news(&(struct thread_news)THREAD_NEWS_INIT, &other, STR("s"), STR("1"),
                               &(struct hash_map){0}),
              -1);
}
