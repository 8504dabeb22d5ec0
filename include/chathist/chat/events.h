/*
 * events - what `chat` tells while a turn goes on: the answer's text, or NDJSON events with --json.
 *
 * Every piece is passed on at once.
 */
#ifndef CHATHIST_CHAT_EVENTS_H
#define CHATHIST_CHAT_EVENTS_H

#include <stdbool.h>

#include "chathist/chat/aside.h"
#include "chathist/cli/term.h"
#include "chathist/chat/markdown.h"
#include "chathist/llm/response.h"
#include "chathist/chat/round.h"
#include "chathist/chat/turn.h"

struct events {
    struct out out;
    struct aside aside; /* what the model thinks */
    bool json;
    bool any_text;
    bool ends_line; /* the text so far ends with a newline */
    bool quiet, verbose;
    bool interactive; /* hints come once, and name commands */
    bool hinted;
    bool cut;    /* it was said that messages are left out */
    bool marked; /* Markdown is shown */
    struct markdown markdown;
    struct response_sink sink; /* hand this to turn_ask */
    struct ask_watch watch;  /* and this to the ask */
};

/* From then on die_err and die_usage end with an `error` event, too. */
void events_start(struct events *ev, const struct opt_common *o, bool verbose);
/* Shows Markdown where it can be: on a terminal with colours. */
void events_show_markdown(struct events *ev);
/* Has a sign turn on a terminal while nothing comes. */
void events_show_waiting(struct events *ev, struct http_limits *limits);
/* Tells what the model thinks, too: beside the answer, or as events. */
void events_want_reasoning(struct events *ev);
/* Keeps the text for itself, for events_code. */
void events_hold_text(struct events *ev);
/* `{"type":"session_id",…}`, first of all. */
void events_session(struct events *ev, struct str id);
/* With --verbose the session and each message of the context on stderr; hints on a long context. */
void events_context(struct events *ev, const struct turn *t);
/* A model that a server offers: `provider:model`, or `{"type":"model",…}`. */
void events_model(struct events *ev, const char *provider, const char *model);
/* What the server counted, if it told: `usage`, also of a turn that failed. */
void events_spent(struct events *ev, const struct turn *t);
/* After the answer: its last newline, or usage and `done`. */
void events_done(struct events *ev, const struct turn *t);
/* Prints the answer's first code block, for a turn whose text was not handed on. -1: it has
 * none. */
int events_code(struct events *ev, const struct response *a, struct err *e);
/* Something that the user should know and that is no failure: a line on stderr, unless quiet, and a
 * `notice` event. */
void events_notice(struct events *ev, const char *text);
/* The tokens of the whole turn on stderr: `input_tokens=12 output_tokens=unknown`. */
void events_usage(const struct turn *t);
/* A call of a tool, before it is run: `tool_call`; a line on stderr when that is a terminal or with
 * --verbose, but not when the user has `seen` it there. */
void events_call(struct events *ev, const struct round_call *c);
void events_call_line(struct events *ev, const struct round_call *c, bool seen);
/* And its result: `tool_result`, and a line likewise. */
void events_result(struct events *ev, const struct round_call *c);
/* The end of a text that more will follow: its last newline. */
void events_pause(struct events *ev);
/* After a failure: the last newline, or the `error` event with the exit code. */
void events_error(struct events *ev, const struct err *e, int code);

#endif
