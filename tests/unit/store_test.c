#include "chathist/history/store.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/partial.h"
#include "chathist/history/scan.h"
#include "test.h"
#include "scratch.h"

#define OLD                                                                                        \
    "{\"id\":\"1-a\",\"session_id\":\"old\",\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\","   \
    "\"role\":\"user\",\"content\":\"before\"}\n"

/* An explicit history `f` in the scratch directory. */
static struct history explicit_history(const char *path)
{
    struct history h;
    struct locate_from from = {.explicit_file = path, .cwd = scratch_dir};

    CHECK_INT(locate(&h, &from, NULL), 0);
    return h;
}

static void make(struct draft *d, const char *session, const char *content)
{
    draft_init(d);
    draft_message(d, ROLE_USER, str_of(content));
    draft_set_text(d, FIELD_SESSION_ID, str_of(session));
}

static int append_one(struct history *h, const char *session, const char *content, struct err *e)
{
    struct draft d;
    int result;

    make(&d, session, content);
    result = store_append(h, &d, 1, e);
    draft_release(&d);
    return result;
}

/* The number of valid messages in a file, and of bad lines. */
static void check_count(const char *path, uint64_t messages, uint64_t bad)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    uint64_t count = 0;

    CHECK_INT(scan_open(&s, FILE_CWD, path, NULL), 0);
    while (scan_message(&s, &m, NULL, NULL) > 0)
        count++;
    CHECK_INT(count, messages);
    CHECK_INT(s.bad, bad);
    scan_close(&s);
    message_release(&m);
}

TEST(a_message_is_stored_and_completed)
{
    struct history h;
    struct draft d[2];
    struct err e = ERR_INIT;
    struct message m = MESSAGE_INIT;
    int64_t before = time_now(), at = 0;

    scratch_enter();
    h = explicit_history("f");
    umask(0277);
    make(&d[0], "s1", "one");
    make(&d[1], "s1", "two");
    draft_set_text(&d[1], FIELD_ID, STR("given"));
    draft_set_text(&d[1], FIELD_TIMESTAMP, STR("2020-01-01T00:00:00.000000+00:00"));
    CHECK_INT(store_append(&h, d, 2, &e), 0);
    umask(022);
    CHECK_STR(err_text(&e), "");
    CHECK_INT(scratch_mode("f"), 0600);

    struct buf text = scratch_get("f");
    struct str rest = buf_str(&text);
    struct str first = str_cut(&rest, '\n');

    CHECK(message_parse(&m, first));
    CHECK(str_eq(m.field[FIELD_ID], buf_str(&d[0].field[FIELD_ID])));
    CHECK_INT(m.id.n, 22);
    CHECK(time_parse_iso(m.timestamp, &at));
    CHECK(at >= before && at <= time_now());
    CHECK(str_eq(rest, STR("{\"id\":\"given\",\"session_id\":\"s1\",\"timestamp\":"
                           "\"2020-01-01T00:00:00.000000+00:00\",\"role\":\"user\","
                           "\"content\":\"two\"}\n")));
    buf_release(&text);
    message_release(&m);
    draft_release(&d[0]);
    draft_release(&d[1]);
    history_release(&h);
    scratch_leave();
}

TEST(what_is_there_stays)
{
    struct history h;

    scratch_enter();
    scratch_put("f", OLD);
    CHECK_INT(chmod("f", 0640), 0);
    h = explicit_history("f");
    CHECK_INT(append_one(&h, "s", "x", NULL), 0);
    CHECK_INT(scratch_mode("f"), 0640); /* only what we make gets a mode */

    struct buf text = scratch_get("f");

    CHECK(str_starts(buf_str(&text), str_of(OLD)));
    buf_release(&text);
    check_count("f", 2, 0);
    history_release(&h);
    scratch_leave();
}

static void check_refused(struct draft *d, enum err_kind kind, const char *why)
{
    struct err e = ERR_INIT;
    struct history h = explicit_history("f");

    CHECK_INT(store_append(&h, d, 1, &e), -1);
    CHECK_STR(err_text(&e), why);
    CHECK_INT(e.kind, kind);
    CHECK_INT(scratch_mode("f"), -1); /* not even made */
    CHECK(!draft_has(d, FIELD_ID));
    CHECK(!draft_has(d, FIELD_TIMESTAMP));
    err_release(&e);
    draft_release(d);
    history_release(&h);
}

