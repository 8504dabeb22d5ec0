#include "chathist/history/session.h"

#include <time.h>

#include "chathist/base/time.h"
#include "chathist/history/thread.h"
#include "test.h"
#include "scratch.h"

#define MINUTE ((int64_t)60 * 1000)

static struct history history_f(void)
{
    struct history h;
    struct locate_from from = {.explicit_file = "f", .cwd = "/"};

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

static void check_current(const char *pointer, const char *want)
{
    struct history h = history_f();
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    buf_add_c(&id, "old");
    scratch_put("f.session", pointer);
    CHECK_INT(session_current(&h, &id, NULL, &e), want != NULL);
    CHECK_STR(buf_c(&id), want ? want : "old");
    CHECK_STR(err_text(&e), "");
    buf_release(&id);
    history_release(&h);
}

TEST(the_pointer_names_the_current_session)
{
    static char long_id[500];

    scratch_enter();
    memset(long_id, 'x', sizeof(long_id) - 1);
    check_current("s1\n", "s1");
    check_current("s1", "s1");
    check_current("s1\r\n", "s1");
    check_current("a.b:c-d_e\n", "a.b:c-d_e");
    check_current("", NULL);
    check_current("\n", NULL);
    check_current("a b\n", NULL);
    check_current("a\nb\n", NULL);
    check_current("../x\n", NULL);
    check_current("last\n", NULL);
    check_current(long_id, NULL);
    scratch_leave();
}

TEST(making_a_session_current_writes_the_pointer)
{
    struct history h;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int64_t before, since = 0;

    scratch_enter();
    h = history_f();
    CHECK_INT(session_current(&h, &id, &since, NULL), 0);
    before = time_now();
    CHECK_INT(session_make_current(&h, STR("s1"), NULL), 0);
    scratch_check("f.session", "s1\n");
    CHECK_INT(scratch_mode("f.session"), 0600);
    CHECK_INT(session_current(&h, &id, &since, NULL), 1);
    CHECK_STR(buf_c(&id), "s1");
    /* A file's time is that of the last tick of the kernel. */
    CHECK(since > before - TIME_SECOND && since < before + 5 * TIME_SECOND);
    CHECK_INT(session_make_current(&h, STR("s2"), NULL), 0);
    CHECK_INT(session_make_current(&h, STR("no id"), &e), -1);
    CHECK_STR(err_text(&e), "cannot continue session 'no id': not an id that chat takes");
    CHECK_INT(e.kind, ERR_USAGE);
    scratch_check("f.session", "s2\n");
    CHECK_INT(scratch_mode("f"), -1); /* nothing else is made */
    err_release(&e);
    buf_release(&id);
    history_release(&h);
    scratch_leave();
}

TEST(a_pointer_that_is_no_file_is_refused)
{
    struct history h;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    scratch_enter();
    h = history_f();
    scratch_put("real", "s1\n");
    CHECK_INT(symlink("real", "f.session"), 0);
    CHECK_INT(session_current(&h, &id, NULL, &e), -1);
    CHECK_STR(err_text(&e), "cannot open 'f.session': is a symbolic link");
    CHECK_INT(unlink("f.session"), 0);
    CHECK_INT(mkfifo("f.session", 0600), 0);
    CHECK_INT(session_current(&h, &id, NULL, &e), -1);
    CHECK_STR(err_text(&e), "cannot open 'f.session': is a FIFO");
    buf_release(&id);
    err_release(&e);
    history_release(&h);
    scratch_leave();
}

TEST(a_pointer_that_is_not_trusted_is_ignored)
{
    struct history h;
    struct buf id = BUF_INIT(BUF_SMALL);

    scratch_enter();
    h = history_f();
    scratch_put("f.session", "s1\n");
    h.trusted = false;
    CHECK_INT(session_current(&h, &id, NULL, NULL), 0);
    buf_release(&id);
    history_release(&h);
    scratch_leave();
}

/* Minutes after 2024-06-27T15:00Z, in µs. */
static int64_t at(int minutes)
{
    int64_t us = 0;

    CHECK(time_parse_iso(STR("2024-06-27T15:00:00+00:00"), &us));
    return us + minutes * 60 * TIME_SECOND;
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

    CHECK_INT(session_expired(&h, STR("s"), 0, 30 * MINUTE, at(30), NULL), 0);
    CHECK_INT(session_expired(&h, STR("s"), 0, 30 * MINUTE, at(30) + 1000, NULL), 1);
    CHECK_INT(session_expired(&h, STR("s"), at(10), 30 * MINUTE, at(40), NULL), 0);
    CHECK_INT(session_expired(&h, STR("s"), at(10), 30 * MINUTE, at(41), NULL), 1);
    CHECK_INT(session_expired(&h, STR("s"), at(-600), 30 * MINUTE, at(-60), NULL), 0);
    CHECK_INT(session_expired(&h, STR("odd"), at(0), 30 * MINUTE, at(29), NULL), 0);
    CHECK_INT(session_expired(&h, STR("odd"), at(0), 30 * MINUTE, at(31), NULL), 1);
    CHECK_INT(session_expired(&h, STR("empty"), at(0), 30 * MINUTE, at(29), NULL), 0);
    CHECK_INT(session_expired(&h, STR("empty"), at(0), 30 * MINUTE, at(31), NULL), 1);
    CHECK_INT(session_expired(&h, STR("s"), 0, 0, at(0), NULL), 0);
    CHECK_INT(session_expired(&h, STR("s"), 0, 0, at(1), NULL), 1);
    buf_release(&text);
    history_release(&h);
    scratch_leave();
}

TEST(the_last_session_is_that_of_the_last_line)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct buf id = BUF_INIT(BUF_SMALL);
    struct history h;

