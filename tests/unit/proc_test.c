#include "chathist/base/process.h"

#include <signal.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/time.h"
#include "test.h"
#include "scratch.h"

static int run_sh(const char *script, int out, struct err *e)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script,
                    NULL};

    return process_run(argv, out, e);
}

TEST(the_exit_status)
{
    CHECK_INT(run_sh("exit 0", -1, NULL), 0);
    CHECK_INT(run_sh("exit 255", -1, NULL), 255);
    CHECK_INT(run_sh("kill -TERM $$", -1, NULL), 128 + SIGTERM);
}

TEST(what_cannot_be_started)
{
    char *argv[] = {(char *)(uintptr_t) "no-such-program-anywhere", NULL};
    struct err e = ERR_INIT;

    CHECK_INT(process_run(argv, -1, &e), -1);
    CHECK_INT(e.kind, ERR_FAILURE);
    CHECK_STR(err_text(&e), "cannot run 'no-such-program-anywhere': No such file or directory");
    err_release(&e);
}

static volatile sig_atomic_t seen;

static void note(int signo)
{
    seen = signo;
}

/* The signals of the terminal go to both processes. */
TEST(an_interrupt_is_the_childs)
{
    struct sigaction act = {.sa_handler = note}, was, now;

    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, &was);
    CHECK_INT(run_sh("kill -INT $PPID; kill -QUIT $PPID; kill -INT $$", -1, NULL), 128 + SIGINT);
    CHECK_INT(seen, 0);
    sigaction(SIGINT, NULL, &now);
    CHECK(now.sa_handler == note);
    act.sa_handler = SIG_IGN;
    sigaction(SIGINT, &act, NULL);
    CHECK_INT(run_sh("kill -INT $$; exit 3", -1, NULL), 3);
    sigaction(SIGINT, &was, NULL);
}

static int read_sh(const char *script, struct buf *out, struct err *e)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script,
                    NULL};

    return process_read(argv, NULL, STR_NONE, out, -1, e);
}

TEST(what_it_prints_is_read)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    CHECK_INT(read_sh("echo one; echo two; exit 3", &out, NULL), 3);
    CHECK_STR(buf_c(&out), "one\ntwo\n");
    buf_clear(&out);
    CHECK_INT(read_sh("cat; echo end", &out, NULL), 0);
    CHECK_STR(buf_c(&out), "end\n");
    buf_clear(&out);
    CHECK_INT(read_sh("kill -TERM $$", &out, NULL), 128 + SIGTERM);
    CHECK_INT(out.len, 0);
    buf_release(&out);
}

TEST(what_it_leaves_behind_is_not_waited_for)
{
    struct buf out = BUF_INIT(BUF_LINE), pid = BUF_INIT(BUF_SMALL);
    int64_t began = time_ticks();
    pid_t left;

    scratch_enter();
    CHECK_INT(read_sh("sleep 60 & echo $! >pid; head -c 60000 /dev/zero | tr '\\0' x; exit 3", &out,
                      NULL),
              3);
    CHECK_INT(out.len, 60000);
    CHECK(time_ticks() - began < 30000);
    CHECK_INT(file_read("pid", &pid, NULL), 0);
    left = (pid_t)strtol(buf_c(&pid), NULL, 10);
    CHECK(left > 0 && kill(left, SIGKILL) == 0);
    scratch_leave();
    buf_release(&out);
    buf_release(&pid);
}

TEST(what_it_is_given_is_its_input)
{
    char *cat[] = {(char *)(uintptr_t) "cat", NULL};
    char *deaf[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t) "exec <&-; echo said; exit 3", NULL};
    struct buf in = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_LINE);
    struct sigaction now;

    /* More than both pipes hold. */
    for (int i = 0; i < 100000; i++)
        buf_addf(&in, "%d\n", i);
    CHECK_INT(process_read(cat, NULL, buf_str(&in), &out, -1, NULL), 0);
    CHECK(str_eq(buf_str(&in), buf_str(&out)));
    buf_clear(&out);
    CHECK_INT(process_read(cat, NULL, STR(""), &out, -1, NULL), 0);
    CHECK_INT(out.len, 0);
    /* A program that does not read it, and the signal that this causes. */
    CHECK_INT(process_read(deaf, NULL, buf_str(&in), &out, -1, NULL), 3);
    CHECK_STR(buf_c(&out), "said\n");
    sigaction(SIGPIPE, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
    buf_release(&in);
    buf_release(&out);
}

TEST(reading_can_be_cancelled)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int ends[2];
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                    (char *)(uintptr_t) "trap '' TERM INT; exec 1>&-; while :; do sleep 1; done",
                    NULL};

    CHECK_INT(pipe(ends), 0);
    CHECK_INT(write(ends[1], "x", 1), 1);
    CHECK_INT(process_read(argv, NULL, STR_NONE, &out, ends[0], &e), -1);
    CHECK_INT(e.kind, ERR_SIGNAL);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_INT(errno, ECHILD);
    close(ends[0]);
    close(ends[1]);
    err_release(&e);
    buf_release(&out);
}

TEST(more_than_there_is_room_for)
{
    struct buf out = BUF_INIT(10);
    struct err e = ERR_INIT;

    CHECK_INT(read_sh("printf 0123456789", &out, &e), 0);
    CHECK_STR(buf_c(&out), "0123456789");
    buf_clear(&out);
    CHECK_INT(read_sh("printf 0123456789; head -c 200000 /dev/zero; exit 3", &out, &e), 3);
    CHECK_STR(buf_c(&out), "0123456789");
    buf_clear(&out);
    CHECK_INT(read_sh("while echo 0123456789; do :; done", &out, &e), -1);
    CHECK_STR(err_text(&e), "cannot read what 'sh' prints: File too large");
    err_release(&e);
    buf_release(&out);
}
