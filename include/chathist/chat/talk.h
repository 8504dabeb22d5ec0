/*
 * talk - chat at work: a configured server, a history, and turns between the two.
 *
 *     talk_open -> talk_prepare -> talk_check -> talk_run … -> talk_close
 *
 * What is wrong with the settings ends the program; what goes wrong with a turn is told and gives
 * its exit code, so that a conversation can go on after it.
 */
#ifndef CHATHIST_CHAT_TALK_H
#define CHATHIST_CHAT_TALK_H

#include <stdbool.h>

#include "chathist/base/err.h"
#include "chathist/cli/config.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/consent.h"
#include "chathist/chat/events.h"
#include "chathist/chat/mcp_servers.h"
#include "chathist/chat/server.h"
#include "chathist/chat/toolbox.h"
#include "chathist/history/locate.h"
#include "chathist/history/resume.h"
#include "chathist/llm/schema.h"
#include "chathist/chat/turn.h"

struct talk {
    const struct chat_args *args; /* borrowed */
    struct config config;
    struct history history;
    struct resume session; /* that the turns belong to */
    struct server server;
    const struct provider *first; /* that was chosen by the arguments and the settings */
    struct toolbox toolbox;       /* filled for the first turn */
    struct mcp_servers mcp;
    struct consent consent;
    struct events events;
    struct schema *schema; /* of --schema; NULL if there is none */
    struct err unasked; /* why no question can be asked */
    struct err unsaved; /* why the history lacks something of this turn */
    bool settled;       /* the session's pointer is where it belongs */
    bool in_memory;     /* the history could not take a turn: nothing more is stored */
    bool told_refusal;  /* that calls are refused without asking */
};

/* Before talk_open: events for what is wrong with the command line. */
#define TALK_INIT                                                                                  \
    {                                                                                              \
        .session = RESUME_INIT, .consent = CONSENT_INIT                                            \
    }

/* Finds the history and chooses the server. */
void talk_open(struct talk *t, const struct chat_args *args);
/* A history that must not be read is one that cannot be stored in: the question is asked without
 * it, unless the turn is about what it holds. Call before talk_choose_session. */
void talk_look_at_history(struct talk *t);
/* Chooses the session of the next turn as the arguments wish. */
void talk_choose_session(struct talk *t);
/* Fills in all that is the same for every turn, and loads the context; the caller has set kind,
 * prompt, system, messages and files. turn_release is due whatever comes of it. */
int talk_prepare(struct talk *t, struct turn *turn, struct err *e);
/* What is wrong with the request is found before anything is stored; `print` shows it. */
int talk_check(struct talk *t, const struct turn *turn, bool print, struct err *e);
/* Stores the prompt, asks, stores the answer, carries out the calls in it and asks on; tells of it
 * all. Gives the exit code, 128 + N when signal N ended the turn: what came is then stored and
 * shown. */
int talk_run(struct talk *t, struct turn *turn);
/* Loads the tools and starts their servers, once: talk_prepare does it when a turn needs them. The
 * server's key is loaded by then, to be kept from them. -1: two tools of one name; what else is
 * wrong with a tool ends the program. */
int talk_open_tools(struct talk *t, struct err *e);
void talk_close(struct talk *t);

#endif
