#include "chathist/base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/pipe.h"
#include "chathist/base/spawn.h"

/* How often a child is looked after that does not write; how long what it started may take to write
 * when it has ended; and how long it may take to end when it is to, then again after SIGTERM. All
 * in milliseconds. */
#define LOOK_MS 5
#define DRAIN_MS 50
#define GRACE_MS 50

/* How much is read at once of what is thrown away. */
#define READ_SIZE ((size_t)65536)

static const int terminal_signals[] = {SIGINT, SIGQUIT};
#define SIGNALS (sizeof terminal_signals / sizeof *terminal_signals)

/* Ignored by programs of ours for their own sake (cli/die, turn/interrupt). */
static void reset_ours(sigset_t *reset)
{
    sigemptyset(reset);
    sigaddset(reset, SIGPIPE);
    sigaddset(reset, SIGXFSZ);
}

/* What was caught or not ignored comes to the child as the default; what somebody ignored for us
 * stays ignored. */
static void ignore_signals(struct sigaction before[SIGNALS], sigset_t *reset)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&ignore.sa_mask);
    reset_ours(reset);
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaction(terminal_signals[i], &ignore, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaddset(reset, terminal_signals[i]);
    }
}

static int wait_for(pid_t pid, const char *name, struct err *e)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, errno, "cannot wait for '%s'", name);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void proc_hide(void)
{
#ifdef PR_SET_DUMPABLE
    prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
#endif
}

/* ---- sharing the terminal ---- */

int proc_run(char *const argv[], int out, struct err *e)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_OURS, out < 0 ? SPAWN_OURS : out, SPAWN_OURS}};
    struct sigaction before[SIGNALS];
    pid_t pid;
    int failed, result;

    ignore_signals(before, &s.reset);
    failed = spawn(&pid, &s);
    if (failed)
        result = err_sys(e, failed, "cannot run '%s'", argv[0]);
    else
        result = wait_for(pid, argv[0], e);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(terminal_signals[i], &before[i], NULL);
    return result;
}

/* ---- asking for something ---- */

struct asked {
    pid_t pid;
    const char *name;
    int from;   /* the reading end of what it writes to */
    bool apart; /* it leads a group */
};

/* Without a terminal to share it can have a group, and end with all that it started. A group of its
 * own on the terminal would be in the background there, and stopped when it asks for something. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

static bool ends(pid_t pid, int64_t grace_ms)
{
    int64_t until = clock_ticks() + grace_ms;

    while (!has_ended(pid)) {
        if (clock_ticks() >= until)
            return false;
        io_wait(-1, LOOK_MS);
    }
    return true;
}

/* It may have had the signal as well, and be about to give the terminal back as it was. */
static void make_end(const struct asked *c)
{
    pid_t whom = c->apart ? -c->pid : c->pid;

    if (ends(c->pid, GRACE_MS))
        return;
    kill(whom, SIGTERM);
    if (!ends(c->pid, GRACE_MS) || c->apart)
        kill(whom, SIGKILL);
}

/* One read: 1, 0 at the end, -1 with errno. What there is no room for goes; it may be as secret as
 * the rest. */
static int read_more(int from, struct buf *printed, size_t *thrown_away)
{
    struct buf rest = BUF_INIT(READ_SIZE);
    int came;

    if (printed->len < printed->max)
        return io_read_some(from, printed);
    came = io_read_some(from, &rest);
    *thrown_away += rest.len;
    mem_wipe(rest.data, rest.cap);
    buf_release(&rest);
    if (*thrown_away <= PROC_REST_MAX)
        return came;
    errno = EFBIG;
    return -1;
}

/* Reads until the child has ended: what it started may hold the pipe open, and what it wrote itself
 * is in the pipe by then. 0, ECANCELED, or another errno. */
static int collect(const struct asked *c, int cancel_fd, struct buf *printed)
{
    struct pollfd fds[2] = {{.fd = c->from, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};
    int64_t until = INT64_MAX;
    size_t thrown_away = 0;

    for (;;) {
        int came;

        if (until == INT64_MAX && has_ended(c->pid))
            until = clock_ticks() + DRAIN_MS;
        if (poll(fds, 2, LOOK_MS) > 0) {
            if (fds[1].revents)
                return ECANCELED;
            came = read_more(c->from, printed, &thrown_away);
            if (came < 0)
                return errno;
            if (came == 0)
                fds[0].fd = -1;
        }
        if (until < INT64_MAX && (fds[0].fd < 0 || clock_ticks() >= until))
            return 0;
    }
}

static int ask(const struct asked *c, int cancel_fd, struct buf *printed, struct err *e)
{
    int unread = collect(c, cancel_fd, printed);
    int result;

    /* One that goes on printing is ended by SIGPIPE. */
    close(c->from);
    if (unread)
        make_end(c);
    result = wait_for(c->pid, c->name, e);
    if (unread == ECANCELED)
        return err_set(e, ERR_SIGNAL, "interrupted");
    if (result >= 0 && unread)
        return err_sys(e, unread, "cannot read what '%s' prints", c->name);
    return result;
}

int proc_read(char *const argv[], const char *cwd, struct buf *out, int cancel_fd, struct err *e)
{
    struct spawn s = {.argv = argv, .cwd = cwd, .apart = !has_terminal()};
    struct asked c = {.name = argv[0], .apart = s.apart};
    int ends[2], failed;

    if (pipe_open(ends) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    s.fd[0] = SPAWN_NULL;
    s.fd[1] = ends[1];
    s.fd[2] = SPAWN_OURS;
    reset_ours(&s.reset);
    failed = spawn(&c.pid, &s);
    /* Its end is the child's alone now. */
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        return err_sys(e, failed, "cannot run '%s'", argv[0]);
    }
    c.from = ends[0];
    return ask(&c, cancel_fd, out, e);
}
