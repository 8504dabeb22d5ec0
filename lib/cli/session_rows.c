#include "chathist/cli/session_rows.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/session_match.h"

/* ---- sorting ---- */

static int more(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* By the number of the row, then by its time. */
static int by_number(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->number != y->number)
        return more(x->number, y->number);
    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    if (x->history != y->history)
        return x->history < y->history ? -1 : 1;
    return more((uint64_t)x->session->last_line, (uint64_t)y->session->last_line);
}

static int by_title(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    struct str s = session_label(x->session), t = session_label(y->session);
    int order = 0;

    while (order == 0 && s.n > 0 && t.n > 0) {
        int32_t c, d;
        size_t n = utf8_decode(s, &c), k = utf8_decode(t, &d);

        order = utf8_fold(c) - utf8_fold(d);
        s = str_skip(s, n);
        t = str_skip(t, k);
    }
    if (order == 0)
        order = (s.n > 0) - (t.n > 0);
    return order != 0 ? order : by_number(a, b);
}

void session_rows_sort(struct session_rows *r)
{
    int (*order)(const void *, const void *) = r->by == ROWS_TITLE ? by_title : by_number;

    /* Usually they are in order: a list of sessions begins with the last used one. */
    for (size_t i = 1; i < r->count; i++) {
        if (order(&r->at[i - 1], &r->at[i]) <= 0)
            continue;
        qsort(r->at, r->count, sizeof *r->at, order);
        break;
    }
    for (size_t i = 0; r->reverse && i < r->count / 2; i++) {
        struct row row = r->at[i];

        r->at[i] = r->at[r->count - 1 - i];
        r->at[r->count - 1 - i] = row;
    }
    if (r->count > r->limit)
        r->count = r->limit;
}

/* ---- the list ---- */

void session_rows_add(struct session_rows *r, size_t history)
{
    const struct session_list *l = &r->lists[history];

    r->at = mem_resize(r->at, r->count + l->count, sizeof *r->at);
    for (size_t i = 0; i < l->count; i++) {
        const struct session *s = &l->at[i];
        struct row *row = &r->at[r->count++];

        *row = (struct row){.session = s, .history = history};
        row->number = r->by == ROWS_COUNT ? s->count : r->by == ROWS_SIZE ? s->bytes : 0;
        row->time = r->by == ROWS_CREATED ? s->created : s->used;
    }
}

/* Keeps the sessions whose id begins, or without such a session ends, with r->id, and those that
 * were used within the times. Returns 0, or -1 with *e set. */
static int restrict_to_named(const struct session_rows *r, const struct choice *c,
                             struct session_list *l, struct err *e)
{
    struct str id = str_of(r->id ? r->id : "");
    bool *marked = mem_zalloc(l->count), begins = false;
    int result;

    for (size_t i = 0; i < l->count; i++)
        begins |= str_starts(l->at[i].id, id);
    for (size_t i = 0; i < l->count; i++)
        marked[i] = begins ? str_starts(l->at[i].id, id) : str_ends(l->at[i].id, id);
    result = session_match_mark(c, l, marked, NULL, e);
    session_list_restrict(l, marked, SIZE_MAX);
    free(marked);
    return result;
}

/* Lists the sessions of the database. Its summaries have neither messages nor sizes. */
static int load_remote(struct session_rows *r, struct choice *c, struct err *e)
{
    bool cut = r->by == ROWS_LAST && !r->reverse && !r->id && !choose_restricts(c);

    if (c->match || r->by == ROWS_SIZE || c->names.count > 0 || c->filter.roles.count > 0 ||
        c->filter.models.count > 0 || c->filter.tools.count > 0)
        die_usage("--remote goes with none of --match, --sort=size, --session, --role, --model and "
                  "--from");
    r->lists = mem_zalloc(sizeof *r->lists);
    choose_open(c, &(struct choose_want){.list = r->lists, .limit = cut ? r->limit : SIZE_MAX});
    if (restrict_to_named(r, c, r->lists, e) < 0)
        return -1;
    session_rows_add(r, 0);
    session_rows_sort(r);
    return 0;
}

static int load_lists(struct session_rows *r, struct choice *c, struct err *e)
{
    size_t most = r->by == ROWS_LAST && !r->reverse ? r->limit : SIZE_MAX;
    int result = 0;

    for (size_t i = 0; i < c->histories.count && result == 0; i++) {
        result = session_match_list(c, &r->lists[i], &c->histories.at[i], r->id, most, e);
        if (result == 0)
            session_rows_add(r, i);
    }
    if (result == 0)
        session_rows_sort(r);
    return result;
}

/* Loads the lists again with other forms of the words of --match, if there are any. */
static int load_forms(struct session_rows *r, struct choice *c, struct err *e)
{
    const char *match = c->match;
    struct buf asked = BUF_INIT(SIZE_MAX);
    int result = session_match_forms(c, &asked, &r->said, e);

    if (result == 0 && asked.len > 0) {
        for (size_t i = 0; i < c->histories.count; i++)
            session_list_release(&r->lists[i]);
        c->match = buf_c(&asked);
        result = load_lists(r, c, e);
        c->match = match;
    }
    if (r->count == 0)
        buf_clear(&r->said);
    buf_release(&asked);
    return result;
}

int session_rows_load(struct session_rows *r, struct choice *c, struct err *e)
{
    int result;

    buf_init(&r->said, SIZE_MAX);
    if (c->remote)
        return load_remote(r, c, e);
    choose_open(c, &(struct choose_want){.reach = CHOOSE_ONE});
    r->lists = mem_zalloc(c->histories.count * sizeof *r->lists);
    result = load_lists(r, c, e);
    if (result == 0 && r->count == 0 && c->match)
        result = load_forms(r, c, e);
    return result;
}

void session_rows_release(struct session_rows *r, size_t histories)
{
    for (size_t i = 0; r->lists && i < histories; i++)
        session_list_release(&r->lists[i]);
    free(r->lists);
    free(r->at);
    buf_release(&r->said);
    *r = (struct session_rows){0};
}
