#include "chathist/base/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/time.h"
#include "scratch.h"

/* Long enough to mean "for ever" where a test would fail. */
#define LONG_MS 20000

static int start_sh(struct child *c, const char *script, char *const env[])
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t)script, NULL};

    signal(SIGPIPE, SIG_IGN);
    return child_start(c, argv, env, NULL, NULL);
}

/* Reads until the other end is closed. */
static void read_all(int *fd, struct buf *b)
{
    while (*fd >= 0)
        if (!child_read(fd, b) && *fd >= 0)
            file_wait(*fd, LONG_MS);
}

/* Returns whether the process exists and has not ended. The first process of a container may never
 * reap an orphan that has ended. */
static bool is_alive(pid_t pid)
{
    struct buf name = BUF_INIT(BUF_SMALL), stat = BUF_INIT(BUF_LINE);
    bool alive = kill(pid, 0) == 0;
    const char *command_end;

    buf_addf(&name, "/proc/%d/stat", (int)pid);
    if (alive && file_read(buf_c(&name), &stat, NULL) == 0) {
        command_end = strrchr(buf_c(&stat), ')');
        alive = command_end && !str_starts(str_of(command_end), STR(") Z"));
    }
    buf_release(&name);
    buf_release(&stat);
    return alive;
}

/* A killed orphan is reaped by another process, later or never. */
static bool goes(pid_t pid)
{
    for (int i = 0; i < 400 && is_alive(pid); i++)
        file_wait(-1, 5);
    return !is_alive(pid);
}

TEST(its_three_streams)
{
    struct buf out = BUF_INIT(BUF_SMALL), err = BUF_INIT(BUF_SMALL);
    struct child c;

    CHECK_INT(start_sh(&c, "cat; echo problem >&2; exit 3", NULL), 0);
    CHECK(!child_read(&c.out, &out) && c.out >= 0);
    CHECK_INT(child_write(&c.in, STR("hello")), 5);
    child_close(&c.in);
    CHECK_INT(c.in, -1);
    read_all(&c.out, &out);
    read_all(&c.err, &err);
    CHECK_STR(buf_c(&out), "hello");
    CHECK_STR(buf_c(&err), "problem\n");
    child_end(&c, LONG_MS);
    CHECK_INT(c.status, 3);
    CHECK_INT(c.signal, 0);
    CHECK_INT(c.pid, 0);
    buf_release(&out);
    buf_release(&err);
}

TEST(what_cannot_be_started)
{
    char *argv[] = {(char *)(uintptr_t) "./no-such-program", NULL};
    struct child c;
    struct err e = ERR_INIT;

    CHECK_INT(child_start(&c, argv, NULL, NULL, &e), -1);
    CHECK_STR(err_text(&e), "cannot run './no-such-program': No such file or directory");
    CHECK(c.pid == 0 && c.in == -1 && c.out == -1 && c.err == -1);
    CHECK(child_ended(&c));
    child_end(&c, LONG_MS);
    err_release(&e);
}

TEST(nobody_reads_what_is_written)
{
    struct child c;

    CHECK_INT(start_sh(&c, "exec <&-; echo closed; exec sleep 60", NULL), 0);
    file_wait(c.out, LONG_MS);
    CHECK_INT(child_write(&c.in, STR("hello")), 0);
    CHECK_INT(c.in, -1);
    child_end(&c, 0);
    CHECK(c.signal == SIGTERM || c.signal == SIGKILL);
    CHECK_INT(c.status, 128 + c.signal);
}

TEST(a_full_pipe_takes_no_more)
{
    static char much[1 << 20];
    struct child c;
    size_t n;

    CHECK_INT(start_sh(&c, "exec sleep 60", NULL), 0);
    n = child_write(&c.in, (struct str){much, sizeof much});
    CHECK(n > 0 && n < sizeof much);
    CHECK_INT(child_write(&c.in, (struct str){much, sizeof much}), 0);
    CHECK(c.in >= 0);
    child_end(&c, 0);
}

/* The end of standard input is enough for one that wants to go by itself. */
TEST(a_gentle_end)
{
    struct child c;

    CHECK_INT(start_sh(&c, "cat >/dev/null; exit 7", NULL), 0);
    CHECK(!child_ended(&c));
    child_end(&c, LONG_MS);
    CHECK_INT(c.status, 7);
    CHECK_INT(
        start_sh(&c, "trap 'echo bye >&2; exit 8' TERM; echo; while :; do sleep 0.05; done", NULL),
        0);
    file_wait(c.out, LONG_MS);
    child_end(&c, 1000);
    CHECK_INT(c.status, 8);
}

TEST(what_ignores_everything_is_killed)
{
    struct child c;

    CHECK_INT(start_sh(&c, "trap '' TERM HUP PIPE; echo; while :; do sleep 60; done", NULL), 0);
    file_wait(c.out, LONG_MS);
    child_end(&c, 20);
    CHECK_INT(c.signal, SIGKILL);
    CHECK_INT(c.status, 128 + SIGKILL);
}

