#include "chathist/cli/session_match.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/histories.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"

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

int session_match_mark(const char *query, int64_t now, const struct session_list *l, bool *marked,
                       const struct history *h, struct err *e)
{
    struct hash_map found = {0};
    struct buf name = BUF_INIT(BUF_SMALL);
    struct match m;
    int result;

    if (query_open(&m.query, &m.pattern, str_of(query), now, e) < 0)
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

int session_match_restrict(const char *query, int64_t now, struct session_list *l,
                           const struct history *h, struct err *e)
{
    bool *marked = mem_zalloc(l->count);
    int result;

    memset(marked, true, l->count);
    result = session_match_mark(query, now, l, marked, h, e);
    session_list_restrict(l, marked, SIZE_MAX);
    free(marked);
    return result;
}

int session_match_check(const char *query, struct err *e)
{
    struct match m;
    bool empty;

    if (query_open(&m.query, &m.pattern, str_of(query), time_now(), e) < 0)
        return -1;
    empty = query_is_empty(&m.query);
    match_close(&m);
    return empty ? err_set(e, ERR_USAGE, "bad value '%s' for --match: a word is expected", query)
                 : 0;
}
