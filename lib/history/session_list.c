#include "chathist/history/session_list.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "history/session_index.h"
#include "history/trust.h"

/* Records that are read at once. */
#define RUN_LEAST ((size_t)64)
#define RUN_MOST ((size_t)1024)

/* Makes the texts of another list live as long as this one. */
static void take_texts(struct session_list *l, struct session_list *from)
{
    for (size_t i = 0; i < from->texts_count; i++)
        session_list_own(l, from->texts[i]);
    from->texts_count = from->texts_left = 0;
}

/* ---- merging ---- */

struct list_wish {
    struct str text; /* with which ids begin or end */
    size_t limit;
    bool titles; /* sessions without a message are listed, too */
};

/* A search for sessions, the last used first. The sessions of the index are read in that order. A
 * session can also have lines after those that the index covers: it is then in the tail, too, and
 * comes as soon as either of the two has its turn. */
struct walk {
    const struct session_index *x;
    struct session_list *list;
    const struct list_wish *wish;
    bool at_end; /* the text is looked for at the ends of ids */
    bool failed; /* the index is damaged */
    /* The sessions of the tail with the name, in order, and by their numbers, whether their turn
     * has passed. */
    const struct session **recent;
    size_t recent_count, recent_at;
    bool *passed;
    /* The records with the name: their numbers, ascending, or NULL for all; those that were
     * read. */
    uint64_t *numbers, records, record_at;
    struct session run[RUN_MOST];
    size_t run_count, run_at;
};

static bool is_named(const struct walk *w, struct str id)
{
    return w->at_end ? str_ends(id, w->wish->text) : str_starts(id, w->wish->text);
}

static int by_use(const void *a, const void *b)
{
    return session_compare(*(const struct session *const *)a, *(const struct session *const *)b);
}

