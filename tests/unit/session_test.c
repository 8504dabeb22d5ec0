#include "chathist/history/session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "chathist/base/time.h"
#include "chathist/history/thread.h"
#include "test.h"
#include "scratch.h"

#define MINUTE ((int64_t)60 * 1000)

static struct history history_f(void)
{
    struct history h;
    struct locate_from from = {.explicit_file = "f", .cwd = "/", .now = time_now()};

    CHECK_INT(locate(&h, &from, NULL), 0);
    return h;
}

static void add_line(struct buf *b, const char *session, const char *time, const char *role,
                     const char *content)
{
    buf_addf(b,
             "{\"id\":\"%zu\",\"session_id\":\"%s\",\"timestamp\":\"%s\",\"role\":\"%s\","
             "\"content\":\"%s\"}\n",
             b->len, session, time, role, content);
}

static void put_history(const struct buf *b)
{
    scratch_put_bytes("f", b->data, b->len);
}

/* ---- the current session ---- */

/* Minutes after 2024-06-27T15:00Z, in µs. */
static int64_t at(int minutes)
{
    int64_t us = 0;

    CHECK(time_parse_iso(STR("2024-06-27T15:00:00+00:00"), &us));
    return us + minutes * 60 * TIME_SECOND;
}

/* Returns 1 if the current session, whose pointer was written at `since`, is not continued. */
static int expired(struct history *h, const char *id, int64_t since, int64_t timeout_ms,
                   int64_t now)
{
    struct resume_request request = {.timeout_ms = timeout_ms};
    struct resume r = {.id = BUF_INIT(BUF_SMALL)};
    struct timespec times[2] = {{since / TIME_SECOND, since % TIME_SECOND * 1000}};
    int result;

    times[1] = times[0];
    CHECK_INT(session_make_current(h, str_of(id), NULL), 0);
    CHECK_INT(utimensat(h->pointer_fd, h->pointer, times, 0), 0);
    h->now = now;
    CHECK_INT(resume_choose(&r, h, &request, NULL), 0);
    result = r.fresh;
    CHECK(result || str_eq_c(buf_str(&r.id), id));
    resume_release(&r);
    return result;
}

/* The session that was used last goes to *found. */
static void find_last(const struct history *h, struct buf *found)
{
    struct resume_request request = {.last = true, .timeout_ms = -1};
    struct resume r = {.id = BUF_INIT(BUF_SMALL)};

    CHECK_INT(resume_choose(&r, h, &request, NULL), 0);
    CHECK(!r.fresh);
    buf_set(found, buf_str(&r.id));
    resume_release(&r);
}

TEST(a_session_expires_after_its_last_use)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct history h;

    scratch_enter();
    h = history_f();
    add_line(&text, "s", "2024-06-27T14:00:00+00:00", "user", "x");
    add_line(&text, "s", "2024-06-27T15:00:00.000000+00:00", "user", "x");
    add_line(&text, "other", "2024-06-27T15:20:00+00:00", "user", "x");
    add_line(&text, "odd", "yesterday", "user", "x");
    put_history(&text);

    CHECK_INT(expired(&h, "s", 0, 30 * MINUTE, at(30)), 0);
    CHECK_INT(expired(&h, "s", 0, 30 * MINUTE, at(30) + 1000), 1);
    CHECK_INT(expired(&h, "s", at(10), 30 * MINUTE, at(40)), 0);
    CHECK_INT(expired(&h, "s", at(10), 30 * MINUTE, at(41)), 1);
    CHECK_INT(expired(&h, "s", at(-600), 30 * MINUTE, at(-60)), 0);
    CHECK_INT(expired(&h, "s", at(-600), 30 * MINUTE, at(-60) - 1000), 1);
    CHECK_INT(expired(&h, "odd", at(0), 30 * MINUTE, at(29)), 0);
    CHECK_INT(expired(&h, "odd", at(0), 30 * MINUTE, at(51)), 1);
    CHECK_INT(expired(&h, "empty", at(0), 30 * MINUTE, at(29)), 0);
    CHECK_INT(expired(&h, "empty", at(0), 30 * MINUTE, at(31)), 1);
    CHECK_INT(expired(&h, "s", 0, 0, at(0)), 0);
    CHECK_INT(expired(&h, "s", 0, 0, at(1)), 1);
    buf_release(&text);
    history_release(&h);
    scratch_leave();
}

/* ---- the list ---- */

