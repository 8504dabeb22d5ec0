#include "chathist/history/store.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
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

    CHECK_INT(scan_open(&s, FILE_CWD, path, SCAN_FORWARD, NULL), 0);
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

TEST(a_torn_tail_of_any_length_stays_its_own_line)
{
    struct history h;

    scratch_enter();
    h = explicit_history("f");
    h.sync = false;
    for (size_t cut = 0; cut < strlen(OLD); cut++) {
        struct buf text = BUF_INIT(BUF_SMALL);

        buf_add_c(&text, OLD);
        buf_add(&text, OLD, cut);
        scratch_put("f", buf_c(&text));
        CHECK_INT(append_one(&h, "s", "x", NULL), 0);

        struct buf now = scratch_get("f");
        bool whole = cut == strlen(OLD) - 1; /* only its newline is missing: a message */

        if (cut)
            buf_add_byte(&text, '\n');
        CHECK(str_starts(buf_str(&now), buf_str(&text)));
        buf_release(&now);
        buf_release(&text);
        check_count("f", whole ? 3 : 2, cut && !whole ? 1 : 0);
    }
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

TEST(a_time_is_stored_in_one_form)
{
    struct history h;
    struct draft d;

    scratch_enter();
    h = explicit_history("f");
    make(&d, "s", "x");
    draft_set_text(&d, FIELD_ID, STR("i"));
    draft_set_text(&d, FIELD_TIMESTAMP, STR("2020-01-01T02:00+02:00"));
    CHECK_INT(store_append(&h, &d, 1, NULL), 0);
    scratch_check("f", "{\"id\":\"i\",\"session_id\":\"s\",\"timestamp\":"
                       "\"2020-01-01T00:00:00.000000+00:00\",\"role\":\"user\","
                       "\"content\":\"x\"}\n");
    draft_release(&d);
    history_release(&h);
    scratch_leave();
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

TEST(links_fifos_and_directories_are_refused)
{
    static const struct {
        const char *path, *why;
    } cases[] = {
        {"link", "cannot open 'link': is a symbolic link"},
        {"dangling", "cannot open 'dangling': is a symbolic link"},
        {"fifo", "cannot open 'fifo': is a FIFO"},
        {"dir", "cannot open 'dir': is a directory"},
        {"no/f", "cannot open 'no/f': No such file or directory"},
        {"/dev/null", "cannot open '/dev/null': is a device"},
    };

    scratch_enter();
    scratch_put("real", OLD);
    CHECK_INT(symlink("real", "link"), 0);
    CHECK_INT(symlink("nowhere", "dangling"), 0);
    CHECK_INT(mkfifo("fifo", 0600), 0);
    CHECK_INT(mkdir("dir", 0700), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = ERR_INIT;
        struct history h = explicit_history(cases[i].path);

        CHECK_INT(append_one(&h, "s", "x", &e), -1);
        CHECK_STR(err_text(&e), cases[i].why);
        err_release(&e);
        history_release(&h);
    }
    scratch_check("real", OLD);
    CHECK_INT(scratch_mode("nowhere"), -1);
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

static pid_t start(void (*run)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        run();
        _exit(test_failed ? 1 : 0);
    }
    return pid;
}

static void check_exit(pid_t pid)
{
    int status = -1;

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

static void nap(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&span, NULL);
}

#define WRITERS 8
#define LINES 1000

/* Each line's content tells who wrote it, which in order, and is long enough to span pages. */
static void write_many(void)
{
    struct history h = explicit_history("f");
    char session[32];

    h.sync = false;
    snprintf(session, sizeof(session), "w%ld", (long)getpid());
    for (int i = 0; i < LINES; i++) {
        struct buf content = BUF_INIT(BUF_SMALL);

        buf_addf(&content, "%d ", i);
        for (int n = 0; n < i % 50 * 20; n++)
            buf_add_c(&content, "word ");
        CHECK_INT(append_one(&h, session, buf_c(&content), NULL), 0);
        buf_release(&content);
    }
    history_release(&h);
}

TEST(eight_writers_lose_and_mix_nothing)
{
    pid_t pids[WRITERS];
    int next[WRITERS] = {0};
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct scan s;

    scratch_enter();
    for (int i = 0; i < WRITERS; i++)
        pids[i] = start(write_many);
    for (int i = 0; i < WRITERS; i++)
        check_exit(pids[i]);
    CHECK_INT(scan_open(&s, FILE_CWD, "f", SCAN_FORWARD, NULL), 0);
    while (scan_message(&s, &m, NULL, NULL) > 0) {
        for (int i = 0; i < WRITERS; i++) {
            char session[32];
            struct str content = message_content(&m, &scratch);

            snprintf(session, sizeof(session), "w%ld", (long)pids[i]);
            if (!str_eq_c(m.session_id, session))
                continue;
            snprintf(session, sizeof(session), "%d ", next[i]++);
            CHECK(str_starts(content, str_of(session)));
            CHECK_INT(content.n, strlen(session) + (size_t)((next[i] - 1) % 50) * 100);
        }
    }
    CHECK_INT(s.bad, 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK_INT(next[i], LINES);
    scan_close(&s);
    message_release(&m);
    buf_release(&scratch);
    scratch_leave();
}

static int held = -1;

static void write_one(void)
{
    /* A lock goes with the last descriptor of its opening, so not with the parent's alone. */
    close(held);

    struct history h = explicit_history("f");

    CHECK_INT(append_one(&h, "waiter", "x", NULL), 0);
    history_release(&h);
}

TEST(a_writer_waits_for_the_lock_and_writes_to_the_file_of_that_name)
{
    scratch_enter();
    for (int how = 0; how < 3; how++) {
        scratch_put("f", OLD);
        scratch_put("new", OLD OLD);

        held = open("f", O_RDWR);
        CHECK_INT(flock(held, LOCK_EX), 0);

        pid_t pid = start(write_one);

        nap(100);
        CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
        check_count("f", 1, 0);
        if (how == 1) /* a rewrite by hist-delete */
            CHECK_INT(rename("new", "f"), 0);
        if (how == 2)
            CHECK_INT(unlink("f"), 0);
        close(held);
        check_exit(pid);
        check_count("f", how == 0 ? 2 : how == 1 ? 3 : 1, 0);
    }
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
    int fds[2];
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

static void write_for_ever(void)
{
    struct history h = explicit_history("f");
    char content[8192];

    h.sync = false;
    memset(content, 'x', sizeof(content) - 1);
    content[sizeof(content) - 1] = '\0';
    while (append_one(&h, "killed", content, NULL) == 0)
        continue;
}

TEST(writers_that_are_killed_leave_a_history_that_heals)
{
    struct history h;

    scratch_enter();
    scratch_put("f", OLD);
    h = explicit_history("f");
    for (int i = 0; i < 20; i++) {
        pid_t pid = start(write_for_ever);
        struct message m = MESSAGE_INIT;
        struct scan s;

        nap(2 + i);
        kill(pid, SIGKILL);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(append_one(&h, "heals", "x", NULL), 0);
        CHECK_INT(scan_open(&s, FILE_CWD, "f", SCAN_BACKWARD, NULL), 0);
        CHECK_INT(scan_message(&s, &m, NULL, NULL), 1);
        CHECK(str_eq_c(m.session_id, "heals"));
        CHECK(scan_message(&s, &m, NULL, NULL) == 1);
        CHECK(s.bad <= 1); /* the line that was being written */
        scan_close(&s);
        message_release(&m);
    }
    history_release(&h);
    scratch_leave();
}

/* ---- directories ---- */

TEST(a_new_repository_gets_a_directory_of_ours)
{
    struct history h;
    struct locate_from from = {.cwd = scratch_dir, .data_home = "/nowhere", .no_copies = true};
    char *state;

    scratch_enter();
    state = path_join(scratch_dir, "home/state");
    from.state_home = state;
    make_repository(".");
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK_INT(append_one(&h, "s", "x", NULL), 0);
    CHECK_INT(scratch_mode(".git/aicoder"), 0700);
    CHECK_INT(scratch_mode(".git/aicoder/history.jsonl"), 0600);
    check_count(".git/aicoder/history.jsonl", 1, 0);
    history_release(&h);
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    free(state);
    scratch_leave();
}

TEST(storing_in_a_foreign_directory_sets_its_history_aside)
{
    struct history h;
    struct locate_from from = {.cwd = scratch_dir, .data_home = "/nowhere", .no_copies = true};
    char *state;

    scratch_enter();
    state = path_join(scratch_dir, "home/state");
    from.state_home = state;
    make_repository(".");
    CHECK_INT(mkdir(".git/aicoder", 0755), 0);
    scratch_put(".git/aicoder/session", "theirs\n");
    scratch_put(".git/aicoder/history.jsonl", "theirs\n");
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK(!h.trusted);
    CHECK_INT(append_one(&h, "s", "x", NULL), 0);
    CHECK(h.trusted);
    CHECK_INT(scratch_mode(".git/aicoder"), 0755);
    CHECK_INT(scratch_mode(".git/aicoder/history.jsonl"), 0600);
    scratch_check(".git/aicoder/foreign.jsonl", "theirs\n");
    CHECK_INT(scratch_mode(".git/aicoder/session"), -1);
    history_release(&h);
    free(state);
    scratch_leave();
}