static void find_recent(struct walk *w)
{
    const struct session_list *tail = &w->x->tail.list;

    w->passed = mem_zalloc(tail->count * sizeof(*w->passed));
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    w->recent = mem_zalloc(tail->count * sizeof(*w->recent));
    for (size_t i = 0; i < tail->count; i++)
        if (is_named(w, tail->at[i].id) && (w->wish->titles || tail->at[i].count > 0))
            w->recent[w->recent_count++] = &tail->at[i];
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    qsort(w->recent, w->recent_count, sizeof(*w->recent), by_use);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns 0 or -1. */
static int find_records(struct walk *w)
{
    uint64_t first;
    int result;

    w->records = w->x->header.sessions;
    if (w->wish->text.n == 0 || w->records == 0)
        return 0;
    if (session_index_named(w->x, w->wish->text, w->at_end, &first, &w->records) < 0)
        return -1;
    if (w->records == w->x->header.sessions)
        return 0;
    w->numbers = mem_zalloc((size_t)w->records * sizeof(*w->numbers));
    result = session_index_numbers(w->x, w->at_end, first, (size_t)w->records, w->numbers);
    qsort(w->numbers, (size_t)w->records, sizeof(*w->numbers), by_value);
    return result;
}

/* Adds `count` records from number `first` on to the list. Returns 0 or -1. */
static int read_records(struct walk *w, uint64_t first, uint64_t count)
{
    w->failed = w->failed || session_index_sessions(w->x, first, count, w->list) < 0;
    return w->failed ? -1 : 0;
}

/* Returns the session of the next record, or NULL if there is none. */
static const struct session *next_record(struct walk *w)
{
    struct session_list *l = w->list;
    uint64_t n = w->wish->limit - l->count, left = w->records - w->record_at;

    if (w->run_at < w->run_count)
        return &w->run[w->run_at];
    n = w->wish->limit < l->count || n < RUN_LEAST ? RUN_LEAST : n > RUN_MOST ? RUN_MOST : n;
    n = w->numbers ? 1 : n;
    n = n < left ? n : left;
    if (n == 0 || read_records(w, w->numbers ? w->numbers[w->record_at] : w->record_at, n) < 0)
        return NULL;
    l->count -= (size_t)n;
    memcpy(w->run, l->at + l->count, (size_t)n * sizeof(*w->run));
    w->record_at += n;
    w->run_count = (size_t)n;
    w->run_at = 0;
    return w->run;
}

static const struct session *next_recent(struct walk *w)
{
    while (w->recent_at < w->recent_count &&
           w->passed[w->recent[w->recent_at] - w->x->tail.list.at])
        w->recent_at++;
    return w->recent_at < w->recent_count ? w->recent[w->recent_at] : NULL;
}

/* Adds a session of a record, and what the tail has of it. */
static void take_record(struct walk *w, const struct session *record)
{
    struct session s = *record;
    size_t number;
    const struct session *recent = session_table_find(&w->x->tail, s.id, &number);

    w->run_at++;
    if (recent && w->passed[number])
        return;
    if (recent) {
        session_add_later(w->list, &s, recent);
        w->passed[number] = true;
    }
    if (s.count > 0 || w->wish->titles)
        *session_list_add(w->list) = s;
}

/* Adds a session of the tail, and what the index has of it. */
static void take_recent(struct walk *w, const struct session *recent)
{
    uint64_t record;
    int found = session_index_find(w->x, recent->id, &record);

    w->recent_at++;
    w->passed[recent - w->x->tail.list.at] = true;
    if (found < 0 || (found && read_records(w, record, 1) < 0)) {
        w->failed = true;
        return;
    }
    if (found)
        session_add_later(w->list, &w->list->at[w->list->count - 1], recent);
    else
        *session_list_add(w->list) = *recent;
}

/* Adds sessions by their times, until there are enough, and no other one has the time of the last
 * one. A time at which either part of a session has its turn is that of the whole session. */
static void merge(struct walk *w)
{
    struct session_list *l = w->list;

    for (;;) {
        const struct session *recent = next_recent(w), *record = next_record(w), *next = recent;

        if (record && (!recent || record->used > recent->used))
            next = record;
        if (w->failed || !next ||
            (l->count >= w->wish->limit && l->count > 0 && next->used < l->at[l->count - 1].used))
            return;
        if (next == recent)
            take_recent(w, recent);
        else
            take_record(w, record);
    }
}

/* Puts sessions of the same time in order, and cuts the list. */
static void finish(struct walk *w)
{
    struct session_list *l = w->list;

    for (size_t i = 1; i < l->count; i++) {
        if (session_compare(&l->at[i - 1], &l->at[i]) <= 0)
            continue;
        qsort(l->at, l->count, sizeof(*l->at), session_compare);
        break;
    }
    if (l->count > w->wish->limit)
        l->count = w->wish->limit;
}

/* Adds the sessions of which one side of the id is the text. Returns 0 or -1. */
static int walk_index(struct session_list *l, const struct session_index *x,
                      const struct list_wish *wish, bool at_end)
{
    struct walk *w = mem_zalloc(sizeof(*w));
    int result;

    w->x = x;
    w->list = l;
    w->wish = wish;
    w->at_end = at_end;
    find_recent(w);
    w->failed = find_records(w) < 0;
    if (!w->failed)
        merge(w);
    finish(w);
    result = w->failed ? -1 : 0;
    free(w->recent);
    free(w->passed);
    free(w->numbers);
    free(w);
    return result;
}

static int list_index(struct session_list *l, struct session_index *x, const struct list_wish *wish)
{
    int result = walk_index(l, x, wish, false);

    if (result == 0 && l->count == 0 && wish->text.n >= SESSION_SUFFIX_MIN)
        result = walk_index(l, x, wish, true);
    l->bad_lines = x->tail.list.bad_lines + x->header.bad;
    take_texts(l, &x->tail.list);
    return result;
}

static void mark_came(struct session_list *l, const struct history *h)
{
    bool may = h->kind == HISTORY_REPOSITORY || h->kind == HISTORY_HERE;

    for (size_t i = 0; i < l->count; i++)
        l->at[i].came =
            may && l->at[i].first_line < h->mark.from && !mark_has_named(&h->mark, l->at[i].id);
}

/* ---- lists ---- */

/* Lists sessions by reading the whole history. */
static int list_file(struct session_list *l, const struct history *h, const struct list_wish *wish,
                     struct err *e)
{
    struct session_index none = {.fd = -1, .scan = {.fd = -1}};
    int result;

    *l = (struct session_list){0};
    session_table_init(&none.tail, h->now);
    result = session_table_load(&none.tail, h, e);
    if (result == 0)
        result = list_index(l, &none, wish);
    if (result == 0)
        mark_came(l, h);
    session_table_release(&none.tail);
    return result;
}

static int list(struct session_list *l, const struct history *h, const struct list_wish *wish,
                struct err *e)
{
    struct session_index x;

    *l = (struct session_list){0};
    if (session_index_open(&x, h)) {
        if (list_index(l, &x, wish) == 0) {
            session_index_close(&x);
            mark_came(l, h);
            return 0;
        }
        session_list_release(l);
        session_index_discard(&x);
    }
    return list_file(l, h, wish, e);
}

int session_list_load(struct session_list *l, const struct history *h, struct err *e)
{
    return list_file(l, h, &(struct list_wish){.limit = SIZE_MAX, .titles = true}, e);
}

int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    return list(l, h, &(struct list_wish){.text = text, .limit = limit}, e);
}

int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e)
{
    return session_list_named(l, h, STR(""), limit, e);
}

int session_list_find(struct session_list *l, const struct history *h, struct str id, struct err *e)
{
    size_t kept = 0;

    if (list(l, h, &(struct list_wish){id, SIZE_MAX, true}, e) < 0)
        return -1;
    for (size_t i = 0; i < l->count; i++)
        if (str_eq(l->at[i].id, id))
            l->at[kept++] = l->at[i];
    l->count = kept;
    return kept > 0;
}

int session_title(const struct history *h, struct str id, struct buf *title, struct buf *set,
                  struct err *e)
{
    struct session_list l;
    int found = session_list_find(&l, h, id, e);

    if (found < 0)
        return -1;
    if (found) {
        buf_add_str(title, l.at[0].title);
        if (set)
            buf_add_str(set, l.at[0].title_set);
    }
    session_list_release(&l);
    return 0;
}
