/*
 * quarantine - the file beside a history that takes its bad lines: each of them once, whenever the
 * program that moves them is killed.
 *
 * They are on the disk there before the history is replaced, so that none is lost. A program that
 * dies in between would leave them in both, and the next repair would add them once more. So before
 * anything is added `${history}.quarantine.undo` tells, on the disk, how long the quarantine was
 * and which file the history is:
 *
 *     {"history":INODE,"quarantine":INODE,"length":N}
 *
 * As long as the history is that file the lines still are in it, and what the quarantine has behind
 * that length is taken back. All is done under the lock of the history.
 */
#ifndef CHATHIST_HIST_QUARANTINE_H
#define CHATHIST_HIST_QUARANTINE_H

#include <sys/stat.h>

#include "base/err.h"
#include "hist/append.h"

struct quarantine {
    struct append file;
    char *path; /* owned */
};

/* `${history}.quarantine`. The caller frees it. */
char *quarantine_path(const char *history_path);

/* Takes back what a program that was killed has added while the history was the file that it is now
 * (`history`: its fstat). A quarantine that was made for it goes. 0, or -1. */
int quarantine_undo(const char *history_path, const struct stat *history, struct err *e);
/* Opens it for lines to be written at its end, made with mode 0600 if it is missing, when nothing
 * is to be undone. From here on quarantine_undo takes them back until quarantine_keep. */
int quarantine_open(struct quarantine *q, const char *history_path, const struct stat *history,
                    struct append_wait *wait, struct err *e);
/* Gets what was written on the disk: 0, or -1 with errno set. */
int quarantine_sync(struct quarantine *q);
void quarantine_close(struct quarantine *q);
/* The history has been replaced, and the disk knows it. */
void quarantine_keep(const char *history_path);

#endif
