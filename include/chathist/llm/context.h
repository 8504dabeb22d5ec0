/*
 * context - what a model is sent of a conversation.
 *
 * Built from history messages, then cut to the newest that fit, then put into the shape that every
 * provider accepts: calls with their results, turns that alternate, no empty text. Only role,
 * content, tool fields and the images of this turn travel; inside a loop of calls and results
 * thinking does, too.
 *
 *     context_add… -> context_begin_turn -> context_add_text… -> context_cut -> context_settle
 */
#ifndef CHATHIST_LLM_CONTEXT_H
#define CHATHIST_LLM_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/history/message.h"
#include "chathist/llm/image.h"

/* How an answer ended, as far as it decides whether the answer is sent again. */
enum context_end {
    CONTEXT_FINISHED, /* or not known */
    CONTEXT_CUT,      /* text came, but not all of it */
    CONTEXT_FAILED,   /* nothing came: the turn failed */
};

struct context_message {
    enum role role; /* ROLE_USER, ROLE_ASSISTANT or ROLE_TOOL; the system prompt is apart */
    char *content;  /* owned, n bytes, may hold NUL */
    size_t n;
    char *tool_calls;   /* JSON array of {"id","name","args"}, never empty, or NULL (assistant) */
    char *tool_call_id; /* or NULL (tool) */
    /* Of an assistant message with calls: its signed thinking or all of its blocks, a JSON array,
     * and the provider that wrote it. They go back to that provider as long as the loop of calls
     * and results goes on, and count as nothing. NULL: none. */
    char *thinking;
    char *provider;
    /* Images of this turn's prompt, borrowed; they count as nothing. Earlier ones are not there. */
    const struct image *images;
    size_t images_count;
    /* private, until context_cut or context_settle: what context_drop_unsent needs */
    char *id;       /* of a prompt */
    char *reply_to; /* of an answer that did not finish */
    enum context_end end;
    bool unsent;
};

struct context {
    struct context_message *at;
    size_t count, cap;
    char *system; /* the newest system prompt, NULL when none */
    size_t system_len;
    size_t turn;    /* at[turn…] is this turn: always whole */
    size_t dropped; /* earlier messages left out by the cut */
};

#define CONTEXT_ALL ((size_t)-1)
/* From this many earlier messages on, a hint is due. */
#define CONTEXT_HINT 15

void context_init(struct context *c);
void context_release(struct context *c);

/* Adds a message of the thread. A system line becomes the system prompt (an empty one takes it
 * away); a role that is not known is passed over: false. Tool calls without an id or a name are
 * left out: no result could be told to be theirs. */
bool context_add(struct context *c, const struct message *m);
/* Replaces the system prompt; an empty text takes it away. */
void context_set_system(struct context *c, struct str text);
/* What is added from here on belongs to this turn. Without this call there is no turn. */
void context_begin_turn(struct context *c);
/* Adds a text message of the role; ROLE_SYSTEM sets the system prompt, ROLE_OTHER adds nothing. */
void context_add_text(struct context *c, enum role role, struct str content);
/* The message that was added last, a user's, comes with these; one message of a context can. */
void context_set_images(struct context *c, const struct image *images, size_t count);

/* Adds what a loop of calls and results brings, when everything before it is settled: an assistant
 * message with its calls as in `tool_calls`, its signed thinking or all of its blocks (empty: none)
 * and the provider that wrote it; then a result for each call, in their order. */
void context_add_calls(struct context *c, struct str content, struct str calls, struct str thinking,
                       const char *provider);
void context_add_result(struct context *c, struct str call_id, struct str content);

/* Drops earlier messages that are never sent again; the next two functions begin with it.
 * An answer that did not finish (its finish_reason is `interrupted`, `error`, `length` or
 * `content_filter`) is dropped
 *  - without text: always, and with it the prompt that it names in `reply_to`, unless that prompt
 *    has another answer or calls;
 *  - with text: if the prompt that it names has a finished answer before it, or another answer or
 *    calls after it. */
void context_drop_unsent(struct context *c);
/* Drops the oldest messages before this turn until at most max_messages of them, with at most
 * max_bytes of content and tool fields, are left; then those before the next user message, since
 * servers want the user to begin. CONTEXT_ALL: no bound. */
void context_cut(struct context *c, size_t max_messages, size_t max_bytes);
/* Makes the sequence sendable: results stand right behind their call, in its order; a call without
 * result gets one that says so, a result without call is dropped; blank text before this turn is
 * dropped; neighbouring text turns of one role are merged with a blank line between them, an
 * unanswered prompt also with this turn's, and the model's text with the calls behind it. Call
 * once, after context_cut. */
void context_settle(struct context *c);
/* Does message i belong to a loop of calls and results that is still going on: is there no user
 * message behind it? */
bool context_in_loop(const struct context *c, size_t i);
/* The bytes of one message that count against max_bytes. */
size_t context_weight(const struct context_message *m);

#endif
