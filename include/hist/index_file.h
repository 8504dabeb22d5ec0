/*
 * index_file - the file of an index (hist/index): opened where it can be trusted, and its preamble,
 * which tells of which history it is, and in which state that was.
 *
 * The preamble is INDEX_PREAMBLE bytes: words of 64 bits, little-endian, with the version, the
 * history's device, inode, size and times of change in nanoseconds, a checksum of its beginning,
 * and their own.
 */
#ifndef CHATHIST_HIST_INDEX_FILE_H
#define CHATHIST_HIST_INDEX_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "hist/locate.h"

#define INDEX_PREAMBLE 64

/* Opens an index for reading and, where that can be, for writing. -1: there is none (ENOENT in
 * *errnum), it is no regular file, has another name (a hard link), or others can write it. */
int index_file_open(const char *path, int *errnum);
/* Opens the file in which one is made, empty, so that nobody else makes one: `path` with
 * HISTORY_INDEX_MAKING. What a program left that was killed is taken over. -1: another program
 * makes one, or it cannot be made. */
int index_file_make(const char *path);

enum index_state {
    INDEX_SAME,
    INDEX_GROWN, /* something was appended, as far as can be seen */
    INDEX_OTHER, /* another history, or changed, or no index */
};

/* How the history, of which *st gets the state, looks to the index. It is looked at for some
 * milliseconds when it seems to be changed, for a writer may be at work. */
enum index_state index_file_state(int fd, int history_fd, struct stat *st);
/* Writes the preamble of a new index, or notes the state in that of one that is there. */
int index_file_begin(int fd, int history_fd, const struct stat *st);
void index_file_note(int fd, const struct stat *st);

/* A checksum of the bytes before `end`, by which it is seen whether they are still there. */
uint64_t index_file_sample(int history_fd, off_t end);
/* Does the path name that file? */
bool index_file_named(const char *path, const struct stat *st);

/* For who appends to a history, under its lock. Begin before the first byte is written; end
 * behind the last one. So a change by hand between two of them is not taken for what was
 * appended. */
struct index_watch {
    int fd; /* of the index; -1: none that is right */
};
void index_watch_begin(struct index_watch *w, const struct history *h, int history_fd);
void index_watch_end(struct index_watch *w, int history_fd);

#endif
