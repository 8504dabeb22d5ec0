/*
 * import - stores conversations with other programs in a history, each message once.
 *
 * Lines wait in memory until there are some megabytes of them, from any number of files, and are
 * then stored and synced together. The result of a file is reported once its last line is on disk.
 *
 * A message that was imported before is recognised by the `origin` field that every imported line
 * has. A line in the form of our own histories is recognised by its session, its id and its text,
 * because other clients may use the same id in every session; where two lines of a session share an
 * id, both are kept. A line without an id is recognised by all of its members except `reset` and
 * `replaces`. If a file has such a line twice, the history has it twice, too. The history is read
 * once; lines that other processes append meanwhile are read under the lock before each batch is
 * written. Therefore the next import completes one that was killed, and conversations that have
 * grown grow in the history. A message that was erased from the history (history/deletions.h) is
 * known, too. An import can also choose a history for each session.
 *
 * The id of an imported line is computed from its time and origin, so that a message has the same
 * id in every history. A message without a time gets the time of the message before it, the first
 * one the time of its file.
 *
 * Lines in our own form keep every byte, with two exceptions. A session id that programs cannot use
 * (`last`, `current`, or no valid id) is replaced. And `reset` and `replaces` may act only on lines
 * of the same file: a `reset` is removed if the history has other lines of the session, and so is
 * an id in `replaces` that only the history has.
 */
#ifndef CHATHIST_CONVERT_IMPORT_H
#define CHATHIST_CONVERT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/convert/import_point.h"
#include "chathist/history/location.h"

struct import_format; /* see convert/import_reader.h */
struct importers;     /* see convert/import_script.h */

struct import_count {
    uint64_t imported; /* messages that were new */
    uint64_t known;    /* messages that the history has, or that were erased from it */
    uint64_t bad;      /* records that were left out */
    uint64_t altered;  /* lines that lost a `reset` or `replaces` */
};

struct import_result {
    const char *name;              /* of the file, borrowed from the caller */
    const char *format;            /* its name */
    const struct history *history; /* in which its messages are */
    struct import_count count;
};

/* Receives reports during an import. Each function may be NULL. */
struct import_listener {
    /* A record was left out, or a line was changed, or lines were added to a session that existed
     * before: a message for the user. A file has at most ten of one kind. */
    void (*warn)(void *arg, const char *message);
    /* The lines of a file are on disk, or could not be stored. Called once for each file that
     * import_file read, in that order. */
    void (*done)(void *arg, const struct import_result *r);
    /* A line was stored, or would be without dry_run. It has no newline. */
    void (*line)(void *arg, struct str line);
    /* Called now and then with the bytes of the file that were read, as they are on the disk. */
    void (*tick)(void *arg, uint64_t bytes);
    void *arg;
};

struct import_options {
    bool dry_run;   /* store nothing */
    bool subagents; /* import what subagents said, too */
    bool again;     /* import also messages that were erased from the history */
    bool foreign;   /* leave out files in our own form, such as exports */
    /* Leave an answer for the next import that is the last in a file, has no reason why it ended,
     * and may grow because the file changed within the last minute; and with it what other files
     * have of its session. A scan may run while other programs write. */
    bool waits;
    const struct importers *importers; /* borrowed */
    /* Returns the import that stores a session, whose first message was said in the directory
     * `cwd`, which may be empty; NULL to leave the session out. The same for the same session.
     * Without this function the import itself stores all sessions. */
    struct import *(*choose)(void *arg, struct str session, struct str cwd);
    void *choose_arg;
    struct import_listener listener;
};

/* Reads what the history has. *bad_lines is the number of its damaged lines. The history is
 * borrowed, the options are copied. An import whose `choose` never returns it needs no history
 * (NULL); its results have the records of a file that were left out, and those of the others the
 * messages. Returns NULL with *e set on failure. */
struct import *import_new(struct history *h, const struct import_options *o, uint64_t *bad_lines,
                          struct err *e);
/* Imports the new messages of a file; `-` is standard input. If f is NULL, the format is
 * recognised by the beginning of the file. `path` must stay valid until the result is reported.
 * With a point that an earlier import of this file has set, whose messages are all in the history,
 * it is read from there, unless the bytes before it changed, or what follows needs them; the point is
 * then set for the next import. It may be NULL. Returns 1; 0 if the format is not recognised; -1
 * with *e set, while messages that were read before the failure are still stored. */
int import_file(struct import *im, const char *path, const struct import_format *f,
                struct import_point *point, struct err *e);
/* Stores the lines that wait; call it after the last file. Returns 0, or -1 with *e set. */
int import_finish(struct import *im, struct err *e);
/* Returns whether lines could not be stored, in import_finish or before. */
bool import_lost(const struct import *im);
void import_free(struct import *im);

#endif
