#include "chathist/cli/search_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/hash_map.h"
#include "chathist/history/order.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/like.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/start.h"
#include "chathist/search/forms.h"
#include "chathist/search/match_context.h"
#include "chathist/search/search.h"
#include "chathist/search/session_search.h"

/* A history that is searched. */
struct search_part {
    struct search_run *run;
    const struct history *history;
    struct query query;    /* a copy, prepared for this history */
    struct filter filter;  /* a copy, with the sessions of this history, */
    struct hash_map named; /* sessions by id; it owns the ids */
    struct search search;
    bool open, searched;      /* the search is open, or was */
    struct hash_map sessions; /* the sessions with a hit */
    struct hash_map without;  /* -L: those that were listed */
    uint64_t bad;             /* lines that are not valid messages: each search meets them again */
    struct search_learned *learned;
};

/* ---- texts ---- */

static void die_if_failed(int result, const struct err *e)
{
    if (result < 0)
        die_usage("%s", err_text(e));
}

/* Begins the next wanted text: a separate pattern and, without --in-session, a group of the
 * pattern. */
static void begin_wanted_text(struct search_run *r)
{
    struct err e = ERR_INIT;
    struct pattern *p;

    if (!r->in_session)
        die_if_failed(r->pattern.count > 0 ? pattern_next_group(&r->pattern, &e) : 0, &e);
    if (r->wanted_count == PATTERN_GROUPS)
        die_usage("at most %d texts can be searched for at once", PATTERN_GROUPS);
    p = &r->wanted[r->wanted_count++];
    pattern_init(p);
    p->case_sensitive = r->pattern.case_sensitive;
    p->words = r->pattern.words;
    p->regex = r->pattern.regex;
}

/* Adds an alternative to the current text: `text` or, if it is NULL, a word of the query. */
static void add_alternative(struct search_run *r, const char *text, size_t word)
{
    struct pattern *to[] = {&r->pattern, &r->wanted[r->wanted_count - 1]};
    struct err e = ERR_INIT;

    for (size_t i = 0; i < 2; i++)
        die_if_failed(text ? pattern_add(to[i], str_of(text), &e)
                           : query_add_word(&r->query, word, to[i], &e),
                      &e);
}

static void release_texts(struct search_run *r)
{
    for (size_t i = 0; i < r->wanted_count; i++)
        pattern_release(&r->wanted[i]);
    free(r->wanted);
    r->wanted = NULL;
    r->wanted_count = 0;
    pattern_release(&r->pattern);
    query_release(&r->query);
}

void search_run_set_texts(struct search_run *r, const char *query)
{
    struct pattern options = r->pattern;
    struct err e = ERR_INIT;

    release_texts(r);
    r->pattern.case_sensitive = options.case_sensitive;
    r->pattern.words = options.words;
    r->pattern.regex = options.regex;
    r->wanted = mem_zalloc(PATTERN_GROUPS * sizeof *r->wanted);
    if (r->texts.count > 0)
        begin_wanted_text(r);
    for (size_t i = 0; i < r->texts.count; i++)
        add_alternative(r, r->texts.at[i], 0);
    for (size_t i = 0; i < r->operands.count; i++) {
        begin_wanted_text(r);
        add_alternative(r, r->operands.at[i], 0);
    }
    if (query)
        die_if_failed(query_parse(&r->query, str_of(query), time_now(), &e), &e);
    for (size_t i = 0; i < query_words(&r->query); i++) {
        begin_wanted_text(r);
        add_alternative(r, NULL, i);
    }
    if (r->pattern.count == 0)
        die_if_failed(pattern_add(&r->pattern, STR(""), &e), &e);
}

void search_run_release(struct search_run *r)
{
    release_texts(r);
    free(r->texts.at);
    free(r->operands.at);
    words_release(&r->like_words);
    brief_release(&r->brief);
    choose_release(&r->choice);
}

/* ---- searching ---- */

static void search_failed(struct search_run *r, struct err *e)
{
    r->failed = true;
    warn_err(e);
    err_release(e);
}

/* This many messages that cannot be matched are named; the others are counted. */
#define NAMED_MAX 3

static void report_unmatched(struct search_run *r, const struct hit *hit, const struct err *e)
{
    r->failed = true;
    if (r->unmatched++ < NAMED_MAX)
        warnf("cannot search message '%.*s': %s", (int)hit->message->id.n, hit->message->id.p,
              err_text(e));
}

/* Reports a message that cannot be matched, if the last search_next or search_merge_next returned
 * SEARCH_FAILED, or another error. Returns whether the search goes on without a hit. */
