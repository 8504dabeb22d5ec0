/*
 * segment_draft - a segment (hist/segment) in the making: fed with the lines of a part of a
 * history.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_DRAFT_H
#define CHATHIST_HISTORY_SEGMENT_DRAFT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/history/message.h"
#include "history/segment_form.h"

struct segment_draft {
    struct segment_entry *entries; /* sessions, in the order of their first lines */
    size_t count, entries_cap;
    off_t
        *lines; /* where messages begin, in the order of the file, and of which session they are */
    uint32_t *owners;
    size_t lines_count, lines_cap, owners_cap;
    uint64_t *bad; /* where bad lines begin */
    size_t bad_count, bad_cap;
    struct buf texts;
    struct buf scratch;
    uint32_t *slots; /* a hash table of the sessions: number + 1 */
    size_t slots_size;
};

void segment_draft_init(struct segment_draft *d);
void segment_draft_release(struct segment_draft *d);
/* A message that begins at `at` and takes so many bytes, newline included; behind those before. */
void segment_add(struct segment_draft *d, const struct message *m, off_t at, size_t bytes);
void segment_add_bad(struct segment_draft *d, off_t at);
/* Adds what is behind it in the history. */
void segment_join(struct segment_draft *d, const struct segment_draft *next);
/* How many bytes it takes by now. */
size_t segment_draft_size(const struct segment_draft *d);
/* Writes the segment of the bytes from `from` up to `to`; `mark` is kept with it. Its size; 0: it
 * cannot be written. */
uint64_t segment_format(const struct segment_draft *d, off_t from, off_t to, uint64_t mark,
                        segment_write *write, void *ctx);

#endif
