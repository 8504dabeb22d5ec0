#include "chathist/cli/session_rows.h"

#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/remote.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"

/* ---- the query ---- */

/* A query whose words are looked for in the messages, and if it has only words, in the titles. */
struct match {
    struct query query;
    struct pattern pattern;
};

static void match_close(struct match *m)
{
    pattern_release(&m->pattern);
    query_release(&m->query);
}

/* Adds the ids of the sessions of which a message meets the query. Returns 0, or -1 with *e set. */
static int find_messages(struct match *m, const struct history *h, struct hash_map *found,
                         struct err *e)
{
    struct search search;
    struct hit hit;
    int result;

    if (search_open(&search, h->dir_fd, h->path, &m->pattern, NULL, e) < 0)
        return -1;
    search.history = h;
    search.query = &m->query;
    search.any_order = true;
    while ((result = search_next(&search, &hit, e)) > 0)
        hash_map_add(found, hit.message->session_id);
    search_close(&search);
    return result < 0 ? -1 : 0;
}

/* Does the title have all words? 1, 0, or -1 with *e set. */
static int meets_title(struct match *m, const struct session *s, struct err *e)
{
    uint64_t missing = pattern_all_groups(&m->pattern);
    size_t at, len;

    if (s->title.n == 0 || !query_is_words(&m->query))
        return 0;
    if (pattern_find_groups(&m->pattern, s->title, &missing, &at, &len, e) < 0)
        return -1;
    return missing == 0;
}

/* Keeps the sessions of a list that meet the query. Returns 0, or -1 with *e set. */
static int keep_matches(struct match *m, struct session_list *l, const struct history *h,
                        struct err *e)
{
    struct hash_map found = {0};
    struct buf name = BUF_INIT(BUF_SMALL);
    size_t kept = 0;
    int result;

    history_name_add(&name, h);
    result = query_enter(&m->query, h, buf_str(&name), e);
    if (result > 0)
        result = find_messages(m, h, &found, e);
    for (size_t i = 0; i < l->count && result >= 0; i++) {
        int meets = hash_map_find(&found, l->at[i].id) ? 1 : meets_title(m, &l->at[i], e);

        if (meets < 0)
            result = -1;
        if (meets > 0)
            l->at[kept++] = l->at[i];
    }
    l->count = kept;
    hash_map_release(&found);
    buf_release(&name);
    return result < 0 ? -1 : 0;
}

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
static int keep_named(const struct session_rows *r, const struct choice *c, struct session_list *l,
                      struct err *e)
{
    struct str id = str_of(r->id ? r->id : "");
    bool *marked = mem_zalloc(l->count), begins = false;
    size_t kept = 0;
    int result;

    for (size_t i = 0; i < l->count; i++)
        begins |= str_starts(l->at[i].id, id);
    for (size_t i = 0; i < l->count; i++)
        marked[i] = begins ? str_starts(l->at[i].id, id) : str_ends(l->at[i].id, id);
    result = choose_mark(c, l, marked, NULL, e);
    for (size_t i = 0; i < l->count; i++)
        if (marked[i])
            l->at[kept++] = l->at[i];
    l->count = kept;
    free(marked);
    return result;
}

/* Lists the sessions of the database. Its summaries have neither messages nor sizes. */
static int load_remote(struct session_rows *r, struct choice *c, struct err *e)
{
    bool cut = r->by == ROWS_LAST && !r->reverse && !r->id && !choose_restricts(c);

    if (r->match || r->by == ROWS_SIZE || c->names.count > 0 || c->filter.roles.count > 0 ||
        c->filter.models.count > 0)
        die_usage("--remote goes with none of --match, --sort=size, --session, --role and --model");
    r->lists = mem_zalloc(sizeof *r->lists);
    remote_open_list(c, r->lists, cut ? r->limit : SIZE_MAX);
    if (keep_named(r, c, r->lists, e) < 0)
        return -1;
    session_rows_add(r, 0);
    session_rows_sort(r);
    return 0;
}

int session_rows_load(struct session_rows *r, struct choice *c, struct err *e)
{
    size_t most = r->by == ROWS_LAST && !r->reverse && !r->match ? r->limit : SIZE_MAX;
    struct match m = {0};
    int result = 0;

    if (c->remote)
        return load_remote(r, c, e);
    r->lists = mem_zalloc(c->histories.count * sizeof *r->lists);
    if (r->match && query_open(&m.query, &m.pattern, str_of(r->match), time_now(), e) < 0)
        return -1;
    for (size_t i = 0; i < c->histories.count && result == 0; i++) {
        result = choose_list(c, &r->lists[i], &c->histories.at[i], r->id, most, e);
        if (result == 0 && r->match)
            result = keep_matches(&m, &r->lists[i], &c->histories.at[i], e);
        if (result == 0)
            session_rows_add(r, i);
    }
    if (r->match)
        match_close(&m);
    if (result == 0)
        session_rows_sort(r);
    return result;
}

void session_rows_release(struct session_rows *r, size_t histories)
{
    for (size_t i = 0; r->lists && i < histories; i++)
        session_list_release(&r->lists[i]);
    free(r->lists);
    free(r->at);
    *r = (struct session_rows){0};
}
