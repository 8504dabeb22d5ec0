/*
 * context - the part of a conversation that is sent to a model.
 *
 * A context is built from history messages, then cut to the newest ones that fit, then put into a
 * form that every provider accepts: each call followed by its result, alternating turns, no empty
 * text. Only the role, the content, the tool fields and the attachments of this turn are sent, and
 * the blocks of a server, such as signed thinking, to the server that sent them.
 *
 *     context_add... -> context_begin_turn -> context_add_text... -> context_cut -> context_finish
 *
 * messages_add builds a context from a text (chat --messages) instead of from a history.
 */
#ifndef CHATHIST_LLM_CONTEXT_H
#define CHATHIST_LLM_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/message.h"
#include "chathist/llm/attachment.h"

/* ---- the context ---- */

/* How an answer ended, as far as it decides whether the answer is sent again. */
enum context_end {
    CONTEXT_FINISHED, /* finished, or unknown */
    CONTEXT_CUT,      /* part of the text came */
    CONTEXT_FAILED,   /* nothing came: the turn failed */
};

/* A server: a provider, and the host and port, NULL for the provider's own. */
struct context_server {
    const char *provider, *address;
};

struct context_message {
    enum role role; /* ROLE_USER, ROLE_ASSISTANT or ROLE_TOOL; the system prompt is separate */
    char *content;  /* owned, n bytes, may hold NUL */
    size_t n;
    char *tool_calls;   /* assistant: a non-empty JSON array of {"id","name","args"}, or NULL */
    char *tool_call_id; /* tool: the call that this answers, or NULL */
    bool failed;        /* tool: the call failed */
    bool ran;           /* assistant: chat ran its calls, unless it was killed */
    /* For an assistant message: its signed thinking or all of its blocks, as a JSON array, and the
     * server that sent them (context_blocks). They do not count against max_bytes, but in a window
     * of tokens. May be NULL. */
    char *thinking;
    char *provider, *address;
    bool merged; /* it has calls, and begins with the text of an earlier message */
    /* Of this turn's prompt, or the images of a result of this turn; borrowed. They do not count
     * against max_bytes. */
    const struct attachment *attachments;
    size_t attachments_count;
    /* private, for messages that are never sent again */
    uint64_t rank;  /* the rank of a prompt: where context_cut_in_steps begins */
    char *id;       /* a prompt's id */
    char *reply_to; /* the prompt of an answer that did not finish */
    enum context_end end;
    bool unsent;
};

struct context {
    struct context_message *at;
    size_t count, cap;
    char *system; /* the newest system prompt, or NULL */
    size_t system_len;
    size_t turn;    /* at[turn] and the following messages are this turn */
    size_t dropped; /* how many messages were left out */
};

#define CONTEXT_ALL ((size_t)-1)
/* From this many earlier messages on, chat shows a hint. */
#define CONTEXT_HINT 15

void context_init(struct context *c);
void context_release(struct context *c);

/* Adds a message of the thread. A system line becomes the system prompt, and an empty one removes
 * it. Returns false, and adds nothing, if the role is unknown. Tool calls without an id or a name
 * are dropped, because no result could refer to them. */
bool context_add(struct context *c, const struct message *m);
/* Replaces the system prompt; an empty text removes it. */
void context_set_system(struct context *c, struct str text);
/* The messages added from here on belong to this turn. Without this call no message does. */
void context_begin_turn(struct context *c);
/* Adds a text message of the user or the model. Returns it, valid until the next addition. */
struct context_message *context_add_text(struct context *c, enum role role, struct str content);
/* Attaches files to the user message, or images to the result, that was added last. Of the user
 * messages only one can have attachments. */
void context_set_attachments(struct context *c, const struct attachment *attachments, size_t count);

/* Adds the messages of a loop of calls and results, after everything before it is settled: an
 * assistant message with its calls, as in `tool_calls`, its signed thinking or all of its blocks
 * (may be empty) and the server that sent them; then one result for each call, in their order. */
void context_add_calls(struct context *c, struct str content, struct str calls, struct str thinking,
                       struct context_server from);
void context_add_result(struct context *c, struct str call_id, struct str content, bool failed);

/* Removes the images of results. Returns false if it has no images. */
bool context_drop_result_images(struct context *c);

