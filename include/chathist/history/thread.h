/*
 * thread - the messages of one session as a conversation.
 *
 * Lines are in the order of the file, with these exceptions. A line is dropped if a later line
 * names it in `replaces`, which then stands in its place if both have the same `origin`. A system line with `reset` drops all lines before it. A line that names
 * an earlier prompt in `reply_to` is placed after that prompt, before the next one, so that two
 * turns at the same time are separated. A line that gives the session a title is no message, and
 * is dropped. These rules apply within a session, and a reference to an id that no line has is
 * ignored.
 */
#ifndef CHATHIST_HISTORY_THREAD_H
#define CHATHIST_HISTORY_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"

struct thread {
    struct message *at;
    size_t count;
    /* The line that gives the session its title, set by thread_finish; else NULL. */
    struct message *title;
    uint64_t all;       /* lines of the session in the file, including dropped ones */
    uint64_t bad_lines; /* bad lines that were met */
    /* private: the memory of the lines, also of dropped ones */
    char **blocks;
    size_t cap, blocks_count, blocks_cap;
};

/* Loads the thread of a session, with the index if it exists. With `raw` it has every line, in file
 * order. A session without lines has an empty thread. Returns 0, or -1 with *e set and nothing to
 * release. */
int thread_find(struct thread *t, const struct history *h, struct str session_id, bool raw,
                struct err *e);
/* These build a thread from lines that the caller has read. thread_add adds a copy of a line to a
 * thread, which starts zeroed, and returns whether it is valid; a thread with one that is not can
 * only be released. thread_finish then drops and orders lines as above. */
bool thread_add(struct thread *t, struct str line);
void thread_finish(struct thread *t);
/* Turns a raw thread into that of the time before the line at that place was replaced or reset. */
void thread_turn_back(struct thread *t, size_t place);
void thread_release(struct thread *t);

/* ---- news from other machines ---- */

/* What lines of a session after one of them change of what a model is sent. */
struct thread_news {
    size_t systems;    /* lines with a system prompt */
    size_t resets;     /* lines with `reset` */
    size_t replacing;  /* messages that replace earlier ones */
    struct buf newest; /* the id of the newest line */
};

#define THREAD_NEWS_INIT                                                                           \
    {                                                                                              \
        .newest = BUF_INIT(BUF_LINE)                                                               \
    }

/* Counts these lines after the one with the id `mark`, without those whose ids are in `own`. If no
 * line has that id, nothing is counted. Returns 0, or -1. */
int thread_find_news(struct thread_news *n, const struct history *h, struct str session_id,
                     struct str mark, const struct hash_map *own);

#endif
