/*
 * turn - one turn of a conversation (chat(1)), in the order in which things happen:
 *
 *     turn_prepare        loads the session's thread into the context
 *     turn_ask            sends the request and hands on the text of the answer as it arrives
 *
 * While the answer calls tools (`calling`), the caller runs a round and calls turn_ask again:
 *
 *     round_begin         looks up the tool of each call; calls that cannot run get a result, and
 *                         so do those that the user does not allow (tool_fail)
 *     round_run           runs the other calls, and reports each call once it has ended
 *     round_end           adds calls and results to the context, and empties the answer
 *
 * An error of a call is not an error of the turn: it is the result that the model gets. If a server
 * pauses its turn, turn_ask continues it (llm/exchange), which also counts as a round.
 *
 * Nothing here prints or stores: chat/turn_store stores the prompt before the first turn_ask, the
 * answer after each, and the results of the calls. The caller catches signals (cli/signals) from
 * before the prompt is stored until after the last answer is.
 */
#ifndef CHATHIST_CHAT_TURN_H
#define CHATHIST_CHAT_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/chat/context_window.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/partial.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/response.h"
#include "chathist/llm/tool.h"

/* The default of --max-iterations. */
#define TURN_ROUNDS 10

enum turn_kind {
    TURN_NEXT,
    TURN_AGAIN, /* answers the last prompt again; a complete answer replaces the earlier ones */
    TURN_EDIT,  /* the prompt replaces the last prompt and its answers */
};

struct turn {
    /* Set by the caller, borrowed. */
    enum turn_kind kind;
    const struct provider *provider;
    struct ask ask; /* everything but the context */
    struct str session;
    struct str prompt; /* the prompt; turn_prepare sets it for TURN_AGAIN */
    struct str system; /* a new system prompt of the session; STR_NONE: the session keeps its own */
    struct str
        messages; /* a text with the context; STR_NONE: the session's thread is the context */
    const char *const *files; /* names of attached files, ends with NULL; NULL: none */
    const struct attachment_list *attachments; /* the attachments of the prompt; NULL: none */
    struct context_limits limits;              /* what the context may hold */
    unsigned max_rounds;                       /* rounds of tool calls and continued pauses */
    int64_t tool_timeout_ms;                   /* a limit for each call; 0: none */
    bool cut_noted; /* a notice has said that the server leaves out messages; also an outcome */

    /* The outcome. */
    struct context context;
    struct response answer; /* the last one */
    bool calling;           /* the answer ends with calls that are to be run */
    unsigned rounds;        /* rounds so far */
    struct usage usage;     /* the usage of all answers of the turn */
    struct buf usages;      /* the same of each response in its stored form, a line each */
    size_t refused_bytes;   /* the bytes of the messages of a request that was too long; 0: none */
    bool text_results;      /* the server refused images of results; they are not sent */
    struct buf edits; /* what tools have edited since the last answer that was stored: the texts of
                       * tool_job.edits, one a line */
    bool is_new;      /* the session had no line before */
    bool was_cut;     /* the turn before this one did not send all messages either */
    struct attachment_list
        *images; /* the images of the results of earlier rounds, which the context borrows */
    size_t images_count, images_cap;
    struct buf unsent;   /* names of attachments of the last prompt that are not sent again, */
    size_t unsent_count; /* the number of names; 2 stands for any larger one */
    size_t before;       /* messages of the context before the prompt, before they are merged */
    uint64_t bad_lines;  /* bad lines that were read */
    size_t bad_entries;  /* bad entries of `messages` */
    bool new_system;     /* the system prompt differs from the session's */
    bool prompt_stored;
    bool finished;          /* the answer is complete and calls no tools */
    struct buf last;        /* the last prompt, for TURN_AGAIN */
    struct buf replaces;    /* ids of the lines that this turn supersedes, as `["id","id"` */
    struct tool_job *calls; /* the calls of the answer, during a round; NULL: none has begun */
    /* Of turn_store: */
    struct buf prompt_id; /* ids of the stored lines */
    struct buf answer_id;
    struct draft *unstored; /* lines that are not stored yet, or could not be stored */
    size_t unstored_count, unstored_cap;
    struct store_write *storing; /* the lines of the prompt, while a thread syncs them, else NULL */
    struct partial partial; /* the answer that is arriving: the sink of turn_ask adds each piece */
    size_t awaited_edits;   /* bytes of `edits` that the file of `partial` names */
};

/* Adds the text of the session's last prompt; `memory` is as for turn_prepare. Returns 1, 0 without
 * one, or -1 with *e set. */
int turn_last_prompt(const struct history *h, const struct buf *memory, struct str session,
                     struct buf *out, struct err *e);
/* Loads the context: the system prompt, the thread or `messages` within the bounds, then the
 * prompt. TURN_AGAIN and TURN_EDIT leave the turn of the last prompt out. If `memory` is not NULL,
 * it has the lines of the session, and the history is not read. Returns 0, or -1 with *e set:
 * ERR_USAGE without a last prompt. */
int turn_prepare(struct turn *t, const struct history *h, const struct buf *memory, struct err *e);
/* Sends the request, or the next one after a round. *e must be empty. Returns 0, or -1 with *e set.
 * If the server refuses images of results, the request is sent again without them. Some answers are
 * errors: ERR_INCOMPLETE if the answer was cut at the length limit or by a full context, or was
 * paused for good; ERR_REFUSED if it was refused or filtered; ERR_TOO_LONG if the conversation is
 * too long. Then the request is sent again without the older half of the earlier messages, once in
 * a turn; ERR_LIMIT for calls without tools, and for calls or a pause when no round is left. */
int turn_ask(struct turn *t, const struct response_sink *sink, struct err *e);
void turn_release(struct turn *t);

/* Fills t->calls from t->answer, which does not change until round_end. */
void round_begin(struct turn *t);
/* Runs the calls without a result (tool_run). Returns 0, or -1 with ERR_SIGNAL if it was
 * interrupted; every call has a result in either case. */
int round_run(struct turn *t, const struct tool_watch *watch, struct err *e);
/* Does nothing if no round was begun. */
void round_end(struct turn *t);

#endif
