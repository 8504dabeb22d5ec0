/*
 * append - appends lines to a file that several processes write, all of them or none.
 *
 * Both the history and the list of histories use it (chathist(5), "Appending"). It takes the lock,
 * checks that the path still names the locked file, ends a torn last line with a newline, truncates
 * the file after a failure, and syncs it.
 */
#ifndef CHATHIST_HISTORY_APPEND_H
#define CHATHIST_HISTORY_APPEND_H

#include <stdbool.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* How long to wait for other writers, and when to report the wait, in milliseconds. */
#define APPEND_LOCK_MS 60000
#define APPEND_TELL_MS 3000

/* How to wait for the lock while another writer holds it. */
struct append_wait {
    long ms;
    int cancel_fd; /* once it is readable, the wait ends soon; -1: none */
    /* Called once after APPEND_TELL_MS; may be NULL. */
    void (*tell)(const char *path);
    bool timed_out; /* set if the lock was not free in time */
};
#define APPEND_WAIT_INIT                                                                           \
    {                                                                                              \
        .ms = APPEND_LOCK_MS, .cancel_fd = -1                                                      \
    }

/* A file that is open for appending and locked against other writers. */
struct append {
    int fd;
    int dir;          /* descriptor of its directory, see base/file.h; borrowed */
    const char *path; /* borrowed */
    off_t end;        /* its size */
    bool fresh;       /* no writer has finished yet, so the directory needs a sync */
    bool torn;        /* the last line has no newline */
    off_t put;        /* bytes of the lines that append_put wrote and append_finish did not count */
};

/* Opens and locks `path`. A missing file is created with mode 0600. A link, FIFO, device or
 * directory is refused. Writes nothing. Returns 0, or -1 with *e set. */
int append_open(struct append *a, int dir, const char *path, struct append_wait *wait,
                struct err *e);
/* Like append_open, but fails if the file does not exist. Bytes before `end` are complete lines;
 * they never change, even after the lock is released, until another file is renamed over the
 * path. */
int append_open_present(struct append *a, int dir, const char *path, struct append_wait *wait,
                        struct err *e);
/* Like append_open, but refuses a file with hard links: an unpacked archive may have made the
 * companion of its history a name of another file of the user, which the lines would damage. */
int append_open_alone(struct append *a, int dir, const char *path, struct append_wait *wait,
                      struct err *e);
/* Writes complete lines at the end, after a newline if the last line is torn. With `sync` they are
 * on the disk on return. Returns 0, or -1 with *e set and the file truncated to its former size. */
int append_write(struct append *a, struct str lines, bool sync, struct err *e);
/* The two halves of append_write: append_put writes the lines, and if it succeeds, append_finish
 * syncs them, which another thread may do. Each returns what append_write does. */
int append_put(struct append *a, struct str lines, bool sync, struct err *e);
int append_finish(struct append *a, bool sync, struct err *e);
void append_close(struct append *a);
/* Locks an open file or directory in the same way; closing it ends the lock. Returns 0, or -1 with
 * *e set. */
int append_lock(int fd, const char *path, struct append_wait *wait, struct err *e);

#endif
