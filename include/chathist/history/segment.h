/*
 * segment - where the lines of a part of a history lie, session by session, in the form in which
 * the index stores it (hist/index). hist/segment_form writes one.
 *
 * It is made at once and never changed. In words of 64 bits, little-endian:
 *
 *     header     SEGMENT_HEADER_WORDS, the last one their checksum
 *     records    for each session, that with the newest line first, the words of struct
 *                segment_session and their checksum
 *     lines      where messages begin: those of the first session, of the second, ...
 *     bad lines  where they begin
 *     buckets    of SEGMENT_BUCKET_WORDS: the upper half of an id's hash with the number of its
 *                record + 1, or 0; the last word is a checksum. What finds its bucket full is in
 *                the next one
 *     orders     of the numbers of the records, by the beginnings of their ids and by their ends
 *                (the last byte first): each in blocks of SEGMENT_ORDER_WORDS, two numbers in a
 *                word, the lower half first; the last word is a checksum
 *     ids        each with a NUL byte behind it, in the order of the records
 *     texts      likewise: first role, time of the first line, of the last one, preview
 *
 * The places of lines have no checksum: who follows them sees whether so many lines of the session
 * are there, in their order.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_H
#define CHATHIST_HISTORY_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"

/* The upper byte is the version. */
#define SEGMENT_MAGIC UINT64_C(0x32474553434f5448)
#define SEGMENT_HEADER_WORDS ((size_t)12)
#define SEGMENT_SESSION_WORDS (sizeof(struct segment_session) / sizeof(uint64_t))
#define SEGMENT_BUCKET_WORDS ((size_t)8)
#define SEGMENT_ORDER_WORDS ((size_t)128)
/* Numbers in a block of an order. */
#define SEGMENT_ORDERED ((SEGMENT_ORDER_WORDS - 1) * 2)

struct segment {
    off_t from, to; /* of the history */
    uint64_t sessions, lines, bad;
    uint64_t mark;
    uint64_t size; /* of all of it, in bytes */
    /* private */
    uint64_t buckets, ids_size, bad_sum;
    const char *memory; /* where it lies, else in the file from `at` on */
    int fd;
    off_t at;
};

/* A session in a segment. */
struct segment_session {
    uint64_t hash;      /* of its id */
    uint64_t last_line; /* where it begins */
    uint64_t bytes, count;
    uint64_t first; /* number of its first line among the places of lines */
    uint64_t id_at, id_len;
    uint64_t text_at;
    uint64_t role_len, created_len, last_len, preview_len;
    uint64_t text_sum;
};

/* Where a part begins, of what has so many of each. */
enum segment_part {
    SEGMENT_RECORDS,
    SEGMENT_LINES,
    SEGMENT_BAD,
    SEGMENT_BUCKETS,
    SEGMENT_ORDERS,
    SEGMENT_IDS,
    SEGMENT_TEXTS,
};
uint64_t segment_part_at(const struct segment *s, enum segment_part part);

/* What tells ids apart in most cases. */
uint64_t segment_hash(struct str id);

/* Reads the header: of a segment in memory, or of one at `at` of a file. Both are borrowed.
 * false: it is none, or not all of it is there; `limit` is how much there is in all. */
bool segment_in_memory(struct segment *s, const char *memory, uint64_t limit);
bool segment_in_file(struct segment *s, int fd, off_t at, uint64_t limit);

/* All that follow: -1 when the segment is not what it was made. */

/* The session of that id: 1, 0, -1. */
int segment_find(const struct segment *s, struct str id, struct segment_session *found);
/* The records of `count` sessions from the number `first` on; the session of the newest line is
 * the first. */
int segment_sessions(const struct segment *s, uint64_t first, size_t count,
                     struct segment_session *to);
/* Adds the ids of sessions in the order of their records, each with a NUL behind it, at its id_at
 * less that of of[0]: what is between them is read, too. */
int segment_ids(const struct segment *s, const struct segment_session *of, size_t count,
                struct buf *ids);
/* An order is by the beginnings of the ids, or by their ends. */
enum segment_side { SEGMENT_BEGINNING, SEGMENT_END, SEGMENT_SIDES };
/* How many blocks an order of so many has. */
uint64_t segment_order_blocks(uint64_t sessions);
/* Reads `count` blocks of an order, SEGMENT_ORDER_WORDS each. */
int segment_order(const struct segment *s, enum segment_side side, uint64_t block, size_t count,
                  uint64_t *words);
/* Likewise their texts, at text_at less that of of[0]: first role, time of the first line, of the
 * last one, preview, each with a NUL behind it. */
int segment_texts(const struct segment *s, const struct segment_session *of, size_t count,
                  struct buf *texts);
/* In bytes, of the texts of one. */
uint64_t segment_texts_size(const struct segment_session *s);
/* Where a session's lines begin, at the most `count` from the number `first` of them on. */
int segment_lines(const struct segment *s, const struct segment_session *of, uint64_t first,
                  size_t count, uint64_t *to);
/* Where the bad lines begin: `to` has room for all. */
int segment_bad(const struct segment *s, uint64_t *to);

#endif
