/*
 * turn_store - what the turns of `chat` store: each line is built, written and, if that fails,
 * reported here.
 *
 *     turn_store_claim     before the turn: the session is this program's
 *     turn_store_prompt    writes the prompt. It is synced while the connection is made, before
 *                          anything of the request is sent. Then the file of the partial answer is
 *                          made (history/partial), to which the sink of turn_ask adds each piece.
 *     turn_store_answer    stores the answer, complete or not
 *     turn_store_result    stores the result of a call
 *     turn_store_mark      after the turn
 *
 * A failure is reported once for each reason and kept in `unsaved`; the turn goes on. The lines
 * that could not be stored are stored with the next ones.
 */
#ifndef CHATHIST_CHAT_TURN_STORE_H
#define CHATHIST_CHAT_TURN_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/events.h"
#include "chathist/chat/turn.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* The state that all turns share. Initialise with TURN_STORE_INIT and set the first four. */
struct turn_store {
    const struct chat_args *args;
    struct history *history;
    struct resume *session;
    struct events *events;
    bool in_memory;      /* nothing is stored: `memory` has the lines of the session */
    struct buf memory;   /* lines */
    struct hash_map own; /* ids of the lines that the turns stored */
    struct buf seen;     /* the id of the newest line when the turn was prepared; empty: none */
    struct err unsaved;  /* why something of this turn is not in the history */
    bool settled;        /* the session was made current, if it should be */
    /* private */
    struct turn *turn; /* the running one */
    bool prompt_ended; /* its prompt was synced, or cannot be stored */
    bool prompt_kept;  /* its prompt is stored */
    bool titled;       /* the title of --title was stored */
    size_t images;     /* the images of answers, written so far */
};
#define TURN_STORE_INIT                                                                            \
    {                                                                                              \
        .memory = BUF_INIT(SIZE_MAX), .seen = BUF_INIT(BUF_LINE)                                   \
    }

/* Begins a turn, which turn_prepare has filled. If several programs begin a session at the same
 * time, only one does, and the others join it: turn->session changes. */
void turn_store_claim(struct turn_store *s, struct turn *turn);
/* Writes the system prompt if it is new, the prompt unless it is stored (TURN_AGAIN), and the title
 * of --title after a new prompt. The history stays locked until turn_ask has begun to connect, or
 * turn_store_answer is called; until then nothing else may use it. */
void turn_store_prompt(struct turn_store *s);
/* Stores the images and the line of the answer, and before it lines that could not be stored
 * earlier. If no text arrived, the line has the content "" and a finish_reason (`error`,
 * `interrupted`) that keeps the answer and its prompt out of every later request (llm/context). An
 * answer whose calls are not to be run is marked as failed. Then the session becomes current and
 * gets its title. Returns whether the line is stored. */
bool turn_store_answer(struct turn_store *s);
/* Stores the result of a call. If tools have edited files, the file of the next answer is made
 * first, so that a kill does not lose their names. Returns whether it is stored. */
bool turn_store_result(struct turn_store *s, const struct tool_job *job);
/* Moves the mark of the current session: to the newest line, unless something else has put lines in
 * meanwhile that the next turn has to name. */
void turn_store_mark(struct turn_store *s);
/* Adds the lines of a turn that could not be stored to `memory`. Returns 0, or -1 with *e set. */
int turn_store_remember(struct turn_store *s, const struct turn *turn, struct err *e);
void turn_store_release(struct turn_store *s);

#endif
