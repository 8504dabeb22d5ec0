/*
 * session - which session is meant: the current pointer, names, and the list of all sessions.
 */
#ifndef CHATHIST_HIST_SESSION_H
#define CHATHIST_HIST_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "hist/locate.h"

/* ---- the current session ---- */

/* The id in the pointer file: 1 and *id; 0 when there is none, it is not trusted or not an id; -1.
 * *since (may be NULL) is when it was made current (µs): the pointer file's modification time. */
int session_current(const struct history *h, struct buf *id, int64_t *since, struct err *e);
/* Writes the pointer, making the directory when needed (see history_enter). -1: ERR_USAGE for an id
 * that id_session_valid does not take, such as another client may have made. */
int session_make_current(struct history *h, struct str id, struct err *e);
/* Has a session been idle for longer than timeout_ms at `now` (µs), counted from the later of
 * its last line and `since`? 1, 0, -1. A last line whose time cannot be read does not count; a
 * clock that was set back makes nothing expire. */
int session_expired(const struct history *h, struct str id, int64_t since, int64_t timeout_ms,
                    int64_t now, struct err *e);
/* The session of the last valid line: 1 and *id, 0 when there is none, -1. */
int session_last(const struct history *h, struct buf *id, struct err *e);

/* ---- all sessions ---- */

struct session {
    /* NUL-terminated; each may hold NUL when another client wrote it */
    char *id;
    size_t id_len;
    char *preview; /* the first SESSION_PREVIEW code points of its first message, decoded */
    size_t preview_len;
    char *first_role;
    size_t first_role_len;
    char *created_at; /* timestamp of its first line, as stored */
    size_t created_at_len;
    char *last_used; /* timestamp of its last line, as stored */
    size_t last_used_len;
    uint64_t count;   /* its lines */
    uint64_t bytes;   /* that they take in the file */
    off_t first_line; /* where the first of them begins */
    off_t last_line;  /* where the last of them begins: what sessions are sorted by */
    off_t end;        /* behind that line */
};

#define SESSION_PREVIEW 100

struct session_list {
    struct session *at; /* newest first */
    size_t count;
    uint64_t bad_lines;        /* lines of the history that are no valid message */
    off_t end;                 /* what begins before is in it */
    uint64_t bad_behind;       /* private: of the bad lines, those that begin later */
    const atomic_bool *cancel; /* once it is true, reading ends with ERR_SIGNAL; NULL: never */
};

int session_list_load(struct session_list *l, const char *history_path, struct err *e);
/* Takes in what was appended behind l->end; all of the file when the list is zero-initialised. 0; -1:
 * the list is then empty. */
int session_list_more(struct session_list *l, const char *history_path, struct err *e);
/* Only what the last `bytes` of the file tell, for a first look: previews and counts are those of
 * the lines there. *whole: that is all of the file. 0, -1. */
int session_list_recent(struct session_list *l, const char *history_path, off_t bytes, bool *whole,
                        struct err *e);
void session_list_release(struct session_list *l);
/* Adds the summary `{"session_id","timestamp","message_count","preview","first_role","created_at",
 * "last_accessed"}`. */
void session_add_json(struct buf *out, const struct session *s);

/* A reader's session argument: `current`, `last` (both names are reserved), an id, else a unique
 * prefix, else a unique suffix of 4 characters or more. 0 and *id; -1: ERR_ABSENT when there is
 * none, ERR_FAILURE when it is ambiguous (the message names some candidates). The current
 * session is found even before its first message, by its whole id and as `current`. */
int session_resolve(const struct history *h, struct str name, struct buf *id, struct err *e);

#endif
