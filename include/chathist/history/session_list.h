/*
 * session_list - what there is to tell of each session, the one used last first.
 */
#ifndef CHATHIST_HISTORY_SESSION_LIST_H
#define CHATHIST_HISTORY_SESSION_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/location.h"

struct session {
    /* NUL-terminated; each may hold NUL when another client wrote it */
    char *id;
    size_t id_len;
    char *preview; /* the first MESSAGE_PREVIEW code points of its first message, decoded */
    size_t preview_len;
    char *first_role;
    size_t first_role_len;
    char *created_at; /* timestamp of its first line, as stored */
    size_t created_at_len;
    char *last_used; /* timestamp of its last line, as stored */
    size_t last_used_len;
    uint64_t count;   /* its lines */
    uint64_t bytes;   /* that they take in the file */
    off_t first_line; /* where the first of them begins; not by the index */
    off_t last_line;  /* where the last of them begins: what sessions are sorted by */
    off_t end;        /* behind that line; not by the index */
    bool borrowed;    /* private: its texts are the list's */
};

struct session_list {
    struct session *at; /* newest first */
    size_t count;
    uint64_t bad_lines;        /* lines of the history that are no valid message */
    off_t end;                 /* what begins before is in it; not by the index */
    const atomic_bool *cancel; /* once it is true, reading ends with ERR_SIGNAL; NULL: never */
    uint64_t bad_behind;       /* private: of the bad lines, those that begin later */
    char **texts;              /* private */
    size_t texts_count;
};

/* By reading the whole history. */
int session_list_load(struct session_list *l, int dir, const char *history_path, struct err *e);
/* Takes in what was appended behind l->end; all of the file when the list is zero-initialised. 0;
 * -1: the list is then empty. */
int session_list_more(struct session_list *l, int dir, const char *history_path, struct err *e);
/* Only what the last `bytes` of the file tell, for a first look: previews and counts are those of
 * the lines there. *whole: that is all of the file. 0, -1. */
int session_list_recent(struct session_list *l, int dir, const char *history_path, off_t bytes,
                        bool *whole, struct err *e);
/* The `limit` that were used last, by the index where there is one. */
int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e);
/* Of those that a text begins, or else ends (it has at least SESSION_SUFFIX_MIN bytes then). */
int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e);
void session_list_release(struct session_list *l);
/* Adds the summary `{"session_id","timestamp","message_count","preview","first_role","created_at",
 * "last_accessed"}`. */
void session_add_json(struct buf *out, const struct session *s);

#endif
