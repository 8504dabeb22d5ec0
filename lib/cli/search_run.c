#include "chathist/cli/search_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/search/match_context.h"
#include "chathist/search/search.h"
#include "chathist/search/session_search.h"

/* ---- searching ---- */

static void failed(struct search_run *r, struct err *e)
{
    r->failed = true;
    warn_err(e);
    err_release(e);
}

/* This many messages that cannot be matched are named; the others are counted. */
#define NAMED_MAX 3

static void report_unmatched(void *ctx, const struct hit *hit, const struct err *e)
{
    struct search_run *r = ctx;

    r->failed = true;
    if (r->unmatched++ < NAMED_MAX)
        warnf("cannot search message '%.*s': %s", (int)hit->message->id.n, hit->message->id.p,
              err_text(e));
}

/* Calls search_next or search_each. A message that cannot be matched is reported. */
static int next(struct search_run *r, struct search *s, struct hit *hit, bool each)
{
    struct err e = ERR_INIT;
    int found;

    while ((found = each ? search_each(s, hit, &e) : search_next(s, hit, &e)) == SEARCH_FAILED) {
        report_unmatched(r, hit, &e);
        err_release(&e);
        if (each)
            return 1;
    }
    if (found < 0)
        failed(r, &e);
    return found;
}

static void print_match(void *ctx, const struct hit *hit, size_t at, size_t n)
{
    struct search_run *r = ctx;

    hits_print_match(&r->out, hit, at, n, &r->form);
}

static void print_matches(struct search_run *r, struct search *s, struct hit *hit)
{
    struct err e = ERR_INIT;

    if (search_matches(s, hit, print_match, r, &e) < 0)
        failed(r, &e);
}

static void print(struct search_run *r, struct search *s, struct hit *hit)
{
    if (r->choice.common.json)
        out_json_line(&r->out, hit->message->line);
    else if (!r->only)
        hits_print(&r->out, hit, &r->form);
    else if (!r->invert)
        print_matches(r, s, hit);
}

/* Prints messages that this search has returned before, the last one first. */
static void print_again(struct search_run *r, struct search *s, const struct context_item *items,
                        size_t count)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct hit hit = {0};

    scan_let_go(&s->scan);
    while (count-- > 0) {
        if (session_search_read(s, items[count], &line, &hit, &e) < 0)
            failed(r, &e);
        else
            print(r, s, &hit);
    }
    buf_release(&line);
}

/* Counts a hit. Returns false if it is beyond the limit. */
static bool within_limit(struct search_run *r)
{
    if (r->count < r->choice.limit) {
        r->count++;
        return true;
    }
    r->done = r->cut = true;
    return false;
}

/* Prints hits in their order or, with --reverse, the last one first. */
static void print_kept(struct search_run *r, struct search *s, const struct session_hits *h)
{
    for (size_t i = 0; i < h->count; i++)
        print_again(r, s, &h->at[r->reverse ? h->count - 1 - i : i].place, 1);
}

/* The hits of a session stand together on a terminal, where people read them. */
static bool is_grouped(const struct search_run *r)
{
    return r->out.terminal && !r->choice.common.json;
}

static void run_messages(struct search_run *r, struct search *s)
{
    struct session_hits kept = {0};
    struct hit hit;

    while (next(r, s, &hit, false) > 0 && within_limit(r)) {
        if (r->reverse || is_grouped(r))
            session_hits_add(&kept, &hit);
        else
            print(r, s, &hit);
    }
    if (is_grouped(r))
        session_hits_group(&kept);
    print_kept(r, s, &kept);
    session_hits_release(&kept);
}

static int newest_first(const void *a, const void *b)
{
    off_t x = *(const off_t *)a, y = *(const off_t *)b;

    return (x < y) - (x > y);
}

/* Collects the hits of a search, or only those that are kept, with the messages around them. After
 * the last hit within the limit, further hits count only as context. */
static void find_context(struct search_run *r, struct search *s, const struct session_hits *kept,
                         struct match_context *around)
{
    size_t count = kept ? kept->count : 0, seen = 0;
    off_t *places = mem_zalloc(count * sizeof *places);
    struct hit hit;

    for (size_t i = 0; i < count; i++)
        places[i] = kept->at[i].place.at;
    if (count > 0)
        qsort(places, count, sizeof *places, newest_first);
    while (((kept ? seen < count : !r->done) || match_context_wants_more(around)) &&
           next(r, s, &hit, true) > 0) {
        bool counts =
            kept ? seen < count && hit.line.at == places[seen] : hit.found && within_limit(r);

        seen += counts;
        match_context_add(around, hit.message->session_id,
                          (struct context_item){hit.line.at, hit.line.text.n, counts});
    }
    free(places);
}

static void run_context(struct search_run *r, struct search *s, const struct session_hits *kept)
{
    struct match_context around;

    match_context_init(&around, r->before, r->after);
    find_context(r, s, kept, &around);
    for (size_t i = 0; i < around.count; i++) {
        const struct context_group *group = &around.groups[r->reverse ? around.count - 1 - i : i];

        if (r->listed && !r->choice.common.json)
            out_raw(&r->out, STR("--\n"));
        r->listed = true;
        print_again(r, s, group->at, group->count);
    }
    match_context_release(&around);
}

