/*
 * merge - a history as one of several copies that are kept equal.
 *
 * A copy is a set of lines and a set of deletions. To merge means to unite both sets, and then to
 * erase the lines that are deleted. A line is the bytes of its JSON object; it belongs to its
 * session and its id. Two lines with the same session and id, but different bytes, are two lines:
 * both are kept, and a conflict is reported. A deletion is a session and an id. It erases every
 * line with these, now and in future, so a deleted line never comes back.
 *
 * Another copy may not erase much of the history unasked. Its deletions wait if they are of the
 * current session, or if those of one run erase more than 20 lines and a tenth of the history. A
 * deletion that waits is a fact as any other, which other copies get, and its lines are no facts:
 * they are neither sent nor written to other copies, and do not come back anywhere. Only this
 * history still has them, until the user accepts the deletion (merge_finish).
 *
 * Deletions are in FILE.deleted beside the history, one JSON object a line, `{"session_id":…,
 * "id":…}`, with `"waits":true` if it waits. merge_open makes this file. From then on programs that
 * delete messages add to it (history/rewrite.h).
 *
 * Lines and deletions are facts and have numbers. The second of two equal lines has no number, and
 * neither has a line that a peer would not accept (merge_add). The digests of the numbered lines
 * are kept in a file of the user's state directory, so that a history of a gigabyte need not be
 * read again. That file is a cache: it is checked, and made again if it does not fit the history.
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
    uint64_t received;         /* lines that were new here */
    uint64_t sent;             /* lines that were new there; the caller counts these */
    uint64_t deleted;          /* lines that were erased here because they were deleted elsewhere */
    uint64_t gone;             /* facts that have left the set of lines since merge_open */
    uint64_t waiting;          /* lines that are still here because their deletions wait */
    uint64_t waiting_sessions; /* the sessions of these lines */
    uint64_t conflicts;        /* received lines whose session and id a different line here has */
    uint64_t refused;          /* lines, of here or elsewhere, that cannot be synchronised */
};

/* How to merge. */
struct merge_options {
    bool dry_run;     /* count, but store and erase nothing, and make no file */
    const char *mark; /* the part of messages that names the place; borrowed */
    /* Called with a message for the user; may be NULL. */
    void (*warn)(void *arg, const char *message);
    bool accept_deletions; /* none waits */
    /* Asks the user whether deletions that wait are accepted; NULL: they are not. */
    bool (*accept)(void *arg, uint64_t lines, uint64_t sessions);
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

/* The two kinds of facts. Each kind is numbered from 0 in the order of its file. Deletions are
 * never removed; if lines are erased, the numbers of later lines change, and merge_prefix differs.
 */
enum fact_kind { FACT_DELETION, FACT_LINE };
#define FACT_KINDS 2

/* Returns the number of facts. */
size_t merge_facts(const struct merge *m, enum fact_kind kind);
/* Returns the digest of a fact. Different facts have different ones, except by a coincidence of 64
 * bits. */
uint64_t merge_digest(struct merge *m, enum fact_kind kind, size_t i);
/* Returns the digest of a fact that the history need not have. */
uint64_t merge_digest_of(enum fact_kind kind, struct str text);
/* Returns a checksum of the first n facts in their order; 0 if there are fewer. A cursor is n and
 * this number: while it stays the same, the facts before the cursor are the same. */
uint64_t merge_prefix(struct merge *m, enum fact_kind kind, size_t n);
/* Returns a number for the set of facts, whatever their order. Two copies with the same numbers for
 * both kinds are equal. */
uint64_t merge_set(const struct merge *m, enum fact_kind kind);
/* Reads the text of a fact, a line without its newline, into `text`, which it clears first. Returns
 * 0, or -1 with *e set, also if the history was edited in place. */
int merge_read(struct merge *m, enum fact_kind kind, size_t i, struct buf *text, struct err *e);
/* Counts a line as sent. In a dry run lines that would be erased before are still facts, and do not
 * count. Returns 0, or -1 with *e set. */
int merge_count_sent(struct merge *m, size_t i, struct err *e);
/* Returns whether a line with this session and id is in the history, or was deleted. */
bool merge_has(struct merge *m, struct str session, struct str id);
/* Sets the session and the id of a deletion, borrowed until the merge is closed. */
void merge_deletion(const struct merge *m, size_t i, struct str *session, struct str *id);

/* ---- sets of digests ---- */

/* {0} is an empty set. It is filled with digests_add, and then sorted once. */
struct digests {
    uint64_t *at; /* owned */
    size_t count, cap;
};

void digests_add(struct digests *d, uint64_t digest);
void digests_sort(struct digests *d);
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
/* Adds a fact from its text, a deletion as merge_delete does and a line as merge_add. Returns 0, or
 * -1 with *e set. */
int merge_add_fact(struct merge *m, enum fact_kind kind, struct str text, struct err *e);
/* Tells the user how many lines of the history cannot be sent, if there are any. */
void merge_report_refused(struct merge *m);
/* Tells the user, if options.warn is set. */
void merge_warn(struct merge *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Counts and reports a line here and another one, of the other copy, with the same session and id.
 * merge_add does it for the lines that are added. */
void merge_report_conflict(struct merge *m, struct str here, struct str there);
/* Stores all that was added: first the deletions, then it erases the lines of those that do not
 * wait, then it appends the new lines. After each step everything is on the disk. Returns 0, or -1
 * with *e set. */
int merge_store(struct merge *m, struct err *e);
/* Called at the end, after everything was exchanged: erases the lines of deletions that wait if the
 * user accepts these, else counts the lines. The facts stay the same. Returns 0, or -1 with *e
 * set. */
int merge_finish(struct merge *m, struct err *e);

/* ---- files of a merge ---- */

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
 * in the state directory. Another machine that has this directory, too, or a copy of it, gets a
 * name of its own. `former` (may be NULL) gets the names that this machine had before, one on each
 * line. The caller frees the name. Returns NULL with *e set, also if the system does not say which
 * machine this is because a file cannot be read. */
char *sync_machine(const struct history *h, enum machine_name which, struct buf *former,
                   struct err *e);

#endif
