/*
 * session_list - the sessions of a history with their summaries, last used first.
 *
 * A large history has an index (history/session_index.h), and then only the sessions that were
 * asked for are read. The result is the same without it.
 */
#ifndef CHATHIST_HISTORY_SESSION_LIST_H
#define CHATHIST_HISTORY_SESSION_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

/* Smaller histories have no index: reading them is as fast without. */
#define SESSION_INDEX_LEAST ((off_t)256 << 10)

/* A name that stands for the end of an id has at least this many bytes. */
#define SESSION_SUFFIX_MIN 4

struct session {
    /* These texts are NUL-terminated and belong to the list. They can also contain NUL, if another
     * program wrote it. */
    char *id;
    size_t id_len;
    /* The first MESSAGE_PREVIEW code points, decoded, of the first message of the user that is not
     * blank; without one, of the first message. */
    char *preview;
    size_t preview_len;
    bool asked; /* the preview is of a message of the user */
    /* The newest title (message_title); empty if the session has none. */
    char *title;
    size_t title_len;
    char *first_role;
    size_t first_role_len;
    char *created_at; /* the timestamp of the first line, as stored */
    size_t created_at_len;
    /* The timestamp of the last message, as stored; without a message, of the first title. */
    char *last_used;
    size_t last_used_len;
    uint64_t count;  /* lines that are messages */
    uint64_t titles; /* lines that give a title */
    uint64_t bytes;  /* size of all these lines in the file */
    off_t last_line; /* offset of the line of `last_used`, by which lists are sorted */
    /* The next two are only set by session_list_load and session_list_recent: */
    off_t first_line; /* offset of the first line */
    off_t end;        /* offset of the byte after the last line */
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

/* Each function that fills a list overwrites it. They return 0, or -1 with *err set, and the list
 * is then empty. */

/* Lists all sessions by reading the whole history, without the index. */
int session_list_load(struct session_list *l, int dir, const char *history_path, struct err *e);
/* Lists the sessions that have lines in the last `bytes` of the file, for a quick first view.
 * Counts and previews are those of these lines. Sets *whole if that is the whole file. */
int session_list_recent(struct session_list *l, int dir, const char *history_path, off_t bytes,
                        bool *whole, struct err *e);
/* Lists the `limit` sessions that were used last. */
int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e);
/* Lists the `limit` last used sessions whose ids begin with `text`, or if no id does, and the
 * text has at least SESSION_SUFFIX_MIN bytes, those whose ids end with it. */
int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e);
void session_list_release(struct session_list *l);

/* Returns the text by which people know a session: its title, or without one its preview. */
struct str session_label(const struct session *s);
/* Finds the title of the session with that id. Returns 0, and adds the title to `title`, nothing if
 * it has none; or -1 with *err set. */
int session_title(const struct history *h, struct str id, struct buf *title, struct err *e);

/* Appends a zeroed session and returns it. It is valid until the next call. */
struct session *session_list_add(struct session_list *l);
/* Returns a NUL-terminated copy of `text` that lives as long as the list. */
char *session_list_keep(struct session_list *l, struct str text);
/* Takes over a block of memory that malloc gave, so that it lives as long as the list. Returns
 * it. */
char *session_list_own(struct session_list *l, char *block);

/* Adds the summary `{"session_id","timestamp","message_count","preview","first_role","created_at",
 * "last_accessed"}`, with "title" after the preview if the session has one. */
void session_add_json(struct buf *out, const struct session *s);

#endif
