/*
 * index_file - cache files beside a history: opening them safely, replacing them, and recognising the
 * history that they were made from.
 *
 * The first INDEX_PREAMBLE bytes of a session index identify its history: device, inode, size, times
 * of the last change, and checksums of the first bytes and of the last ones before that size. A
 * history that is only longer, with the same bytes in both places, counts as the same one: lines were
 * appended. Writers know nothing of these files, so a line that is changed in place without changing
 * its length, and then another one appended before any program has read the history, is not noticed
 * here (history/session_index.h says when it is).
 *
 * The generation is a number that changes with each state of the history. The search index
 * (search/skip.h) remembers it.
 */
#ifndef CHATHIST_HISTORY_INDEX_FILE_H
#define CHATHIST_HISTORY_INDEX_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/history/location.h"

/* Smaller histories have no index: reading them is as fast without. */
#define INDEX_LEAST ((off_t)256 << 10)

#define INDEX_PREAMBLE 88

/* Opens a cache file for reading, and for writing if possible. Returns the descriptor; -1 if it does
 * not exist (*errnum is ENOENT), or is not a regular file that only this user can write, with one
 * name and the first bytes of a cache file. */
int index_file_open(int dir, const char *path, int *errnum);
/* Opens such a file for writing, creates it if needed, and locks it. Returns -1 if it is locked
 * already, or that is not possible. */
int index_file_lock(int dir, const char *path);
/* Returns whether the path names that file. */
bool index_file_named(int dir, const char *path, const struct stat *st);

/* A new cache file that will replace `path`. */
struct index_making {
    int dir;
    int fd;
    const char *path; /* private: borrowed */
    char *name;       /* private: the temporary name */
};
/* Opens the empty temporary file, `path` with HISTORY_INDEX_MAKING, and locks it. A file that a
 * killed program left is reused. Returns false if another program holds the lock, or the file cannot
 * be made. */
bool index_making_begin(struct index_making *m, int dir, const char *path);
/* Renames it over `path` if it is `whole`, otherwise removes it. Returns whether it was renamed. */
bool index_making_end(struct index_making *m, bool whole);

enum index_state {
    INDEX_SAME,
    INDEX_GROWN, /* lines were appended */
    INDEX_OTHER, /* another or a changed history, or no index */
};

/* What the preamble holds beside the identity of the history. */
struct index_stamp {
    uint64_t generation;
    uint64_t salt; /* part of the checksums of what follows; 0: nothing follows */
};

/* Compares the history with the preamble of an index. *st is the state of the history that was
 * compared, *stamp is set unless the result is INDEX_OTHER. */
enum index_state index_file_state(int fd, int history_fd, struct stat *st,
                                  struct index_stamp *stamp);
/* Writes the preamble. A generation of 0 stands for a new one. Returns 0 or -1. */
int index_file_note(int fd, int history_fd, const struct stat *st, const struct index_stamp *stamp);

/* Returns the generation of the history, or 0 if there is no valid index. */
uint64_t index_file_generation(int dir, const char *path, int history_fd);
/* Likewise, but makes an index without sessions if there is no valid one. Returns 0 if that is not
 * possible. */
uint64_t index_file_ready(const struct history *h, int history_fd);

#endif