static bool goes_on(struct search_run *r, int found, const struct hit *hit, struct err *e)
{
    if (found == SEARCH_FAILED) {
        report_unmatched(r, hit, e);
        err_release(e);
    } else if (found < 0) {
        search_failed(r, e);
    }
    return found == SEARCH_FAILED || found < 0;
}

static void print_match(void *ctx, const struct hit *hit, size_t at, size_t n)
{
    struct search_run *r = ctx;

    hits_print_match(&r->out, hit, at, n, &r->form);
}

static void print_line(struct search_run *r, const struct hit *hit)
{
    struct buf line = BUF_INIT(SIZE_MAX);
    struct str found = hit->text.n > 0 ? (struct str){hit->text.p + hit->at, hit->len} : STR("");

    r->brief.place = r->form.history;
    if (!brief_changes(&r->brief))
        out_json_line(&r->out, hit->message->line);
    else if (brief_add(&r->brief, hit->message->line, found, &line) > 0)
        out_json_line(&r->out, buf_str(&line));
    buf_release(&line);
}

static void print(struct search_run *r, struct search *s, struct hit *hit)
{
    struct err e = ERR_INIT;

    if (r->choice.common.json)
        print_line(r, hit);
    else if (!r->only)
        hits_print(&r->out, hit, &r->form);
    else if (!r->invert && search_matches(s, hit, print_match, r, &e) < 0)
        search_failed(r, &e);
}

/* ---- one history ---- */

/* Opens a search of a part as the options want it. Returns 0, or -1 with *e set. */
static int open_part_search(void *ctx, struct search *s, struct pattern *pattern, struct err *e)
{
    struct search_part *p = ctx;
    const struct search_run *r = p->run;

    if (search_open(s, p->history->dir_fd, p->history->path, pattern, &p->filter, e) < 0)
        return -1;
    s->in = r->in;
    s->query = &p->query;
    s->threads = r->threads;
    s->history = p->history;
    s->invert = r->invert;
    return 0;
}

/* Opens the search of a part. Returns false, and reports that, if it cannot be read. */
static bool part_open(struct search_part *p)
{
    struct err e = ERR_INIT;

    p->open = open_part_search(p, &p->search, &p->run->pattern, &e) == 0;
    if (!p->open)
        search_failed(p->run, &e);
    p->searched |= p->open;
    return p->open;
}

static void raise_bad(struct search_part *p, uint64_t bad)
{
    p->bad = bad > p->bad ? bad : p->bad;
}

static void part_close(struct search_part *p)
{
    if (!p->open)
        return;
    raise_bad(p, p->search.scan.bad);
    if (!p->learned)
        p->learned = search_learned(&p->search);
    search_close(&p->search);
    p->open = false;
}

static void close_all(struct search_run *r)
{
    for (size_t i = 0; i < r->count_parts; i++)
        part_close(&r->parts[i]);
}

/* The history that the next rows are from. */
static void set_history(struct search_run *r, const struct search_part *p)
{
    const char *path = choose_many(&r->choice) ? p->history->path : NULL;

    if (path != r->form.history)
        r->form.headed = false;
    r->form.history = path;
}

/* Reads a message again that the search of a part has returned before. */
static bool read_again(struct search_part *p, struct context_item place, struct buf *line,
                       struct hit *hit)
{
    struct err e = ERR_INIT;

    if (!p->open)
        return false;
    if (session_search_read(&p->search, place, line, hit, &e) == 0)
        return true;
    search_failed(p->run, &e);
    return false;
}

/* Prints messages again, the last one first. */
static void print_again(struct search_run *r, struct search_part *p,
                        const struct context_item *items, size_t count)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct hit hit = {0};

    set_history(r, p);
    while (count-- > 0)
        if (read_again(p, items[count], &line, &hit))
            print(r, &p->search, &hit);
    buf_release(&line);
}

/* ---- all histories ---- */

/* Opens the searches of all parts, and merges their hits. */
static void open_all(struct search_run *r)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < r->count_parts; i++)
        if (part_open(&r->parts[i]) && search_merge_add(&r->merge, i, &r->parts[i].search, &e) < 0)
            search_failed(r, &e);
}

/* Returns the part of the next hit, or NULL after the last one. */
static struct search_part *next_hit(struct search_run *r, struct hit *hit)
{
    struct err e = ERR_INIT;
    size_t number;
    int found;

    while ((found = search_merge_next(&r->merge, &number, hit, &e)) != 0)
        if (!goes_on(r, found, hit, &e))
            return &r->parts[number];
    return NULL;
}

/* The hits of a session stand together on a terminal, where people read them. */
static bool is_grouped(const struct search_run *r)
{
    return r->out.terminal && !r->choice.common.json;
}