TEST(what_cannot_be_stored_is_refused_before_anything_is_opened)
{
    struct draft d;
    char *big = mem_zalloc(BUF_LINE);

    scratch_enter();
    draft_init(&d);
    draft_message(&d, ROLE_USER, STR("x"));
    check_refused(&d, ERR_USAGE, "the message has no 'session_id'");
    make(&d, "a b", "x");
    check_refused(&d, ERR_USAGE, "'a b' is no session id");
    make(&d, "last", "x");
    check_refused(&d, ERR_USAGE, "'last' is no session id");
    make(&d, "s", "x");
    draft_set_text(&d, FIELD_ROLE, STR(""));
    check_refused(&d, ERR_USAGE, "'' is no role");
    memset(big, 'x', BUF_LINE - 1);
    make(&d, "s", big);
    check_refused(&d, ERR_FAILURE, "the message is longer than 64 MiB");
    free(big);
    scratch_leave();
}

TEST(what_is_given_must_be_fit_for_use)
{
    static const struct {
        enum field field;
        const char *text, *why;
    } cases[] = {
        {FIELD_ID, "", "'' is no message id"},
        {FIELD_ID, "a b", "'a b' is no message id"},
        {FIELD_ID, "a\tb", "'a\tb' is no message id"},
        {FIELD_ID, "a\x1b", "'a\x1b' is no message id"},
        {FIELD_ID, "a\xc2\x85", "'a\xc2\x85' is no message id"},
        {FIELD_ID, "ä/1", NULL},
        {FIELD_SESSION_ID, "current", "'current' is no session id"},
        {FIELD_TIMESTAMP, "", "'' is no time"},
        {FIELD_TIMESTAMP, "yesterday", "'yesterday' is no time"},
        {FIELD_TIMESTAMP, "9999-12-31T23:59-23:00", "'9999-12-31T23:59-23:00' is no time"},
        {FIELD_TIMESTAMP, "2020-01-01", NULL},
        {FIELD_ROLE, "", "'' is no role"},
        {FIELD_ROLE, "robot", NULL},
    };
    struct draft d;

    draft_init(&d);
    CHECK_INT(draft_storable(&d, NULL), 0); /* what is missing is for others to tell */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = ERR_INIT;

        draft_set_text(&d, cases[i].field, str_of(cases[i].text));
        CHECK_INT(draft_storable(&d, &e), cases[i].why ? -1 : 0);
        CHECK_STR(err_text(&e), cases[i].why ? cases[i].why : "");
        CHECK_INT(e.kind, cases[i].why ? ERR_USAGE : ERR_NONE);
        err_release(&e);
        draft_release(&d);
    }
}

TEST(nothing_to_append_touches_nothing)
{
    struct history h;

    scratch_enter();
    h = explicit_history("f");
    CHECK_INT(store_append(&h, NULL, 0, NULL), 0);
    CHECK_INT(scratch_mode("f"), -1);
    history_release(&h);
    scratch_leave();
}

TEST(a_file_is_a_history_if_it_begins_as_one)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"", true},
        {"\n \n", true},
        {"x\n" OLD, true},
        {"{", true}, /* a killed program may leave any part of a line */
        {"{\"id\":\"", true},
        {"{\"id\":\"1-a", true},
        {"{\"id\":\"1-a\",\"session", true},
        {"{\"id\":\"1-a\",\"session_id\":\"s", true},
        {"{\"id\":\"1-a\",\"session_id\":\"s\n", true}, /* which another one has ended */
        {"{\"id\":\"1-a\",\"role", false},
        {"{\"idx", false},
        {"{\n", false},
        {"x", false},
        {"x\n{\"id\":\"1-a\",\"session_id\":\"s", false},
    };
    struct err e = ERR_INIT;

    scratch_enter();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct history h = explicit_history("f");

        scratch_put("f", cases[i].text);
        CHECK_INT(append_one(&h, "s", "x", &e), cases[i].is ? 0 : -1);
        CHECK_STR(err_text(&e), cases[i].is ? "" : "'f' is not a history");
        if (!cases[i].is)
            scratch_check("f", cases[i].text);
        err_release(&e);
        history_release(&h);
    }
    scratch_leave();
}

/* ---- what other programs have left or deleted ---- */

/* Leaves what a chat leaves that is killed in the middle of the answer to a prompt. */
static void leave_answer(const struct history *h, const char *prompt, const char *text)
{
    struct partial p = {0};
    struct draft d;

    make(&d, "s", "");
    draft_set_text(&d, FIELD_ROLE, STR("assistant"));
    draft_set_text(&d, FIELD_REPLY_TO, str_of(prompt));
    partial_begin(&p, h, &d);
    CHECK(p.open);
    partial_add(&p, str_of(text));
    partial_end(&p, false);
    buf_release(&p.id);
    draft_release(&d);
}

