/*
 * resume - which session a new message belongs to (chat(1)).
 */
#ifndef CHATHIST_HISTORY_RESUME_H
#define CHATHIST_HISTORY_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/location.h"

/* The options of the user. Without any, the current session is continued, or a new one is begun if no
 * session is current or the current one has been idle for too long. */
struct resume_wish {
    const char *named;  /* -s ID or $CHAT_SESSION, taken literally; NULL: none */
    bool by_digits;     /* -s may be the six digits at the end of one generated id */
    bool fresh;         /* a new one in any case */
    bool last;          /* the last used, however old */
    int64_t timeout_ms; /* below 0: sessions never expire */
};

struct resume {
    struct buf id;
    bool fresh;        /* the id was made just now */
    bool make_current; /* to be made current once something is stored in it: resume_settle */
    bool distrusted;   /* fresh because the directory's own pointer is not trusted */
    bool adopt;        /* the user has named it in a history that is not trusted: resume_claim
                        * accepts that history */
    bool
        may_join; /* fresh because no session was current: another program's new one is used, too */
    int64_t timeout_ms;
};

#define RESUME_INIT                                                                                \
    {                                                                                              \
        .id = BUF_INIT(BUF_SMALL)                                                                  \
    }

/* Chooses a session. Changes nothing on disk. A pointer that cannot be read counts as no current
 * session. Returns 0; or -1 with *e set: ERR_USAGE if `named` is no session id, or the history cannot
 * be read. */
int resume_choose(struct resume *r, const struct history *h, const struct resume_wish *wish,
                  struct err *e);
/* Called before the first line is stored. If several programs begin a session at once, one of them
 * makes its own session current, under the lock of the history, and the others use that session:
 * r->id changes. A history that is not trusted is accepted if one of its sessions was named, else set
 * aside. Returns 0; or -1 with *e set: nothing has changed, and resume_settle tries again. */
int resume_claim(struct resume *r, struct history *h, struct err *e);
/* Called after the first line was stored: makes the session current, if it should be. Returns 0; or -1
 * with *e set, also if the pointer is no regular file. */
int resume_settle(const struct resume *r, struct history *h, struct err *e);
void resume_release(struct resume *r);

#endif