/* Returns whether results of tools are folded: people read the hits, and there are others, too. */
static bool folds_results(const struct search_run *r, const struct session_hits *kept)
{
    bool others = false;

    for (size_t i = 0; i < kept->count && !others; i++)
        others = !kept->at[i].result;
    return others && is_grouped(r) && !r->only;
}

/* Prints hits in their order or, with --reverse, the last one first. The first hit of a session is
 * never folded. */
static void print_kept(struct search_run *r, const struct session_hits *kept)
{
    bool folds = folds_results(r, kept);
    size_t folded = 0;

    for (size_t i = 0; i < kept->count; i++) {
        size_t at = r->reverse ? kept->count - 1 - i : i, next = at + !r->reverse;
        const struct session_hit *one = &kept->at[at];
        bool begins = session_hits_begins(kept, at);

        if (folds && one->result && !begins)
            folded++;
        else
            print_again(r, &r->parts[one->history], &one->place, 1);
        if (folded > 0 && (next == kept->count || session_hits_begins(kept, next))) {
            hits_print_folded(&r->out, folded);
            folded = 0;
        }
    }
}

/* ---- context ---- */

/* A group of messages, and its newest hit. */
struct around {
    struct search_part *part;
    const struct context_group *group;
    const struct context_item *newest;
};

