#include "browse/browse_source.h"

#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/mem.h"

void browse_source_init(struct browse_source *s, const struct history *histories, size_t count)
{
    *s = (struct browse_source){.histories = histories, .count = count};
    s->lists = mem_zalloc(count * sizeof *s->lists);
    s->watches = mem_zalloc(count * sizeof *s->watches);
    s->open = mem_zalloc(count * sizeof *s->open);
}

void browse_source_release(struct browse_source *s)
{
    for (size_t i = 0; i < s->count; i++)
        session_list_release(&s->lists[i]);
    free(s->lists);
    free(s->watches);
    free(s->open);
    free(s->merged);
}

/* ---- reading the lists ---- */

/* Reads the list of a history again if the history has changed. Returns 1 if it was read, 0, or
 * -1. */
static int update_list(struct browse_source *s, size_t i, struct err *e)
{
    enum browse_change change = browse_watch_look(&s->watches[i], s->histories[i].path);

    if (s->open[i] && change == BROWSE_SAME)
        return 0;
    session_list_release(&s->lists[i]);
    s->open[i] = session_list_newest(&s->lists[i], &s->histories[i], SIZE_MAX, e) == 0;
    return s->open[i] ? 1 : -1;
}

static int64_t used_at(const struct session *s)
{
    int64_t at = 0;

    (void)clock_parse_iso((struct str){s->last_used, s->last_used_len}, &at);
    return at;
}

/* Merges the lists by the times of use. The sessions of one history keep their order. */
static void merge_lists(struct browse_source *s)
{
    size_t *next = mem_zalloc(s->scope * sizeof *next);
    int64_t *used = mem_zalloc(s->scope * sizeof *used);

    s->merged = mem_resize(s->merged, s->total, sizeof *s->merged);
    for (size_t i = 0; i < s->scope; i++)
        used[i] = s->lists[i].count ? used_at(&s->lists[i].at[0]) : 0;
    for (size_t place = 0; place < s->total; place++) {
        size_t newest = SIZE_MAX;

        for (size_t i = 0; i < s->scope; i++)
            if (next[i] < s->lists[i].count && (newest == SIZE_MAX || used[i] > used[newest]))
                newest = i;
        s->merged[place] = (struct browse_entry){newest, &s->lists[newest].at[next[newest]]};
        if (++next[newest] < s->lists[newest].count)
            used[newest] = used_at(&s->lists[newest].at[next[newest]]);
    }
    free(next);
    free(used);
}

static int update_lists(struct browse_source *s, size_t scope, struct err *e)
{
    bool changed = scope != s->scope || s->number == 0;

    for (size_t i = 0; i < scope; i++) {
        int result = update_list(s, i, e);

        if (result < 0) {
            s->scope = 0;
            return -1;
        }
        changed = changed || result > 0;
    }
    if (!changed)
        return 0;
    s->scope = scope;
    s->number++;
    s->total = 0;
    for (size_t i = 0; i < scope; i++)
        s->total += s->lists[i].count;
    merge_lists(s);
    return 0;
}

/* ---- reading a part ---- */

static void seek(const struct browse_source *s, const struct browse_sought *wish,
                 struct browse_sought *sought)
{
    if (wish->id.len == 0)
        return;
    browse_sought_set(sought, wish->history, buf_str(&wish->id));
    for (size_t i = 0; i < s->total; i++) {
        const struct browse_entry *entry = &s->merged[i];
        const struct session *session = entry->session;

        /* Of several histories that have the session, the first one counts. */
        if ((wish->history != entry->history && wish->history != BROWSE_ANY_HISTORY) ||
            (sought->place != SIZE_MAX && s->merged[sought->place].history <= entry->history) ||
            !str_eq((struct str){session->id, session->id_len}, buf_str(&wish->id)))
            continue;
        sought->place = i;
        sought->count = session->count;
        sought->last_line = session->last_line;
    }
}

/* Returns the first place to be read. The session to be kept may have moved, and with it the places
 * around it. */
static size_t first_place(const struct browse_source *s, const struct browse_wish *wish,
                          const struct browse_sessions *out)
{
    size_t first = wish->first, place = out->keep.place;

    if (wish->number != s->number && out->keep.id.len > 0 && place != SIZE_MAX)
        first = place > wish->count / 2 ? place - wish->count / 2 : 0;
    if (first + wish->count > s->total)
        first = s->total > wish->count ? s->total - wish->count : 0;
    return first;
}

int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e)
{
    if (update_lists(s, wish->all ? s->count : 1, e) < 0)
        return -1;
    out->total = s->total;
    out->number = s->number;
    out->bad_lines = s->lists[0].bad_lines;
    seek(s, &wish->keep, &out->keep);
    seek(s, &wish->shown, &out->shown);
    out->first = first_place(s, wish, out);
    for (size_t i = out->first; i < s->total && i - out->first < wish->count; i++)
        browse_sessions_add(out, s->merged[i].history, s->merged[i].session);
    return 0;
}
