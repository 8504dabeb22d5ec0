/*
 * browse_target - a session of which the messages are to be read, and what the list tells of where
 * they are. It reads nothing.
 */
#ifndef CHATHIST_TUI_BROWSE_TARGET_H
#define CHATHIST_TUI_BROWSE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "tui/browse_rows.h"

/* A session to be read. */
struct browse_target {
    size_t history;
    struct buf id;
    off_t first, end; /* where its lines are; end below 0: not known */
    off_t last_line;  /* where its newest line begins, and how many there are; below 0: not known */
    uint64_t count;
    struct buf hit; /* a message that is to be among them; empty: none */
};

void browse_target_init(struct browse_target *t);
void browse_target_release(struct browse_target *t);
bool browse_target_is(const struct browse_target *t, size_t history, struct str id);
/* What a list of sessions tells of where one of them is. Without its id, and nothing to be
 * released. */
struct browse_target browse_target_known(const struct browse_sessions *s, size_t history,
                                         struct str id);
/* Have lines come to the session, or gone, by what the list tells now? `lines`: of how many its
 * messages were read; NULL: they are not there. */
bool browse_target_changed(const struct browse_target *t, const struct browse_target *now,
                           const uint64_t *lines);

#endif