static int newest_hit_first(const void *a, const void *b)
{
    const struct around *x = a, *y = b;

    if (x->newest->time == y->newest->time && x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return line_compare(x->newest->time, x->newest->at, y->newest->time, y->newest->at);
}

static int last_first(const void *a, const void *b)
{
    const struct context_item *x = a, *y = b;

    return (x->at < y->at) - (x->at > y->at);
}

/* Fills in the places of the hits that are of this part, the last in the file first. Returns their
 * number. */
static size_t hits_of(const struct search_run *r, const struct search_part *p,
                      const struct session_hits *kept, struct context_item *places)
{
    size_t count = 0;

    for (size_t i = 0; i < kept->count; i++)
        if (&r->parts[kept->at[i].history] == p)
            places[count++] = kept->at[i].place;
    if (count > 0)
        qsort(places, count, sizeof *places, last_first);
    return count;
}

/* The messages of a piece of a history, in the order of the file. */
struct piece {
    struct piece_message {
        struct context_item item;
        size_t id_at, id_n; /* the id of its session in `ids` */
    } * at;
    size_t count, cap;
    struct buf ids;
};

/* Reads the piece that ends at *end. Returns 1, 0 at the beginning of the file, or -1 with *e set.
 */
static int read_backwards(struct piece *piece, const struct search *s, off_t *end, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan part;
    struct line l;
    int more = scan_before(&s->scan, end, (off_t)SCAN_BLOCK, &part, e);

    piece->count = 0;
    buf_clear(&piece->ids);
    if (more <= 0)
        return more;
    if (s->scan.session)
        scan_only(&part, (struct str){s->scan.session, s->scan.session_len});
    while ((more = scan_message(&part, &m, &l, e)) > 0) {
        if (message_is_title(&m) && !(s->in & SEARCH_TITLE))
            continue;
        piece->at = mem_grow(piece->at, &piece->cap, piece->count + 1, sizeof *piece->at);
        piece->at[piece->count++] =
            (struct piece_message){{.at = l.at, .n = l.text.n}, piece->ids.len, m.session_id.n};
        buf_add_str(&piece->ids, m.session_id);
    }
    scan_close(&part);
    message_release(&m);
    return more < 0 ? -1 : 1;
}

/* Collects hits of a part, in the order of hits_of, with the messages around them. */
static void find_context(struct search_part *p, const struct context_item *places, size_t count,
                         struct match_context *around)
{
    struct piece piece = {.ids = BUF_INIT(SIZE_MAX)};
    struct search *s = &p->search;
    struct err e = ERR_INIT;
    off_t end = s->scan.size;
    size_t seen = 0;
    int more = 1;

    /* A line can be large, and is read again to be printed. */
    p->learned = search_learned(s);
    search_let_go(s);
    while ((seen < count || match_context_wants_more(around)) &&
           (more = read_backwards(&piece, s, &end, &e)) > 0) {
        for (size_t i = piece.count; i-- > 0;) {
            struct piece_message *m = &piece.at[i];

            if (seen < count && m->item.at == places[seen].at)
                m->item = places[seen++];
            match_context_add(around, (struct str){piece.ids.data + m->id_at, m->id_n}, m->item);
        }
    }
    if (more < 0)
        search_failed(p->run, &e);
    free(piece.at);
    buf_release(&piece.ids);
}

/* Adds the groups of a part to those of the parts before. */
static struct around *add_groups(struct around *all, size_t *count, struct search_part *p,
                                 const struct match_context *around)
{
    all = mem_resize(all, *count + around->count + 1, sizeof *all);
    for (size_t i = 0; i < around->count; i++) {
        const struct context_group *group = &around->groups[i];
        struct around one = {p, group, NULL};

        for (size_t k = 0; k < group->count; k++)
            if (group->at[k].hit && (!one.newest || group->at[k].time > one.newest->time))
                one.newest = &group->at[k];
        if (one.newest)
            all[(*count)++] = one;
    }
    return all;
}

/* Prints hits with the messages around them. */
static void print_context(struct search_run *r, const struct session_hits *kept)
{
    struct match_context *around = mem_zalloc(r->count_parts * sizeof *around);
    struct context_item *places = mem_zalloc(kept->count * sizeof *places);
    struct around *all = NULL;
    size_t count = 0;

    for (size_t i = 0; i < r->count_parts; i++) {
        size_t hits = hits_of(r, &r->parts[i], kept, places);

        match_context_init(&around[i], r->before, r->after);
        if (hits > 0 && r->parts[i].open)
            find_context(&r->parts[i], places, hits, &around[i]);
        all = add_groups(all, &count, &r->parts[i], &around[i]);
    }
    if (count > 0)
        qsort(all, count, sizeof *all, newest_hit_first);
    for (size_t i = 0; i < count; i++) {
        const struct around *one = &all[r->reverse ? count - 1 - i : i];

        if (i > 0 && !r->choice.common.json)
            out_raw(&r->out, STR("--\n"));
        print_again(r, one->part, one->group->at, one->group->count);
    }
    for (size_t i = 0; i < r->count_parts; i++)
        match_context_release(&around[i]);
    free(all);
    free(places);
    free(around);
}

/* ---- messages, sessions, numbers ---- */

/* Drops the hits beyond the limit. */
static void cut_hits(struct search_run *r, struct session_hits *hits)
{
    if (hits->count <= r->choice.limit)
        return;
    hits->count = r->choice.limit;
    r->cut = true;
}

static void run_messages(struct search_run *r)
{
    bool keeps = r->form.context || r->reverse || r->best || is_grouped(r);
    size_t limit = r->best ? SIZE_MAX : r->choice.limit;
    struct session_hits kept = {0};
    struct search_part *p;
    struct hit hit;

    open_all(r);
    while ((p = next_hit(r, &hit))) {
        struct str id = hit.message->session_id;

        if (!brief_wants(&r->brief, p->history, id))
            continue;
        r->cut = r->count >= limit;
        if (r->cut || r->brief.full)
            break;
        r->count++;
        set_history(r, p);
        if (keeps)
            session_hits_add(&kept, (size_t)(p - r->parts), hash_map_number(&p->sessions, &id),
                             &hit);
        else
            print(r, &p->search, &hit);
    }
    if (r->form.context && kept.count > 0) {
        print_context(r, &kept);
    } else {
        if (is_grouped(r) || r->best)
            session_hits_group(&kept, r->best);
        cut_hits(r, &kept);
        print_kept(r, &kept);
    }
    session_hits_release(&kept);
    close_all(r);
}

static void print_session(struct search_run *r, const struct search_part *p, struct str id)
{
    set_history(r, p);
    r->listed = true;
    hits_print_session(&r->out, id, &r->form);
}

/* Prints the sessions of the hits, each once, in their order; with `without`, only those that are
 * not in p->sessions. */
static void list_sessions(struct search_run *r, bool without)
{
    struct session_hits kept = {0};
    struct search_part *p;
    struct hit hit;

    while ((p = next_hit(r, &hit))) {
        struct hash_map *listed = without ? &p->without : &p->sessions;
        struct str id = hit.message->session_id;

        r->count++;
        if ((without && hash_map_find(&p->sessions, id)) || !hash_map_add(listed, id))
            continue;
        if (r->reverse)
            session_hits_add(&kept, (size_t)(p - r->parts), listed->count - 1, &hit);
        else
            print_session(r, p, id);
    }
    for (size_t i = kept.count; i-- > 0;) {
        const struct search_part *of = &r->parts[kept.at[i].history];
        const struct hash_map *listed = without ? &of->without : &of->sessions;

        print_session(r, of, listed->entries[kept.at[i].session].key);
    }
    session_hits_release(&kept);
}

/* Finds the sessions with a hit, and then those of the messages that are none. The second search
 * looks at every message and reports what the first one met, too. */
static void run_sessions_without(struct search_run *r)
{
    for (size_t i = 0; i < r->count_parts; i++) {
        struct search_part *p = &r->parts[i];
        struct err e = ERR_INIT;
        struct hit hit;
        int found;

        if (!part_open(p))
            continue;
        p->search.any_order = true;
        while ((found = search_next(&p->search, &hit, &e)) > 0)
            if (found == 1)
                hash_map_add(&p->sessions, hit.message->session_id);
        err_release(&e);
        part_close(p);
    }
    r->invert = !r->invert;
    open_all(r);
    list_sessions(r, true);
    close_all(r);
}

static void run_count(struct search_run *r)
{
    bool any = r->what == SEARCH_NOTHING;

    for (size_t i = 0; i < r->count_parts && !(any && r->count > 0); i++) {
        struct search_part *p = &r->parts[i];
        struct err e = ERR_INIT;
        struct hit hit;
        uint64_t count = 0;
        int counted, found;

        if (!part_open(p))
            continue;
        counted = search_count(&p->search, any, &count, &e);
        if (counted < 0)
            search_failed(r, &e);
        p->search.any_order = true;
        while (counted == 0 && !(any && count > 0) &&
               (found = search_next(&p->search, &hit, &e)) != 0) {
            count += !goes_on(r, found, &hit, &e);
            if (found < 0)
                break;
        }
        r->count += count;
        part_close(p);
    }
}

/* ---- what a session holds ---- */

static void count_unmatched(void *ctx, const struct hit *hit, const struct err *e)
{
    struct search_part *p = ctx;

    report_unmatched(p->run, hit, e);
}

static void print_session_hits(struct search_run *r, const struct session_hits *hits)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct hit hit = {0};

    for (size_t i = 0; i < hits->count; i++) {
        size_t at = r->reverse ? hits->count - 1 - i : i;
        struct search_part *p = &r->parts[hits->at[at].history];

        if (session_hits_begins(hits, at) && read_again(p, hits->at[at].place, &line, &hit))
            print_session(r, p, hit.message->session_id);
    }
    buf_release(&line);
}

