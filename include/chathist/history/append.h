/*
 * append - adding bytes to a file of lines that several processes write, all or nothing.
 *
 * What store and register have in common (chathist(5), "Appending"): the
 * lock, the check that the path still names the locked file, the healing of a torn last line, the
 * way back after a failure, and getting it on the disk.
 */
#ifndef CHATHIST_HISTORY_APPEND_H
#define CHATHIST_HISTORY_APPEND_H

#include <stdbool.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* How long to wait for other writers, and after how much of that somebody is told. Milliseconds. */
#define APPEND_LOCK_MS 60000
#define APPEND_TELL_MS 3000

/* A wait for other writers. */
struct append_wait {
    long ms;
    int cancel_fd; /* readable: only a moment longer; -1: none */
    /* Told once when it takes long; NULL: nobody. */
    void (*tell)(const char *path);
    bool timed_out; /* set when the lock was not to be had; the time has to be up for it */
};
#define APPEND_WAIT_INIT                                                                           \
    {                                                                                              \
        .ms = APPEND_LOCK_MS, .cancel_fd = -1                                                      \
    }

/* A file that is open for appending and locked against other writers. */
struct append {
    int fd;
    int dir;          /* of the file, as for io_open_regular_at; borrowed */
    const char *path; /* borrowed */
    off_t end;        /* its size */
    bool fresh;       /* new, or nobody has finished writing to it: its directory needs a sync */
    bool torn;        /* the last line has no newline */
};

/* Opens `path`, made with mode 0600 when it is missing, and locks it. A link, FIFO, device or
 * directory is refused. Nothing is written. */
int append_open(struct append *a, int dir, const char *path, struct append_wait *wait,
                struct err *e);
/* The same of a file that must be there. Its beginning up to `end` is what writers have finished:
 * nothing of it changes any more, also when the lock is given up, as long as the path names it. */
int append_open_present(struct append *a, int dir, const char *path, struct append_wait *wait,
                        struct err *e);
/* Writes whole lines at the end, with a newline before them when the last line is torn. With `sync`
 * they are on the disk on return. -1: the file is as long as it was. */
int append_write(struct append *a, struct str lines, bool sync, struct err *e);
void append_close(struct append *a);

#endif
