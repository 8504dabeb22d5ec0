/*
 * session - the current session, the names of sessions, and the session that a new message
 * belongs to (chat(1)).
 */
#ifndef CHATHIST_HISTORY_SESSION_H
#define CHATHIST_HISTORY_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/session_list.h"

/* ---- the current session ---- */

/* Returns 1 if the session came with the repository: it has a line that was there before this
 * account stored anything, and the user has not named it since. Programs list and show it, and
 * choose it only by its id. Otherwise 0; or -1 with *err set. */
int session_came(const struct history *h, struct str id, struct err *e);
/* Remembers that the user has named such a session: it counts as one of the account's from now on.
 * Returns 0, or -1 with *err set. */
int session_trust(struct history *h, struct str id, struct err *e);

/* Reads the id in the pointer file. Returns 1 and *id; 0 if the file does not exist, is not
 * trusted, or does not hold the id of a session that may be continued (session_came); -1 with *err
 * set. *since (may be NULL) is when the session was made current, in microseconds: the modification
 * time of the file. */
int session_current(const struct history *h, struct buf *id, int64_t *since, struct err *e);
/* Writes the pointer, with the newest line of the session as its mark, and makes its directory if
 * it is missing (see store_enter). Returns 0, or -1 with *err set: ERR_USAGE for an id that
 * id_session_valid refuses, which another client may have made. */
int session_make_current(struct history *h, struct str id, struct err *e);
/*
 * The mark is the second line of the pointer: the id of the newest line of the session that `chat`
 * has seen, or that the user has seen who made the session current. A pointer without a mark, as
 * earlier versions wrote it, is valid.
 */
/* Adds the mark to `mark`. Returns 1; 0 if the session is not the current one, or has no mark. */
int session_mark(const struct history *h, struct str id, struct buf *mark);
/* Moves the mark to a line, if the session is still the current one. A failure is ignored: then the same
 * lines are named again. */
void session_move_mark(const struct history *h, struct str id, struct str line);
/* Returns 1 if a session of that id has lines, or is the current session, which may have no
 * lines yet; otherwise 0, or -1 with *err set. */
int session_exists(const struct history *h, struct str id, struct err *e);
/* Returns 1 if the history holds a line of the session now, 0 if not, or -1 with *err set. */
int session_has_lines(const struct history *h, struct str id, struct err *e);
/* Resolves the session argument of a reader: `current`, `last` (both names are reserved), an id,
 * otherwise a unique prefix, otherwise a unique suffix of 4 characters or more. The current
 * session is found even before its first message, by its whole id and as `current`. Returns 0
 * and *id; -1 with ERR_ABSENT if no session matches, or ERR_FAILURE if several do (the message
 * names some of them). */
int session_resolve(const struct history *h, struct str name, struct buf *id, struct err *e);

/* Stores a title of a session, with each run of white space as one blank, and without white space
 * at the ends; an empty one removes the title. Nothing is stored if the session has that title
 * already, or if another program deletes it meanwhile (ERR_ABSENT). Returns 0, or -1 with *err set:
 * ERR_USAGE for a title of more than MESSAGE_TITLE characters, or a session id that
 * id_session_valid refuses. */
int session_set_title(struct history *h, struct str id, struct str title, struct err *e);
/* Makes the line that session_set_title stores. Returns 1; 0 if there is nothing to store; or -1
 * with *err set. */
int session_draft_title(const struct history *h, struct str id, struct str title, struct draft *d,
                        struct err *e);

/* ---- which session a new message belongs to ---- */

/* The options of the user. Without any, the current session is continued, or a new one is begun if
 * no session is current or the current one has been idle for too long. */
struct resume_request {
    const char *named;  /* -s ID or $CHAT_SESSION, taken literally; NULL: none */
    bool by_digits;     /* -s may be the six digits at the end of one generated id */
    bool fresh;         /* a new one in any case */
    bool last;          /* the last used, however old */
    int64_t timeout_ms; /* negative: sessions never expire */
};

struct resume {
    struct buf id;
    bool fresh;        /* the id was made just now */
    bool make_current; /* resume_finish makes it current once a line is stored */
    bool adopt;        /* it came with the repository: resume_claim remembers that it was named */
    /* It is fresh because no session was current. If another program begins one at the same time,
     * that one may be used instead (resume_claim). */
    bool may_join;
    int64_t timeout_ms;
};

#define RESUME_INIT                                                                                \
    {                                                                                              \
        .id = BUF_INIT(BUF_SMALL)                                                                  \
    }

/* Chooses a session. Changes nothing on disk. A pointer that cannot be read counts as no current
 * session. Returns 0; or -1 with *e set: ERR_USAGE if `named` is no session id, or the history
 * cannot be read. */
int resume_choose(struct resume *r, const struct history *h, const struct resume_request *request,
                  struct err *e);
/* Called before the first line is stored. If several programs begin a session at once, one of them
 * makes its own session current, under the lock of the history, and the others use that session:
 * r->id changes. Returns 0; or -1 with *e set: nothing has changed, and resume_finish tries again.
 */
int resume_claim(struct resume *r, struct history *h, struct err *e);
/* Called after the first line was stored: makes the session current, if it should be. Returns 0; or
 * -1 with *e set, also if the pointer is no regular file. */
int resume_finish(const struct resume *r, struct history *h, struct err *e);
void resume_release(struct resume *r);

#endif