/* Prints the sessions of the hits, those with a prompt or an answer first. */
static void run_sessions_best(struct search_run *r)
{
    struct session_hits kept = {0};
    struct search_part *p;
    struct hit hit;

    open_all(r);
    while ((p = next_hit(r, &hit))) {
        struct str id = hit.message->session_id;

        r->count++;
        session_hits_add(&kept, (size_t)(p - r->parts), hash_map_number(&p->sessions, &id), &hit);
    }
    session_hits_group(&kept, true);
    print_session_hits(r, &kept);
    session_hits_release(&kept);
    close_all(r);
}

/* Removes the hits of sessions that are not to be printed. */
static void drop_unwanted(struct search_run *r, struct search_part *p, struct session_hits *hits)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct hit hit = {0};
    size_t kept = 0;

    if (!r->brief.own && !r->brief.except)
        return;
    (void)part_open(p); /* without it none is read */
    for (size_t i = 0; i < hits->count; i++)
        if (read_again(p, hits->at[i].place, &line, &hit) &&
            brief_wants(&r->brief, p->history, hit.message->session_id))
            hits->at[kept++] = hits->at[i];
    hits->count = kept;
    part_close(p);
    buf_release(&line);
}

/* Adds the messages of the sessions of a part that together hold all texts. */
static void search_part_sessions(struct search_run *r, struct search_part *p,
                                 struct session_hits *hits)
{
    struct session_search g = {.wanted = r->wanted,
                               .wanted_count = r->wanted_count,
                               .may_lack = r->may_lack,
                               .query = &p->query,
                               .history = (size_t)(p - r->parts),
                               .open = open_part_search,
                               .unmatched = count_unmatched,
                               .ctx = p};
    struct err e = ERR_INIT;

    if (session_search_run(&g, &e) < 0) {
        search_failed(r, &e);
    } else {
        drop_unwanted(r, p, &g.hits);
        session_hits_add_all(hits, &g.hits);
    }
    p->searched = true;
    raise_bad(p, g.bad);
    search_learned_free(p->learned, NULL, false);
    p->learned = g.learned;
    g.learned = NULL;
    session_search_release(&g);
}

/* Prints messages of sessions. */
static void print_in_session(struct search_run *r, struct session_hits *hits)
{
    if (r->what == SEARCH_MESSAGES)
        cut_hits(r, hits);
    r->count = hits->count;
    if (hits->count == 0 || (r->what != SEARCH_MESSAGES && r->what != SEARCH_SESSIONS))
        return;
    for (size_t i = 0; i < r->count_parts; i++)
        (void)part_open(&r->parts[i]);
    if (r->what == SEARCH_SESSIONS)
        print_session_hits(r, hits);
    else if (r->form.context)
        print_context(r, hits);
    else
        print_kept(r, hits);
    close_all(r);
}

