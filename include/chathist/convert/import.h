/*
 * import - stores messages of other programs in a history, each of them once.
 *
 * Lines wait until there are some megabytes of them, from any number of sources, and are stored and
 * synced together. The result of a source is reported once its last line is on the disk.
 *
 * A message that was imported before is recognised by the `origin` that every imported line has. A
 * line in the form of our own histories is recognised by its session, its id and its text: the ids
 * of other clients may be the same in every session, and where two lines of a session share one
 * both are kept. A line without an id is recognised by all of its members. A source that has such a
 * line twice brings it twice. The history is read once, and what others append meanwhile is read
 * under the lock before each batch is written. So an import that was killed is finished by the next
 * one, and sessions that have grown since grow here, too.
 *
 * The id of an imported line is made of its time and origin: the same message has the same id in
 * every history. A message without a time has that of the one before it, the first one the time of
 * its file.
 *
 * Lines in our own form keep every byte, with two exceptions. A session id that no program could
 * name (`last`, `current`, or no valid id) is replaced. And `reset` and `replaces` act only on
 * lines that the same file has: a `reset` in a session that has other lines in the history is left
 * out, and so is an id in `replaces` that only the history has.
 */
#ifndef CHATHIST_CONVERT_IMPORT_H
#define CHATHIST_CONVERT_IMPORT_H

#include "chathist/base/keymap.h"
#include "chathist/history/locate.h"
#include "chathist/convert/import_message.h"

struct import_count {
    uint64_t imported; /* messages that were new */
    uint64_t known;    /* messages that were there */
    uint64_t bad;      /* records that were left out */
    uint64_t altered;  /* lines that lost a `reset` or `replaces` */
};

struct import_result {
    const char *name; /* of the source, borrowed from the caller who opened it */
    const struct import_format *format;
    struct import_count count;
};

/* Receives reports during an import; each function may be NULL. */
struct import_listener {
    /* A record is left out: the number of its line or entry; it is the nth of its source. */
    void (*bad)(void *arg, const struct source *s, size_t number, uint64_t nth, const char *reason);
    /* The line with this number is stored without `field`. */
    void (*altered)(void *arg, const struct source *s, size_t number, uint64_t nth,
                    const char *field);
    /* Something else that the user should know, without a full stop. */
    void (*note)(void *arg, const char *text);
    /* Lines in our own form were added to a session that the history had before the import. */
    void (*grown)(void *arg, const char *session, size_t lines);
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
    uint64_t bad_lines; /* of the history, among those read to find out what is known */
    /* private */
    struct history *history;
    struct keymap known; /* ids, SESSION/PART of origins, and once has_tally is set SESSION LF ID of
                          * lines -> entries */
    struct import_entry *entries;
    size_t entries_count, entries_cap;
    struct str new_key, id; /* see enter_new and enter_old */
    /* Set once a line in our own form comes: how often the history has each line, and what it has
     * of each session. */
    bool has_tally;
    struct keymap lines; /* hash of a line -> tally */
    struct import_tally *tally;
    size_t tally_count, tally_cap;
    struct keymap session_names; /* -> sessions */
    struct import_session *sessions;
    size_t sessions_count, sessions_cap;
    off_t seen; /* the history has been read up to here */
    struct import_pending *pending;
    size_t pending_count, pending_cap, pending_bytes;
    struct import_result *results; /* those not reported yet; the last one is that of `source` */
    size_t results_count, results_cap;
    const struct source *source;
    size_t source_number;
    int64_t time; /* of the message before */
};

/* All formats; NULL ends the table. */
extern const struct import_format *const import_formats[];
/* Returns NULL if there is none of that name. */
const struct import_format *import_format_named(const char *name);
/* Returns the format of a file that begins like this, or NULL if it is none of them. */
const struct import_format *import_format_of(struct str head);
/* Adds the names, separated by commas. */
void import_format_names(struct buf *out);

/* Reads what is known. Then the caller sets the members that are not private. */
int import_open(struct import *im, struct history *h, struct err *e);
/* Imports the new messages of one source. The source may be closed then, but its name must live
 * until its result is reported. -1: what was stored before stays stored, and what was read before
 * waits on. */
int import_read(struct import *im, struct source *s, const struct import_format *f, struct err *e);
/* Stores the lines that wait: to be called after the last source. */
int import_finish(struct import *im, struct err *e);
void import_close(struct import *im);

#endif
