/*
 * skip_index - a cache file beside a large history by which a search knows which parts of the
 * history cannot hold its text (chathist(5)).
 *
 * The history is divided into blocks of SKIP_BLOCK bytes. A line belongs to the block in which it
 * begins, but a line that begins with the first byte of a block belongs to the block before. The
 * line at offset 0 belongs to the first block. The index records for each block which grams
 * (sequences of three bytes) are in the contents and tool calls of its messages, decoded, case
 * folded, and without the marks of letters (utf8_add_unmarked), so that it also helps a search to
 * which marks do not matter. A block that lacks a gram of a text has no message with that text, so a search does not
 * read it.
 *
 * Searches make the index: each adds a bounded part after its hits are printed. Programs that write
 * to a history do not use it. SKIP_SECTION_BLOCKS blocks share a section of the file, which grows
 * block by block. In words of 64 bits, little-endian:
 *
 *     header   SKIP_HEADER_WORDS: the format's version, struct skip_section, a checksum of the
 *              section's number and of the size of its blocks, and a checksum of these words
 *     rows     SKIP_ROWS, one for each hash of a gram: SKIP_WORDS words with a bit for each block
 *              of the section, and a checksum
 *
 * A section counts only if its checksums hold and if the history is the one that it was made of. A
 * section notes the state of the history (device, inode, size and times of change) in which its
 * blocks were last known to be right. In any other state a search reads those blocks as if there
 * were no index; it computes their checksums on the way, and the section is used again if they are
 * unchanged.
 */
#ifndef CHATHIST_SEARCH_SKIP_INDEX_H
#define CHATHIST_SEARCH_SKIP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/history/location.h"

#define SKIP_BLOCK ((off_t)64 << 10)
#define SKIP_WORDS ((size_t)3)
#define SKIP_SECTION_BLOCKS (SKIP_WORDS * 64)
#define SKIP_ROWS ((size_t)1 << 15)
#define SKIP_ROW_SIZE ((SKIP_WORDS + 1) * sizeof(uint64_t))
#define SKIP_HEADER_WORDS ((size_t)9)
#define SKIP_HEADER_SIZE (SKIP_HEADER_WORDS * sizeof(uint64_t))
#define SKIP_SECTION_SIZE (SKIP_HEADER_SIZE + SKIP_ROWS * SKIP_ROW_SIZE)

/* The last digit is the version: of the format, and of the folding. */
#define SKIP_MAGIC UINT64_C(0x3558444950494b53)

struct skip_section {
    uint64_t state;              /* of the history, as in struct skip_map */
    uint64_t sum;                /* a checksum of the bytes of its blocks */
    uint64_t count;              /* how many blocks it covers, from its first one */
    uint64_t always[SKIP_WORDS]; /* a bit for each block that every search must read */
};

/* Sets `bit` in marks[row] for the row of each gram of a text in valid UTF-8. Public for the
 * tests. */
void skip_mark(unsigned char marks[SKIP_ROWS], unsigned char bit, struct str text);

/* The texts that a search looks for, as rows of the index. They are in clauses: a hit has one text
 * of each clause. Zero-initialise. */
struct skip_query {
    struct skip_rows *texts; /* owned */
    size_t count, cap;
    size_t begun; /* texts in the clauses that are complete */
    bool useless; /* a text of this clause is too short to have a gram */
};
/* Adds one text, in any case, to the current clause. */
void skip_query_add(struct skip_query *q, struct str text);
/* Ends a clause. A clause for which the index cannot help is dropped. */
void skip_query_end(struct skip_query *q);
/* Returns whether the index can help. */
bool skip_query_helps(const struct skip_query *q);
void skip_query_release(struct skip_query *q);

/* Which blocks a search must read, and what it learns about them. All zeros: all blocks. */
struct skip_map {
    off_t block;      /* size of a block */
    size_t count;     /* the number of whole blocks in the history */
    uint64_t state;   /* a checksum of the history's state when it was opened; 0: not usable */
    uint64_t *wanted; /* a bit for each block that must be read; owned; NULL: all */
    uint64_t *sums;   /* checksums of the blocks that were read, 0 for others; owned; may be NULL */
    bool broken;      /* a section lacks some of its rows */
    bool complete;    /* the index covers the history as far as it can */
};

/* Prepares a map for a search of the first `size` bytes of a file. */
void skip_map_open(struct skip_map *m, int history_fd, off_t size, off_t block);
void skip_map_release(struct skip_map *m);
/* Asks the index of a history which blocks the query needs. */
void skip_map_load(struct skip_map *m, const struct history *h, const struct skip_query *q);
/* Records the checksums of the whole blocks in n bytes of the history that were read at `at`.
 * Threads may call this at once for different blocks. */
void skip_map_sum(const struct skip_map *m, off_t at, const char *bytes, size_t n);
/* Returns the end of the last range that must be read, at or before `end` and after `least`;
 * `least` if no range must be read. */
off_t skip_map_end(const struct skip_map *m, off_t end, off_t least);
/* Returns where the range begins that ends at `end`, but at least `least`. */
off_t skip_map_begin(const struct skip_map *m, off_t end, off_t least);
/* Returns how many bytes before `end` must be read. */
off_t skip_map_left(const struct skip_map *m, off_t end);

/* How much of a history that the index does not cover is added to it. */
enum skip_growth {
    SKIP_NOTHING,
    SKIP_PART, /* a 24th of the history */
    SKIP_ALL,  /* all of a history of up to 200 MB, which takes half a second; else a 24th */
};

/* Writes to the index what a search of the whole history learned: sections whose blocks are
 * unchanged are used again, and others are added. Does nothing if the history has changed
 * meanwhile, if another program updates it, or if the index cannot be written. */
void skip_index_update(const struct history *h, const struct skip_map *m, enum skip_growth growth);

#endif
