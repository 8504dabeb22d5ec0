/*
 * answer - what a model has answered so far: the deltas of a stream, collected.
 *
 * Providers call the answer_… functions for each delta they find on their wire; text is handed on
 * to the sink at once. What an answer is made of is bounded: a server cannot fill the memory.
 */
#ifndef CHATHIST_LLM_ANSWER_H
#define CHATHIST_LLM_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/json_pieces.h"
#include "chathist/base/usage.h"
#include "chathist/llm/replay.h"

struct tool_call {
    struct buf id;
    struct buf name;
    struct buf args;  /* JSON text as it came; may be invalid */
    struct buf extra; /* a JSON object that goes back with it; empty: none */
    int64_t index;    /* the wire's own numbering */
    /* private */
    struct json_pieces pieces; /* of args */
};

/* Who is told of deltas as they come. A call that returns -1 (a broken pipe) ends the exchange. */
struct answer_sink {
    /* Each may be NULL: not wanted. Text comes in whole code points and is never empty. */
    int (*text)(void *arg, struct str delta);
    void *arg;
    int (*citation)(void *arg, struct str json); /* an object as it came */
    int (*reasoning)(void *arg, struct str delta);
    void (*notice)(void *arg, const char *text); /* what the user should know, in one line */
};

struct answer {
    struct buf text; /* valid UTF-8, U+0000 possible */
    struct tool_call *calls;
    size_t calls_count, calls_cap;
    size_t calls_bytes;   /* of all calls together */
    struct replay replay; /* what goes back as it came */
    bool reasoned;        /* some reasoning came, kept or not */
    struct usage usage;
    char *model;                    /* as the server names it; NULL: not told */
    char *finish_reason;            /* as chathist(5) names them; NULL: not told */
    bool begun;                     /* the wire said that this is one, where it does */
    bool finished;                  /* the wire said that this is all */
    bool refused;                   /* the text is a refusal */
    char *refusal;                  /* why, in one harmless line; NULL: not told */
    const struct answer_sink *sink; /* NULL: nobody listens */
    bool sink_failed;
    unsigned unkept;     /* bits of enum answer_media: told already */
    bool any_tool_calls; /* OpenAI's wire: `function_call` no longer counts */
    /* private */
    struct json_pieces pieces; /* of text */
};

/* The most that an answer may hold: bytes of text and calls together, and calls. Reasoning has a
 * bound of its own (llm/replay), past which it is not kept. */
#define ANSWER_MAX (BUF_LINE / 2)
#define ANSWER_CALLS_MAX 1024

void answer_init(struct answer *a, const struct answer_sink *sink);
void answer_release(struct answer *a);

/* A piece of the text, a string of checked JSON; what is none adds nothing. -1: the sink failed (*e
 * untouched, a->sink_failed set) or the answer is over ANSWER_MAX (ERR_INCOMPLETE). */
int answer_add_text(struct answer *a, struct str string, struct err *e);
/* No more of it comes: what was cut in two and not gone on with is U+FFFD. -1 as above. */
int answer_end_text(struct answer *a, struct err *e);
/* Hands on what the model thinks before it answers, which is no part of the answer. */
int answer_add_reasoning(struct answer *a, struct str text);
/* The server sends what cannot be kept: the user is told, once for each kind. */
enum answer_media { ANSWER_IMAGE = 1 << 0, ANSWER_AUDIO = 1 << 1 };
void answer_drop_media(struct answer *a, enum answer_media media);
/* Hands on where a piece of the text comes from, a JSON object. -1: the sink failed, as above. */
int answer_add_citation(struct answer *a, struct str json);
/* A piece of the call at `index` on the wire; empty parts add nothing. The arguments are a piece of
 * their text, a string of checked JSON, or the object itself; what is neither adds nothing. A new
 * call begins there with another non-empty id, and, where ids are missing, with a name after
 * complete arguments. -1: over the bounds (ERR_INCOMPLETE). */
int answer_add_call(struct answer *a, int64_t index, struct str id, struct str name,
                    struct str args, struct err *e);
/* An object that came with the newest call at `index` and is to go back with it; anything else
 * adds nothing. -1: over the bounds (ERR_INCOMPLETE). */
int answer_add_call_extra(struct answer *a, int64_t index, struct str json, struct err *e);
/* Makes the calls complete (what goes back with them joins a->replay.thinking: replay_settle, and
 * blocks of the type `extra_content`): an id for each that came without, a name likewise
 * (`unnamed`), `{}` for missing arguments. A finish
 * reason of `stop` becomes `tool_calls` when there are calls, and the other way round. */
void answer_settle_calls(struct answer *a);
/* An empty name or reason is "not told" and leaves what was told before. */
void answer_set_model(struct answer *a, struct str model);
void answer_set_finish(struct answer *a, struct str reason);
/* Why the model refused: a text of the server, and its name for the kind; either may be empty. */
void answer_set_refusal(struct answer *a, struct str category, struct str explanation);
/* `next` is what came when the model was asked to go on with a, which has no calls: text and usage
 * are added, calls taken over, its end is the end of both. -1: over the bounds (ERR_INCOMPLETE). */
int answer_join(struct answer *a, struct answer *next, struct err *e);

/* Adds the members of a call, `"id":…,"name":…,"args":…`, args as object, or as string when they
 * are no valid object. */
void answer_add_members(const struct tool_call *c, struct buf *out);
/* Adds the calls as the history's `tool_calls`: [{"id","name","args"}]. */
void answer_calls_json(const struct answer *a, struct buf *out);

#endif
