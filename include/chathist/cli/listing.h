/*
 * listing - prints sessions: a record for a pipe or a file, columns for a terminal, or a summary in
 * JSON.
 */
#ifndef CHATHIST_CLI_LISTING_H
#define CHATHIST_CLI_LISTING_H

#include <stdbool.h>

#include "chathist/cli/output.h"
#include "chathist/history/session.h"

struct list_form {
    bool json;           /* print the text of session_add_json */
    const char *history; /* with several histories, the file of the session's; else NULL */
    const char *name;    /* its name (history_name_add) for a terminal */
    /* The columns for an id, which loses its end, and for a name, which loses its beginning, on a
     * terminal; id_width is 0 if each id takes as many as it has. */
    size_t id_width, name_width;
};

/* Prints the names of the columns of a terminal. */
void list_heading(struct out *out, const struct list_form *form);

/* Prints `id TAB last-used TAB count TAB label` (session_label), and `TAB history` if there are
 * several. On a terminal the name of the history is a column before the label. */
void list_session(struct out *out, const struct session *s, struct list_form *form);
/* Adds the text of session_add_json, with `history` (may be NULL) as its last member. */
void list_add_json(struct buf *line, const struct session *s, const char *history);
/* On a terminal, prints the name of a history on a line, unless it is NULL or *headed is set. Sets
 * *headed. */
void list_history(struct out *out, const char *history, bool *headed);
/* Adds a session's id so that it reads back from a line, and from an argument: unchanged, or as a
 * JSON string if it is empty, `-`, `current` or `last`, begins with `"`, has white space at an end,
 * or holds a tab, a newline or a character that a terminal must not get. */
void list_add_id(struct buf *line, struct str id);
/* Returns the most columns that an id takes on this terminal; a longer one loses its end. */
size_t list_id_most(const struct out *out);
/* Prints the id of a new session on a line, with `json` as `{"session_id":…}`. */
void list_id(struct out *out, struct str id, bool json);

#endif
