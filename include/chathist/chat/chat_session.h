/*
 * chat_session - what `chat` works with: a history, a model server, tools, and turns between them.
 *
 *     chat_session_open, then for each turn chat_session_prepare, _check and _run,
 *     chat_session_close
 *
 * An error in the settings ends the program. An error in a turn is reported and determines the exit
 * code of the turn, so that a conversation can continue after it.
 */
#ifndef CHATHIST_CHAT_CHAT_SESSION_H
#define CHATHIST_CHAT_CHAT_SESSION_H

#include <stdbool.h>

#include "chathist/base/error.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/events.h"
#include "chathist/chat/mcp_servers.h"
#include "chathist/chat/request_settings.h"
#include "chathist/chat/server.h"
#include "chathist/chat/tools.h"
#include "chathist/chat/turn.h"
#include "chathist/chat/turn_store.h"
#include "chathist/cli/choose.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"
#include "chathist/llm/http.h"
#include "chathist/llm/models.h"
#include "chathist/llm/schema.h"

struct chat_session {
    const struct chat_args *args; /* borrowed */
    struct choice choice;
    struct history *history; /* the first of the choice */
    struct resume session;   /* the session that the turns belong to */
    struct providers known;
    struct server server;
    struct request_settings settings;
    struct request_limits limits;
    struct option_set options;    /* set during the conversation */
    struct http_pool *pool;       /* connections to model servers; NULL: none yet */
    const struct provider *first; /* the provider that arguments and settings chose */
    struct toolbox toolbox;       /* filled for the first turn */
    struct mcp_servers mcp;
    struct consent consent;
    struct events events;
    struct prices prices;  /* prices for the computed cost of -u and --json */
    struct schema *schema; /* the schema of --schema; NULL: none */
    struct err unasked;    /* why no request can be sent: no model is known yet */
    struct turn_store store;
    bool cut_noted;      /* a notice has said that the server leaves out messages */
    bool refusal_warned; /* the user was warned that calls are refused without a question */
};

/* Valid before chat_session_open, so that errors in the command line can be printed as events. */
#define CHAT_SESSION_INIT                                                                          \
    {                                                                                              \
        .session = RESUME_INIT, .consent = CONSENT_INIT, .store = TURN_STORE_INIT,                 \
        .prices = PRICES_INIT                                                                      \
    }

/* Locates the history and chooses the server. */
void chat_session_open(struct chat_session *t, const struct chat_args *args);
/* Decides whether a history without read permission is ignored: the question is asked without it,
 * unless the turn depends on earlier messages. Call it before chat_session_choose. */
void chat_session_check_history(struct chat_session *t);
/* Chooses the session of the next turn as the arguments say. */
void chat_session_choose(struct chat_session *t);
/* Fills in everything that is the same for every turn, and loads the context. The caller has set
 * kind, prompt, system, messages and files, and calls turn_release in any case. Returns 0, or -1
 * with *e set. */
int chat_session_prepare(struct chat_session *t, struct turn *turn, struct err *e);
/* Builds the request, so that errors in it are found before anything is stored. With `print` the
 * request is printed as JSON. Returns 0, or -1 with *e set. */
int chat_session_check(struct chat_session *t, const struct turn *turn, bool print, struct err *e);
/* Stores the prompt, sends the request, stores the answer, runs the tool calls in it and sends the
 * next request, and prints all of this. Returns the exit code: 128 + N if signal N ended the turn;
 * then the text that arrived is stored and printed. */
int chat_session_run(struct chat_session *t, struct turn *turn);
/* Loads the tools and starts the MCP servers, unless that was done. The key of the model server is
 * loaded before, because it is kept from the tools. An error ends the program. */
void chat_session_open_tools(struct chat_session *t);
void chat_session_close(struct chat_session *t);

/* ---- models ---- */

/* Looks for a model again if none was found before, because the server did not answer. */
void chat_session_seek_model(struct chat_session *t);
/* Uses another model from now on, with the present provider unless `name` names one. Gets its key,
 * for which a command may use the terminal. Returns 0, or -1 with *e set and nothing changed;
 * ERR_SIGNAL as for server_try_key. */
int chat_session_change_model(struct chat_session *t, const char *name, struct err *e);
/* Returns how many tokens a request to the model may have: what its context can hold or the setting
 * max_input_tokens, 0 if that is unknown. */
size_t chat_session_window(const struct chat_session *t);
/* Requests the models of the server within `limits`. The caller releases the list. Returns 0, or -1
 * with *e set. */
int chat_session_load_models(struct chat_session *t, const struct http_limits *limits,
                             struct model_list *list, struct err *e);
/* Prints the models (chat --models). Returns the exit code. */
int chat_session_list_models(struct chat_session *t);

#endif