    scratch_enter();
    h = history_f();
    CHECK_INT(session_last(&h, &id, NULL), 0);
    add_line(&text, "a", "2025-06-27T15:00:00+00:00", "user", "x");
    add_line(&text, "b", "2024-06-27T15:00:00+00:00", "user", "x");
    buf_add_c(&text, "garbage\n\n{\"id\":\"torn");
    put_history(&text);
    CHECK_INT(session_last(&h, &id, NULL), 1);
    CHECK_STR(buf_c(&id), "b");
    buf_release(&text);
    buf_release(&id);
    history_release(&h);
    scratch_leave();
}

/* ---- the list ---- */

TEST(sessions_are_listed_by_last_use)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct buf json = BUF_INIT(BUF_SMALL);
    struct session_list l;

    scratch_enter();
    add_line(&text, "a", "t1", "system", "you are");
    add_line(&text, "b", "t2", "user", "b1");
    add_line(&text, "a", "t3", "assistant", "a2");
    buf_add_c(&text, "garbage\n");
    add_line(&text, "c", "t4", "user", "c1");
    add_line(&text, "a", "time5", "user", "why \\u001b[1m so\\u0000\\nlong");
    put_history(&text);
    CHECK_INT(session_list_load(&l, FILE_CWD, "f", NULL), 0);
    CHECK_INT(l.count, 3);
    CHECK_INT(l.bad_lines, 1);
    CHECK_STR(l.at[0].id.p, "a");
    CHECK_STR(l.at[1].id.p, "c");
    CHECK_STR(l.at[2].id.p, "b");
    CHECK_INT(l.at[0].count, 3);
    CHECK_STR(l.at[0].created_at.p, "t1");
    CHECK_STR(l.at[0].last_used.p, "time5");
    CHECK_STR(l.at[0].first_role.p, "system");
    CHECK_MEM(l.at[0].preview.p, l.at[0].preview.n, "why \x1b[1m so\0\nlong", 17);
    session_add_json(&json, &l.at[0]);
    CHECK_STR(buf_c(&json),
              "{\"session_id\":\"a\",\"timestamp\":\"time5\",\"message_count\":3,"
              "\"preview\":\"why \\u001b[1m so\\u0000\\nlong\",\"first_role\":\"system\","
              "\"created_at\":\"t1\",\"last_accessed\":\"time5\"}");
    session_list_release(&l);
    buf_release(&text);
    buf_release(&json);
    scratch_leave();
}

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
    CHECK_INT(l.count, 4);
    CHECK_STR(l.at[0].id.p, "d");
    CHECK_STR(l.at[1].id.p, "c");
    CHECK_STR(l.at[2].id.p, "b");
    CHECK_STR(l.at[3].id.p, "a");
    CHECK_STR(l.at[0].title.p, "d");
    CHECK_STR(l.at[0].last_used.p, "2024-01-01T05:00:00Z");
    CHECK_INT(l.at[0].count, 0);
    CHECK_STR(l.at[1].title.p, "early");
    CHECK_STR(l.at[1].preview.p, "c1");
    CHECK_STR(l.at[1].first_role.p, "assistant");
    CHECK_STR(l.at[2].title.p, "");
    CHECK_STR(session_label(&l.at[2]).p, "another");
    CHECK_STR(session_label(&l.at[3]).p, "the \"new\" one");
    CHECK_STR(l.at[3].last_used.p, "2024-01-01T00:00:00Z");
    CHECK_INT(l.at[3].count, 1);
    CHECK_INT(l.at[3].titles, 2);
    session_add_json(&found, &l.at[3]);
    CHECK(str_find(buf_str(&found), STR("\"preview\":\"first question\",\"title\":"
                                        "\"the \\\"new\\\" one\",\"first_role\":\"user\"")));
    session_list_release(&l);
    buf_clear(&found);
    CHECK_INT(session_title(&h, STR("a"), &found, NULL, NULL), 0);
    CHECK_STR(buf_c(&found), "the \"new\" one");
    CHECK_INT(session_last(&h, &found, NULL), 1);
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

