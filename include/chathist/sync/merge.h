/*
 * merge - a history as one of several copies that are kept equal.
 *
 * A copy is a set of lines and a set of deletions. To merge means to unite both sets, and then to
 * erase the lines that are deleted. A line is the bytes of its JSON object; it belongs to its
 * session and its id. Two lines with the same session and id, but different bytes, are two lines:
 * both are kept, and a conflict is reported. A deletion is a session and an id. It erases every
 * line with these, now and in future, so a deleted line never comes back.
 *
 * Deletions are in FILE.deleted beside the history, one JSON object a line, `{"session_id":…,
 * "id":…}`. merge_open makes this file. From then on programs that delete messages add to it
 * (history/rewrite.h).
 *
 * Lines are numbered from 0 in the order of the file; the second of two equal lines has no number,
 * and neither has a line that a peer would not accept (merge_add). The digests of the numbered
 * lines are kept in a file of the user's state directory, so that a history of a gigabyte need not
 * be read again. That file is a cache: it is checked, and made again if it does not fit the
 * history.
 */
#ifndef CHATHIST_SYNC_MERGE_H
#define CHATHIST_SYNC_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

struct merge;

/* Numbers of what a synchronisation has done. */
struct merge_count {
    uint64_t received;  /* lines that were new here */
    uint64_t sent;      /* lines that were new there; the caller counts these */
    uint64_t deleted;   /* lines that were erased here because they were deleted elsewhere */
    uint64_t conflicts; /* received lines whose session and id a different line here has */
    uint64_t refused;   /* lines, of here or elsewhere, that cannot be synchronised */
};

/* How to merge. */
struct merge_options {
    bool dry_run;     /* count, but store and erase nothing, and make no file */
    const char *mark; /* the part of messages that names the place; borrowed */
    /* Called with a message for the user; may be NULL. */
    void (*warn)(void *arg, const char *message);
    void *arg;
};

/* Opens a history, which may not exist yet. Reads the deletions, and brings the digests up to the
 * end of the file. Lines that are deleted but still there, because a program was killed, are
 * erased. The history is borrowed, the options are copied. Returns NULL with *e set: ERR_USAGE if
 * the history is not trusted. */
struct merge *merge_open(struct history *h, const struct merge_options *o, struct err *e);
/* Frees it, without storing the lines and deletions that were added. Keeps the digests for the next
 * run, unless the last merge_store failed or a line was changed in place; after a kill, that one
 * reads again what this one has read or stored. */
void merge_close(struct merge *m);
/* The counters, which the caller may add to. */
struct merge_count *merge_counts(struct merge *m);

/* ---- what the history has ---- */

/* Returns the number of lines. Numbers change only if lines are erased: then merge_prefix
 * differs. */
size_t merge_lines(const struct merge *m);
/* Returns the digest of a line. Different lines have different ones, except by a coincidence of 64
 * bits. */
uint64_t merge_digest(struct merge *m, size_t i);
/* Returns the digest of a line that is not in the history. */
uint64_t merge_digest_of(struct str line);
/* Returns a checksum of the first n lines in their order; 0 if there are fewer. A cursor is n and
 * this number: while it stays the same, the lines before the cursor are the same. While a merge is
 * open, merge_follow is needed, too. */
uint64_t merge_prefix(struct merge *m, size_t n);
/* Keeps a cursor right from now on: when lines before it are erased, *cursor becomes smaller by
 * their number. It is borrowed. */
void merge_follow(struct merge *m, size_t *cursor);
/* Reads a line, without its newline, into `line`, which it clears first. Returns 0, or -1 with *e
 * set, also if the history was edited in place. */
int merge_read(struct merge *m, size_t i, struct buf *line, struct err *e);

/* Returns the number of deletions. They are numbered in the order of FILE.deleted, and are never
 * removed. */
