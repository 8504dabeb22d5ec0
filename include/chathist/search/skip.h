/*
 * skip - the cache beside a history that tells a search which parts of it need not be read
 * (chathist(5)).
 *
 * The history is seen as blocks of SKIP_BLOCK bytes; a line belongs to the one behind whose first
 * byte it begins, as in hist/piece. For each block it is known which grams, three bytes in a row,
 * are in the contents of its messages, decoded and folded (base/fold): a block without all the
 * grams of a text has no content with that text. One with a line that is no message is always
 * read. A block is proven when all its lines are messages, and none that begins as ours
 * (own_line_content) has another content behind that: they need not be checked again.
 *
 * SKIP_BLOCKS blocks make a chunk. A chunk is made at once, when the history has grown beyond it,
 * by hist/skip_build, and lies at a fixed place of the file. In words of 64 bits, little-endian:
 *
 *     header   SKIP_HEADER_WORDS: the version, struct skip_chunk, number of the chunk and size of
 *              its blocks as one sum, and their checksum
 *     rows     SKIP_ROWS, one for each hash of a gram, of SKIP_WORDS words with a bit for each
 *              block of the chunk, and one that is their checksum
 *
 * A chunk of another generation of the index (hist/index_file), or whose checksums do not hold, is
 * not used: its blocks are read. So are those behind the last chunk.
 */
#ifndef CHATHIST_SEARCH_SKIP_H
#define CHATHIST_SEARCH_SKIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"

#define SKIP_BLOCK ((off_t)64 << 10)
#define SKIP_WORDS ((size_t)3)
#define SKIP_BLOCKS (SKIP_WORDS * 64)
#define SKIP_ROWS ((size_t)1 << 15)
#define SKIP_ROW_SIZE ((SKIP_WORDS + 1) * sizeof(uint64_t))
#define SKIP_HEADER_WORDS ((size_t)11)
#define SKIP_HEADER_SIZE (SKIP_HEADER_WORDS * sizeof(uint64_t))
#define SKIP_CHUNK_SIZE (SKIP_HEADER_SIZE + SKIP_ROWS * SKIP_ROW_SIZE)

/* The last digit is the version: of the format, and of the folding. */
#define SKIP_MAGIC UINT64_C(0x3258444950494b53)

/* A chunk's header. */
struct skip_chunk {
    uint64_t generation;
    uint64_t sum;                /* of the lines that belong to it; a part of each row's checksum */
    uint64_t always[SKIP_WORDS]; /* the blocks that are always read */
    uint64_t proven[SKIP_WORDS]; /* the blocks that are */
};

/* Of a chunk with that number: is it there, whatever its generation? */
bool skip_chunk_read(int fd, size_t number, off_t block, struct skip_chunk *c);
bool skip_chunk_write(int fd, size_t number, off_t block, const struct skip_chunk *c);
uint64_t skip_row_sum(const uint64_t words[SKIP_WORDS], size_t row, const struct skip_chunk *c);

/* The number of the block that a line belongs to. */
static inline size_t skip_block_of(off_t line, off_t block)
{
    return (size_t)((line > 0 ? line - 1 : 0) / block);
}

/* Sets `bit` in the mark of each row that has a gram of a text, which is valid UTF-8 and is
 * folded on the way. */
void skip_mark(unsigned char marks[SKIP_ROWS], unsigned char bit, struct str text);

/* ---- a search ---- */

/* The rows of some texts, of which one is looked for. Zero-initialise. */
struct skip_query {
    struct skip_rows *texts; /* owned */
    size_t count, cap;
    bool useless; /* one is too short to have a gram */
};
/* One more text, in any case. */
void skip_query_add(struct skip_query *q, struct str text);
void skip_query_release(struct skip_query *q);

/* Which blocks are to be read: all of them when it is zero. */
struct skip_map {
    off_t block;      /* their size */
    size_t count;     /* of blocks from the beginning on; those behind are to be read */
    uint64_t *words;  /* a bit for each; owned */
    uint64_t *proven; /* likewise: it is */
    size_t missing;   /* chunks that could be there, and are not */
};

/* Asks the file at `path`, of the chunks in the first `size` bytes of the history. */
void skip_map_make(struct skip_map *m, int dir, const char *path, uint64_t generation, off_t block,
                   off_t size, const struct skip_query *q);
void skip_map_release(struct skip_map *m);
/* Where the last part that is to be read ends, at `end` or before; 0: there is none. */
off_t skip_map_end(const struct skip_map *m, off_t end);
/* Where the part begins that ends there, at `least` or behind. */
off_t skip_map_begin(const struct skip_map *m, off_t end, off_t least);
/* Is the block proven that the line belongs to which begins there? */
bool skip_map_proven(const struct skip_map *m, off_t line);
/* How much is to be read before `end`. */
off_t skip_map_left(const struct skip_map *m, off_t end);

#endif