/* Drops earlier messages that are never sent again, as context_finish does, too. An answer that is
 * not complete by its finish_reason (message_ending) is dropped
 *  - without text: always, and with it the prompt that it names in `reply_to`, unless that prompt
 *    has another answer or calls;
 *  - with text: if the prompt that it names has a finished answer before it, or another answer or
 *    calls after it.
 * Then leaves out the oldest parts of the earlier turns until at most max_messages of their
 * messages remain, with at most max_bytes of content and tool fields. A part is an answer, or a
 * round: a message with calls, and its results. A turn of which a part remains keeps its prompt, so
 * that the user begins; messages before the first prompt remain together or not at all. The last
 * prompt with the newest part after it, and the newest answer with its prompt, remain in any case,
 * unless a limit is 0. CONTEXT_ALL means no limit. */
void context_cut(struct context *c, size_t max_messages, size_t max_bytes);
/* Does what context_fit did before each of the earlier requests, and then for this one, because no
 * state is kept between turns. It begins at the first message, or if there are more than
 * CONTEXT_STEPS windows of messages, at a prompt that the next turns find as well: of those in the
 * older half of that many windows, the one with the highest rank, a hash of its id (or of its
 * text). */
#define CONTEXT_STEPS 8
void context_cut_in_steps(struct context *c, size_t window, size_t most);
/* Makes room if the messages, with their reasoning, have more than `window` bytes. Servers charge
 * less for a request that begins with the same bytes as an earlier one, so half of the window
 * becomes free, and then nothing moves until it is full again. Of the earlier turns the oldest
 * rounds are left out, and then each turn's prompt with its answer, but not what context_cut keeps
 * in any case.
 *
 * `most` bytes, at least the window, are what the model can hold. If there are still more, then as
 * far as necessary, in this order:
 *  - in this turn the results of the oldest rounds, whose calls remain, and then these rounds;
 *  - the middle of the results of the last round;
 *  - the middle of the newest answer and of its prompt, and of the results of a last round without
 * an
 *    answer.
 * This turn's prompt is never cut, so that the messages can still have more. Returns whether
 * anything was left out. Call this after context_cut or context_finish. */
bool context_fit(struct context *c, size_t window, size_t most);
/* Makes the sequence acceptable to every provider. Each result is moved to directly after its call,
 * in the order of the calls. A call without a result gets one that says so: that it was not carried
 * out, or for an answer of chat that was not marked as `failed`, that chat was killed. A result
 * without a call is dropped. Blank text before this turn is dropped. Neighbouring text messages of
 * one role are merged with a blank line between them; this includes an unanswered prompt and this
 * turn's, and the model's text and the calls that follow it. Call this once, after context_cut. */
void context_finish(struct context *c);
/* Returns the blocks of the message that this server sent and gets back, or
 * STR_NONE: another server refuses foreign signatures and does not know the members. */
struct str context_blocks(const struct context_message *m, struct context_server asked);
/* Returns true if message i belongs to a loop of calls and results that has not ended, that is, if
 * no user message follows it. */
bool context_in_loop(const struct context *c, size_t i);
/* Returns the bytes of the messages from at[from] to at[end - 1] that count against max_bytes. */
size_t context_weight(const struct context *c, size_t from, size_t end);
/* Returns their bytes that count in a window of tokens: their reasoning, too. */
size_t context_bytes(const struct context *c, size_t from, size_t end);

/* ---- a conversation given as text ---- */

/* Adds the entries of `text` to c in their order. The text is a JSON array of {role, content}, an
 * object with such an array as `messages` (as requests and exports have; Anthropic's with the
 * system prompt beside it), or JSON lines of either or of such entries, for example history lines
 * (chathist(5)).
 *
 * Of each entry these members count: role, content (a string, or an array of text parts),
 * tool_calls (as in the history, or in OpenAI's form) and tool_call_id. id, reply_to and
 * finish_reason identify turns that failed; these are not sent.
 *
 * Returns the number of bad entries, all of them ignored: not an object, a role other than user,
 * assistant, system and tool, or content that is not text (an assistant message with calls needs
 * none). Blank lines do not count. Invalid UTF-8 is read as U+FFFD. */
size_t messages_add(struct context *c, struct str text);
/* Returns true if the text, or an entry of it, is bad because it is nested too deeply. */
bool messages_too_deep(struct str text);

#endif
