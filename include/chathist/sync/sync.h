/*
 * sync - keeps a history and its copies at a place equal.
 *
 * A place is a directory that another program carries from machine to machine (sync/dir), another
 * machine that is reached by ssh (sync/ssh), or a PostgreSQL database (sync/postgres). Each sync_
 * function returns 0, or -1 with *e set. Lines that were stored before a failure stay, and the next
 * run continues.
 */
#ifndef CHATHIST_SYNC_SYNC_H
#define CHATHIST_SYNC_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/sync/merge.h"

/* A history to synchronise, and how. All pointers are borrowed. */
struct sync_job {
    struct history *history;
    const char *name;       /* the name of the history, which its copies have, too */
    const char *place;      /* the place as the user gave it */
    bool push, pull;        /* PostgreSQL: one direction, or both */
    const char *ssh;        /* ssh://: the command, split into words as by a shell; NULL: ssh -C */
    const char *program;    /* ssh://: the name of hist-sync on the other machine */
    int64_t silence_most;   /* ssh://: for tests, milliseconds; 0: five minutes */
    uint64_t received_most; /* ssh://: for tests, bytes of the other side; 0: 16 GiB */
    const char *retire; /* a directory: the machine whose copy is read and removed; NULL: none */
    struct merge_options options;
    struct merge_count count; /* the result */
};

/* ---- names ---- */

/* Adds the name by which copies of this history on other machines are found: `own` for the user's
 * own history; for a repository the URL of its remote, without scheme, user, password and `.git`:
 * `github.com/user/project`. Returns 0; or -1 with *e set (ERR_USAGE) for any other history, and
 * for a repository without a remote, or whose remote is a path: only the user knows what these are
 * copies of. */
int sync_name(struct buf *name, const struct history *h, struct err *e);
/* Returns whether a text can be the name of a history: up to 200 letters, digits and . _ : / + ~ @
 * -, and no part of it between slashes is empty, `.` or `..`. */
bool sync_name_valid(struct str name);

/* ---- places ---- */

/* A directory: each machine writes DIR/MACHINE/NAME/ alone, and reads the others. With job->retire
 * the copy of that machine is removed after everything in it was read; it fails with ERR_USAGE if
 * that is the present name of this machine. */
int sync_dir(struct sync_job *job, struct err *e);

/* A machine that has copies in a directory. Everything is owned. */
struct sync_machine_entry {
    char *name;       /* the name of its directory */
    char *host;       /* what the machine called itself; from its name if it did not say */
    int64_t last_run; /* the last one that wrote something, microseconds since 1970 */
    uint64_t bytes;   /* the bytes of all of its files */
    bool own;         /* it is this machine */
    struct sync_machine_history {
        char *name;
        size_t files;
        uint64_t bytes;
    } * histories;
    size_t count, cap;
};
struct sync_machines {
    struct sync_machine_entry *at;
    size_t count, cap;
};

/* Lists the machines in a directory, those that wrote last first. `h` is any history of the user,
 * and of *o only `warn` is used. Returns 0; or -1 with *e set, also if a part could not be read,
 * and then the list has the rest. The caller releases the list in any case. */
int sync_machines_read(struct sync_machines *l, const char *place, const struct history *h,
                       const struct merge_options *o, struct err *e);
void sync_machines_release(struct sync_machines *l);

/* Another machine, `ssh://[user@]host[:port][/path]`: starts `hist-sync --serve --name NAME` there.
 * With a path, that file is the copy, else the history of that name. Errors are ERR_NETWORK if the
 * connection fails or ends too early, and ERR_TIMEOUT. The caller ignores SIGPIPE. */
int sync_ssh(struct sync_job *job, struct err *e);
/* Returns 0 if `place` has that form, or -1 with *e set (ERR_USAGE). */
int sync_ssh_check(const char *place, struct err *e);
/* The same over two descriptors, of which one is read, that lead to sync_serve. */
int sync_connected(struct sync_job *job, int in, int out, struct err *e);
/* The other side of sync_ssh: answers on two descriptors, of which one is read. */
int sync_serve(struct sync_job *job, int in, int out, struct err *e);

#endif
