#include "base/proc.h"

#include <signal.h>
#include <stdint.h>

#include "test.h"
#include "scratch.h"

static int run_sh(const char *script, int out, struct err *e)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script,
                    NULL};

    return proc_run(argv, out, e);
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

    CHECK_INT(proc_run(argv, -1, &e), -1);
    CHECK_INT(e.kind, ERR_FAILURE);
    CHECK_STR(err_text(&e), "cannot run 'no-such-program-anywhere': No such file or directory");
    err_release(&e);
}

TEST(standard_output_goes_elsewhere)
{
    int fd;

    scratch_enter();
    fd = open("out", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK_INT(run_sh("echo text", fd, NULL), 0);
    close(fd);
    scratch_check("out", "text\n");
    scratch_leave();
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
