/*
 * append - adding bytes to a file of lines that several processes write, all or nothing.
 *
 * What store and register have in common (chathist(5), "Appending"): the
 * lock, the check that the path still names the locked file, the healing of a torn last line, the
 * way back after a failure, and getting it on the disk.
 */
#ifndef CHATHIST_HIST_APPEND_H
#define CHATHIST_HIST_APPEND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* How long to wait for other writers. */
#define APPEND_LOCK_MS 60000

/* A file that is open for appending and locked against other writers. */
struct append {
    int fd;
    const char *path; /* borrowed */
    off_t end;        /* its size */
    bool fresh;       /* new, or nobody has finished writing to it: its directory needs a sync */
    bool torn;        /* the last line has no newline */
};

/* Opens `path`, made with mode 0600 when it is missing, and locks it. A link, FIFO, device or
 * directory is refused. Nothing is written. Other writers are waited for up to APPEND_LOCK_MS, and
 * only a moment once cancel_fd (-1: none) is readable. */
int append_open(struct append *a, const char *path, int cancel_fd, struct err *e);
/* Writes whole lines at the end, with a newline before them when the last line is torn. With `sync`
 * they are on the disk on return. -1: the file is as long as it was. */
int append_write(struct append *a, struct str lines, bool sync, struct err *e);
void append_close(struct append *a);

#endif
