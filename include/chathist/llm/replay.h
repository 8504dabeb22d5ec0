/*
 * replay - what of an answer goes back to its server as it came: reasoning, and whole blocks.
 *
 * Nothing here is an error: what does not fit its bound is not kept, and the answer goes on.
 *
 *  - Blocks (Anthropic; platform documentation, "Extended thinking with tool use" and "Server
 *    tools: the server-side loop and pause_turn"). Signed or encrypted thinking joins `thinking`;
 *    every block joins `turn`, in the order in which they come: a paused answer
 *    goes on from it, and so does a loop of calls and results.
 *  - Reasoning as plain text (DeepSeek, api-docs.deepseek.com/guides/thinking_mode).
 *  - Reasoning details (OpenRouter, openrouter.ai/docs/guides/best-practices/reasoning-tokens,
 *    "Preserving reasoning": unmodified, in their sequence). A stream cuts a detail in pieces of
 *    one type and index, the signature in the last: sent back in pieces they are refused
 *    (github.com/langchain-ai/langchain/pull/36401, github.com/agno-agi/agno/issues/8794).
 */
#ifndef CHATHIST_LLM_REPLAY_H
#define CHATHIST_LLM_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/json_pieces.h"

/* The most that is kept, in bytes: of thinking, which becomes a part of a history line, and of the
 * blocks of an answer. */
#define REPLAY_THINKING_MAX (BUF_LINE / 8)
#define REPLAY_TURN_MAX (BUF_LINE / 2)

/* What grows while a block comes. */
enum replay_member {
    REPLAY_TEXT,
    REPLAY_THINKING,
    REPLAY_SIGNATURE,
    REPLAY_INPUT,     /* JSON text */
    REPLAY_CITATIONS, /* values, each behind a comma but the first */
    REPLAY_MEMBERS
};

/* A detail while it comes: its first piece, and what more pieces brought. */
struct replay_detail {
    struct buf first;
    bool pieced;
    struct buf text, summary, data, signature;
    struct buf others; /* members that stand in no earlier piece, an object; empty: none */
};

struct replay {
    struct buf thinking; /* a JSON array of blocks that go back with calls; empty: none */
    struct buf turn;     /* a JSON array of all blocks; empty: none */
    bool turn_cut;       /* a block is missing in it */

    bool open;     /* a block is coming */
    int64_t index; /* the wire's own numbering */
    struct buf start, grown[REPLAY_MEMBERS];
    struct json_pieces pieces[REPLAY_MEMBERS]; /* of grown */

    bool keep_reasoning; /* set by a provider that wants it back */
    struct buf reasoning;
    bool keep_details; /* likewise */
    struct buf details;
    bool details_cut; /* one did not fit: in another sequence they are not wanted */
    struct replay_detail detail;
};

void replay_init(struct replay *r);
void replay_release(struct replay *r);

/* A block begins at `index` on the wire, with the members of that JSON object. */
void replay_begin(struct replay *r, int64_t index, struct str block);
/* Its member grows by a piece, a JSON value; nothing happens unless that block is open. */
void replay_grow(struct replay *r, int64_t index, enum replay_member member, struct str piece);
/* It is complete. Thinking that is neither signed nor encrypted, and blank text, cannot go back and
 * are not kept. */
void replay_end(struct replay *r, int64_t index);

/* Reasoning text, if it is wanted back. */
void replay_add_reasoning(struct replay *r, struct str text);
/* An entry of `reasoning_details`, if they are wanted back; `piece`: of a stream. */
void replay_add_detail(struct replay *r, struct str detail, bool piece);
/* A block of its own kind joins `thinking`. */
void replay_push(struct replay *r, struct str block);
/* The answer has ended: reasoning and details join `thinking`, as blocks of the types
 * `reasoning_content` and `reasoning_details`, when it `calls` tools, and are gone. */
void replay_settle(struct replay *r, bool calls);
/* Is every block of the answer in `turn`? */
bool replay_is_whole(const struct replay *r);
/* What the next part of an answer brought comes behind what r has. */
void replay_join(struct replay *r, const struct replay *next);

#endif
