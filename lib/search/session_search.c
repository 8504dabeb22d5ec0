#include "chathist/search/session_search.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/history/order.h"

/* ---- hits ---- */

static struct session_hit *add(struct session_hits *h, size_t count)
{
    h->at = mem_grow(h->at, &h->cap, h->count + count, sizeof *h->at);
    h->count += count;
    return h->at + h->count - count;
}

void session_hits_add(struct session_hits *h, size_t history, size_t session, const struct hit *hit)
{
    *add(h, 1) =
        (struct session_hit){.place = {hit->line.at, hit->line.text.n, hit->found, hit->time},
                             .history = history,
                             .session = session};
}

void session_hits_add_all(struct session_hits *h, const struct session_hits *other)
{
    struct session_hit *to = add(h, other->count);

    for (size_t i = 0; i < other->count; i++)
        to[i] = other->at[i];
}

void session_hits_release(struct session_hits *h)
{
    free(h->at);
}

static int newer(const struct context_item *x, const struct context_item *y)
{
    return line_compare(x->time, x->at, y->time, y->at);
}

static int by_session(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;

    if (x->history != y->history)
        return x->history < y->history ? -1 : 1;
    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    return newer(&x->place, &y->place);
}

static int newest_session_first(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;

    int order;

    if (x->newest.time == y->newest.time && x->history != y->history)
        return x->history < y->history ? -1 : 1;
    order = newer(&x->newest, &y->newest);
    return order != 0 ? order : newer(&x->place, &y->place);
}

bool session_hits_begins(const struct session_hits *h, size_t number)
{
    const struct session_hit *one = &h->at[number];

    return number == 0 || one[-1].history != one->history || one[-1].session != one->session;
}

void session_hits_group(struct session_hits *h)
{
    if (h->count == 0)
        return;
    qsort(h->at, h->count, sizeof *h->at, by_session);
    for (size_t i = 0; i < h->count; i++)
        h->at[i].newest = session_hits_begins(h, i) ? h->at[i].place : h->at[i - 1].newest;
    qsort(h->at, h->count, sizeof *h->at, newest_session_first);
}

/* ---- texts ---- */

int session_texts_of(struct session_texts *t, const struct query *q, struct err *e)
{
    size_t count = query_words(q);

    *t = (struct session_texts){.at = mem_zalloc((count + 1) * sizeof *t->at)};
    pattern_init(&t->any);
    for (size_t i = 0; i < count; i++) {
        pattern_init(&t->at[t->count++]);
        if (query_add_word(q, i, &t->at[i], e) < 0 || query_add_word(q, i, &t->any, e) < 0) {
            session_texts_release(t);
            return -1;
        }
    }
    return count > 0 ? 0 : pattern_add(&t->any, STR(""), e);
}

void session_texts_release(struct session_texts *t)
{
    for (size_t i = 0; i < t->count; i++)
        pattern_release(&t->at[i]);
    free(t->at);
    pattern_release(&t->any);
    *t = (struct session_texts){0};
}

bool session_texts_help(const struct session_texts *t, const struct query *q, size_t may_lack)
{
    size_t count = t->count;

    for (unsigned needs = may_lack == 0 ? query_needs(q) : 0; needs; needs &= needs - 1)
        count++;
    return count > 1;
}

/* ---- the search ---- */

/* A session with hits, by its number in the hits. */
struct session_held {
    uint64_t texts;  /* a bit for each of the wanted texts that it holds */
    unsigned fields; /* those of query_needs that it has */
    bool refused;    /* it holds something unwanted */
};

/* Returns the session of a hit, or NULL if it has none and is not `added`. */
static struct session_held *held_by(struct session_search *g, const struct hit *hit, bool added)
{
    struct hash_map *sessions = &g->sessions;
    struct str id = hit->message->session_id;
    const size_t *number = sessions->count > 0 ? hash_map_find(sessions, id) : NULL;
    size_t i;

    if (number)
        return &g->held[*number];
    if (!added)
        return NULL;
    i = hash_map_number(sessions, &id);
    g->held = mem_grow(g->held, &g->cap, i + 1, sizeof *g->held);
    g->held[i] = (struct session_held){0};
    return &g->held[i];
}

/* Returns 1 and the next hit, 0 at the end, -1 with *e set. */
static int next(struct session_search *g, struct search *s, struct hit *hit, struct err *e)
{
    struct err reason = ERR_INIT;
    int found;

    while ((found = search_next(s, hit, &reason)) == SEARCH_FAILED) {
        if (g->unmatched)
            g->unmatched(g->ctx, hit, &reason);
        err_release(&reason);
    }
    if (found < 0)
        *e = reason;
    return found;
}

