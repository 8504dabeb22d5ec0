#include "chathist/base/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A pipe that is closed in other programs from its first moment on is of POSIX.1-2024. Elsewhere
 * one that another thread starts just then inherits it. */
#ifdef __linux__
static int make(int ends[2], int flags)
{
    return pipe2(ends, flags);
}
#else
static int make(int ends[2], int flags)
{
    int reason;

    if (pipe(ends) < 0)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) < 0 ||
            (flags & O_NONBLOCK && fcntl(ends[i], F_SETFL, O_NONBLOCK) < 0)) {
            reason = errno;
            close(ends[0]);
            close(ends[1]);
            errno = reason;
            return -1;
        }
    }
    return 0;
}
#endif

static int open_ends(int ends[2], int flags)
{
    int result = make(ends, flags);

    if (result < 0)
        ends[0] = ends[1] = -1;
    return result;
}

int pipe_open(int ends[2])
{
    return open_ends(ends, O_CLOEXEC);
}

int pipe_open_wake(int ends[2])
{
    return open_ends(ends, O_CLOEXEC | O_NONBLOCK);
}
