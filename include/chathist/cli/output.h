/*
 * output - standard output: exact bytes to a pipe or a file; on a terminal visible text, colours, a
 * width, and a pager for long output.
 *
 * Output is buffered. A slow reader is waited for, even if the descriptor is non-blocking. Every
 * failure except a closed pipe is reported once, by out_close.
 */
#ifndef CHATHIST_CLI_OUTPUT_H
#define CHATHIST_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/options.h"
#include "chathist/cli/palette.h"

struct out {
    bool terminal; /* standard output is a terminal: text is made visible */
    bool color;
    size_t columns; /* the width of the terminal; 0 for a pipe or a file */
    /* If this descriptor is readable, a write that would wait fails with EINTR; -1 after
     * out_start. */
    int cancel_fd;
    /* Output to a pipe or a file waits for out_flush, which writes all of it at once. The caller
     * sets it after out_start. */
    bool whole;
    int error;  /* errno of the first write that failed; nothing is written after it; 0: none */
    bool paged; /* a pager reads the output */
    /* private */
    bool file;      /* standard output is a regular file, for which no write waits */
    bool unseen;    /* the pager could not show the output */
    size_t rows;    /* output of fewer rows is held back until more comes; 0: nothing is held */
    struct vis vis; /* text split between two calls of out_text */
    struct buf scratch;
    struct buf pending;
};

/* Returns true if the terminal, by TERM, knows no escape sequences. */
bool term_is_dumb(void);
/* Returns true if a stream gets colours: as --color says, else by TERM and NO_COLOR for a
 * terminal. */
bool term_wants_color(bool terminal, enum color_when when);
/* The background of the terminal: of COLORFGBG, or as the terminal reported it. */
enum background term_background(void);
void term_set_background(enum background b);
/* Adds the escape sequence of a style (palette_add) for this terminal. */
void term_add_style(struct buf *out, enum style s);
/* Returns the width of a terminal: $COLUMNS, else the terminal's answer, else 80. */
size_t term_columns(int fd);

void out_start(struct out *o, enum color_when color);
/* Shows output that is longer than the terminal in the user's pager, $PAGER or else less, as git
 * does. Call it right after out_start. Colours and width stay those of the terminal. Output that
 * fits is printed by out_page_end without a pager. While the pager runs, standard error goes to it
 * as well if it is the terminal, and signals end the program only after the pager has ended. */
void out_page(struct out *o);
/* Prints everything and waits for the pager, so that later messages stand below the output. Does
 * nothing without out_page, or if standard output is no terminal. */
void out_page_end(struct out *o);
/* Asks for the width of the terminal again. */
void out_measure(struct out *o);
/* Prints text of messages: made visible on a terminal, else byte for byte. A text may be printed in
 * pieces. */
void out_text(struct out *o, struct str text);
/* Ends a text: prints an incomplete character at its end. */
void out_text_end(struct out *o);
/* Prints bytes of our own: ids, separators, JSON. */
void out_raw(struct out *o, struct str bytes);
void out_byte(struct out *o, char c);
/* Prints a number on its own line. */
void out_number(struct out *o, uint64_t n);
/* Adds a style to the present ones, or ends all (STYLE_NONE). Does nothing without colours. */
void out_style(struct out *o, enum style s);
/* Begins a link to an address (OSC 8), or ends it (STR_NONE), on a terminal that has links. Not in
 * a pager, which may show the sequence. */
void out_link(struct out *o, struct str address);
/* Prints a stored line: byte for byte, on a terminal with unsafe characters as \uXXXX. */
void out_json_line(struct out *o, struct str line);
/* Writes the buffered output, except output that out_page holds back. Returns 0, or -1 with
 * errno. */
int out_flush(struct out *o);
/* Writes everything and closes. Returns `status`; if that fails, prints an error and returns the
 * exit code of ERR_FAILURE. A closed pipe ends the program by SIGPIPE, but a pager that was left
 * early is no failure. It is the last line of main: return out_close(&out, 0). */
int out_close(struct out *o, int status);

#endif
