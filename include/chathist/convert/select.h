/*
 * select - which lines of a history are exported, and where they lie.
 *
 * One pass over the file notes the places of the lines that may be wanted, not the lines; they are
 * read again when they are written. So a history of any size can be exported session by session.
 * What is appended meanwhile is not seen, and a file that is replaced meanwhile stays readable.
 */
#ifndef CHATHIST_CONVERT_SELECT_H
#define CHATHIST_CONVERT_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/keymap.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/convert/export_state.h"

#define SELECT_NONE ((size_t)-1)

struct select_line {
    off_t at;
    size_t n;
    size_t session; /* an index */
    size_t next;    /* of the same session; SELECT_NONE: there is none */
};

struct select_session {
    struct str id; /* what name holds */
    char *name;    /* owned */
    size_t first, last;
    int64_t used; /* the time of its last line that has one, INT64_MIN when none has */
    bool grown;   /* it has a line that the state does not know */
    bool wanted;  /* set by the caller */
};

struct select {
    struct select_line *lines; /* in the order of the file */
    size_t lines_count;
    struct select_session *sessions; /* in the order of their first lines */
    size_t sessions_count;
    uint64_t bad_lines;
    /* private */
    size_t lines_cap, sessions_cap;
    struct keymap places;
    struct scan scan;
    struct buf line;
};

/* Goes through the history. With a state only the lines that it does not know are noted, and it
 * learns them; with `whole` all of them are noted, and `grown` tells the sessions that the new ones
 * belong to. `tick` (may be NULL) is called now and then. On failure there is nothing to
 * release. */
int select_load(struct select *s, int dir, const char *history_path, struct export_state *state,
                bool whole, void (*tick)(void), struct err *e);
/* The index of a session, SELECT_NONE when it has no line. */
size_t select_find(const struct select *s, struct str id);
/* Reads line i again; borrowed until the next call. */
int select_read(struct select *s, size_t i, struct str *line, struct err *e);
void select_release(struct select *s);

#endif