size_t merge_deletions(const struct merge *m);
/* Sets the session and the id of a deletion, borrowed until the merge is closed. */
void merge_deletion(const struct merge *m, size_t i, struct str *session, struct str *id);
/* Returns a checksum of the first n deletions; 0 if there are fewer. */
uint64_t merge_deletion_prefix(struct merge *m, size_t n);
/* Returns whether a line with this session and id is deleted. */
bool merge_is_deleted(struct merge *m, struct str session, struct str id);
/* Returns the digest of a deletion. */
uint64_t merge_deletion_digest(struct str session, struct str id);

/* Return a number for the set of lines, and for that of deletions, whatever their order. Two copies
 * with the same numbers are equal. */
uint64_t merge_line_set(const struct merge *m);
uint64_t merge_deletion_set(const struct merge *m);

/* ---- sets of digests ---- */

/* {0} is an empty set. It is filled with digests_add, and then sorted once. */
struct digests {
    struct numbered_digest {
        uint64_t digest;
        size_t number; /* how many were added before it */
    } * at;            /* owned */
    size_t count, cap;
};

void digests_add(struct digests *d, uint64_t digest);
void digests_sort(struct digests *d);
/* Returns how many digests of a sorted set are smaller than this one. */
size_t digests_before(const struct digests *d, uint64_t digest);
/* Returns whether a sorted set has the digest. */
bool digests_have(const struct digests *d, uint64_t digest);
void digests_release(struct digests *d);
/* Sets *digest to the number that 16 hexadecimal digits stand for. Returns false for other
 * texts. */
bool digest_parse(struct str digits, uint64_t *digest);

/* ---- what another copy has ---- */

/* Adds a deletion, which merge_store stores. Returns 1; 0 if it is known; -1 if no session or
 * message can have this id; it is counted as refused. */
int merge_delete(struct merge *m, struct str session, struct str id);
/* Adds a line without its newline, which merge_store stores at the end of the history, in the order
 * in which lines were added. Lines in the order of the other copy keep it here. When megabytes
 * wait, merge_store is called. The line is checked as hist-import checks one: a whole message, an
 * id without white space or control characters, a valid session id and time. Returns 1; 0 if the
 * line is known, or deleted, or refused; -1 with *e set. */
int merge_add(struct merge *m, struct str line, struct err *e);
/* Tells the user how many lines of the history cannot be sent, if there are any. */
void merge_report_refused(struct merge *m);
/* Tells the user, if options.warn is set. */
void merge_warn(struct merge *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Counts and reports a line here and another one, of the other copy, with the same session and id.
 * merge_add does it for the lines that are added. */
void merge_report_conflict(struct merge *m, struct str here, struct str there);
/* Stores all that was added: first the deletions, then it erases their lines, then it appends the
 * new lines. After each step everything is on the disk. Returns 0, or -1 with *e set. */
int merge_store(struct merge *m, struct err *e);

/* ---- files of a merge ---- */

/* Returns a checksum of the first and the last bytes of the part of a file before `end`; 0 if the
 * file is shorter. Two equal checksums show that a file that is only appended to still begins with
 * this part. */
uint64_t merge_sample(int fd, uint64_t end);
/* Makes the directory of hist-sync in the user's state directory. Returns 0, or -1 with *e set. */
int sync_state_make(const struct history *h, struct err *e);
/* Returns the path of a file `name` in that directory. The caller frees it. Returns NULL with *e
 * set. */
char *sync_state_file(const struct history *h, const char *name, struct err *e);
/* Returns the path of such a file with notes about this history: `kind` is its ending, and
 * `place` says with which other copy (NULL: none). The caller frees it. Returns NULL with *e
 * set. */
char *merge_state_path(const struct history *h, const char *kind, const char *place, struct err *e);
enum machine_name {
    MACHINE_KEPT,
    MACHINE_UNKEPT,  /* if it has no name yet, the new one is not kept */
    MACHINE_RENAMED, /* it gets a new name in any case */
};
/* Returns the name of this machine: its host name and six random digits. It is made once and kept
 * in the state directory; a copy of that directory on another machine gets a new name. The caller
 * frees it. Returns NULL with *e set. */
char *sync_machine(const struct history *h, enum machine_name which, struct err *e);

#endif
