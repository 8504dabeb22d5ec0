/*
 * segment_merge - several segments (hist/segment), each of what is behind the one before, made into
 * one. Neither they nor it are held in memory: 16 bytes are for each session, and 16 more for each
 * time that one is in a segment again.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_MERGE_H
#define CHATHIST_HISTORY_SEGMENT_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/history/segment.h"
#include "history/segment_build.h"
#include "history/segment_form.h"

/* The oldest one first, each with its ids behind it (hist/segment_walk). What is written is what
 * segment_format makes of all their lines. Of the job, `work` and `cancel` are used. Its size; 0:
 * one of them is not what it was made, it cannot be written, or it was given up. */
uint64_t segment_merge(const struct segment *runs, size_t count, const struct segment_job *job,
                       uint64_t mark, segment_write *write, void *ctx);

#endif
