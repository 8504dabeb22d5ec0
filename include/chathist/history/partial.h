/*
 * partial - the text of an answer that is still coming, in a file beside the history (chathist(5)).
 * It is also there before the answer, if tools have edited files: its line names them.
 *
 * chat writes each piece of an answer to such a file before it prints it, without a sync, and
 * removes the file once the answer is stored. If chat is killed, the file stays: the next program
 * that stores something in the history turns it into an assistant line with finish_reason
 * `interrupted`, and removes it.
 *
 * The file begins with the line to be stored, with the content "" (a history line); the text
 * follows unquoted. A lock (flock) on the file says that its turn is still running. The name is the
 * history's with PARTIAL_SUFFIX and the id of the line: if the history has a line with this id, the
 * answer was stored after all.
 */
#ifndef CHATHIST_HISTORY_PARTIAL_H
#define CHATHIST_HISTORY_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"

#define PARTIAL_SUFFIX ".partial."

/* ---- of a running turn ---- */

/* Zero-initialise; the caller releases id. */
struct partial {
    bool open;
    struct buf id; /* the id with which the answer must be stored */
    /* private */
    const struct history *h;
    int fd;
    char *path;
};

/* Makes the file of a turn whose answer will be stored as `line`, which must name its prompt in
 * reply_to. Sets p->id. A failure is not reported: p->open is then false, and the turn continues
 * without the file. */
void partial_begin(struct partial *p, const struct history *h, struct draft *line);
/* Adds a piece of the text. If that fails, the file is removed. Does nothing unless p->open. */
void partial_add(struct partial *p, struct str text);
/* Ends the turn. If the answer is `stored`, removes the file; otherwise leaves it to the next
 * program that writes. Does nothing unless p->open. */
void partial_end(struct partial *p, bool stored);

/* ---- of turns that were killed ---- */

/* The files that chat has left; zero-initialise. */
struct partial_left {
    const struct history *h;
    struct partial_file *at;
    size_t count, cap;
};

/* Returns whether the answer to a prompt is still to be stored: 1 if the history has the prompt and
 * after it no line with the answer's id (STR_NONE: the answer has no id yet), 0 if not, -1 if it
 * cannot be read. */
int partial_is_due(const struct history *h, struct str id, struct str prompt);

/* Finds the files that belong to the user and whose turn no longer runs, and locks them. A
 * directory that cannot be listed has none. */
void partial_find(struct partial_left *left, const struct history *h);
/* Adds the lines of the files to `lines`, except those that are stored already or whose prompt has
 * been deleted. The caller holds the lock of the history. */
void partial_lines(struct partial_left *left, struct buf *lines);
/* Removes and releases the files once the lines from partial_lines are stored. */
void partial_remove(struct partial_left *left);
/* Unlocks the files, and leaves those that partial_remove has not removed. */
void partial_release(struct partial_left *left);

#endif
