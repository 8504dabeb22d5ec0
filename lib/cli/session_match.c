#include "chathist/cli/session_match.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/search/forms.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"

/* ---- the query ---- */

/* The words of the query are looked for in the messages and in the titles. */
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
    /* A message that cannot be compared with the query ends the search, since hist-delete
     * erases the sessions that are found. */
    while ((result = search_next(&search, &hit, e)) == 1)
        hash_map_add(found, hit.message->session_id);
    search_close(&search);
    return result == 0 ? 0 : -1;
}

/* Returns 1 if the title has all words, 0 if not, or -1 with *e set. */
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

/* ---- marks ---- */

/* A session whose latest message has no time that can be read is within no bounds. One without a
 * message has the time of its first title. */
static bool session_in_time(const struct filter *f, const struct session *s)
{
    int64_t used;

    if (!f->has_since && !f->has_until)
        return true;
    if (!time_parse_iso(s->last_used, &used))
        return false;
    if (s->count > 0)
        used = s->used;
    return (!f->has_since || used >= f->since) && (!f->has_until || used <= f->until);
}

/* Clears the marks of the sessions without a message of the wanted roles, models and programs. Returns
 * 0, or -1 with *e set. */
static int mark_filtered(const struct filter *wanted, const struct session_list *l, bool *marked,
                         const struct history *h, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct hash_map passed = {0};
    struct scan scan;
    int result;

    if (scan_open(&scan, h->dir_fd, h->path, e) < 0)
        return -1;
    scan.work = h->work;
    scan.task = "select";
    while ((result = scan_message(&scan, &m, NULL, e)) > 0)
        if (filter_match(wanted, &m))
            hash_map_add(&passed, m.session_id);
    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && hash_map_find(&passed, l->at[i].id);
    hash_map_release(&passed);
    message_release(&m);
    scan_close(&scan);
    return result;
}

/* Clears the marks of the sessions that do not meet the query. Returns 0, or -1 with *e set. */
static int mark_queried(const struct choice *c, const struct session_list *l, bool *marked,
                        const struct history *h, struct err *e)
{
    struct hash_map found = {0};
    struct buf name = BUF_INIT(BUF_SMALL);
    struct match m;
    int result;

    if (query_open(&m.query, &m.pattern, str_of(c->match), c->config.now, e) < 0)
        return -1;
    history_name_add(&name, h);
    result = query_enter(&m.query, h, buf_str(&name), e);
    if (result > 0)
        result = find_messages(&m, h, &found, e);
    for (size_t i = 0; i < l->count && result >= 0; i++) {
        int meets = hash_map_find(&found, l->at[i].id) ? 1 : meets_title(&m, &l->at[i], e);

        marked[i] = marked[i] && meets > 0;
        if (meets < 0)
            result = -1;
    }
    hash_map_release(&found);
    buf_release(&name);
    match_close(&m);
    return result < 0 ? -1 : 0;
}

int session_match_mark(const struct choice *c, const struct session_list *l, bool *marked,
                       const struct history *h, struct err *e)
{
    struct filter wanted = {
        .roles = c->filter.roles, .models = c->filter.models, .tools = c->filter.tools};

    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && session_in_time(&c->filter, &l->at[i]);
    if (h && !filter_is_empty(&wanted) && mark_filtered(&wanted, l, marked, h, e) < 0)
        return -1;
    return h && c->match ? mark_queried(c, l, marked, h, e) : 0;
}

void session_match_query(struct choice *c, const char *query)
{
    struct err e = ERR_INIT;
    struct match m;

    if (query_open(&m.query, &m.pattern, str_of(query), time_now(), &e) < 0)
        die_err(&e);
    if (query_is_empty(&m.query)) {
        err_set(&e, ERR_USAGE, "bad value '%s' for --match: a word is expected", query);
        die_err(&e);
    }
    match_close(&m);
    c->match = query;
}

/* The histories in which other forms of the words are looked for. */
struct forms_in {
    const struct choice *choice;
    struct query query; /* the query of the history that was opened last */
};

static int open_match_for_forms(void *ctx, size_t history, struct search *s, struct pattern *p,
                                struct err *e)
{
    struct forms_in *in = ctx;
    const struct history *h = &in->choice->histories.at[history];
    struct buf name = BUF_INIT(BUF_SMALL);
    int result;

    history_name_add(&name, h);
    result = query_enter(&in->query, h, buf_str(&name), e);
    buf_release(&name);
    if (result <= 0 || search_open(s, h->dir_fd, h->path, p, NULL, e) < 0)
        return result == 0 ? 0 : -1;
    s->history = h;
    s->query = &in->query;
    return 1;
}

int session_match_forms(const struct choice *c, struct buf *asked, struct buf *said, struct err *e)
{
    struct forms_in in = {.choice = c};
    struct forms f = {.text = str_of(c->match),
                      .query = &in.query,
                      .histories = c->histories.count,
                      .open = open_match_for_forms,
                      .ctx = &in};
    int result;

    if (query_parse(&in.query, f.text, c->config.now, e) < 0)
        return -1;
    in.query.in_session = true;
    result = forms_run(&f, e);
    if (result == 0) {
        buf_set(asked, buf_str(&f.asked));
        buf_set(said, buf_str(&f.said));
    }
    forms_release(&f);
    query_release(&in.query);
    return result;
}

/* ---- the list ---- */

/* Removes the sessions that are not chosen from a list of all sessions. */
static int restrict_to_chosen(const struct choice *c, struct session_list *l,
                              const struct history *h, size_t limit, struct err *e)
{
    const struct filter_list *named = &c->filter.sessions;
    bool *marked = mem_zalloc(l->count);
    int result;

    for (size_t i = 0; i < l->count; i++)
        marked[i] = named->count == 0 || filter_has(named, l->at[i].id);
    result = session_match_mark(c, l, marked, h, e);
    session_list_restrict(l, marked, limit);
    free(marked);
    if (result < 0)
        session_list_release(l);
    return result;
}

/* Lists the generated ids of which the text begins the digits. */
static int list_digits(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    size_t kept = 0;

    session_list_release(l);
    if (session_list_newest(l, h, SIZE_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < l->count && kept < limit; i++)
        if (id_session_digits_begin(l->at[i].id, text))
            l->at[kept++] = l->at[i];
    l->count = kept;
    return 0;
}

int session_match_list(struct choice *c, struct session_list *l, const struct history *h,
                       const char *id, size_t limit, struct err *e)
{
    bool all = c->sessions_count == 0 && !choose_restricts(c) && !c->match;
    size_t most = all ? limit : SIZE_MAX;

    *l = (struct session_list){0};
    if (!choose_in(c, h))
        return 0;
    if ((id ? session_list_named(l, h, str_of(id), most, e) : session_list_newest(l, h, most, e)) <
        0)
        return -1;
    if (id && l->count == 0 && list_digits(l, h, str_of(id), most, e) < 0)
        return -1;
    return all ? 0 : restrict_to_chosen(c, l, h, limit, e);
}
