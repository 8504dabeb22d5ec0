/*
 * events - what `chat` tells while a turn goes on: the answer's text, or NDJSON events with --json.
 *
 * Every piece is passed on at once.
 */
#ifndef CHATHIST_FRONT_EVENTS_H
#define CHATHIST_FRONT_EVENTS_H

#include <stdbool.h>

#include "cli/term.h"
#include "llm/answer.h"
#include "turn/turn.h"

struct events {
    struct out out;
    bool json;
    bool any_text;
    bool ends_line; /* the text so far ends with a newline */
    bool quiet, verbose;
    struct answer_sink sink; /* hand this to turn_ask */
    struct ask_watch watch;  /* and this to the ask */
};

/* From then on die_err and die_usage end with an `error` event, too. */
void events_start(struct events *ev, const struct opt_common *o, bool verbose);
/* `{"type":"session_id",…}`, first of all. */
void events_session(struct events *ev, struct str id);
/* With --verbose the session and each message of the context on stderr; hints on a long context. */
void events_context(const struct events *ev, const struct turn *t);
/* A model that a server offers: `provider:model`, or `{"type":"model",…}`. */
void events_model(struct events *ev, const char *provider, const char *model);
/* After the answer: its last newline, or usage and `done`. */
void events_done(struct events *ev, const struct turn *t);
/* Prints the answer's first code block, for a turn whose text was not handed on. -1: it has none. */
int events_code(struct events *ev, const struct answer *a, struct err *e);
/* The tokens on stderr: `input_tokens=12 output_tokens=unknown`. */
void events_usage(const struct answer *a);
/* After a failure: the last newline, or the `error` event with the exit code. */
void events_error(struct events *ev, const struct err *e, int code);

#endif
