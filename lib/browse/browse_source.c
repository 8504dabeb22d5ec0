#include "browse/browse_source.h"

#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/mem.h"

/* So many sessions of a history are read ahead for a merged list, which has a mark after so many.
 */
#define AHEAD ((size_t)256)
#define MARK_EVERY ((size_t)512)

void browse_source_init(struct browse_source *s, const struct history *histories, size_t count)
{
    *s = (struct browse_source){.histories = histories, .count = count};
    s->pages = mem_zalloc(count * sizeof *s->pages);
    s->watches = mem_zalloc(count * sizeof *s->watches);
    s->open = mem_zalloc(count * sizeof *s->open);
}

void browse_source_release(struct browse_source *s)
{
    for (size_t i = 0; i < s->count; i++)
        session_pages_close(&s->pages[i]);
    free(s->pages);
    free(s->watches);
    free(s->open);
    free(s->marks);
}

/* ---- what has changed ---- */

/* 1: it has; 0; -1. */
static int update_one(struct browse_source *s, size_t i, struct err *e)
{
    enum browse_change change = browse_watch_look(&s->watches[i], s->histories[i].path);
    bool grown = s->open[i] && change == BROWSE_GROWN;

    if (s->open[i] && change == BROWSE_SAME)
        return 0;
    s->open[i] = session_pages_open(&s->pages[i], &s->histories[i], grown, e) == 0;
    return s->open[i] ? 1 : -1;
}

