/*
 * term - standard output: exact bytes to a pipe or file; to a terminal, text made safe to show,
 * colours, and its width.
 *
 * Buffered; a reader that is slow, or a descriptor that somebody made non-blocking, is waited for.
 * Any failure but a closed pipe is reported once, by out_close.
 */
#ifndef CHATHIST_CLI_OUTPUT_H
#define CHATHIST_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/vis.h"
#include "chathist/cli/options.h"

struct out {
    bool terminal; /* stdout is one: what is printed is made visible */
    bool color;
    size_t columns; /* of the terminal; 0 for a pipe or file: do not fit anything */
    /* Readable: a write that would have to wait fails with EINTR; -1 after out_start. */
    int cancel_fd;
    int error;  /* errno of the first write that failed, after which nothing is written; 0 */
    bool paged; /* a pager has it */
    /* private */
    bool asks;      /* whether a write would wait has to be asked before it */
    bool unseen;    /* the pager could not show it */
    size_t rows;    /* what fits so many is held back until more comes; 0: nothing is */
    struct vis vis; /* text split between two calls of out_text */
    struct buf scratch;
    struct buf pending;
};

/* Colours by meaning. */
enum out_style {
    STYLE_NONE,
    STYLE_DIM,
    STYLE_ROLE,
    STYLE_ID,
    STYLE_HIT,
    STYLE_BOLD,
    STYLE_ITALIC,
    STYLE_CODE,
    STYLE_PLOT,
};

/* Is a terminal, or what is none, to have colours: as the user says, else by TERM and NO_COLOR? And
 * what switches one on. */
bool term_wants_color(bool terminal, enum color_when when);
const char *term_style(enum out_style s);
/* The width of the terminal behind fd as shells tell it: $COLUMNS, else what it says, else 80. */
size_t term_columns(int fd);

void out_start(struct out *o, enum color_when color);
/* Output that is longer than the terminal goes through a pager (cli/pager): to be called right
 * after out_start. Colours, width and what is made visible stay those of the terminal. What fits is
 * printed by out_page_end, without one. */
void out_page(struct out *o);
/* Shows all that was printed, and waits for the pager: what is then said on standard error stands
 * below it. Nothing happens without out_page, or when standard output is no terminal. */
void out_page_end(struct out *o);
/* The terminal may have another width by now. */
void out_measure(struct out *o);
/* Text of messages: made visible on a terminal, else byte for byte. May be called with pieces. */
void out_text(struct out *o, struct str text);
/* The end of a text: what was held back for its next piece is printed. */
void out_text_end(struct out *o);
/* Bytes of our own: ids, separators, JSON. */
void out_raw(struct out *o, struct str bytes);
void out_byte(struct out *o, char c);
/* A number on a line of its own. */
void out_number(struct out *o, uint64_t n);
/* Adds a style to those in force, STYLE_NONE ends them; nothing without colour. */
void out_style(struct out *o, enum out_style s);
/* A stored line, byte for byte; on a terminal unsafe characters as \uXXXX. */
void out_json_line(struct out *o, struct str line);
/* Passes on what is buffered: 0, or -1 with errno. After out_page what fits the terminal stays. */
int out_flush(struct out *o);
/* Flushes and closes, out_page_end included. A failure is printed and gives `failure`, a closed
 * pipe ends the program by SIGPIPE, a pager that was left early is no failure; else `status`. For
 * the last line of main: return out_close(&out, 0). */
int out_close(struct out *o, int status, int failure);

/* ---- pager ---- */

/*
 * pager - long output through the user's pager, as git's: $PAGER, else less.
 *
 * Nothing here decides what is long; out_page (cli/term) does, and is what programs call. While a
 * pager runs, standard output, and standard error where that is the terminal, too, lead into it.
 * There is one at most: the process has one terminal.
 */
/* For the option tables of programs that page. */
#define PAGER_OPTION(key)                                                                          \
    {                                                                                              \
        key, "no-pager", OPT_FLAG, NULL, "print long output on the terminal, without a pager"      \
    }

/* Starts it: false when none is wanted (PAGER is `cat` or empty, or not set on a terminal that less
 * cannot use), or none can be started, which is said when the user has named it. LESS=FRX is in its
 * environment unless LESS is set.
 *
 * From here on a write fails with EPIPE when the reader has left, instead of ending the program by
 * SIGPIPE. SIGINT, SIGQUIT, SIGHUP and SIGTERM end the program, as ever, but not before the pager:
 * two programs would read the same terminal. The end of the program by exit(3) waits for it,
 * too. */
bool pager_start(void);
/* Gives the standard streams back and waits until the reader leaves; keys that send SIGINT and
 * SIGQUIT are the pager's meanwhile. -1: it could not show anything, which is said. Nothing happens
 * when none runs. */
int pager_end(void);

#endif
