#include "browse/browse_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/child.h"
#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/pipe.h"
#include "chathist/base/spawn.h"

/* How often it is looked whether it has ended, and how long it may take to, in milliseconds. */
#define LOOK_MS 20
#define GRACE_MS 2000

int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e)
{
    struct child c;

    if (child_start(&c, argv, NULL, NULL, e) < 0)
        return -1;
    child_close(&c.in);
    while (!atomic_load(cancel) && (!child_ended(&c) || c.out >= 0 || c.err >= 0)) {
        struct pollfd fds[2] = {{.fd = c.out, .events = POLLIN}, {.fd = c.err, .events = POLLIN}};
        bool ended = child_ended(&c);

        if (poll(fds, 2, LOOK_MS) <= 0 && ended)
            break;
        if (fds[0].revents)
            child_read(&c.out, out);
        if (fds[1].revents)
            child_read(&c.err, said);
    }
    child_term(&c);
    child_end(&c, child_ended(&c) ? 0 : GRACE_MS);
    return c.status;
}

/* How much of what was written has not been read yet, where the system tells; else 0. */
static int unread(int fd)
{
    int count = 0;

    return ioctl(fd, FIONREAD, &count) < 0 ? 0 : count;
}

/* Writes it as fast as it is read. false: not all of it was. Closes the descriptor. */
static bool give(int fd, struct str text, const atomic_bool *cancel)
{
    int64_t until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    int left = 0;

    while (fd >= 0 && !atomic_load(cancel) && clock_ticks() < until) {
        struct pollfd to = {.fd = fd, .events = text.n > 0 ? POLLOUT : 0};
        int ready = poll(&to, 1, LOOK_MS), before = left;
        size_t taken = 0;

        if (ready > 0 && to.revents & POLLERR)
            break; /* nobody reads there any more */
        if (ready > 0)
            taken = child_write(&fd, text);
        text.p += taken;
        text.n -= taken;
        left = unread(fd);
        if (text.n == 0 && left == 0)
            break;
        if (taken > 0 || left < before)
            until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    }
    left = fd < 0 ? 0 : unread(fd);
    child_close(&fd);
    return text.n == 0 && left == 0;
}

/* Is it content with what it has read? One that does not end keeps it. */
static bool has_taken(pid_t pid, const atomic_bool *cancel)
{
    int64_t until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return false;
        if (clock_ticks() >= until || atomic_load(cancel))
            return true;
        io_wait(-1, LOOK_MS);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_NULL, SPAWN_NULL, SPAWN_NULL}, .apart = true};
    int ends[2], failed;
    pid_t pid;

    if (pipe_open(ends) < 0)
        return -1;
    s.fd[0] = ends[0];
    sigfillset(&s.reset);
    failed = fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 || spawn(&pid, &s) != 0;
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return -1;
    }
    if (give(ends[1], text, cancel))
        return has_taken(pid, cancel) ? 0 : -1;
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return -1;
}