static int update(struct browse_source *s, size_t scope, struct err *e)
{
    bool changed = scope != s->scope || s->number == 0;

    for (size_t i = 0; i < scope; i++) {
        int result = update_one(s, i, e);

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
    s->mark_count = 0;
    s->total = 0;
    for (size_t i = 0; i < scope; i++)
        s->total += s->pages[i].count;
    return 0;
}

/* ---- a merged list ---- */

/* The next session of a history. */
struct head {
    size_t place;
    size_t page_first;
    struct session_list page;
    int64_t used;
};

struct merge {
    struct browse_source *s;
    struct head *heads;
    size_t at; /* in the merged list */
};

static const struct session *session_at(const struct head *h)
{
    return &h->page.at[h->place - h->page_first];
}

/* Has the session at its place at hand. 1, 0 behind the last one, -1. */
static int look(struct merge *m, size_t i)
{
    struct head *h = &m->heads[i];
    const struct session *session;

    if (h->place >= m->s->pages[i].count)
        return 0;
    if (h->place < h->page_first || h->place - h->page_first >= h->page.count) {
        session_list_release(&h->page);
        h->page_first = h->place;
        if (session_pages_read(&m->s->pages[i], h->place, AHEAD, &h->page) < 0 ||
            h->page.count == 0)
            return -1;
    }
    session = session_at(h);
    h->used = 0;
    (void)clock_parse_iso((struct str){session->last_used, session->last_used_len}, &h->used);
    return 1;
}

static void end_merge(struct merge *m)
{
    for (size_t i = 0; i < m->s->scope; i++)
        session_list_release(&m->heads[i].page);
    free(m->heads);
}

/* Begins at a mark. 0, -1. */
static int begin_merge(struct merge *m, struct browse_source *s, size_t mark)
{
    int result = 0;

    *m = (struct merge){.s = s, .heads = mem_zalloc(s->scope * sizeof *m->heads)};
    if (s->mark_count == 0)
        mark = 0;
    else if (mark >= s->mark_count)
        mark = s->mark_count - 1;
    m->at = mark * MARK_EVERY;
    for (size_t i = 0; i < s->scope && result >= 0; i++) {
        m->heads[i].place = s->mark_count > 0 ? s->marks[mark * s->scope + i] : 0;
        result = look(m, i);
    }
    if (result < 0)
        end_merge(m);
    return result < 0 ? -1 : 0;
}

static void note_mark(struct merge *m)
{
    struct browse_source *s = m->s;

    if (m->at != s->mark_count * MARK_EVERY)
        return;
    s->marks = mem_grow(s->marks, &s->mark_cap, (s->mark_count + 1) * s->scope, sizeof *s->marks);
    for (size_t i = 0; i < s->scope; i++)
        s->marks[s->mark_count * s->scope + i] = m->heads[i].place;
    s->mark_count++;
}

/* Whose session is the next one; SIZE_MAX: there is none. */
static size_t next_of(const struct merge *m)
{
    size_t next = SIZE_MAX;

    for (size_t i = 0; i < m->s->scope; i++)
        if (m->heads[i].place < m->s->pages[i].count &&
            (next == SIZE_MAX || m->heads[i].used > m->heads[next].used))
            next = i;
    return next;
}

static int step(struct merge *m, size_t i)
{
    note_mark(m);
    m->heads[i].place++;
    m->at++;
    return look(m, i) < 0 ? -1 : 0;
}

static int read_merged(struct browse_source *s, size_t first, size_t count,
                       struct browse_sessions *out)
{
    struct merge m;
    int result = begin_merge(&m, s, first / MARK_EVERY);

    if (result < 0)
        return -1;
    while (result == 0 && m.at < first + count) {
        size_t i = next_of(&m);

        if (i == SIZE_MAX)
            break;
        if (m.at >= first)
            browse_sessions_add(out, i, session_at(&m.heads[i]));
        result = step(&m, i);
    }
    end_merge(&m);
    return result;
}

/* Where in the list is what is at a place of one history? */
static int merged_place(struct browse_source *s, size_t history, size_t place, size_t *merged)
{
    size_t mark = 0;
    struct merge m;
    int result;

    while (mark + 1 < s->mark_count && s->marks[(mark + 1) * s->scope + history] <= place)
        mark++;
    result = begin_merge(&m, s, mark);
    if (result < 0)
        return -1;
    for (size_t i; result == 0 && (i = next_of(&m)) != SIZE_MAX; result = step(&m, i))
        if (i == history && m.heads[i].place == place)
            break;
    *merged = m.at;
    end_merge(&m);
    return result;
}

/* ---- reading ---- */

static int seek_in(struct browse_source *s, struct browse_sought *sought, size_t history)
{
    struct session_list page;
    size_t place;
    int found = session_pages_find(&s->pages[history], buf_str(&sought->id), &place);

    if (found <= 0)
        return found;
    if (session_pages_read(&s->pages[history], place, 1, &page) < 0)
        return -1;
    if (page.count > 0) {
        sought->count = page.at[0].count;
        sought->last_line = page.at[0].last_line;
    }
    session_list_release(&page);
    sought->place = place;
    return s->scope > 1 && merged_place(s, history, place, &sought->place) < 0 ? -1 : 1;
}

static int seek(struct browse_source *s, const struct browse_sought *wish,
                struct browse_sought *sought)
{
    int found = 0;

    if (wish->id.len == 0)
        return 0;
    browse_sought_set(sought, wish->history, buf_str(&wish->id));
    for (size_t i = 0; i < s->scope && found == 0; i++)
        if (wish->history == i || wish->history == BROWSE_ANY_HISTORY)
            found = seek_in(s, sought, i);
    return found < 0 ? -1 : 0;
}

static int read_part(struct browse_source *s, size_t first, size_t count,
                     struct browse_sessions *out)
{
    struct session_list page;

    out->first = first;
    if (s->scope > 1)
        return read_merged(s, first, count, out);
    if (session_pages_read(&s->pages[0], first, count, &page) < 0)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        browse_sessions_add(out, 0, &page.at[i]);
    session_list_release(&page);
    return 0;
}

/* The first place to be read: what is to be kept may have moved, and the others with it. */
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

static int read_all(struct browse_source *s, const struct browse_wish *wish,
                    struct browse_sessions *out)
{
    out->total = s->total;
    out->number = s->number;
    out->bad_lines = s->pages[0].bad_lines;
    if (seek(s, &wish->keep, &out->keep) < 0 || seek(s, &wish->shown, &out->shown) < 0)
        return -1;
    return read_part(s, first_place(s, wish, out), wish->count, out);
}

int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e)
{
    /* An index that turns out not to be true is made anew. */
    for (int tried = 0; tried < 3; tried++) {
        if (update(s, wish->all ? s->count : 1, e) < 0)
            return -1;
        if (read_all(s, wish, out) == 0)
            return 0;
        browse_sessions_release(out);
        for (size_t i = 0; i < s->scope; i++)
            s->open[i] = false;
    }
    return err_set(e, ERR_FAILURE, "cannot read the sessions: the index changes all the time");
}
