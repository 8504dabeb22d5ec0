/*
 * context_window - the part of a session's thread that the context of its next turn can hold.
 */
#ifndef CHATHIST_CHAT_CONTEXT_WINDOW_H
#define CHATHIST_CHAT_CONTEXT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/cli/config.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"
#include "chathist/llm/context.h"

/* What the context of a turn may hold. CONTEXT_ALL: no limit. */
struct context_limits {
    size_t messages; /* the number of earlier messages, as in context_cut */
    size_t bytes;    /* likewise */
    size_t
        tokens; /* the most tokens of the whole request; the context moves in steps (context_cut_in_steps) */
    size_t most;   /* tokens of a request that the model can hold, or that the user allows */
    size_t tools;  /* bytes of the tools, which count against `tokens` */
    size_t answer; /* tokens that are kept free for the answer */
};

#define CONTEXT_LIMITS_NONE                                                                        \
    {                                                                                              \
        .messages = CONTEXT_ALL, .bytes = CONTEXT_ALL, .tokens = CONTEXT_ALL, .most = CONTEXT_ALL  \
    }

/* Chooses the limits by the settings. `window` is how many tokens the model's context can hold, 0
 * if that is unknown, and `answer` the most tokens of an answer, 0 if that is unknown. If the
 * window is known, or the user sets max_input_tokens, the limit is in tokens, and messages and
 * bytes are limited only if the user says so. Returns 0, or -1 with *e set if a setting is bad. */
int context_limits_choose(struct context_limits *l, const struct config *c, size_t window,
                          int64_t answer, struct err *e);
/* Cuts the context to the limits, given how many bytes 1,000 tokens have, before its first request
 * (context_cut, context_cut_in_steps). */
void context_limits_apply(const struct context_limits *l, struct context *c, size_t token_bytes);
/* Cuts the context of a running turn to the limits, and to less than `refused` bytes unless that is
 * 0, before a request (context_fit). `again`: that request was refused, and it is cut to half, so
 * that few more are refused. Returns whether anything was left out. */
bool context_limits_fit(const struct context_limits *l, struct context *c, size_t token_bytes,
                        size_t refused, bool again);
/* Returns true if this turn alone is certainly more than the model can hold. *tokens is the least
 * number that it has. */
bool context_limits_exceeded(const struct context_limits *l, const struct context *c,
                             size_t *tokens);
/* Estimates how many bytes 1,000 tokens have: 4,000, as in English text, corrected by the input
 * tokens that the server counted for two requests of the thread that follow each other. */
size_t context_token_bytes(const struct thread *thread);

/* Loads the thread of a session, without messages that are too far back to be in a context within
 * these limits. The last turn is always there. *cut is set if the messages before the last turn
 * exceed the limits. With `memory` its lines are the session, and the history is not read. Returns
 * 0, or -1 with *e set and nothing to release. */
int context_window_load(struct thread *thread, const struct history *h, const struct buf *memory,
                        struct str session, const struct context_limits *limits, bool *cut,
                        struct err *e);
/* Makes the thread of a session's lines. The caller releases it. */
void context_window_parse(struct thread *thread, const struct buf *lines);
/* Returns the index of the first message after the last prompt of the thread, or 0 without a
 * prompt. */
size_t context_window_last_turn(const struct thread *thread);

struct context_estimate {
    size_t messages; /* including the system prompt */
    size_t tokens;   /* estimated (context_token_bytes) */
};

/* Estimates what the next turn of chat sends of a session, before its prompt, with the user's
 * settings; options of chat are not known. Returns 0, or -1 with *e set if the history cannot be
 * read or a setting is bad. */
int context_estimate(struct context_estimate *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e);

#endif
