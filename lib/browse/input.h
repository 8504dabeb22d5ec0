/*
 * browse_keys - which key does what in hist-browse, and how that is told: one table feeds both.
 *
 * A key is a code point (control keys are those below U+0020) or one of BROWSE_KEY_*, which no code
 * point is.
 */
#ifndef CHATHIST_BROWSE_INPUT_H
#define CHATHIST_BROWSE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/browse/browse.h"

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
};
#define BROWSE_CTRL(letter) ((letter)&0x1f)

/* What has the focus: the search box, the list of sessions or hits, the messages. */
enum browse_focus { BROWSE_BOX, BROWSE_LIST, BROWSE_TEXT };

enum browse_command browse_command(enum browse_focus focus, int32_t key);
/* An arrow key, Home or End that a terminal sends in its other mode, in which what is typed before
 * a program has begun comes: ESC with `[` or `O`, and then the byte `end`, or `parameter` and
 * `end`. -1: none. */
int32_t browse_escape_key(int32_t parameter, int32_t end);

/* The help screen in so many columns: how many lines it has. */
size_t browse_help_count(size_t columns);
/* Adds one of them: the keys, blanks up to one column, what they do, or more of that. false: there
 * is none. */
bool browse_help_line(struct buf *out, size_t line, size_t columns);
/* Adds what stands at the foot of the screen: as many keys as fit, and what they do; how to leave
 * is the last. */
void browse_hints(struct buf *out, enum browse_focus focus, size_t columns);

/*
 * browse_edit - a line of text that is edited: the search box of hist-browse, the name of a file.
 */

struct browse_edit {
    struct buf text; /* UTF-8, one line without control characters */
    size_t at;       /* the cursor stands before this byte */
    bool chosen;     /* what is typed next replaces it all */
};

void browse_edit_init(struct browse_edit *e);
void browse_edit_release(struct browse_edit *e);
/* Replaces the text, made one line; the cursor stands behind it. */
void browse_edit_set(struct browse_edit *e, struct str text);
/* A key (browse/input): has the text changed? A key that edits nothing changes nothing. */
bool browse_edit_key(struct browse_edit *e, int32_t key);
/* What of the text to show in so many columns, so that the cursor is in it; *column is the
 * cursor's. */
struct str browse_edit_window(const struct browse_edit *e, size_t columns, size_t *column);

#endif
