/*
 * group - lines that are appended together: all of them or none, also if the writer is killed.
 *
 * While a group is appended, the file FILE.group holds it (chathist(5)). If its writer is killed,
 * the next one takes the missing bytes from there. Neither of them holds the group in memory. Both
 * have the lock of the history.
 *
 * The file begins with a magic text, the inode of the history, the offset of the group in it, and a
 * checksum of the group, computed over pieces of GROUP_PIECE bytes. Then follows the group.
 */
#ifndef CHATHIST_HISTORY_GROUP_H
#define CHATHIST_HISTORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/file.h"
#include "chathist/history/append.h"
#include "chathist/history/location.h"

#define GROUP_PIECE ((size_t)256 << 10)

/* A group that is being written. */
struct group {
    const struct history *h;
    char *path;
    struct file_replace file;
    struct buf pending; /* lines that are not in the file yet */
    uint64_t sum;       /* of the pieces in the file */
    off_t size;         /* of the lines in the file */
    int reason;         /* the errno of a failed write, or 0 */
};

/* Begins the file. After it the caller calls group_end or group_drop. Returns 0, or -1 with *e
 * set. */
int group_begin(struct group *g, const struct history *h, struct err *e);
/* Adds complete lines. A failure is reported by group_end. */
void group_add(struct group *g, struct str lines);
/* Ends and syncs the file, appends its lines to the history, and removes the file. Returns 0, or -1
 * with *e set; then the file is removed, and the history has its former length. */
int group_end(struct group *g, struct append *a, struct err *e);
void group_drop(struct group *g);

/* The file of a writer that was killed, and the bytes of its group that the history lacks. */
struct group_rest {
    int fd;
    off_t at, n; /* the missing bytes in the file */
    off_t begin; /* the offset of the group in the history */
};

/* Looks for the file. n is 0 unless the history ends inside the group, with nothing but the group's
 * first bytes. Returns false if the file is absent, has another form, or may have been written by
 * another user; then the caller does not call group_rest_end. */
bool group_rest_find(struct group_rest *rest, const struct history *h, const struct append *a);
void group_rest_end(struct group_rest *rest, const struct history *h, bool remove);
/* Returns whether there is such a file. */
bool group_is_left(const struct history *h);

#endif