static void close_search(struct session_search *g, struct search *s)
{
    if (!g->noted) {
        g->bad = s->scan.bad;
        g->learned = search_learned(s);
    }
    g->noted = true;
    search_close(s);
}

/* How many of the texts that `texts` has no bit for are among the first `count`. */
static size_t missing(uint64_t texts, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += !(texts >> i & 1);
    return found;
}

/* Looks for a text. Only sessions that hold enough of those before it are of interest. */
static int find_text(struct session_search *g, size_t number, struct err *e)
{
    uint64_t bit = UINT64_C(1) << number;
    struct search s;
    struct hit hit;
    int found;

    if (g->open(g->ctx, &s, &g->wanted[number], e) < 0)
        return -1;
    while ((found = next(g, &s, &hit, e)) > 0) {
        struct session_held *held = held_by(g, &hit, number <= g->may_lack);

        if (!held || missing(held->texts, number) > g->may_lack)
            continue;
        if (!g->newest_only || !(held->texts & bit))
            session_hits_add(&g->hits, g->history, (size_t)(held - g->held), &hit);
        held->texts |= bit;
    }
    close_search(g, &s);
    return found;
}

/* Looks at a message for the fields that a message of the session must have, or none may have. */
static void look_for_fields(struct session_search *g, const struct hit *hit)
{
    struct session_held *held = held_by(g, hit, g->wanted_count == 0);
    unsigned met = 0, before;

    if (!held)
        return;
    before = held->fields;
    held->refused |= !query_meets(g->query, hit->message, &met);
    held->fields |= met;
    if (g->newest_only ? held->fields != before
                       : met || (g->wanted_count == 0 && !query_needs(g->query)))
        session_hits_add(&g->hits, g->history, (size_t)(held - g->held), hit);
}

static int find_fields(struct session_search *g, struct err *e)
{
    struct search s;
    struct pattern every;
    struct hit hit;
    int found;

    pattern_init(&every);
    (void)pattern_add(&every, STR(""), NULL);
    found = g->open(g->ctx, &s, &every, e);
    if (found == 0) {
        while ((found = next(g, &s, &hit, e)) > 0)
            look_for_fields(g, &hit);
        close_search(g, &s);
    }
    pattern_release(&every);
    return found;
}

static int find_unwanted(struct session_search *g, struct err *e)
{
    struct search s;
    struct hit hit;
    int found;

    if (g->open(g->ctx, &s, &g->query->unwanted, e) < 0)
        return -1;
    s.any_order = true;
    while ((found = next(g, &s, &hit, e)) > 0) {
        struct session_held *held = held_by(g, &hit, false);

        if (held)
            held->refused = true;
    }
    close_search(g, &s);
    return found;
}

/* Keeps the hits of the sessions that hold enough, each once, in their order. */
static void settle(struct session_search *g)
{
    unsigned needs = query_needs(g->query);
    struct session_hits *k = &g->hits;
    size_t count = 0;

    session_hits_group(k);
    for (size_t i = 0; i < k->count; i++) {
        const struct session_held *held = &g->held[k->at[i].session];

        if (missing(held->texts, g->wanted_count) <= g->may_lack && held->fields == needs &&
            !held->refused && (count == 0 || k->at[count - 1].place.at != k->at[i].place.at))
            k->at[count++] = k->at[i];
    }
    k->count = count;
}

int session_search_run(struct session_search *g, struct err *e)
{
    int result = 0;

    g->query->in_session = true;
    for (size_t i = 0; i < g->wanted_count && result == 0; i++)
        result = find_text(g, i, e);
    if (result == 0 && (query_has_needs(g->query) || g->wanted_count == 0))
        result = find_fields(g, e);
    if (result == 0 && g->query->unwanted.count > 0)
        result = find_unwanted(g, e);
    if (result == 0)
        settle(g);
    return result;
}

void session_search_release(struct session_search *g)
{
    search_learned_free(g->learned, NULL);
    session_hits_release(&g->hits);
    hash_map_release(&g->sessions);
    free(g->held);
}

int session_search_read(struct search *s, struct context_item place, struct buf *line,
                        struct hit *hit, struct err *e)
{
    if (scan_again(&s->scan, place.at, place.n, line, e) < 0 ||
        search_again(s, buf_str(line), hit, e) < 0)
        return -1;
    hit->found = place.hit;
    return 0;
}
