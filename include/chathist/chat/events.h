/*
 * events - what `chat` prints during a turn: the text of the answer, or NDJSON events with --json,
 * and lines on standard error.
 *
 * Every piece is written at once.
 */
#ifndef CHATHIST_CHAT_EVENTS_H
#define CHATHIST_CHAT_EVENTS_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/markdown_layout.h"
#include "chathist/chat/turn.h"
#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/history/prices.h"
#include "chathist/llm/response.h"

/* Text on standard error as it arrives: dim, made visible and wrapped at words on a terminal, exact
 * bytes in a pipe or a file. An error of standard error is ignored. */
struct stderr_text {
    bool terminal; /* standard error is a terminal */
    bool color;
    bool open; /* text was written, and stderr_text_end was not called */
    bool ends_line;
    struct markdown_layout layout; /* the layout of the text on a terminal, which is not Markdown */
    struct buf laid;               /* what it has laid out and is not written yet */
};

struct events {
    struct out out;
    struct stderr_text reasoning;
    bool json;
    bool any_text;
    bool ends_line; /* the text so far ends with a newline */
    bool quiet, verbose;
    bool interactive;        /* each hint is printed once, and names commands instead of options */
    bool hinted;             /* the hint at a long conversation was printed */
    bool cut;                /* the hint that messages are omitted was printed */
    bool marked;             /* Markdown is shown */
    bool show_reasoning;     /* the reasoning of the model is printed, too */
    int64_t thinking_since;  /* time_ticks of the first reasoning; 0: the model does not reason */
    size_t thought;          /* lines of it */
    bool held;               /* the text is not printed, because events_code follows */
    struct partial *partial; /* gets the text of the answer before it is printed; NULL: none */
    struct prices *prices;   /* borrowed, for computed costs; NULL: none are printed */
    struct {                 /* sums over the turns that events_usage printed */
        unsigned turns;
        struct usage usage;
        struct cost computed; /* a cost in one currency; without one if turns differed */
    } spent;
    struct markdown_layout layout; /* used if `marked` */
    struct response_sink sink;     /* the sink of turn_ask */
};

/* After this call die_err and die_usage also end with an `error` event. */
void events_start(struct events *ev, const struct opt_common *o, bool verbose);
void events_release(struct events *ev);
/* Shows Markdown if standard output is a terminal: words are wrapped, tables have columns, and
 * there are styles if the terminal has colours. */
void events_show_markdown(struct events *ev);
/* Shows a spinner on a terminal while nothing arrives, and that the model reasons while its reasoning
 * is not shown. */
void events_show_waiting(struct events *ev, struct http_limits *limits);
/* Prints `{"type":"session_id",...}`, the first event. */
void events_session(struct events *ev, struct str id);
/* With --verbose prints the session and each message of the context on stderr. Hints at a long
 * context. */
void events_context(struct events *ev, const struct turn *t);
/* Prints a model that a server offers: `provider:model`, or `{"type":"model",...}`. */
void events_model(struct events *ev, const char *provider, const char *model);
/* Prints a `usage` event if the server reported tokens; also called for a turn that failed. */
void events_spent(struct events *ev, const struct turn *t);
/* Ends a complete answer: adds the missing last newline, or prints `usage` and `done`. */
void events_done(struct events *ev, const struct turn *t);
/* Prints the first code block of the answer, if its text was held. Returns 0, or -1 with *e set
 * if the answer has no code block. */
int events_code(struct events *ev, const struct response *a, struct err *e);
/* Prints something that the user should know, and that is no failure: a line on stderr unless
 * quiet, and a `notice` event. */
void events_notice(struct events *ev, const char *text);
/* Prints the tokens and the cost of the whole turn on stderr: `input_tokens=12
 * output_tokens=unknown`. */
void events_usage(struct events *ev, const struct turn *t);
/* Prints the sum of what events_usage printed, if it was called more than once. */
void events_spent_in_all(const struct events *ev);
/* Prints a `tool_call` event before the tool is run. */
void events_call(struct events *ev, const struct tool_job *job);
/* Prints the call as a line on stderr, if stderr is a terminal or with --verbose. With `seen` the
 * user saw the call in a question, and only --verbose prints it. */
void events_call_line(struct events *ev, const struct tool_job *job, bool seen);
/* Prints the result of a call: a `tool_result` event, and a line on stderr like the call. */
void events_result(struct events *ev, const struct tool_job *job);
/* Shows which call is running, and for how long, on a terminal; called about ten times a second.
 * The next event erases it. */
void events_running(const struct events *ev, const struct tool_job *jobs, size_t count);
/* Ends a text after which more follows, with its missing last newline. */
void events_end_text(struct events *ev);
/* The same before a message: the text is also written if the output is to be written as a whole. */
void events_pause(struct events *ev);
/* Ends a turn that failed: adds the missing last newline, or prints an `error` event with the exit
 * code. */
void events_error(struct events *ev, const struct err *e, int code);

#endif
