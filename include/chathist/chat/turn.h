/*
 * turn - one turn of a conversation (chat(1)), in the order in which things happen:
 *
 *     turn_prepare        the session's thread -> context
 *     turn_store_prompt   the question is on disk before it is asked
 *     turn_ask            request -> answer, its text handed on as it comes
 *     turn_store_answer   what came, however it ended
 *
 * When the answer calls tools (`calling`), turn/round has them carried out, and the turn goes on
 * with turn_ask. A server that pauses an answer is asked on within turn_ask (llm/exchange); that is a
 * round, too.
 *
 * The caller decides what to do when one of them fails; none prints. Signals are the caller's to
 * catch (turn/interrupt) from before turn_store_prompt until after turn_store_answer.
 */
#ifndef CHATHIST_CHAT_TURN_H
#define CHATHIST_CHAT_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/history/locate.h"
#include "chathist/history/message.h"
#include "chathist/history/partial.h"
#include "chathist/llm/response.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider.h"

struct round_call;

/* Rounds in a turn, unless somebody says otherwise. */
#define TURN_ROUNDS 10

enum turn_kind {
    TURN_NEXT,
    TURN_AGAIN, /* the last prompt is answered once more; when that is finished, the answer replaces
                 * what came of it before */
    TURN_EDIT,  /* the prompt replaces the last one and what came of it */
};

struct turn {
    /* Set by the caller, borrowed. */
    enum turn_kind kind;
    struct history *history;
    const struct provider *provider;
    struct ask ask; /* all but the context */
    struct str session;
    struct str prompt;   /* TURN_AGAIN: set by turn_prepare */
    struct str system;   /* a system prompt for the session from now on; STR_NONE: what it has */
    struct str messages; /* the conversation so far as a text; STR_NONE: the session's thread */
    const char *const *files;        /* names of attached files, NULL at the end; NULL: none */
    const struct image_list *images; /* that go with the prompt; NULL: none */
    size_t max_messages, max_bytes;  /* of earlier messages; CONTEXT_ALL */
    unsigned max_rounds;     /* how often calls may be carried out, and a pause be gone on from */
    int64_t tool_timeout_ms; /* for each call; 0: none */
    bool keeps_partial;      /* the answer is written to a file while it streams (hist/partial) */

    /* What came of it. */
    struct context context;
    struct response answer;   /* the last one */
    bool calling;           /* it ends with calls that are to be carried out */
    unsigned rounds;        /* how often that happened */
    struct usage usage;     /* of all answers together */
    bool is_new;            /* the session had no line before */
    bool was_cut;           /* the turn before this one did not send all earlier messages, either */
    uint64_t images_before; /* that the last prompt came with (TURN_AGAIN, TURN_EDIT) */
    size_t before; /* messages of the context that come before the prompt, as they are stored */
    uint64_t bad_lines; /* bad lines met while reading it */
    size_t bad_entries; /* bad entries of `messages` */
    bool new_system;    /* the system prompt differs from what the session had */
    bool prompt_stored;
    bool finished;        /* the answer is what was asked for, and the last one */
    struct buf last;      /* the last prompt, for TURN_AGAIN */
    struct buf *replaces; /* ids of the lines that this turn supersedes */
    size_t replaces_count, replaces_cap;
    struct buf prompt_id; /* ids of the stored lines */
    struct buf answer_id;
    struct draft *unstored; /* lines that are to be stored, or could not be */
    size_t unstored_count, unstored_cap;
    struct partial partial;          /* of the answer that is coming */
    const struct response_sink *outer; /* private: the caller's sink */
    struct response_sink sink;
    struct round_call *calls; /* of the present round (turn/round) */
    size_t calls_count;
};

/* Gives the text of a session's last prompt: 1, 0 when it has none, -1. */
int turn_last_prompt(const struct history *h, struct str session, struct buf *out, struct err *e);
/* Loads the context: the thread, or the messages given, cut to size, the system prompt, then the
 * prompt. TURN_AGAIN, TURN_EDIT: the turn of the last prompt is left out of it; ERR_USAGE when
 * there is none. */
int turn_prepare(struct turn *t, struct err *e);
/* Stores the prompt unless it is there (TURN_AGAIN), and before it the system prompt when it is
 * new. */
int turn_store_prompt(struct turn *t, struct err *e);
/* Asks, or asks on after a round of calls. -1 also when an answer came that is not what was asked
 * for: cut at the length limit or by a full context, or paused and not to be gone on with
 * (ERR_INCOMPLETE); refused, filtered, or a conversation that is too long (ERR_REFUSED); tool calls
 * where there are no tools, calls or a pause when there are no more rounds (ERR_LIMIT). */
int turn_ask(struct turn *t, const struct response_sink *sink, struct err *e);
/* Stores the answer, and before it what could not be stored earlier. If no text came, the line has
 * the content "" and a finish_reason (`error`, `interrupted`) that keeps it and its prompt out of
 * every later request (llm/context). */
int turn_store_answer(struct turn *t, struct err *e);
/* A line of this turn that answers its prompt, to be stored by the next turn_store; draft_… fills
 * it in. Valid until the next call. */
struct draft *turn_add_line(struct turn *t, enum role role, struct str content);
/* Stores the lines that are waiting, all or none: what could not be stored is tried again with the
 * next ones. */
int turn_store(struct turn *t, struct err *e);
void turn_release(struct turn *t);

#endif