/* The contents of the messages in a file, each with a `;`. */
static void check_contents(const char *path, const char *want)
{
    struct message m = MESSAGE_INIT;
    struct buf all = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct scan s;

    CHECK_INT(scan_open(&s, FILE_CWD, path, NULL), 0);
    while (scan_message(&s, &m, NULL, NULL) > 0) {
        buf_add_str(&all, message_content(&m, &scratch));
        buf_add_byte(&all, ';');
    }
    CHECK_STR(buf_c(&all), want);
    scan_close(&s);
    message_release(&m);
    buf_release(&all);
    buf_release(&scratch);
}

TEST(the_answers_of_killed_turns_come_before_the_next_line)
{
    struct history h;
    struct rlimit old, limit;

    scratch_enter();
    scratch_put("f", OLD);
    h = explicit_history("f");
    CHECK_INT(store_recover(&h, NULL), 0);
    leave_answer(&h, "1-a", "half an answ");
    leave_answer(&h, "deleted", "not this one");
    /* What cannot be stored now is stored later. */
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = strlen(OLD) + 10;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_INT(store_recover(&h, NULL), -1);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    check_contents("f", "before;");
    CHECK_INT(store_recover(&h, NULL), 0);
    check_contents("f", "before;half an answ;");
    leave_answer(&h, "1-a", "another");
    CHECK_INT(append_one(&h, "s", "next", NULL), 0);
    check_contents("f", "before;half an answ;another;next;");
    CHECK_INT(store_recover(&h, NULL), 0);
    check_count("f", 4, 0);
    history_release(&h);
    scratch_leave();
}

TEST(what_was_deleted_meanwhile_gets_no_line)
{
    static const struct {
        const char *session, *prompt; /* that must be there */
        const char *why;              /* NULL: it is stored */
    } cases[] = {
        {"old", NULL, NULL},
        {"gone", NULL, "session 'gone' was deleted meanwhile"},
        {NULL, "1-a", NULL},
        {NULL, "1-b", "the prompt was deleted meanwhile"},
    };
    struct history h;
    struct err e = ERR_INIT;
    struct draft d;

    scratch_enter();
    h = explicit_history("f");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int wanted = cases[i].why ? -1 : 0, stored;

        scratch_put("f", OLD);
        make(&d, "old", "new");
        if (cases[i].session)
            stored = store_append_to(&h, str_of(cases[i].session), &d, 1, &e);
        else
            stored = store_append_end(store_append_begin(&h, &d, 1, str_of(cases[i].prompt)), &e);
        CHECK_INT(stored, wanted);
        CHECK_STR(err_text(&e), cases[i].why ? cases[i].why : "");
        CHECK_INT(e.kind, cases[i].why ? ERR_ABSENT : ERR_NONE);
        check_contents("f", cases[i].why ? "before;" : "before;new;");
        draft_release(&d);
        err_release(&e);
    }
    /* If the whole file is gone, the answer begins a new one. */
    CHECK_INT(unlink("f"), 0);
    make(&d, "old", "new");
    CHECK_INT(store_append_end(store_append_begin(&h, &d, 1, STR("1-a")), NULL), 0);
    check_contents("f", "new;");
    draft_release(&d);
    history_release(&h);
    scratch_leave();
}

TEST(a_history_that_came_with_a_repository_is_marked_by_the_first_line_or_name)
{
    struct locate_from from = {.cwd = "", .state_home = ""};
    struct buf cwd = BUF_INIT(BUF_SMALL), state = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct history h;
    int held;

    scratch_enter();
    buf_addf(&cwd, "%s/r", scratch_dir);
    buf_addf(&state, "%s/state", scratch_dir);
    from.cwd = buf_c(&cwd);
    from.state_home = buf_c(&state);
    for (int name = 0; name < 2; name++) {
        CHECK_INT(mkdir("r", 0700), 0);
        make_repository("r");
        CHECK_INT(mkdir("r/.git/aicoder", 0700), 0);
        scratch_put("r/.git/aicoder/history.jsonl", OLD);
        CHECK_INT(locate(&h, &from, NULL), 0);
        CHECK(!h.marked);
        leave_answer(&h, "1-a", "planted");
        /* While another program holds the lock, nothing is marked. */
        held = open("r/.git/aicoder/history.jsonl", O_RDWR);
        CHECK_INT(flock(held, LOCK_EX), 0);
        h.impatient = true;
        CHECK_INT(store_enter(&h, NULL), -1);
        CHECK_INT(store_name(&h, STR("old"), &e), -1);
        CHECK(strstr(err_text(&e), "another program holds it"));
        err_release(&e);
        close(held);
        CHECK_INT(name ? store_name(&h, STR("old"), NULL) : append_one(&h, "s", "mine", NULL), 0);
        history_release(&h);
        CHECK_INT(locate(&h, &from, NULL), 0);
        CHECK(h.marked);
        CHECK_STR(buf_c(&h.mark.named), name ? "old\n" : "");
        /* The answer of the killed turn is not one of this account. */
        check_contents("r/.git/aicoder/history.jsonl",
                       name ? "before;planted;" : "before;planted;mine;");
        CHECK(h.mark.from > (off_t)strlen(OLD));
        history_release(&h);
        CHECK_INT(chdir("r"), 0);
        scratch_empty();
        CHECK_INT(chdir(".."), 0);
        CHECK_INT(rmdir("r"), 0);
    }
    buf_release(&cwd);
    buf_release(&state);
    scratch_leave();
}

