/*
 * show - prints the messages of sessions as text, as stored lines, or in another format. A pipe and
 * a file get the same bytes; on a terminal, control characters are visible.
 *
 *     show_read_option, show_check_options -> for each session: show_session -> show_end
 */
#ifndef CHATHIST_CLI_SHOW_H
#define CHATHIST_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/cli/brief.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/output.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"
#include "chathist/convert/export.h"

/* Rows for the option table of a program that prints sessions. */
enum { SHOW_FORMAT = 'f', SHOW_RAW = 3072, SHOW_AROUND };
/* clang-format off */
#define SHOW_OPTIONS                                                                               \
    {SHOW_FORMAT, "format", OPT_CHOICE, "text|md|json",                                            \
     "print text, the default, Markdown or JSON"},                                                 \
    {SHOW_RAW, "raw", OPT_FLAG, NULL, "print every line, replaced and reset ones too"}
/* clang-format on */

/* A sink for convert/export: standard output. */
struct export_stdout {
    struct out *out;
    bool json; /* on a terminal, control characters become \uXXXX instead of `^X` */
};
int export_to_stdout(void *arg, struct str bytes, struct err *e);

/* The messages to print, and how. Zero-initialise. */
struct show {
    uint64_t bad_lines; /* result: the number of damaged lines in the history */
    struct brief brief; /* for --json */
    /* Prints the Markdown of a message on a terminal, with a newline at its end; NULL: unchanged. */
    void (*print)(struct out *out, struct str text);
    const char *around; /* --around: the id of the message that is printed first of all; or NULL */
    /* private */
    bool json;                            /* stored lines */
    bool raw;                             /* every line, replaced and reset ones too */
    size_t last;                          /* only the last N messages; SIZE_MAX: all */
    const struct filter *filter;          /* only messages that it accepts */
    const char *format;                   /* the value of --format, or NULL */
    const struct export_format *document; /* NULL: text, or stored lines */
    bool begun;
    struct export export;
    struct buf title; /* the title of the session, for a document */
    struct export_stdout sink;
};

/* Handles SHOW_OPTIONS. */
void show_read_option(struct show *s, int key, const char *value);
/* Call after all options. Prints the last messages that are chosen, all or --limit, and stored
 * lines with --json; the program ends if the format contradicts that. */
void show_check_options(struct show *s, const struct choice *c);

/* Prints the thread of a session. Ends the program if it cannot be read. Returns the number of
 * messages in the thread. */
size_t show_session(struct out *o, const struct history *h, struct str id, struct show *s);
/* Ends the document, and waits for the pager. */
void show_end(struct out *o, struct show *s, bool even_if_empty);

#endif
