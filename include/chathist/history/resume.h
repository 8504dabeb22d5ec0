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

/* What the user asked for. Nothing: the current session, or a new one when there is none or it has
 * been idle for too long. */
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
    bool may_join;     /* fresh because there was no current session: any will do */
    int64_t timeout_ms;
};

#define RESUME_INIT                                                                                \
    {                                                                                              \
        .id = BUF_INIT(BUF_SMALL)                                                                  \
    }

/* Changes nothing on disk. A pointer that cannot be read counts as no current session. -1:
 * ERR_USAGE when `named` is no session id; a history that cannot be read. */
int resume_choose(struct resume *r, const struct history *h, const struct resume_wish *wish,
                  struct err *e);
/* Before the first line is stored: of several programs that begin a session at once, one makes its
 * own current, under the history's lock, and the others go on with that: r->id changes. A history
 * that is not trusted is accepted if one of its sessions was named, else set aside. -1: *e, and all is as it was; resume_settle tries
 * again. */
int resume_claim(struct resume *r, struct history *h, struct err *e);
/* After the first line was stored: makes the session current, where that is due. -1: also when something else is in the pointer's place. */
int resume_settle(const struct resume *r, struct history *h, struct err *e);
void resume_release(struct resume *r);

#endif
