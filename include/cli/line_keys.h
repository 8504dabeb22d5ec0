/*
 * line_keys - the bytes that a terminal sends, as characters and as what is pasted between the
 * marks of a bracketed paste (xterm's control sequences, mode 2004). A push parser.
 */
#ifndef CHATHIST_CLI_LINE_KEYS_H
#define CHATHIST_CLI_LINE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The most that is taken of one paste. */
#define LINE_PASTE_MAX ((size_t)32 << 20)

struct line_keys {
    struct buf pasted; /* what LINE_KEY_PASTE told of, without its marks; CR and CR LF as LF */
    /* private */
    char held[8];
    size_t held_len;
    size_t matched; /* bytes of the end mark */
    bool pasting, ready, no_mark;
};

#define LINE_KEYS_INIT                                                                             \
    {                                                                                              \
        .pasted = BUF_INIT(LINE_PASTE_MAX)                                                         \
    }

enum line_key {
    LINE_KEY_NONE, /* more bytes are needed */
    LINE_KEY_CHAR,
    LINE_KEY_PASTE,
};

/* To be called until it gives LINE_KEY_NONE, before the next byte is fed. *cp is -1 for bytes that
 * are no UTF-8. */
enum line_key line_keys_next(struct line_keys *k, int32_t *cp);
void line_keys_feed(struct line_keys *k, char c);
/* Could what is held become the mark of a paste? When nothing follows soon it does not. */
bool line_keys_waits(const struct line_keys *k);
void line_keys_give_up(struct line_keys *k);
/* Forgets what was not given yet. */
void line_keys_drop(struct line_keys *k);

#endif
