/*
 * rewrite - putting a new file in the place of a history, without some of its lines (chathist(5),
 * "Rewriting").
 *
 * What writers have finished is copied without their lock, what came meanwhile under it; then the
 * new file is synced, renamed over the old one, and its directory synced. A reader has the old
 * history or the new one; a writer that waited for the lock finds the file replaced and opens it
 * anew (hist/append). Whatever fails before the rename, the history is what it was and the new file
 * is gone; what a process leaves that is killed is removed by the next one.
 *
 * It knows nothing of messages: a line is kept as it is, bytes and missing newline included, unless
 * its caller says otherwise.
 */
#ifndef CHATHIST_HISTORY_REWRITE_H
#define CHATHIST_HISTORY_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"
#include "chathist/history/scan.h"

struct rewrite;

/* Who decides about the lines. */
struct rewriter {
    void *arg;
    /* A pass begins: all lines are shown, from the first one on. It may be repeated, once. */
    void (*begin)(void *arg);
    /* One line, the last one maybe without its newline. Each of the functions below may be called
     * for it; when none is, the line goes. */
    void (*line)(void *arg, struct rewrite *r, const struct line *l);
    /* All lines were shown, and no others can come any more. false: once more from the beginning.
     * NULL: always true. */
    bool (*settled)(void *arg);
};

/* Keeps the line that is shown. */
void rewrite_keep(struct rewrite *r, const struct line *l);
/* Writes this text as a line. */
void rewrite_add(struct rewrite *r, struct str text);
/* Moves the line, or n bytes at `at` of the history, to the quarantine as a line. */
void rewrite_set_aside(struct rewrite *r, const struct line *l);
void rewrite_set_part_aside(struct rewrite *r, off_t at, size_t n);

/* Returns the path of the quarantine, the file beside a history that takes its bad lines. The caller
 * frees it. The lines are on the disk there before the history is replaced. If a program is killed in
 * between, both files have them: the next repair finds that the quarantine ends with them and does
 * not add them again. Bytes of earlier repairs are never removed. */
char *rewrite_quarantine(const char *history_path);

/* Rewrites. 1; 0: every line is kept, nothing is written; also for a history that does not exist;
 * -1: ERR_SIGNAL when h->cancel_fd became readable. The new file gets mode and owner of the old
 * one. The link that keeps a repository's history (hist/copy) is replaced, too; a file with other
 * hard links is refused, because they would keep what is erased. Everything is synced, whatever
 * h->sync. */
int rewrite_run(struct history *h, const struct rewriter *by, struct err *e);

#endif