static void run_in_session(struct search_run *r)
{
    struct session_hits hits = {0};

    for (size_t i = 0; i < r->count_parts; i++)
        search_part_sessions(r, &r->parts[i], &hits);
    session_hits_group(&hits, r->best);
    print_in_session(r, &hits);
    session_hits_release(&hits);
}

/* ---- by meaning ---- */

/* The most messages that are looked at for their meaning, and for their words. */
#define NEAREST_MAX ((size_t)500)
#define WORDS_MAX ((size_t)100)
/* How much less a place counts than the one before it: that of reciprocal rank fusion (Cormack et
 * al., SIGIR 2009). */
#define RANK_BASE 60

/* A message that is near in one or both ways. */
struct near {
    size_t part;
    struct context_item place;
    float score;
};

static int nearest_first(const void *a, const void *b)
{
    const struct near *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return line_compare(0, x->place.at, 0, y->place.at);
}

/* Finds the messages of all histories that are nearest, and puts their ranks into the scores.
 * Returns their number. */
static size_t find_nearest(struct search_run *r, struct near *all)
{
    struct vectors_found found = {.most = NEAREST_MAX};
    struct vector v = {0};
    struct like like;
    struct err e = ERR_INIT;
    size_t count = 0;

    found.hits = mem_zalloc(NEAREST_MAX * sizeof *found.hits);
    if (like_open(&like, &r->choice, str_of(r->like), &v, &e) < 0)
        search_failed(r, &e);
    for (size_t i = 0; i < r->count_parts && !r->failed; i++) {
        if (vectors_nearest(r->parts[i].history, &like.model, &v, &found, &e) < 0)
            search_failed(r, &e);
        if (found.refused > 0)
            warnf("the model of embed.model makes no vector of %zu of the messages: they are "
                  "passed over from now on",
                  found.refused);
        for (size_t k = 0; k < found.count; k++)
            all[count++] =
                (struct near){i,
                              {.at = found.hits[k].at, .n = found.hits[k].n, .hit = true},
                              found.hits[k].score};
        /* Only the best of all histories stay. */
        qsort(all, count, sizeof *all, nearest_first);
        count = count > NEAREST_MAX ? NEAREST_MAX : count;
    }
    for (size_t i = 0; i < count; i++)
        all[i].score = 1 / (float)(RANK_BASE + i);
    free(v.at);
    free(found.hits);
    like_close(&like);
    return count;
}

/* Adds the newest messages that have all words, or their ranks if they are there. */
static size_t add_word_hits(struct search_run *r, struct near *all, size_t count)
{
    struct search_part *p;
    struct hit hit;

    for (size_t rank = 0; rank < WORDS_MAX && (p = next_hit(r, &hit)); rank++) {
        size_t i = 0, part = (size_t)(p - r->parts);

        while (i < count && (all[i].part != part || all[i].place.at != hit.line.at))
            i++;
        if (i == count)
            all[count++] = (struct near){
                part, {.at = hit.line.at, .n = hit.line.text.n, .hit = true, .time = hit.time}, 0};
        all[i].score += 1 / (float)(RANK_BASE + rank);
    }
    return count;
}

static void run_like(struct search_run *r)
{
    struct near *all = mem_zalloc((2 * NEAREST_MAX + WORDS_MAX) * sizeof *all);
    struct buf line = BUF_INIT(BUF_LINE);
    size_t count = find_nearest(r, all);
    struct hit hit = {0};

    if (!r->failed) {
        open_all(r);
        count = add_word_hits(r, all, count);
        qsort(all, count, sizeof *all, nearest_first);
    }
    for (size_t i = 0; i < count && !r->failed && r->count < r->choice.limit; i++) {
        struct search_part *p = &r->parts[all[i].part];

        if (!read_again(p, all[i].place, &line, &hit) || !hit.asked ||
            !brief_wants(&r->brief, p->history, hit.message->session_id) || r->brief.full)
            continue;
        r->count++;
        set_history(r, p);
        print(r, &p->search, &hit);
    }
    close_all(r);
    buf_release(&line);
    free(all);
}

/* ---- the run ---- */

/* Prepares the query for a history. Returns false if the history is not to be searched. */
static bool enter_query(struct search_part *p)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int entered;

    query_release(&p->query);
    query_copy(&p->query, &p->run->query);
    history_name_add(&name, p->history);
    entered = query_enter(&p->query, p->history, buf_str(&name), &e);
    if (entered < 0)
        search_failed(p->run, &e);
    buf_release(&name);
    return entered > 0;
}

