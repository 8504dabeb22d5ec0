/*
 * session_summary - what lists show of a session, and a list of such summaries with their texts.
 */
#ifndef CHATHIST_HISTORY_SESSION_SUMMARY_H
#define CHATHIST_HISTORY_SESSION_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"

struct session {
    /* These texts are NUL-terminated and belong to the list. They can also contain NUL, if another
     * program wrote it. */
    struct str id;
    /* The first MESSAGE_PREVIEW code points, decoded, of the first message of the user that is not
     * blank; without one, of the first message. */
    struct str preview;
    bool asked; /* the preview is of a message of the user */
    /* The text of the title that counts, and what titles_write says of all titles of the session
     * (history/title.h); empty if it has none. */
    struct str title, title_set;
    struct str first_role;
    struct str created_at; /* the timestamp of the first line, as stored */
    /* The timestamp of the latest message, as stored; without a message, of the first title. */
    struct str last_used;
    /* The times of the first line and of the latest message (history/order.h); LINE_OLDEST for a
     * session that has no message, or if the time is unknown. */
    int64_t created, used;
    uint64_t count;  /* lines that are messages */
    uint64_t titles; /* lines that give a title */
    uint64_t bytes;  /* size of all these lines in the file */
    off_t last_line; /* offset of the last message; without one, of the first title */
    /* The offset of the first line. */
    off_t first_line;
    bool came; /* it came with the repository (session_came) */
};

struct session_list {
    struct session *at;
    size_t count;
    uint64_t bad_lines; /* lines of the history that are not valid messages */
    /* private */
    size_t cap;
    char **texts; /* blocks of memory that hold the texts */
    size_t texts_count, texts_cap;
    size_t texts_left; /* free bytes at the end of the last block */
};

/* Returns the text by which people know a session: its title, or without one its preview. */
struct str session_label(const struct session *s);
/* Compares two sessions of one history for qsort, the last used first: by `used`, then by
 * `last_line`. */
int session_compare(const void *a, const void *b);
/* Adds to a session of the list what later lines of it say. The texts of `later` are not copied. */
void session_add_later(struct session_list *l, struct session *s, const struct session *later);
/* Sets the title of a session of the list to the one that counts among these. */
struct titles;
void session_set_titles(struct session_list *l, struct session *s, const struct titles *t);
void session_list_release(struct session_list *l);
/* Appends a zeroed session and returns it. It is valid until the next call. */
struct session *session_list_add(struct session_list *l);
/* Removes the sessions without a mark, and those after the first `limit` with one. */
void session_list_restrict(struct session_list *l, const bool *marked, size_t limit);
/* Returns a NUL-terminated copy of `text` that lives as long as the list. */
struct str session_list_copy(struct session_list *l, struct str text);
/* Takes over a block of memory that malloc gave, so that it lives as long as the list. Returns
 * it. */
char *session_list_own(struct session_list *l, char *block);

/* Adds the summary `{"session_id","timestamp","message_count","preview","first_role","created_at",
 * "last_accessed"}`, with "title" after the preview if the session has one, and at the end
 * "came_with_repository":true if it did. */
void session_add_json(struct buf *out, const struct session *s);
#endif
