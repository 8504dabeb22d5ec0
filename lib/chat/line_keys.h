/*
 * line_keys - parses the bytes that a terminal sends while a line is edited: characters, pasted
 * text, and the escape sequences of keys. It is a push parser.
 *
 * A sequence is always taken whole, whatever its parameters are and however its bytes are split
 * over reads, so that no part of it is inserted as text. It knows the keys of xterm and those that
 * terminfo has for screen, tmux, linux and rxvt, with modifiers, and Enter with Shift, Alt or Ctrl
 * as terminals with modifyOtherKeys or kitty's protocol send it.
 *
 * https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
 * https://sw.kovidgoyal.net/kitty/keyboard-protocol/
 */
#ifndef CHATHIST_CHAT_LINE_KEYS_H
#define CHATHIST_CHAT_LINE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* The maximum size of a paste; its end is dropped. */
#define LINE_PASTE_MAX ((size_t)32 << 20)
/* The maximum length of a sequence; a longer one is no known key, and its middle is dropped. */
#define LINE_SEQUENCE_MAX 32

enum line_key {
    LINE_KEY_NONE, /* more bytes are needed */
    LINE_KEY_CHAR,
    LINE_KEY_PASTE,    /* `pasted` holds the text */
    LINE_KEY_SEQUENCE, /* `sequence` is complete, and `means` is its meaning */
};

enum line_edit {
    LINE_IGNORE,
    LINE_LEFT,
    LINE_RIGHT,
    LINE_UP,
    LINE_DOWN,
    LINE_HOME,
    LINE_END_OF_LINE,
    LINE_DELETE,
    LINE_WORD_LEFT,
    LINE_WORD_RIGHT,
    LINE_DELETE_WORD,
    LINE_ENTER,
    LINE_NEWLINE,
    LINE_EDITS, /* the number of meanings */
};

struct line_keys {
    struct buf pasted; /* without its marks; CR and CR LF are LF */
    char sequence[LINE_SEQUENCE_MAX];
    size_t sequence_len;
    enum line_edit means;
    /* private */
    char held[LINE_SEQUENCE_MAX + 1];
    size_t held_len;
    size_t plain;   /* the number of held bytes that are characters, even ESC */
    size_t matched; /* the number of bytes of the mark that ends a paste */
    bool pasting, ready;
};

#define LINE_KEYS_INIT                                                                             \
    {                                                                                              \
        .pasted = BUF_INIT(LINE_PASTE_MAX)                                                         \
    }

/* Returns the next key. Call it until it returns LINE_KEY_NONE before the next byte is fed. *cp is
 * -1 for bytes that are not UTF-8. */
enum line_key line_keys_next(struct line_keys *k, int32_t *cp);
void line_keys_feed(struct line_keys *k, char c);
/* Returns the bytes of the last sequence as characters. */
void line_keys_put_back(struct line_keys *k);
/* Is a single ESC held? It is the Escape key if no byte follows soon. */
bool line_keys_holds_escape(const struct line_keys *k);
/* Returns the held ESC as a character. */
void line_keys_give_up(struct line_keys *k);
/* Drops all bytes that were not returned yet. */
void line_keys_drop(struct line_keys *k);

#endif
