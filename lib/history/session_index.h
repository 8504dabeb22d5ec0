/*
 * session_index - the cache file beside a large history that says where the lines of each session
 * are, and holds what lists show of it.
 *
 * The file covers the beginning of the history. Lines after that are read into memory each time,
 * and when they are many, the file is replaced by one that covers them too. Writers of the history
 * know nothing of it, and nothing that the programs print depends on it: if it is absent, damaged,
 * or made from another history, it is not used, and made again if possible.
 *
 * The file begins with a preamble that identifies the history: device, inode, size, times of the
 * last change, and a checksum of samples of its bytes up to that size. A history that is only
 * longer, with the same samples, counts as the same one.
 *
 * It goes on with blocks of INDEX_BLOCK bytes, each with a checksum at its end. What they hold, in
 * words of 64 bits, little-endian:
 *
 *     header   the struct index_header
 *     records  RECORD_WORDS for each session, last used first (history/order.h)
 *     ranges   for each session, in the order of the records: the beginning and the end of each
 *              struct line_range
 *     bad      the offsets of lines that are not valid messages
 *     times    BLOCK_WORDS for each struct time_block
 *     texts    for each session: id, first role, first and last timestamp, preview, title and the
 *              set of titles (titles_write), each with a NUL
 *     by start the numbers of the records in the order of the ids, byte by byte
 *     by end   the same in the order of the ids when they are read backwards
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

struct index_header {
    uint64_t covered; /* the lines in the first `covered` bytes of the history are in the index */
    uint64_t sessions, ranges, bad, blocks;
    uint64_t texts;        /* size in bytes */
    int64_t latest, ahead; /* of the line_clock after these lines */
};

enum index_part {
    INDEX_RECORDS,
    INDEX_RANGES,
    INDEX_BAD,
    INDEX_TIMES,
    INDEX_TEXTS,
    INDEX_BY_START,
    INDEX_BY_END,
    INDEX_PARTS,
};

struct session_index {
    struct scan scan;           /* the history */
    struct session_table tail;  /* the lines that the file does not cover */
    struct index_header header; /* all 0 without a usable file */
    /* private */
    const struct history *h;
    struct stat st;           /* of the history */
    int fd;                   /* the index, or -1 */
    uint64_t salt;            /* part of the checksums of the blocks */
    uint64_t size;            /* of what the blocks hold */
    uint64_t at[INDEX_PARTS]; /* where each part begins */
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

/* Finds the record of a session: 1 and *number, or 0. */
int session_index_find(const struct session_index *x, struct str id, uint64_t *number);
/* Adds `count` sessions to the list, from record `first` on. */
int session_index_sessions(const struct session_index *x, uint64_t first, uint64_t count,
                           struct session_list *to);

/* Finds the sessions whose ids begin (or end) with `text`: they follow each other in that order of
 * the ids. */
int session_index_named(const struct session_index *x, struct str text, bool at_end,
                        uint64_t *first, uint64_t *count);
/* Reads the numbers of their records. */
int session_index_numbers(const struct session_index *x, bool at_end, uint64_t first, size_t count,
                          uint64_t *numbers);

/* Adds the blocks of the lines in the file and the tail. */
int session_index_times(const struct session_index *x, struct time_blocks *to);

/* The lines of one session. */
struct session_lines {
    struct line_range *at; /* ascending; freed by the caller */
    size_t count;
    uint64_t lines; /* in all of them */
};
/* Finds them in the file and the tail. A session without lines has no ranges. Returns 0 or -1. */
int session_index_lines(const struct session_index *x, struct str id, struct session_lines *lines);
/* Counts the bad lines that could be of the session: those that scan_message reports as bad if only
 * this session's lines are wanted. Returns 0 or -1. */
int session_index_count_bad(struct session_index *x, struct str id, uint64_t *count);

#endif
