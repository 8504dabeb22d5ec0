#include "chathist/search/session_search.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/history/order.h"

/* ---- hits ---- */

static struct session_hit *push_hit(struct session_hits *h, size_t count)
{
    h->at = mem_grow(h->at, &h->cap, h->count + count, sizeof *h->at);
    h->count += count;
    return h->at + h->count - count;
}

void session_hits_add(struct session_hits *h, size_t history, size_t session, const struct hit *hit)
{
    *push_hit(h, 1) =
        (struct session_hit){.place = {hit->line.at, hit->line.text.n, hit->found, hit->time},
                             .history = history,
                             .session = session,
                             .result = hit->message->role == ROLE_TOOL};
}

void session_hits_add_all(struct session_hits *h, const struct session_hits *other)
{
    struct session_hit *to = push_hit(h, other->count);

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

static int by_session_best(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;

    if (x->history == y->history && x->session == y->session && x->result != y->result)
        return x->result ? 1 : -1;
    return by_session(a, b);
}

/* Compares sessions, but not the hits of one. */
static int compare_sessions(const struct session_hit *x, const struct session_hit *y)
{
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->first.time == y->first.time && x->history != y->history)
        return x->history < y->history ? -1 : 1;
    return newer(&x->first, &y->first);
}

static int newest_session_first(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;
    int order = compare_sessions(x, y);

    return order != 0 ? order : newer(&x->place, &y->place);
}

static int best_session_first(const void *a, const void *b)
{
    const struct session_hit *x = a, *y = b;
    int order = compare_sessions(x, y);

    if (order == 0 && x->result != y->result)
        return x->result ? 1 : -1;
    return order != 0 ? order : newer(&x->place, &y->place);
}

bool session_hits_begins(const struct session_hits *h, size_t number)
{
    const struct session_hit *one = &h->at[number];

    return number == 0 || one[-1].history != one->history || one[-1].session != one->session;
}

void session_hits_group(struct session_hits *h, bool best)
{
    if (h->count == 0)
        return;
    qsort(h->at, h->count, sizeof *h->at, best ? by_session_best : by_session);
    for (size_t i = 0; i < h->count; i++) {
        struct session_hit *one = &h->at[i];

        if (!session_hits_begins(h, i)) {
            one->first = one[-1].first;
            one->rank = one[-1].rank;
        } else {
            one->first = one->place;
            one->rank = one->rank / 2 * 2 + (best && one->result);
        }
    }
    qsort(h->at, h->count, sizeof *h->at, best ? best_session_first : newest_session_first);
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
    g->held = hash_map_values(sessions, g->held, sizeof *g->held);
    return &g->held[i];
}

/* Returns 1 and the next hit, 0 at the end, -1 with *e set, or SEARCH_PAUSED. */
static int next_in_text(struct session_search *g, struct search *s, struct hit *hit, struct err *e)
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

/* Returns how many of the first `count` texts `texts` has no bit for. */
static size_t missing(uint64_t texts, size_t count)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += !(texts >> i & 1);
    return found;
}

/* Records that a message holds the text of this step. Only sessions that hold enough of the texts
 * before it are of interest. */
static void add_text_of_step(struct session_search *g, const struct hit *hit)
{
    uint64_t bit = UINT64_C(1) << g->step;
    struct session_held *held = held_by(g, hit, g->step <= g->may_lack);

    if (!held || missing(held->texts, g->step) > g->may_lack)
        return;
    if (!g->newest_only || !(held->texts & bit))
        session_hits_add(&g->hits, g->history, (size_t)(held - g->held), hit);
    held->texts |= bit;
}

/* Checks a message for the fields that a message of the session must have, or none may have. */
static void check_session_fields(struct session_search *g, const struct hit *hit)
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

/* Returns the pattern of this step, or NULL if there is nothing to look for. */
static struct pattern *pattern_of_step(struct session_search *g)
{
    if (g->step < g->wanted_count)
        return &g->wanted[g->step];
    if (g->step > g->wanted_count)
        return g->query->unwanted.count > 0 ? &g->query->unwanted : NULL;
    if (!query_has_needs(g->query) && g->wanted_count > 0)
        return NULL;
    if (g->every.count == 0) {
        pattern_init(&g->every);
        (void)pattern_add(&g->every, STR(""), NULL);
    }
    return &g->every;
}

/* Looks at the messages of this step. Returns as session_search_run does. */
static int run_step(struct session_search *g, struct pattern *pattern, struct err *e)
{
    struct session_held *held;
    struct hit hit;
    int found;

    if (!g->opened && g->open(g->ctx, &g->search, pattern, e) < 0)
        return -1;
    if (!g->opened)
        g->search.any_order = g->step > g->wanted_count;
    g->opened = true;
    while ((found = next_in_text(g, &g->search, &hit, e)) == 1) {
        if (g->step < g->wanted_count) {
            g->common[g->step]++;
            add_text_of_step(g, &hit);
        }
        if (g->step == g->wanted_count)
            check_session_fields(g, &hit);
        else if (g->step > g->wanted_count && (held = held_by(g, &hit, false)))
            held->refused = true;
    }
    if (found == SEARCH_PAUSED)
        return found;
    if (!g->noted) {
        g->bad = g->search.scan.bad;
        g->learned = search_learned(&g->search);
    }
    g->noted = true;
    g->opened = false;
    search_close(&g->search);
    return found;
}

/* Returns how many texts are in more messages than one that a session lacks, so that a session
 * without a common word counts more than one without a rare word. */
static size_t rank_without(const struct session_search *g, uint64_t texts)
{
    size_t rank = 0, lacked = 0;

    while (lacked < g->wanted_count && texts >> lacked & 1)
        lacked++;
    for (size_t i = 0; lacked < g->wanted_count && i < g->wanted_count; i++)
        rank += g->common[i] > g->common[lacked];
    return rank;
}

/* Keeps the hits of the sessions that hold enough, each once, in their order. */
static void select_sessions(struct session_search *g)
{
    unsigned needs = query_needs(g->query);
    struct session_hits *k = &g->hits;
    size_t count = 0;

    session_hits_group(k, false);
    for (size_t i = 0; i < k->count; i++) {
        const struct session_held *held = &g->held[k->at[i].session];

        k->at[i].rank = rank_without(g, held->texts) * 2;

        if (missing(held->texts, g->wanted_count) <= g->may_lack && held->fields == needs &&
            !held->refused && (count == 0 || k->at[count - 1].place.at != k->at[i].place.at))
            k->at[count++] = k->at[i];
    }
    k->count = count;
    session_hits_group(k, g->best);
}

int session_search_run(struct session_search *g, struct err *e)
{
    g->query->in_session = true;
    for (; g->step <= g->wanted_count + 1; g->step++) {
        struct pattern *pattern = pattern_of_step(g);
        int result = pattern ? run_step(g, pattern, e) : 0;

        if (result != 0)
            return result;
    }
    select_sessions(g);
    return 0;
}

void session_search_release(struct session_search *g)
{
    if (g->opened)
        search_close(&g->search);
    if (g->every.count > 0)
        pattern_release(&g->every);
    search_learned_free(g->learned, NULL, false);
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