TEST(a_title_names_a_session_and_does_not_use_it)
{
    struct buf text = BUF_INIT(BUF_SMALL), found = BUF_INIT(BUF_SMALL);
    struct history h;
    struct session_list l;
    struct thread t;

    scratch_enter();
    add_line(&text, "a", "2024-01-01T00:00:00Z", "user", "first question");
    add_line(&text, "b", "2024-01-01T01:00:00Z", "user", "another");
    add_line(&text, "c", "2024-01-01T02:00:00Z", "title", "early");
    add_line(&text, "a", "2024-01-01T03:00:00Z", "title", "old");
    add_line(&text, "c", "2024-01-01T03:30:00Z", "assistant", "c1");
    add_line(&text, "b", "2024-01-01T04:00:00Z", "title", "gone");
    add_line(&text, "b", "2024-01-01T04:00:00Z", "title", "");
    add_line(&text, "d", "2024-01-01T05:00:00Z", "title", "d alone");
    add_line(&text, "d", "2024-01-01T06:00:00Z", "title", "d");
    add_line(&text, "a", "2024-01-01T07:00:00Z", "title", "  the \\\"new\\\" one \\n");
    put_history(&text);
    h = history_f();
    CHECK_INT(session_list_newest(&l, &h, SIZE_MAX, NULL), 0);
    CHECK_INT(l.count, 3);
    CHECK_STR(l.at[0].id.p, "c");
    CHECK_STR(l.at[1].id.p, "b");
    CHECK_STR(l.at[2].id.p, "a");
    CHECK_STR(l.at[0].title.p, "early");
    CHECK_STR(l.at[0].preview.p, "c1");
    CHECK_STR(l.at[0].first_role.p, "assistant");
    CHECK_STR(l.at[1].title.p, "");
    CHECK_STR(session_label(&l.at[1]).p, "another");
    CHECK_STR(session_label(&l.at[2]).p, "the \"new\" one");
    CHECK_STR(l.at[2].last_used.p, "2024-01-01T00:00:00Z");
    CHECK_INT(l.at[2].count, 1);
    CHECK_INT(l.at[2].titles, 2);
    session_add_json(&found, &l.at[2]);
    CHECK(str_find(buf_str(&found), STR("\"preview\":\"first question\",\"title\":"
                                        "\"the \\\"new\\\" one\",\"first_role\":\"user\"")));
    session_list_release(&l);
    buf_clear(&found);
    CHECK_INT(session_title(&h, STR("a"), &found, NULL, NULL), 0);
    CHECK_STR(buf_c(&found), "the \"new\" one");
    buf_clear(&found);
    CHECK_INT(session_title(&h, STR("d"), &found, NULL, NULL), 0);
    CHECK_STR(buf_c(&found), "d");
    CHECK_INT(session_list_load(&l, &h, NULL), 0);
    CHECK_INT(l.count, 4);
    CHECK_STR(l.at[3].id.p, "d");
    CHECK_STR(l.at[3].last_used.p, "2024-01-01T05:00:00Z");
    CHECK_INT(l.at[3].count, 0);
    session_list_release(&l);
    find_last(&h, &found);
    CHECK_STR(buf_c(&found), "c");
    CHECK_INT(session_exists(&h, STR("d"), NULL), 1);
    CHECK_INT(thread_find(&t, &h, STR("a"), false, NULL), 0);
    CHECK_INT(t.count, 1);
    thread_release(&t);
    CHECK_INT(thread_find(&t, &h, STR("a"), true, NULL), 0);
    CHECK_INT(t.count, 3);
    thread_release(&t);
    history_release(&h);
    buf_release(&text);
    buf_release(&found);
    scratch_leave();
}

TEST(many_sessions_are_told_apart)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct session_list l;
    struct history h;
    bool right = true;

    scratch_enter();
    h = history_f();
    for (int i = 0; i < 20000; i++) {
        char id[32];

        snprintf(id, sizeof(id), "s%d", i % 5000);
        add_line(&text, id, "t", "user", id);
    }
    put_history(&text);
    CHECK_INT(session_list_load(&l, &h, NULL), 0);
    CHECK_INT(l.count, 5000);
    for (size_t i = 0; i < l.count; i++) {
        char id[32];

        snprintf(id, sizeof(id), "s%d", 4999 - (int)i);
        right = right && strcmp(l.at[i].id.p, id) == 0 && strcmp(l.at[i].preview.p, id) == 0 &&
                l.at[i].count == 4;
    }
    CHECK(right);
    session_list_release(&l);
    history_release(&h);
    buf_release(&text);
    scratch_leave();
}

TEST(reading_a_list_can_be_given_up)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    atomic_bool cancel = true;
    struct history h;
    struct session_list l;
    struct err e = ERR_INIT;

    scratch_enter();
    h = history_f();
    h.cancel = &cancel;
    add_line(&text, "a", "t", "user", "hello");
    add_line(&text, "b", "t", "user", "hello");
    put_history(&text);
    CHECK_INT(session_list_newest(&l, &h, SIZE_MAX, &e), -1);
    CHECK_INT(e.kind, ERR_SIGNAL);
    CHECK_INT(l.count, 0);
    cancel = false;
    CHECK_INT(session_list_newest(&l, &h, SIZE_MAX, &e), 0);
    CHECK_INT(l.count, 2);
    session_list_release(&l);
    err_release(&e);
    history_release(&h);
    buf_release(&text);
    scratch_leave();
}
