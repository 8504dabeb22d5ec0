/*
 * show - the messages of sessions: for people, as stored lines, or as a document of another format;
 * the same bytes to a pipe and to a file, made safe on a terminal.
 *
 *     show_set_format, show_settle -> show_begin -> for each session: show_session -> show_end
 */
#ifndef CHATHIST_CLI_SHOW_H
#define CHATHIST_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/history/filter.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"
#include "chathist/convert/export.h"

/* For the option tables of programs that show sessions. */
#define SHOW_FORMAT_OPTION                                                                         \
    {                                                                                              \
        'f', "format", OPT_CHOICE, "text|md|json", "print text, the default, Markdown or JSON"     \
    }

/* A sink for convert/export: standard output. */
struct export_stdout {
    struct out *out;
    bool json; /* on a terminal, control characters become \uXXXX instead of `^X` */
};
int export_to_stdout(void *arg, struct str bytes, struct err *e);

/* How much is shown. */
struct show {
    uint64_t
        bad_lines; /* out: the bad lines met, to be reported once; the same ones for each session */
    bool json;     /* stored lines */
    bool raw;      /* every line, replaced and reset ones too */
    size_t last;   /* of those the last N; (size_t)-1: all */
    struct filter filter; /* only messages that it lets through; the caller releases it */
    const char *format;   /* as it was asked for; NULL: it was not */
    /* private */
    const struct export_format *document; /* NULL: text, or stored lines */
    struct export export;
    struct export_stdout sink;
};

/* Takes the value of --format; ends the program when there is no such format. */
void show_set_format(struct show *s, const char *name);
/* Once all options were seen, of which `json` is --json: ends the program when it asks for
 * something else than the format does. */
void show_settle(struct show *s, bool json);
/* Before the first session and after the last, unless there is none. Without them sessions are text
 * or stored lines. */
void show_begin(struct out *o, struct show *s);
void show_end(struct show *s);

/* Prints a session's thread, of which only the end is read if that is enough. Ends the program when
 * it cannot be read. Returns how many messages the thread has, or SHOW_NOT_COUNTED. */
#define SHOW_NOT_COUNTED ((size_t)-1)
size_t show_session(struct out *o, const struct history *h, struct str id, struct show *s);

#endif
