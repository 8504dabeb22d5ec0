/*
 * piece - one piece of a history searched for needles, where it lies in the file.
 *
 * Reads windows at fixed offsets into memory that begins at a page (pread; a mapping is slower
 * where a file grew line by line, and ends the program when it becomes shorter); what is left of a
 * line is put in front of the next window. A line belongs to the piece behind whose first byte it
 * begins, the line at the end of the piece included, and that at offset 0. It is given whole to a
 * function that reads it when a needle may be in it; all others are passed over, valid or not.
 */
#ifndef CHATHIST_SEARCH_PIECE_H
#define CHATHIST_SEARCH_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/search/needle.h"
#include "chathist/search/skip.h"

enum piece_verdict {
    PIECE_MISS,
    PIECE_HIT,
    PIECE_BAD, /* the line is no valid message */
    PIECE_ON,  /* a message: its content will tell */
};

/* What is the same for all pieces and threads; borrowed. */
struct piece_job {
    const struct needles *needles;
    int fd;
    off_t size;                 /* so much of the file is read */
    size_t block_size;          /* of a window */
    size_t line_max;            /* a longer line is bad, without being read */
    const struct skip_map *map; /* which lines are proven */
    /* Reads a line, without its newline: PIECE_MISS when it cannot be a hit whatever it holds,
     * PIECE_BAD, or PIECE_ON with the raw bytes in which a needle is to be; there may be more
     * behind them. ctx is the thread's own. */
    enum piece_verdict (*read)(void *ctx, struct str line, bool proven, struct str *content);
    /* Is the line that was read last a hit, when a needle may be in those bytes? `at` is where it
     * stands, NULL when that is not known. Any but PIECE_ON. */
    enum piece_verdict (*ask)(void *ctx, const char *at);
    bool list; /* the lines are to be listed, not only counted */
};

/* A hit, or a bad line. */
struct piece_item {
    off_t at;
    size_t n; /* without its newline */
    bool bad;
};

struct piece {
    off_t begin, end;
    uint64_t hits, bad;
    struct piece_item *items; /* in the order of the file; owned */
    size_t count, cap;
};
void piece_release(struct piece *p);

/* The memory of a thread. Zero-initialise, then set the first two. */
struct piece_reader {
    const struct piece_job *job;
    void *ctx;
    /* private */
    struct piece *piece;
    char *memory;
    size_t head;           /* the window is so far behind the beginning of memory */
    size_t size;           /* of memory */
    char *text, *text_end; /* what is looked at, whole lines */
    off_t text_at;         /* where it is in the file */
    struct str line;       /* the last one that was read, without its newline */
    bool terminated;       /* it has one */
    struct str content;    /* what of it is asked about */
    const char *behind;    /* where the next one begins */
};
void piece_reader_release(struct piece_reader *r);
/* Fills p, of which begin and end are set, from anew. 0, or -1 with errno set. A line that has no
 * newline is no bad one; a file that became shorter ends there. */
int piece_read(struct piece_reader *r, struct piece *p);

#endif
