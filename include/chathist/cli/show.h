/*
 * show - prints the messages of sessions as text, as stored lines, or in another format. A pipe and
 * a file get the same bytes; on a terminal, control characters are visible.
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

/* For the option tables of programs that print sessions. */
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

/* The messages to print, and how. */
struct show {
    uint64_t bad_lines;   /* result: the number of damaged lines in the history */
    bool json;            /* stored lines */
    bool raw;             /* every line, replaced and reset ones too */
    size_t last;          /* only the last N messages; (size_t)-1: all */
    struct filter filter; /* only messages that it accepts; released by the caller */
    const char *format;   /* the value of --format, or NULL */
    /* private */
    const struct export_format *document; /* NULL: text, or stored lines */
    struct export export;
    struct export_stdout sink;
};

/* Sets the value of --format. Ends the program if no format has this name. */
void show_set_format(struct show *s, const char *name);
/* Call after all options. `json` is --json; the program ends if the format contradicts it. */
void show_settle(struct show *s, bool json);
/* Begin and end the document around the sessions. They print nothing for text and stored lines. */
void show_begin(struct out *o, struct show *s);
void show_end(struct show *s);

/* Prints the thread of a session, and reads only its end if that is enough. Ends the program if it
 * cannot be read. Returns the number of messages in the thread, or SHOW_NOT_COUNTED. */
#define SHOW_NOT_COUNTED ((size_t)-1)
size_t show_session(struct out *o, const struct history *h, struct str id, struct show *s);

#endif
