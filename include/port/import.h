/*
 * import - messages of other programs into a history, each of them once.
 *
 * Lines wait until there are some megabytes of them, from however many sources, and are stored and
 * synced together: a source's result is told once its last line is on the disk.
 *
 * What is there already is known by the `origin` that every imported line has, and of lines in our
 * own form by a tally: it is read from the history once, and what others append meanwhile before
 * each batch is written, under the lock. So an import that was killed is finished by the next one,
 * and sessions that have grown since grow here, too.
 *
 * The id of an imported line is made of its time and origin: the same message has the same id in
 * every history. A message without a time has that of the one before it, the first one the time of
 * its file.
 */
#ifndef CHATHIST_PORT_IMPORT_H
#define CHATHIST_PORT_IMPORT_H

#include "base/keymap.h"
#include "hist/locate.h"
#include "port/import_format.h"
#include "port/import_tally.h"

struct import_count {
    uint64_t imported; /* messages */
    uint64_t known;    /* that were there */
    uint64_t bad;      /* records that cannot be read */
};

/* What became of a source. */
struct import_result {
    const char *name; /* the source's, borrowed from who opened it */
    const struct import_format *format;
    struct import_count count;
};

/* What is told on the way; each may be NULL. */
struct import_listener {
    /* A record that cannot be read: the number of its line or entry; it is the nth of its
     * source. */
    void (*bad)(void *arg, const struct source *s, size_t number, uint64_t nth, const char *reason);
    /* Each source that import_read was called for, in that order, once its lines are stored or
     * could not be. */
    void (*done)(void *arg, const struct import_result *r);
    /* A line that was stored, or with dry_run would be; without its newline. */
    void (*line)(void *arg, struct str line);
    /* Called for every message, new or not. */
    void (*tick)(void *arg);
    void *arg;
};

struct import {
    bool dry_run;
    bool subagents; /* see import_sink */
    struct import_listener listener;
    uint64_t bad_lines; /* of the history, among what was read of it for what is known */
    /* private */
    struct history *history;
    struct keymap known; /* ids, and SESSION/PART of origins -> the source that brought it; 0: the
                          * history */
    char **keys;         /* owns them */
    size_t keys_count, keys_cap;
    struct import_tally tally; /* of the lines in the history, once has_tally is set, and of those
                                * that are imported */
    bool has_tally;
    off_t seen; /* so much of the history has been read for them */
    struct import_pending *pending;
    size_t pending_count, pending_cap, pending_bytes;
    struct import_result *results; /* that are not told yet; the last one is that of `source` */
    size_t results_count, results_cap;
    const struct source *source;
    size_t source_number;
    int64_t time; /* of the message before */
};

/* Reads what is known. Then set what is not private. */
int import_open(struct import *im, struct history *h, struct err *e);
/* Imports what is new in one source; the source may be closed then, but its name stays until its
 * result is told. -1: what was stored before stays stored, and what was read before waits on. */
int import_read(struct import *im, struct source *s, const struct import_format *f, struct err *e);
/* Stores what waits: to be called after the last source. */
int import_finish(struct import *im, struct err *e);
void import_close(struct import *im);

#endif
