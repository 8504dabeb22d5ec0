/*
 * child - a program at work beside us: its standard streams are pipes to us, it leads a session and
 * process group of its own, and it ends with all that it started. It has no terminal: that /dev/tty
 * cannot be opened (ENXIO) is what programs know from cron, while one that is in the background of
 * our session would be stopped by its first read.
 *
 * Nothing here waits but child_end: the descriptors are for poll(2). For a program that shares the
 * terminal with us there is base/proc.
 */
#ifndef CHATHIST_BASE_CHILD_H
#define CHATHIST_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

struct child {
    pid_t pid;  /* and its group's; 0: it has ended */
    int in;     /* to its standard input */
    int out;    /* from its standard output */
    int err;    /* from its standard error; all three non-blocking, -1 once closed */
    int status; /* when it has ended: exit status, or 128 + N when signal N ended it */
    int signal; /* that ended it; 0: none did */
};

/* What a child gets when nobody wants to wait for it, in milliseconds. */
#define CHILD_HURRY_MS ((int64_t)50)

#define CHILD_INIT                                                                                 \
    {                                                                                              \
        .in = -1, .out = -1, .err = -1                                                             \
    }

/* Starts it without a shell: argv ends with NULL, argv[0] is looked for in PATH unless it has a
 * slash. env is its whole environment and cwd its working directory, NULL: ours. Returns -1 if there
 * is no such program or directory, no pipe or no process. The caller ignores SIGPIPE. */
int child_start(struct child *c, char *const argv[], char *const env[], const char *cwd,
                struct err *e);
/* Has it ended? Does not wait. What it started may still be there. */
bool child_ended(struct child *c);
/* Adds to b what one read gives without waiting: false when there is nothing now. At its end the
 * descriptor is closed, as it is when b is full. */
bool child_read(int *fd, struct buf *b);
/* Writes what is taken without waiting; returns how many bytes. The descriptor is closed when
 * nobody reads there any more. */
size_t child_write(int *fd, struct str bytes);
/* Closes one of the three descriptors, if it is open. */
void child_close(int *fd);
/* Asks it to go, with its group: SIGTERM. Nothing for one that has ended. */
void child_term(struct child *c);
/* Ends it: closes its standard input, gives it `grace_ms` to go by itself, then as much after
 * SIGTERM, then kills its group, and whatever is left of the group in any case. What it still says
 * is thrown away. Also for one that has ended or was never started. */
void child_end(struct child *c, int64_t grace_ms);
/* The same for several, which have the time together. From when `hurry_fd` (-1: none) can be read
 * they have no more than CHILD_HURRY_MS left, and again after SIGTERM. */
void child_end_all(struct child *const *all, size_t count, int64_t grace_ms, int hurry_fd);

/* Our environment without the variables that are named, and without those whose value holds
 * `secret` (absent or empty: none). NULL ends the names and what is returned; the caller frees the
 * array, its strings are the environment's. */
char **child_env_without(const char *const names[], struct str secret);

#endif
