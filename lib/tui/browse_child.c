#include "tui/browse_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <errno.h>

#include "base/child.h"
#include "base/io.h"
#include "base/pipe.h"
#include "base/spawn.h"

/* How often it is looked whether it has ended, and how long it may take to, in milliseconds. */
#define LOOK_MS 20
#define GRACE_MS 2000

int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e)
{
    struct child c;

    if (child_start(&c, argv, NULL, e) < 0)
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
    if (!child_ended(&c))
        child_end(&c, GRACE_MS);
    else
        child_end(&c, 0);
    return c.status;
}

int browse_child_give(char *const argv[], struct str text)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_NULL, SPAWN_NULL, SPAWN_NULL}, .apart = true};
    int ends[2], status = 0;
    bool started, given;
    pid_t pid;

    if (pipe_open(ends) < 0)
        return -1;
    s.fd[0] = ends[0];
    sigfillset(&s.reset);
    started = spawn(&pid, &s) == 0;
    close(ends[0]);
    given = started && io_write_all(ends[1], text.p, text.n) == 0;
    close(ends[1]);
    while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return given && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}
