#include "chathist/history/resume.h"

#include "chathist/base/clock.h"
#include "chathist/base/id.h"
#include "chathist/history/append.h"
#include "chathist/history/session.h"

static int choose_named(struct resume *r, const char *named, struct err *e)
{
    if (!id_session_valid(str_of(named)))
        return err_set(e, ERR_USAGE, "'%s' is no session id", named);
    buf_add_c(&r->id, named);
    return 0;
}

static void choose_fresh(struct resume *r)
{
    buf_clear(&r->id);
    id_add_session(&r->id, clock_now() / 1000);
    r->fresh = true;
    r->make_current = true;
}

/* The current session unless it has expired: 1, 0, -1. A pointer that cannot be read names none; it
 * is in the way when the next one is to be written, and reported then. */
static int choose_current(struct buf *id, const struct history *h, int64_t timeout_ms,
                          struct err *e)
{
    int64_t since;
    int found = session_current(h, id, &since, NULL);
    int expired;

    if (found <= 0)
        return 0;
    if (timeout_ms < 0)
        return 1;
    expired = session_expired(h, buf_str(id), since, timeout_ms, clock_now(), e);
    return expired < 0 ? -1 : !expired;
}

int resume_choose(struct resume *r, const struct history *h, const struct resume_wish *wish,
                  struct err *e)
{
    int found = 0;

    buf_clear(&r->id);
    r->fresh = r->make_current = r->may_join = r->adopt = false;
    r->timeout_ms = wish->timeout_ms;
    r->distrusted = !h->trusted;
    if (h->doubt && !wish->named)
        return err_set(e, ERR_FAILURE, "%s", h->doubt);
    if (wish->named) {
        if (choose_named(r, wish->named, e) < 0)
            return -1;
        /* Naming a session that the history has is consent to continue it. */
        found = h->trusted || h->unreadable ? 0 : session_exists(h, buf_str(&r->id), e);
        r->adopt = found > 0;
        r->distrusted = false;
        return found < 0 ? -1 : 0;
    }
    if (!wish->fresh && (h->trusted || wish->last)) {
        if (wish->last)
            found = session_last(h, &r->id, e);
        else
            found = choose_current(&r->id, h, wish->timeout_ms, e);
        if (found < 0)
            return -1;
        r->make_current = wish->last;
        r->adopt = found && !h->trusted;
        r->distrusted = r->distrusted && !r->adopt;
    }
    /* A foreign client's id that cannot be written again does not come back by itself either. */
    if (!found || !id_session_valid(buf_str(&r->id))) {
        choose_fresh(r);
        r->may_join = !wish->fresh;
    }
    return 0;
}

/* The history is locked. */
static int join_or_lead(struct resume *r, struct history *h, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    int found;

    found = choose_current(&id, h, r->timeout_ms, e);
    if (found > 0) {
        buf_clear(&r->id);
        buf_add_str(&r->id, buf_str(&id));
        r->fresh = false;
    }
    buf_release(&id);
    return found != 0 ? found : session_make_current(h, buf_str(&r->id), e);
}

int resume_claim(struct resume *r, struct history *h, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct append a;
    int result;

    if (r->adopt && history_accept(h, e) < 0)
        return -1;
    if (!r->make_current || !r->may_join)
        return 0;
    if (history_enter(h, e) < 0)
        return -1;
    if (append_open(&a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    result = join_or_lead(r, h, e);
    append_close(&a);
    r->make_current = result < 0;
    return result < 0 ? -1 : 0;
}

int resume_settle(const struct resume *r, struct history *h, struct err *e)
{
    return r->make_current ? session_make_current(h, buf_str(&r->id), e) : 0;
}

void resume_release(struct resume *r)
{
    buf_release(&r->id);
}
