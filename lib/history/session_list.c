#include "chathist/history/session_list.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "history/session_index.h"
#include "history/trust.h"

struct list_request {
    struct str text; /* what the ids begin or end with */
    bool whole;      /* it is the whole id */
    bool titles;     /* sessions without a message are listed, too */
    size_t limit;
};

static bool wants_any(const struct list_request *request)
{
    return request->text.n == 0 && !request->whole;
}

/* How an id fits a text. */
enum fit { FIT_NONE, FIT_END, FIT_BEGIN };

static enum fit fit_of(const struct list_request *request, struct str id)
{
    struct str text = request->text;

    if (request->whole)
        return str_eq(id, text) ? FIT_BEGIN : FIT_NONE;
    if (str_starts(id, text))
        return FIT_BEGIN;
    return text.n >= SESSION_SUFFIX_MIN && str_ends(id, text) ? FIT_END : FIT_NONE;
}

/* ---- the index and its tail ---- */

struct fitting {
    uint64_t place;
    enum fit fit;
};

/* The places in the index of the sessions whose ids fit, and of those that have lines in the tail,
 * too. */
struct lookup {
    const struct session_table *tail;
    const struct list_request *request;
    struct fitting *named; /* not in the tail; not used if any id fits */
    size_t count, cap;
    uint64_t *recent; /* for each session of the tail its place + 1, or 0 */
};

/* Returns true once the only id that can fit was found. */
static bool match_id(void *arg, struct str id, uint64_t place)
{
    struct lookup *u = arg;
    enum fit fit = fit_of(u->request, id);
    size_t number;

    if (fit == FIT_NONE)
        return false;
    if (u->tail->list.count > 0 && session_table_find(u->tail, id, &number)) {
        u->recent[number] = place + 1;
    } else if (!wants_any(u->request)) {
        u->named = mem_grow(u->named, &u->cap, u->count + 1, sizeof(*u->named));
        u->named[u->count++] = (struct fitting){place, fit};
    }
    return u->request->whole;
}

/* Adds the sessions of the tail, with what the index has of them. Returns 0 or -1. */
static int add_recent(struct session_list *l, struct session_index *x, const struct lookup *u,
                      enum fit fit)
{
    const struct session_list *tail = &x->tail.list;

    for (size_t i = 0; i < tail->count; i++) {
        uint64_t place = u->recent[i] - 1;

        if (fit_of(u->request, tail->at[i].id) != fit)
            continue;
        if (u->recent[i] == 0)
            *session_list_add(l) = tail->at[i];
        else if (session_index_session(x, &place, l) > 0)
            session_add_later(l, &l->at[l->count - 1], &tail->at[i]);
        else
            return -1;
        l->count -= !u->request->titles && l->at[l->count - 1].count == 0;
    }
    return 0;
}

/* Adds the other sessions of the index, the last used first, until there are enough. */
static int add_others(struct session_list *l, struct session_index *x, const struct lookup *u,
                      enum fit fit)
{
    bool all = wants_any(u->request);
    size_t before = l->count, number;
    uint64_t place = 0;
    int more = 1;

    for (size_t i = 0; l->count - before < u->request->limit && (all || i < u->count); i++) {
        if (!all && u->named[i].fit != fit)
            continue;
        if (!all)
            place = u->named[i].place;
        more = session_index_session(x, &place, l);
        if (more <= 0)
            break;

        const struct session *s = &l->at[l->count - 1];

        l->count -=
            (!u->request->titles && s->count == 0) || session_table_find(u->tail, s->id, &number);
    }
    return more < 0 ? -1 : 0;
}

static int list_index(struct session_list *l, struct session_index *x,
                      const struct list_request *request)
{
    struct session_list *tail = &x->tail.list;
    struct lookup u = {&x->tail, request, .recent = mem_zalloc(tail->count * sizeof(*u.recent))};
    int result = 0;

    if (!wants_any(request) || tail->count > 0)
        result = session_index_each_id(x, match_id, &u);
    for (enum fit fit = FIT_BEGIN; fit > FIT_NONE && result == 0 && l->count == 0; fit--) {
        result = add_recent(l, x, &u, fit);
        if (result == 0)
            result = add_others(l, x, &u, fit);
    }
    if (tail->count > 0 && l->count > 0)
        qsort(l->at, l->count, sizeof(*l->at), session_compare);
    if (l->count > request->limit)
        l->count = request->limit;
    free(u.named);
    free(u.recent);
    l->bad_lines = tail->bad_lines + x->header.bad;
    /* The texts of the tail live as long as the list. */
    for (size_t i = 0; i < tail->texts_count; i++)
        session_list_own(l, tail->texts[i]);
    tail->texts_count = tail->texts_left = 0;
    return result;
}

static void mark_came(struct session_list *l, const struct history *h)
{
    bool may = h->kind == HISTORY_REPOSITORY || h->kind == HISTORY_HERE;

    for (size_t i = 0; i < l->count; i++)
        l->at[i].came =
            may && l->at[i].first_line < h->mark.from && !mark_has_named(&h->mark, l->at[i].id);
}

/* ---- lists ---- */

/* Lists sessions by reading the whole history. */
static int list_file(struct session_list *l, const struct history *h,
                     const struct list_request *request, struct err *e)
{
    struct session_index none = {.fd = -1};
    int result;

    *l = (struct session_list){0};
    if (scan_open(&none.scan, h->dir_fd, h->path, e) < 0)
        return -1;
    none.scan.work = h->work;
    none.scan.task = "read";
    session_table_init(&none.tail, h->now);
    result = session_table_read_all(&none.tail, &none.scan, h->cancel, e);
    scan_close(&none.scan);
    if (result == 0)
        result = list_index(l, &none, request);
    if (result == 0)
        mark_came(l, h);
    session_table_release(&none.tail);
    return result;
}

static int list(struct session_list *l, const struct history *h, const struct list_request *request,
                struct err *e)
{
    struct session_index x;

    *l = (struct session_list){0};
    if (session_index_open(&x, h)) {
        if (list_index(l, &x, request) == 0) {
            session_index_close(&x);
            mark_came(l, h);
            return 0;
        }
        session_list_release(l);
        session_index_discard(&x);
    }
    return list_file(l, h, request, e);
}

int session_list_load(struct session_list *l, const struct history *h, struct err *e)
{
    return list_file(l, h, &(struct list_request){.limit = SIZE_MAX, .titles = true}, e);
}

int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    return list(l, h, &(struct list_request){.text = text, .limit = limit}, e);
}

int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e)
{
    return list(l, h, &(struct list_request){.limit = limit}, e);
}

int session_list_find(struct session_list *l, const struct history *h, struct str id, struct err *e)
{
    const struct list_request request = {
        .text = id, .whole = true, .titles = true, .limit = SIZE_MAX};

    return list(l, h, &request, e) < 0 ? -1 : l->count > 0;
}

int session_title(const struct history *h, struct str id, struct buf *title, struct buf *set,
                  struct err *e)
{
    struct session_list l;
    int found = session_list_find(&l, h, id, e);

    if (found < 0)
        return -1;
    if (found) {
        buf_add_str(title, l.at[0].title);
        if (set)
            buf_add_str(set, l.at[0].title_set);
    }
    session_list_release(&l);
    return 0;
}
