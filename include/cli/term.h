/*
 * term - standard output: exact bytes to a pipe or file; to a terminal, text made safe to show,
 * colours, and its width.
 *
 * Buffered; a reader that is slow, or a descriptor that somebody made non-blocking, is waited for.
 * Any failure but a closed pipe is reported once, by out_close.
 */
#ifndef CHATHIST_CLI_TERM_H
#define CHATHIST_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/vis.h"
#include "cli/opt.h"

struct out {
    bool terminal; /* stdout is one: what is printed is made visible */
    bool color;
    size_t columns; /* of the terminal; 0 for a pipe or file: do not fit anything */
    int cancel_fd; /* readable: a write that would have to wait fails with EINTR; -1 after out_start */
    int error;     /* errno of the first write that failed, after which nothing is written; 0 */
    /* private */
    struct vis vis; /* text split between two calls of out_text */
    struct buf scratch;
    struct buf pending;
};

/* Colours by meaning. */
enum out_style { STYLE_NONE, STYLE_DIM, STYLE_ROLE, STYLE_ID, STYLE_HIT };

void out_start(struct out *o, enum color_when color);
/* Text of messages: made visible on a terminal, else byte for byte. May be called with pieces. */
void out_text(struct out *o, struct str text);
/* The end of a text: what was held back for its next piece is printed. */
void out_text_end(struct out *o);
/* Bytes of our own: ids, separators, JSON. */
void out_raw(struct out *o, struct str bytes);
void out_byte(struct out *o, char c);
void out_style(struct out *o, enum out_style s); /* nothing without colour */
/* A stored line, byte for byte; on a terminal unsafe characters as \uXXXX. */
void out_json_line(struct out *o, struct str line);
/* Passes on what is buffered: 0, or -1 with errno. */
int out_flush(struct out *o);
/* Flushes and closes. A failure is printed and gives `failure`, a closed pipe ends the program by
 * SIGPIPE; else `status`. For the last line of main: return out_close(&out, 0). */
int out_close(struct out *o, int status, int failure);

#endif