TEST(a_preview_is_cut_at_whole_code_points)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct buf content = BUF_INIT(BUF_SMALL);
    struct session_list l;

    scratch_enter();
    for (int i = 0; i < 150; i++)
        buf_add_c(&content, i % 2 ? "\xc3\xa9" : "\\ud83d\\ude00");
    add_line(&text, "a", "t", "user", buf_c(&content));
    put_history(&text);
    CHECK_INT(session_list_load(&l, FILE_CWD, "f", NULL), 0);
    CHECK_INT(l.at[0].preview.n, 50 * 2 + 50 * 4);
    session_list_release(&l);
    buf_release(&text);
    buf_release(&content);
    scratch_leave();
}

TEST(many_sessions_are_told_apart)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct session_list l;
    bool right = true;

    scratch_enter();
    for (int i = 0; i < 20000; i++) {
        char id[32];

        snprintf(id, sizeof(id), "s%d", i % 5000);
        add_line(&text, id, "t", "user", id);
    }
    put_history(&text);
    CHECK_INT(session_list_load(&l, FILE_CWD, "f", NULL), 0);
    CHECK_INT(l.count, 5000);
    for (size_t i = 0; i < l.count; i++) {
        char id[32];

        snprintf(id, sizeof(id), "s%d", 4999 - (int)i);
        right = right && strcmp(l.at[i].id.p, id) == 0 && strcmp(l.at[i].preview.p, id) == 0 &&
                l.at[i].count == 4;
    }
    CHECK(right);
    session_list_release(&l);
    buf_release(&text);
    scratch_leave();
}

TEST(ids_that_hold_nul_differ_behind_it)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct session_list l;

    scratch_enter();
    add_line(&text, "a\\u0000b", "t\\u0000", "user", "x");
    add_line(&text, "a\\u0000c", "t", "user", "x");
    add_line(&text, "a\\u0000b", "t", "user", "x");
    put_history(&text);
    CHECK_INT(session_list_load(&l, FILE_CWD, "f", NULL), 0);
    CHECK_INT(l.count, 2);
    CHECK_MEM(l.at[0].id.p, l.at[0].id.n, "a\0b", 3);
    CHECK_INT(l.at[0].count, 2);
    session_list_release(&l);
    buf_release(&text);
    scratch_leave();
}

