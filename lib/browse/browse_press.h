/*
 * browse_press - what keys and the mouse do to the state of hist-browse.
 */
#ifndef CHATHIST_BROWSE_BROWSE_PRESS_H
#define CHATHIST_BROWSE_BROWSE_PRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/browse/browse_keys.h"
#include "browse/browse_model.h"

/* A character of a paste goes into the search box, or the name of a file that is asked for; it is
 * never a command, nor the answer to a question. */
void browse_paste(struct browse *b, int32_t key, int64_t now);
/* A key at a time (ms, of clock_ticks). What it gives is for the caller to do, BROWSE_NOTHING when
 * all is done: BROWSE_ENTER is the choice, BROWSE_EXPORT has its file in `name`, BROWSE_DELETE was
 * confirmed. */
enum browse_command browse_press(struct browse *b, int32_t key, int64_t now);
/* Is what the keys asked for on the screen: the list, and the messages of what is chosen in it?
 * Keys for them wait until then, those for a list and messages that are not asked for any more are
 * forgotten. */
bool browse_is_settled(const struct browse *b);
/* Goes on with what a key asked for and was not done at once, for a little while: is there more to
 * do? The next key gives it up. Also does what keys asked of messages that have come. */
bool browse_go_on(struct browse *b);
/* A click on the screen. `twice`: as Enter. */
enum browse_command browse_click(struct browse *b, size_t row, size_t column, bool twice,
                                 int64_t now);
/* The wheel over a place, by so many lines. */
void browse_wheel(struct browse *b, size_t row, size_t column, long lines);

#endif