/* Prepares the query and the filter for a history. Returns false if it is not to be searched. */
static bool enter(struct search_run *r, const struct history *h, struct search_part *p)
{
    const struct filter_list *sessions = &r->choice.filter.sessions;

    if (!choose_in(&r->choice, h))
        return false;
    *p = (struct search_part){.run = r, .history = h, .filter = r->choice.filter};
    p->filter.sessions = (struct filter_list){0};
    for (size_t i = 0; i < sessions->count; i++) {
        struct str id = sessions->at[i];

        (void)hash_map_number(&p->named, &id);
        filter_add(&p->filter.sessions, id);
    }
    return enter_query(p);
}

static void part_release(struct search_part *p)
{
    filter_clear(&p->filter.sessions);
    hash_map_release(&p->named);
    hash_map_release(&p->sessions);
    hash_map_release(&p->without);
    query_release(&p->query);
}

static void enter_all(struct search_run *r)
{
    const struct histories *all = &r->choice.histories;

    r->parts = mem_zalloc((all->count + 1) * sizeof *r->parts);
    for (size_t i = 0; i < all->count; i++) {
        struct search_part *p = &r->parts[r->count_parts];

        if (enter(r, &all->at[i], p))
            r->count_parts++;
        else
            part_release(p);
    }
}

/* Writes to the skip indexes what the searches learned: on a terminal, for the next search of the
 * same person, all that it may. The hits are flushed first, so that only a reader that waits for
 * the end of a pipe waits for this. */
static void update_indexes(struct search_run *r)
{
    for (size_t i = 0; i < r->count_parts; i++) {
        const struct search_part *p = &r->parts[i];
        bool flushed = p->learned && out_flush(&r->out) == 0;

        search_learned_free(p->learned, flushed ? p->history : NULL, r->out.terminal);
    }
}

/* Returns whether any message that was searched passes this filter, or an error prevents an
 * answer. */
