/*
 * session_index - the cache file beside a large history that says where the lines of each session
 * are, and holds what lists show of it.
 *
 * The file covers the beginning of the history. Lines after that are read into memory each time,
 * and when they are many, the file is replaced by one that covers them too. Writers of the history
 * know nothing of it, and nothing that the programs print depends on it: if it is absent, damaged,
 * or made from another history, it is not used, and made again if possible.
 *
 * The file begins with a preamble that identifies the history: device, inode, the time when it was
 * made (another file may get the inode), size, times of the last change, and a checksum of samples
 * of its bytes up to that size. A history that is only longer, with the same samples, counts as the
 * same one.
 *
 * The rest of the file is blocks of INDEX_BLOCK bytes, each with a checksum at its end. They hold,
 * in words of 64 bits, little-endian:
 *
 *     header    the struct index_header
 *     sessions  for each session, last used first (history/order.h): its words, and its texts, each
 *               with a NUL: id, first role, first and last timestamp, preview, title, and the set
 *               of titles (titles_write)
 *     ids       for each session, in this order: where it is in the part before, the length of its
 *               id, and its id. A name is looked up by reading all of them.
 *     ranges    for each session, in this order: the beginning and the end of each struct
 *               line_range
 *     bad       the offsets of lines that are not valid messages
 *     times     four words for each struct time_block
 *
 * The times in it hold for a clock that has passed all times that were not ahead when it was made,
 * and none that was. With any other clock it is made again.
 *
 * If a line is edited in place without changing its length, and another one is appended before the
 * next reader looks, the edit is not noticed unless it is in a sample. session_index_is_wrong finds
 * it.
 */
#ifndef CHATHIST_HISTORY_SESSION_INDEX_H
#define CHATHIST_HISTORY_SESSION_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "chathist/history/location.h"
#include "chathist/history/scan.h"
#include "history/session_table.h"

/* Smaller histories have no index: reading them is as fast without. */
#define SESSION_INDEX_LEAST ((off_t)256 << 10)

#define INDEX_BLOCK ((size_t)1024)

enum index_part {
    INDEX_SESSIONS,
    INDEX_IDS,
    INDEX_RANGES,
    INDEX_BAD,
    INDEX_TIMES,
    INDEX_PARTS,
};

struct index_header {
    uint64_t covered; /* the lines in the first `covered` bytes of the history are in the index */
    uint64_t bad;     /* how many of these lines are bad */
    int64_t latest, ahead;        /* the state of the line_clock after these lines */
    uint64_t at[INDEX_PARTS + 1]; /* offsets: the parts begin here, and the last one ends */
};

struct session_index {
    struct scan scan;           /* the history */
    struct session_table tail;  /* the lines that the file does not cover */
    struct index_header header; /* all 0 without a usable file */
    /* private */
    const struct history *h;
    struct stat st;     /* the state of the history's file */
    int fd;             /* the index, or -1 */
    uint64_t salt;      /* part of the checksums of the blocks */
    uint64_t blocks;    /* how many there are */
    struct buf window;  /* what some of them hold */
    uint64_t window_at; /* its offset in what all of them hold */
};

/* Opens the index for the present state of the history. Makes or replaces the file if that is
 * due and possible. Returns false if that fails: the caller then reads the history itself. */
bool session_index_open(struct session_index *x, const struct history *h);
void session_index_close(struct session_index *x);
/* For a caller that found it to be wrong: closes it and removes the file. */
void session_index_discard(struct session_index *x);
/* Reads the whole history, and returns whether the file would be used and does not match it. */
bool session_index_is_wrong(const struct history *h);
/* Returns whether something in the place of the file keeps an index from being made. *removable: it
 * is in a directory of ours. */
bool session_index_blocked(const struct history *h, bool *removable);

/* The functions below return -1 if the file is damaged, or does not match the history. */

/* Calls `found` for the id of each session in the file, the last used first, with the place for
 * session_index_session, until it returns true. It must not use the index. */
int session_index_each_id(struct session_index *x,
                          bool (*found)(void *arg, struct str id, uint64_t place), void *arg);
/* Adds the session at *place to the list, and sets *place to that of the next one; 0 is that of the
 * first one. Returns 1, or 0 after the last one. */
int session_index_session(struct session_index *x, uint64_t *place, struct session_list *to);

/* Adds the blocks of the lines in the file and the tail. */
int session_index_times(struct session_index *x, struct time_blocks *to);

/* The lines of one session. */
struct session_lines {
    struct line_range *at; /* ascending; freed by the caller */
    size_t count;
    uint64_t lines; /* the number of lines in all ranges */
};
/* Finds them in the file and the tail. A session without lines has no ranges. Returns 0 or -1. */
int session_index_lines(struct session_index *x, struct str id, struct session_lines *lines);
/* Counts the bad lines that could be of the session: those that scan_message reports as bad if only
 * this session's lines are wanted. Returns 0 or -1. */
int session_index_count_bad(struct session_index *x, struct str id, uint64_t *count);

#endif
