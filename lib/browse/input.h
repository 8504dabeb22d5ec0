/*
 * input - the meaning of keys in hist-browse, the help about them, and a line of text that is
 * edited.
 *
 * A key is a code point (control keys are below U+0020) or one of BROWSE_KEY_*, all above U+10FFFF.
 */
#ifndef CHATHIST_BROWSE_INPUT_H
#define CHATHIST_BROWSE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "browse/text.h"

enum {
    BROWSE_KEY_UP = 0x110000,
    BROWSE_KEY_DOWN,
    BROWSE_KEY_LEFT,
    BROWSE_KEY_RIGHT,
    BROWSE_KEY_PAGE_UP,
    BROWSE_KEY_PAGE_DOWN,
    BROWSE_KEY_HOME,
    BROWSE_KEY_END,
    BROWSE_KEY_DELETE,
    BROWSE_KEY_BACKSPACE,
    BROWSE_KEY_ENTER,
    BROWSE_KEY_TAB,
    BROWSE_KEY_BACKTAB,
    BROWSE_KEY_ESCAPE,
    BROWSE_KEY_F1,
    BROWSE_KEY_WORD_LEFT,
    BROWSE_KEY_WORD_RIGHT,
    BROWSE_KEY_CUT_WORD, /* to its end */
};
#define BROWSE_CTRL(letter) ((letter)&0x1f)

/* The part with the focus: the search box, the list of sessions or hits, the messages. */
enum browse_focus { BROWSE_BOX, BROWSE_LIST, BROWSE_TEXT };

/* What a key, or an answer to a question, asks the browser to do. */
enum browse_command {
    BROWSE_NOTHING, /* no command: in the box, a key that edits it */
    BROWSE_UP,
    BROWSE_DOWN,
    BROWSE_PAGE_UP,
    BROWSE_PAGE_DOWN,
    BROWSE_HALF_UP,
    BROWSE_HALF_DOWN,
    BROWSE_FIRST,
    BROWSE_LAST,
    BROWSE_NEXT_PANEL,
    BROWSE_LAST_PANEL,
    BROWSE_TO_BOX,
    BROWSE_TO_LIST,
    BROWSE_TO_TEXT,
    BROWSE_ENTER,
    BROWSE_NEXT_HIT,
    BROWSE_LAST_HIT,
    BROWSE_NEXT_MESSAGE,
    BROWSE_LAST_MESSAGE,
    BROWSE_FOLD,
    BROWSE_FOLD_ALL,
    BROWSE_ROLE,
    BROWSE_SCOPE,
    BROWSE_ORDER,
    BROWSE_FIND,
    BROWSE_ZOOM,
    BROWSE_FOLLOW,
    BROWSE_BACK,
    BROWSE_MARK,
    BROWSE_MARK_ALL,
    BROWSE_UNDO,
    BROWSE_LOAD,
    BROWSE_PROMPT,
    BROWSE_CHAT,
    BROWSE_COPY,
    BROWSE_COPY_PART, /* asks which; the next three answer that, and are on no key */
    BROWSE_COPY_CODE,
    BROWSE_COPY_ID,
    BROWSE_COPY_SESSION,
    BROWSE_PAGER,
    BROWSE_EDITOR,
    BROWSE_EXPORT,
    BROWSE_OVERWRITE, /* on no key: to export, where a file is */
    BROWSE_FORK,
    BROWSE_LIKE, /* on no key: to search by meaning */
    BROWSE_DELETE,
    BROWSE_HELP,
    BROWSE_REDRAW,
    BROWSE_SUSPEND,
    BROWSE_CLOSE,
    BROWSE_CANCEL,
};

enum browse_command browse_command(enum browse_focus focus, int32_t key);

/* What holds now, a set of bits: keys that need something else are not offered. */
enum browse_condition {
    BROWSE_IF_CHOOSING = 1, /* Enter chooses */
    BROWSE_IF_NOT_CHOOSING = 2,
    BROWSE_IF_MARKED = 4, /* there are marked sessions */
    BROWSE_IF_UNMARKED = 8,
    BROWSE_IF_SESSION = 16, /* a chosen session, */
    BROWSE_IF_MESSAGE = 32, /* a current message, */
    BROWSE_IF_SEARCH = 64,  /* hits */
    BROWSE_IF_HISTORIES = 128,
    BROWSE_IF_DELETED = 256, /* sessions that are to be deleted */
    BROWSE_IF_FOLDS = 512,   /* the chosen hit is one of the results of tools that fold */
    BROWSE_IF_ALL = 1023,
};

/* Adds the lines of the help screen: the keys that work in the part with the focus, and what they
 * do; with BROWSE_IF_ALL those of all parts, under the names of the parts. */
void browse_help(struct browse_lines *out, enum browse_focus focus, unsigned conditions,
                 size_t columns);
/* Appends the foot of the help screen when it shows `rows` of `count` lines from line `top` on. */
void browse_help_foot(struct buf *out, size_t top, size_t rows, size_t count, bool all);
/* Appends the hints for the foot of the screen: as many keys as fit, the key to leave last.
 * `back`: Esc goes back instead of closing. */
void browse_hints(struct buf *out, enum browse_focus focus, unsigned conditions, bool back,
                  size_t columns);

/* ---- a line of text that is edited: the search box, or the name of a file ---- */

struct browse_edit {
    struct buf text; /* UTF-8, one line without control characters */
    struct buf cut;  /* what Ctrl-U, Ctrl-K, Ctrl-W or Alt-D removed last */
    size_t at;       /* the cursor is before this byte */
    bool chosen;     /* the next character replaces the whole text */
};

void browse_edit_init(struct browse_edit *e);
void browse_edit_release(struct browse_edit *e);
/* Replaces the text, converted to one line, and puts the cursor at its end. */
void browse_edit_set(struct browse_edit *e, struct str text);
/* Applies a key. Returns whether the text has changed. */
bool browse_edit_key(struct browse_edit *e, int32_t key);
/* Returns the part of the text to show in `columns` columns, which contains the cursor; *column is
 * the column of the cursor. */
struct str browse_edit_window(const struct browse_edit *e, size_t columns, size_t *column);

#endif