TEST(an_empty_history_has_no_sessions)
{
    struct session_list l;
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(session_list_load(&l, FILE_CWD, "f", NULL), 0);
    CHECK_INT(l.count, 0);
    session_list_release(&l);
    CHECK_INT(session_list_load(&l, FILE_CWD, ".", &e), -1);
    CHECK_STR(err_text(&e), "cannot open '.': is a directory");
    err_release(&e);
    scratch_leave();
}

/* ---- names ---- */

static void check_resolve(const char *name, const char *want, enum err_kind kind)
{
    struct history h = history_f();
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    CHECK_INT(session_resolve(&h, str_of(name), &id, &e), kind == ERR_NONE ? 0 : -1);
    CHECK_INT(e.kind, kind);
    CHECK_STR(kind == ERR_NONE ? buf_c(&id) : err_text(&e), want);
    err_release(&e);
    buf_release(&id);
    history_release(&h);
}

TEST(names_mean_sessions)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    scratch_enter();
    check_resolve("last", "there is no session", ERR_ABSENT);
    check_resolve("current", "there is no current session", ERR_ABSENT);
    check_resolve("x", "no session 'x'", ERR_ABSENT);
    add_line(&text, "sess_1719_aaaaaa", "t", "user", "x");
    add_line(&text, "sess_1720_bbbbbb", "t", "user", "x");
    add_line(&text, "sess_1720", "t", "user", "x");
    add_line(&text, "sess_1720_bbbbcc", "t", "user", "x");
    add_line(&text, "project", "t", "user", "x");
    add_line(&text, "odd id\\u00e9", "t", "user", "x");
    add_line(&text, "current", "t", "user", "x");
    add_line(&text, "my-project", "t", "user", "x");
    put_history(&text);

    check_resolve("sess_1720", "sess_1720", ERR_NONE); /* an id before a prefix */
    check_resolve("project", "project", ERR_NONE);     /* and before a suffix */
    check_resolve("sess_1719", "sess_1719_aaaaaa", ERR_NONE);
    check_resolve("p", "project", ERR_NONE); /* a prefix before a suffix */
    check_resolve("aaaa", "sess_1719_aaaaaa", ERR_NONE);
    check_resolve("aaa", "no session 'aaa'", ERR_ABSENT);
    check_resolve("-project", "my-project", ERR_NONE);
    check_resolve("odd", "odd id\xc3\xa9", ERR_NONE);
    check_resolve("odd id\xc3\xa9", "odd id\xc3\xa9", ERR_NONE);
    check_resolve("last", "my-project", ERR_NONE);
    check_resolve("current", "there is no current session", ERR_ABSENT);
    check_resolve("", "no session ''", ERR_ABSENT);
    check_resolve("sess_1720_bbbbbbb", "no session 'sess_1720_bbbbbbb'", ERR_ABSENT);
    check_resolve("sess_1720_",
                  "session 'sess_1720_' is ambiguous: sess_1720_bbbbcc, sess_1720_bbbbbb",
                  ERR_FAILURE);
    check_resolve("sess",
                  "session 'sess' is ambiguous: sess_1720_bbbbcc, sess_1720, "
                  "sess_1720_bbbbbb, …",
                  ERR_FAILURE);

    scratch_put("f.session", "new\n");
    check_resolve("current", "new", ERR_NONE);
    check_resolve("new", "new", ERR_NONE); /* before its first message */
    check_resolve("ne", "no session 'ne'", ERR_ABSENT);
    check_resolve("last", "my-project", ERR_NONE);
    buf_release(&text);
    scratch_leave();
}

/* ---- a list that is kept */

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