static void run_sessions(struct search_run *r, struct search *s)
{
    bool without = r->what == SEARCH_SESSIONS_WITHOUT;
    struct hash_map found = {0}, all = {0};
    const struct hash_map *listed = without ? &all : &found;
    struct hit hit;

    while (next(r, s, &hit, without) > 0) {
        struct str id = hit.message->session_id;

        if (!hit.asked)
            continue;
        r->count += hit.found;
        if (without)
            hash_map_add(&all, id);
        if (hit.found && hash_map_add(&found, id) && !without && !r->reverse)
            hits_print_session(&r->out, id, &r->form);
    }
    for (size_t i = 0; i < listed->count && (without || r->reverse); i++) {
        struct str id = listed->entries[r->reverse ? listed->count - 1 - i : i].key;

        if (without && hash_map_find(&found, id))
            continue;
        r->listed = true;
        hits_print_session(&r->out, id, &r->form);
    }
    hash_map_release(&found);
    hash_map_release(&all);
}

static void run_count(struct search_run *r, struct search *s)
{
    bool any = r->what == SEARCH_NOTHING;
    struct err e = ERR_INIT;
    struct hit hit;
    uint64_t count = 0;
    int counted = search_count(s, any, &count, &e);

    if (counted < 0)
        failed(r, &e);
    while (counted == 0 && !(any && count > 0) && next(r, s, &hit, false) > 0)
        count++;
    r->count += count;
    r->done = any && count > 0;
}

static void note_searched(struct search_run *r, uint64_t bad, struct search_learned *learned)
{
    r->searched =
        mem_grow(r->searched, &r->searched_cap, r->searched_count + 1, sizeof *r->searched);
    r->searched[r->searched_count++] = (struct searched){r->history, bad, learned};
}

/* Opens a search as the options want it. Returns 0, or -1 with *e set. */
static int open_search(void *ctx, struct search *s, struct pattern *pattern, struct err *e)
{
    struct search_run *r = ctx;
    const struct history *h = r->history;

    if (search_open(s, h->dir_fd, h->path, pattern, &r->choice.filter, SCAN_BACKWARD, e) < 0)
        return -1;
    s->in = r->in;
    s->query = &r->query;
    s->threads = r->threads;
    s->history = h;
    return 0;
}

/* ---- what a session holds ---- */

static void print_sessions(struct search_run *r, const struct session_search *g)
{
    const struct session_hits *k = &g->hits;

    for (size_t i = 0; i < k->count; i++) {
        size_t at = r->reverse ? k->count - 1 - i : i;
        const struct session_hit *one = &k->at[at];

        if (at == 0 || k->at[at - 1].session != one->session)
            hits_print_session(&r->out, session_search_id(g, one->session), &r->form);
    }
}

/* Prints the messages of a session that hold some of the texts. Returns 0, or -1 with *e set. */
static int print_in_session(struct search_run *r, const struct session_hits *hits, struct err *e)
{
    struct search s;

    if (open_search(r, &s, &r->pattern, e) < 0)
        return -1;
    if (r->form.context)
        run_context(r, &s, hits);
    else
        print_kept(r, &s, hits);
    search_close(&s);
    return 0;
}

/* Finds the sessions of which the messages together hold all texts. */
static void run_in_session(struct search_run *r)
{
    struct session_search g = {.wanted = r->wanted,
                               .wanted_count = r->wanted_count,
                               .may_lack = r->may_lack,
                               .query = &r->query,
                               .open = open_search,
                               .unmatched = report_unmatched,
                               .ctx = r};
    struct err e = ERR_INIT;
    int result = session_search_run(&g, &e);
    size_t most = r->choice.limit - (r->what == SEARCH_MESSAGES ? (size_t)r->count : 0);

    if (result == 0 && r->what == SEARCH_MESSAGES && g.hits.count > most) {
        g.hits.count = most;
        r->cut = r->done = true;
    }
    if (result == 0) {
        r->count += g.hits.count;
        r->done |= r->what == SEARCH_NOTHING && r->count > 0;
    }
    if (result == 0 && r->what == SEARCH_SESSIONS)
        print_sessions(r, &g);
    else if (result == 0 && r->what == SEARCH_MESSAGES && g.hits.count > 0)
        result = print_in_session(r, &g.hits, &e);
    if (result < 0)
        failed(r, &e);
    note_searched(r, g.bad, g.learned);
    g.learned = NULL;
    session_search_release(&g);
}

/* Prepares the query for a history. Returns false if it is not to be searched. */
static bool enter(struct search_run *r, const struct history *h)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int entered;

    history_name_add(&name, h);
    entered = query_enter(&r->query, h, buf_str(&name), &e);
    if (entered < 0)
        failed(r, &e);
    buf_release(&name);
    return entered > 0;
}

