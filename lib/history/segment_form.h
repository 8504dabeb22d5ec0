/*
 * segment_form - a segment (hist/segment) written part by part.
 *
 * What is put is written in blocks, so that nobody has to hold a segment to make one. How much
 * there will be of each kind is to be known before; each kind is put in its own order, and the
 * kinds beside each other, each order by any one thread.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_FORM_H
#define CHATHIST_HISTORY_SEGMENT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/history/segment.h"

struct segment_sizes {
    uint64_t sessions, lines, bad;
    uint64_t ids, texts; /* in bytes, with the NULs */
};

/* Those of a session, in the order in which they are stored. */
struct segment_texts {
    struct str role, created, last, preview;
};

/* Writes n bytes at an offset from the beginning of the segment: possible? Several threads that put
 * call it at once. */
typedef bool segment_write(void *ctx, uint64_t at, const char *bytes, size_t n);

/* One that adds it to a struct buf, empty before; for a single thread. */
bool segment_write_memory(void *buf, uint64_t at, const char *bytes, size_t n);

struct segment_form;

struct segment_form *segment_form_new(const struct segment_sizes *sizes, segment_write *write,
                                      void *ctx);
/* In bytes, of all of it. */
uint64_t segment_form_size(const struct segment_form *f);
/* The next session: its hash, last_line, bytes and count are given. */
void segment_form_session(struct segment_form *f, const struct segment_session *of, struct str id,
                          const struct segment_texts *texts);
/* Where the next lines of a session begin. */
void segment_form_lines(struct segment_form *f, const uint64_t *lines, size_t n);
void segment_form_bad(struct segment_form *f, const uint64_t *lines, size_t n);
/* The number of the session that is the next one in an order. */
void segment_form_ordered(struct segment_form *f, enum segment_side side, uint32_t number);
/* Writes what is left, and frees it. Is all of it written? */
bool segment_form_end(struct segment_form *f, off_t from, off_t to, uint64_t mark);
/* Gives it up: what was written is no segment. */
void segment_form_free(struct segment_form *f);

#endif