/* ---- faults ---- */

/* A file may not grow over a limit: the write is torn, then fails. */
TEST(a_write_that_fails_leaves_the_file_as_it_was)
{
    struct rlimit old, limit;
    struct err e = ERR_INIT;
    struct history h;

    scratch_enter();
    signal(SIGXFSZ, SIG_IGN);
    h = explicit_history("f");
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
    for (size_t room = 0; room < 130; room += 7) {
        for (size_t torn = 0; torn < 40; torn += 39) {
            struct buf before = BUF_INIT(BUF_SMALL);

            buf_add(&before, OLD OLD, strlen(OLD) + torn);
            scratch_put("f", buf_c(&before));
            limit = old;
            limit.rlim_cur = before.len + room;
            CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
            CHECK_INT(append_one(&h, "s", "a content that does not fit", &e), -1);
            CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
            CHECK_STR(err_text(&e), "cannot write 'f': File too large");
            scratch_check("f", buf_c(&before));
            buf_release(&before);
        }
    }
    CHECK_INT(append_one(&h, "s", "x", NULL), 0);
    signal(SIGXFSZ, SIG_DFL);
    err_release(&e);
    history_release(&h);
    scratch_leave();
}

TEST(several_lines_are_stored_all_or_none)
{
    struct rlimit old, limit;
    struct history h;
    struct draft d[3];

    scratch_enter();
    signal(SIGXFSZ, SIG_IGN);
    h = explicit_history("f");
    for (int i = 0; i < 3; i++)
        make(&d[i], "s", "x");
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 300; /* two of them fit */
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_INT(store_append(&h, d, 3, NULL), -1);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
    scratch_check("f", "");
    CHECK_INT(store_append(&h, d, 3, NULL), 0);
    check_count("f", 3, 0);
    for (int i = 0; i < 3; i++)
        draft_release(&d[i]);
    signal(SIGXFSZ, SIG_DFL);
    history_release(&h);
    scratch_leave();
}

static char told[64];

static void note_path(const char *path)
{
    snprintf(told, sizeof told, "%s", path);
}

TEST(a_second_wait_for_the_lock_is_short)
{
    struct history h;
    struct err e = ERR_INIT;
    int fds[2], held;
    int64_t start;

    scratch_enter();
    scratch_put("f", OLD);
    h = explicit_history("f");
    h.tell = note_path;
    held = open("f", O_RDWR);
    CHECK_INT(flock(held, LOCK_EX), 0);

    CHECK_INT(pipe(fds), 0);
    CHECK_INT(write(fds[1], "", 1), 1);
    h.cancel_fd = fds[0];
    CHECK_INT(append_one(&h, "s", "x", &e), -1);
    CHECK_STR(err_text(&e), "cannot lock 'f': another program holds it");
    CHECK_STR(told, "");
    CHECK(h.impatient);

    h.cancel_fd = -1;
    start = time_ticks();
    CHECK_INT(append_one(&h, "s", "x", NULL), -1);
    CHECK(time_ticks() - start >= HISTORY_IMPATIENT_MS - 10);
    CHECK(time_ticks() - start < 4 * HISTORY_IMPATIENT_MS);
    CHECK_STR(told, "f");

    close(held);
    CHECK_INT(append_one(&h, "s", "x", NULL), 0);
    check_count("f", 2, 0);
    close(fds[0]);
    close(fds[1]);
    err_release(&e);
    history_release(&h);
    scratch_leave();
}