static void search_history(struct search_run *r, const struct history *h)
{
    struct search search;
    struct err e = ERR_INIT;

    if (r->done || !choose_in(&r->choice, h) || !enter(r, h))
        return;
    r->form = (struct hits_form){.history = choose_many(&r->choice) ? h->path : NULL,
                                 .context = r->before > 0 || r->after > 0};
    r->history = h;
    if (r->in_session) {
        run_in_session(r);
        return;
    }
    if (open_search(r, &search, &r->pattern, &e) < 0) {
        failed(r, &e);
        return;
    }
    search.invert = r->invert;
    if (r->what == SEARCH_COUNT || r->what == SEARCH_NOTHING)
        run_count(r, &search);
    else if (r->what != SEARCH_MESSAGES)
        run_sessions(r, &search);
    else if (r->form.context)
        run_context(r, &search, NULL);
    else
        run_messages(r, &search);
    note_searched(r, search.scan.bad, search_learned(&search));
    search_close(&search);
}

/* Writes to the skip indexes what the searches learned. The hits are flushed first, so that only a
 * reader that waits for the end of a pipe waits for this. */
static void update_indexes(struct search_run *r)
{
    for (size_t i = 0; i < r->searched_count; i++) {
        const struct searched *one = &r->searched[i];
        bool flushed = one->learned && out_flush(&r->out) == 0;

        search_learned_free(one->learned, flushed ? one->history : NULL);
    }
}

/* Returns whether any message that was searched passes this filter, or an error prevents an
 * answer. */
static bool any_passes(const struct search_run *r, const struct filter *f)
{
    int found = 0;

    for (size_t i = 0; i < r->searched_count && found == 0; i++) {
        const struct history *h = r->searched[i].history;
        struct pattern nothing;
        struct search search;
        struct hit hit;

        pattern_init(&nothing);
        if (search_open(&search, h->dir_fd, h->path, &nothing, f, SCAN_BACKWARD, NULL) < 0)
            return true;
        search.invert = true;
        found = search_next(&search, &hit, NULL);
        search_close(&search);
    }
    return found != 0;
}

/* Returns whether any message has this value; `list` is the list of the empty filter for it. */
static bool any_has(const struct search_run *r, struct filter *f, struct filter_list *list,
                    struct str value)
{
    bool found;

    filter_add(list, value);
    found = any_passes(r, f);
    filter_release(f);
    return found;
}

/* After a search without a hit, names the roles and models that no message has: they were most
 * likely mistyped. */
static void report_unused(const struct search_run *r)
{
    const struct filter_list *roles = &r->choice.filter.roles, *models = &r->choice.filter.models;
    struct filter f = {0};

    for (size_t i = 0; i < roles->count; i++)
        if (!any_has(r, &f, &f.roles, roles->at[i]))
            warnf("no message has the role '%.*s'", (int)roles->at[i].n, roles->at[i].p);
    for (size_t i = 0; i < models->count; i++)
        if (!any_has(r, &f, &f.models, models->at[i]))
            warnf("no answer is from the model '%.*s'", (int)models->at[i].n, models->at[i].p);
}

/* Searches again for the sessions that hold all texts but one. */
static void search_nearly(struct search_run *r)
{
    for (size_t i = 0; i < r->searched_count; i++)
        search_learned_free(r->searched[i].learned, NULL);
    r->searched_count = 0;
    r->may_lack = 1;
    for (size_t i = 0; i < r->choice.histories.count; i++)
        search_history(r, &r->choice.histories.at[i]);
    if (r->count > 0 && !r->choice.common.quiet)
        warnf("no session has all of the texts; these have all but one");
}

int search_run_histories(struct search_run *r)
{
    bool found;
    int absent;

    for (size_t i = 0; i < r->choice.histories.count; i++)
        search_history(r, &r->choice.histories.at[i]);
    if (r->nearly && r->count == 0 && r->wanted_count > 1 && !r->failed)
        search_nearly(r);
    found = r->what == SEARCH_SESSIONS_WITHOUT ? r->listed : r->count > 0;
    if (r->what == SEARCH_COUNT)
        out_number(&r->out, r->count);
    out_page_end(&r->out);
    if (r->cut)
        hintf(false, "more than %zu messages match (--limit)", r->choice.limit);
    if (r->unmatched > NAMED_MAX)
        warnf("cannot search %" PRIu64 " more message%s", r->unmatched - NAMED_MAX,
              r->unmatched == NAMED_MAX + 1 ? "" : "s");
    for (size_t i = 0; i < r->searched_count; i++)
        start_report_bad(r->searched[i].history, r->searched[i].bad, r->choice.common.quiet);
    absent = choose_report(&r->choice);
    if (!found && !r->failed && r->searched_count > 0 && !r->choice.common.quiet)
        report_unused(r);
    if (!found && !r->failed && r->searched_count > 0 && r->pattern.group > 0 && !r->in_session &&
        !r->invert && r->what != SEARCH_SESSIONS_WITHOUT && !r->choice.common.quiet)
        hintf(false, "no message has all of the texts; --in-session finds the sessions that do");
    update_indexes(r);
    free(r->searched);
    /* As in grep, an error counts more than a hit, except with --quiet. */
    if (r->failed && !(r->what == SEARCH_NOTHING && found))
        return exit_code(ERR_FAILURE);
    return found ? absent : exit_code(ERR_ABSENT);
}
