/*
 * index_file - the file of an index (hist/index): opened where it can be trusted, and its preamble,
 * which tells of which history it is, and in which state that was.
 *
 * The preamble is INDEX_PREAMBLE bytes: words of 64 bits, little-endian, with the version, the
 * history's device, inode, size and times of change in nanoseconds, a checksum of its beginning,
 * a generation, and their own checksum. The generation is another one whenever the history may have
 * been changed by anything but our own appending: what is known of its bytes by an older one is no
 * longer certain (hist/skip).
 */
#ifndef CHATHIST_HISTORY_INDEX_FILE_H
#define CHATHIST_HISTORY_INDEX_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/history/location.h"

#define INDEX_PREAMBLE 72

/* Opens an index for reading and, where that can be, for writing. -1: there is none (ENOENT in
 * *errnum), it is no regular file, has another name (a hard link), others can write it, or it is
 * something else. */
int index_file_open(int dir, const char *path, int *errnum);
/* Opens a file like that, made if need be, so that nobody else can do this until it is closed. -1:
 * somebody has, or it cannot be. */
int index_file_lock(int dir, const char *path);
/* A new index, beside its place. */
struct index_making {
    int dir;
    int fd;
    const char *path; /* private: its place, borrowed, and the name until then */
    char *name;
};
/* Opens the file in which it is made, empty, so that nobody else makes one: `path` with
 * HISTORY_INDEX_MAKING. What a program left that was killed is taken over. false: another program
 * makes one, or it cannot be made. */
bool index_making_begin(struct index_making *m, int dir, const char *path);
/* Puts it in its place when it is `whole`, else takes it away. Is it in its place? */
bool index_making_end(struct index_making *m, bool whole);

enum index_state {
    INDEX_SAME,
    INDEX_GROWN, /* something was appended, as far as can be seen */
    INDEX_OTHER, /* another history, or changed, or no index */
};

/* How the history, of which *st gets the state, looks to the index. It is looked at for some
 * milliseconds when it seems to be changed, for a writer may be at work. */
enum index_state index_file_state(int fd, int history_fd, struct stat *st);
/* Writes the preamble of a new index, of that generation or, when it is 0, a new one. */
int index_file_begin(int fd, int history_fd, const struct stat *st, uint64_t generation);
/* Notes the state in the preamble of one that is there; a change that is not `ours` begins a
 * generation. */
void index_file_note(int fd, const struct stat *st, bool ours);
/* The generation of an index whose history is the same as it was; else 0. */
uint64_t index_file_generation(int dir, const char *path, int history_fd);
/* The same, of one that is brought up to date or, where there is none that is right, made without a
 * segment. 0: that cannot be done. */
uint64_t index_file_ready(const struct history *h, int history_fd);

/* A checksum of the bytes before `end`, by which it is seen whether they are still there. */
uint64_t index_file_sample(int history_fd, off_t end);
/* Returns a checksum of all bytes from `from` up to `to`; 0 if they cannot be read. */
uint64_t index_file_sum(int history_fd, off_t from, off_t to);
/* Does the path name that file? */
bool index_file_named(int dir, const char *path, const struct stat *st);

/* For who appends to a history, under its lock. Begin right before the first byte is written; note
 * right behind the last one, not only when they are on the disk: what others, who heed no lock,
 * change between the two is taken for what was appended. What they change before and after is seen.
 * What is taken back is not noted: others may have read it, and there is no telling what they made
 * of it, so that the index is another one's. */
struct index_watch {
    int fd; /* of the index; -1: none that is right */
};
void index_watch_begin(struct index_watch *w, const struct history *h, int history_fd);
/* `watch` is a struct index_watch: for struct append. */
void index_watch_note(void *watch, int history_fd);
void index_watch_end(struct index_watch *w);

#endif
