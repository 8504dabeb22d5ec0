#include "base/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int pipe_open(int ends[2])
{
    int reason;

    if (pipe(ends) == 0) {
        if (fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0)
            return 0;
        reason = errno;
        close(ends[0]);
        close(ends[1]);
        errno = reason;
    }
    ends[0] = ends[1] = -1;
    return -1;
}
