/*
 * rewrite - replaces a history by a new file that lacks some of its lines (chathist(5),
 * "Rewriting").
 *
 * The lines that are complete at the beginning are copied without the lock, and those that other
 * programs append meanwhile under it. Then the new file is synced and renamed over the old one, and
 * the directory is synced. A reader sees the old history or the new one. A writer that waited for
 * the lock finds that the file was replaced and opens the new one (history/append.h). If anything
 * fails before the rename, the history is unchanged and the new file is removed. The new file of a
 * program that is killed is removed by the next rewrite.
 *
 * This module does not parse messages. A line that is kept is copied byte for byte, also without a
 * newline.
 */
#ifndef CHATHIST_HISTORY_REWRITE_H
#define CHATHIST_HISTORY_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"

struct rewrite;

/* The callbacks that decide about the lines. */
struct rewriter {
    void *arg;
    /* Called before the lines are passed to `line`, from the first one on. May be called again. */
    void (*begin)(void *arg);
    /* Called for each line; the last one may lack its newline. The callback calls any of the
     * functions below for it. If it calls no function, the new file lacks the line. */
    void (*line)(void *arg, struct rewrite *r, const struct line *l);
    /* Called under the lock, after all lines were passed to `line`. If it returns false, all lines
     * are passed once more, after another `begin`. NULL: always true. */
    bool (*settled)(void *arg);
};

/* Keeps the line. */
void rewrite_keep(struct rewrite *r, const struct line *l);
/* Writes this text as a line of the new file. */
void rewrite_add(struct rewrite *r, struct str text);
/* Leaves the line of this message out for good: its session and its id go to FILE.deleted
 * (history/deletions.h) if that exists or the message was imported, on the disk before the history
 * is replaced. If the program is killed in between, the next hist-sync erases the line. `moved`:
 * another history of the user has it now. */
void rewrite_erase(struct rewrite *r, const struct message *m, bool moved);
/* Moves the line, or n bytes at the offset `at` of the history, to the quarantine as a line: the
 * file beside the history with HISTORY_QUARANTINE. It is on the disk there before the history is
 * replaced. If a program is killed in between, both files have it, and the next repair adds it
 * again. Bytes of earlier repairs are never removed. */
void rewrite_set_aside(struct rewrite *r, const struct line *l);
void rewrite_set_part_aside(struct rewrite *r, off_t at, off_t n);

/* Rewrites the history. Returns 1; 0 if every line is kept, also of a history that does not exist,
 * and nothing was written; -1 with *e set, ERR_SIGNAL if h->cancel_fd became readable. The new file
 * gets the mode and the owner of the old one. The second name of a repository's history is made
 * again for it. A file with other hard links is refused: they would keep the erased lines.
 * Everything is synced, whatever h->sync says. */
int rewrite_run(struct history *h, const struct rewriter *by, struct err *e);
/* Returns 0 if rewrite_run would not refuse the history, which exists; or -1 with *e set. For those
 * who must do something else first. */
int rewrite_check(struct history *h, struct err *e);

#endif