/* Those that do not want to go have the time together, not one after the other. */
TEST(several_end_together)
{
    enum { MANY = 4 };
    struct child c[MANY], *all[MANY];
    int64_t began;

    for (size_t i = 0; i < MANY; i++) {
        all[i] = &c[i];
        CHECK_INT(start_sh(&c[i], "trap '' TERM; echo; while :; do sleep 60; done", NULL), 0);
        file_wait(c[i].out, LONG_MS);
    }
    began = time_ticks();
    child_end_all(all, MANY, 500, -1);
    CHECK(time_ticks() - began < 2000);
    for (size_t i = 0; i < MANY; i++)
        CHECK_INT(c[i].signal, SIGKILL);
}

/* Whoever waits for them can give up waiting. */
TEST(a_hurry_cuts_the_grace_short)
{
    struct child c, *all[] = {&c};
    int64_t began;
    int hurry[2];

    CHECK_INT(pipe(hurry), 0);
    CHECK_INT(write(hurry[1], "", 1), 1);
    CHECK_INT(start_sh(&c, "trap '' TERM; echo; while :; do sleep 60; done", NULL), 0);
    file_wait(c.out, LONG_MS);
    began = time_ticks();
    child_end_all(all, 1, LONG_MS, hurry[0]);
    CHECK(time_ticks() - began < LONG_MS);
    CHECK_INT(c.signal, SIGKILL);
    close(hurry[0]);
    close(hurry[1]);
}

/* Also those whose parent has ended before them. */
TEST(it_ends_with_all_that_it_started)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct child c;
    pid_t left;

    CHECK_INT(start_sh(&c, "sleep 60 >/dev/null 2>&1 & echo $!", NULL), 0);
    read_all(&c.out, &out);
    left = (pid_t)strtol(buf_c(&out), NULL, 10);
    while (!child_ended(&c))
        file_wait(-1, 5);
    CHECK(left > 0 && is_alive(left));
    CHECK_INT(c.status, 0);
    child_end(&c, LONG_MS);
    CHECK(goes(left));
    CHECK_INT(c.status, 0);
    buf_release(&out);
}

/* Signals that we ignore or block are not the child's business. */
TEST(it_has_the_usual_signals_and_a_session_of_its_own)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct child c;
    sigset_t set, was;

    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, &was);
    signal(SIGINT, SIG_IGN);
    CHECK_INT(start_sh(&c, "ps -o pgid= -p $$ | tr -d ' '; kill -INT $$; exit 9", NULL), 0);
    sigprocmask(SIG_SETMASK, &was, NULL);
    signal(SIGINT, SIG_DFL);
    CHECK_INT(getpgid(c.pid), c.pid);
    CHECK_INT(getsid(c.pid), c.pid);
    read_all(&c.out, &out);
    CHECK_INT(strtol(buf_c(&out), NULL, 10), c.pid);
    child_end(&c, LONG_MS);
    CHECK_INT(c.signal, SIGINT);
    buf_release(&out);
}

TEST(no_descriptor_of_ours_is_the_childs)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct child a, b;

    CHECK_INT(start_sh(&a, "exec cat", NULL), 0);
    CHECK_INT(start_sh(&b, "exec cat", NULL), 0);
    /* b would hold a's standard input open. */
    child_close(&a.in);
    read_all(&a.out, &out);
    CHECK_INT(out.len, 0);
    child_end(&a, LONG_MS);
    CHECK_INT(a.status, 0);
    child_end(&b, LONG_MS);
    CHECK_INT(b.status, 0);
    buf_release(&out);
}

TEST(the_environment_without_what_is_secret)
{
    const char *const names[] = {"SOME_KEY", "OTHER_KEY", NULL};
    struct buf out = BUF_INIT(BUF_SMALL);
    struct child c;
    char **env;

    setenv("SOME_KEY", "a", 1);
    setenv("OTHER_KEY", "", 1);
    setenv("SOME_KEY_NOT", "kept", 1);
    setenv("ELSEWHERE", "Bearer s3cret!", 1);
    env = child_env_without(names, STR("s3cret"));
    CHECK_INT(start_sh(&c,
                       "echo ${SOME_KEY-none} ${OTHER_KEY-none} ${SOME_KEY_NOT-none} "
                       "${ELSEWHERE-none}",
                       env),
              0);
    read_all(&c.out, &out);
    CHECK_STR(buf_c(&out), "none none kept none\n");
    child_end(&c, LONG_MS);
    free(env);
    buf_clear(&out);
    env = child_env_without(names + 2, STR_NONE);
    CHECK_INT(start_sh(&c, "echo ${SOME_KEY-none} ${ELSEWHERE-none}", env), 0);
    read_all(&c.out, &out);
    CHECK_STR(buf_c(&out), "a Bearer s3cret!\n");
    child_end(&c, LONG_MS);
    free(env);
    buf_release(&out);
}