static bool any_passes(const struct search_run *r, const struct filter *f)
{
    int found = 0;

    for (size_t i = 0; i < r->count_parts && found == 0; i++) {
        const struct history *h = r->parts[i].history;
        struct pattern nothing;
        struct search search;
        struct hit hit;

        pattern_init(&nothing);
        if (search_open(&search, h->dir_fd, h->path, &nothing, f, NULL) < 0)
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

/* After a search without a hit, names the roles, models and programs that no message has: they
 * were most likely mistyped. */
static void report_unused(const struct search_run *r)
{
    const struct filter_list *roles = &r->choice.filter.roles, *models = &r->choice.filter.models,
                             *tools = &r->choice.filter.tools;
    struct filter f = {0};

    for (size_t i = 0; i < roles->count; i++)
        if (!any_has(r, &f, &f.roles, roles->at[i]))
            warnf("no message has the role '%.*s'", (int)roles->at[i].n, roles->at[i].p);
    for (size_t i = 0; i < models->count; i++)
        if (!any_has(r, &f, &f.models, models->at[i]))
            warnf("no answer is from the model '%.*s'", (int)models->at[i].n, models->at[i].p);
    for (size_t i = 0; i < tools->count; i++)
        if (!any_has(r, &f, &f.tools, tools->at[i]))
            warnf("no message is from '%.*s'", (int)tools->at[i].n, tools->at[i].p);
}

/* Returns whether sessions hold all texts, if no message does and that can be. */
static bool sessions_hold(struct search_run *r)
{
    enum search_what what = r->what;
    bool hold;

    if (r->in_session || r->invert || r->what == SEARCH_SESSIONS_WITHOUT || r->wanted_count < 2)
        return false;
    r->in_session = true;
    r->what = SEARCH_NOTHING;
    run_in_session(r);
    hold = r->count > 0;
    r->count = 0;
    r->in_session = false;
    r->what = what;
    return hold;
}

static int open_history_for_forms(void *ctx, size_t part, struct search *s, struct pattern *p,
                                  struct err *e)
{
    struct search_run *r = ctx;

    r->parts[part].query.in_session = true;
    return open_part_search(&r->parts[part], s, p, e) == 0 ? 1 : -1;
}

/* Looks for other forms of the words of the query, after a search for them without a hit. Returns
 * whether another query is to be asked, which has taken its place; *said is what it does. */
static bool find_forms(struct search_run *r, struct buf *said)
{
    struct forms f = {.text = str_of(r->query_text),
                      .query = &r->query,
                      .histories = r->count_parts,
                      .together = true,
                      .open = open_history_for_forms,
                      .ctx = r};
    struct err e = ERR_INIT;
    bool other;

    if (forms_run(&f, &e) < 0)
        search_failed(r, &e);
    other = f.asked.len > 0 && !r->failed;
    if (other) {
        buf_add_str(said, buf_str(&f.said));
        buf_init(&r->asked, SIZE_MAX);
        buf_add_str(&r->asked, buf_str(&f.asked));
    }
    forms_release(&f);
    if (!other)
        return false;
    search_merge_release(&r->merge);
    search_run_set_texts(r, buf_c(&r->asked));
    for (size_t i = 0; i < r->count_parts; i++)
        (void)enter_query(&r->parts[i]);
    return true;
}

/* Returns whether --query might find what the texts did not. */
static bool may_have_forms(const struct search_run *r)
{
    const struct pattern *p = &r->pattern;

    return !r->query_text && !r->like && !r->invert && !p->regex && !p->words &&
           !p->case_sensitive && !choose_restricts(&r->choice) && r->choice.sessions_count == 0 &&
           (r->what == SEARCH_MESSAGES || r->what == SEARCH_SESSIONS);
}

static void search_once(struct search_run *r)
{
    if (r->in_session) {
        run_in_session(r);
    } else if (r->what == SEARCH_COUNT || r->what == SEARCH_NOTHING) {
        run_count(r);
    } else if (r->what == SEARCH_SESSIONS && r->best) {
        run_sessions_best(r);
    } else if (r->what == SEARCH_SESSIONS) {
        open_all(r);
        list_sessions(r, false);
        close_all(r);
    } else if (r->what == SEARCH_SESSIONS_WITHOUT) {
        run_sessions_without(r);
    } else {
        run_messages(r);
    }
}

static void search_all(struct search_run *r)
{
    struct buf said = BUF_INIT(BUF_LINE);

    r->form.context = r->before > 0 || r->after > 0;
    search_once(r);
    r->sessions_hold =
        r->count == 0 && !r->failed && (r->query_text || isatty(STDERR_FILENO)) && sessions_hold(r);
    if (r->count == 0 && !r->failed && r->query_text && !r->invert && !r->sessions_hold &&
        r->what != SEARCH_NOTHING && r->what != SEARCH_SESSIONS_WITHOUT && find_forms(r, &said)) {
        search_once(r);
        r->sessions_hold = r->count == 0 && sessions_hold(r);
    }
    if (r->nearly && r->count == 0 && r->wanted_count > 1 && !r->failed) {
        r->may_lack = 1;
        run_in_session(r);
        if (r->count > 0 && !r->choice.common.quiet)
            warnf("no session has all of the texts; these have all but one");
    }
    if (said.len > 0 && r->count > 0)
        warnf("%s", buf_c(&said));
    buf_release(&said);
}

int search_run_histories(struct search_run *r)
{
    bool found, searched = false;
    int absent;

    enter_all(r);
    if (r->like)
        run_like(r);
    else
        search_all(r);
    found = r->what == SEARCH_SESSIONS_WITHOUT ? r->listed : r->count > 0;
    if (r->what == SEARCH_COUNT)
        out_number(&r->out, r->count);
    brief_end(&r->brief, &r->out);
    out_page_end(&r->out);
    if (r->cut)
        hintf(false, "more than %zu messages match (--limit)", r->choice.limit);
    if (r->unmatched > NAMED_MAX)
        warnf("cannot search %" PRIu64 " more message%s", r->unmatched - NAMED_MAX,
              r->unmatched == NAMED_MAX + 1 ? "" : "s");
    for (size_t i = 0; i < r->count_parts; i++) {
        searched |= r->parts[i].searched;
        start_report_bad(r->parts[i].history, r->parts[i].bad, r->choice.common.quiet);
    }
    absent = choose_report(&r->choice);
    if (!found && !r->failed && searched && !r->choice.common.quiet) {
        report_unused(r);
        if (r->sessions_hold)
            hintf(false,
                  "no message has all of the texts; --in-session finds the sessions that do");
        else if (!choose_hint_others(&r->choice) && may_have_forms(r))
            hintf(false, "nothing has this text; --query looks for other forms of its words, too");
    }
    update_indexes(r);
    for (size_t i = 0; i < r->count_parts; i++)
        part_release(&r->parts[i]);
    free(r->parts);
    search_merge_release(&r->merge);
    buf_release(&r->asked);
    /* As in grep, an error counts more than a hit, except with --quiet. */
    if (r->failed && !(r->what == SEARCH_NOTHING && found))
        return exit_code(ERR_FAILURE);
    return found ? absent : exit_code(ERR_ABSENT);
}
