#include "chathist/history/session_list.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "history/session_index.h"

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

/* ---- by reading all lines ---- */

static int by_last_line(const void *a, const void *b)
{
    off_t x = ((const struct session *)a)->last_line;
    off_t y = ((const struct session *)b)->last_line;

    return (x < y) - (x > y);
}

int session_list_load(struct session_list *l, const struct history *h, struct err *e)
{
    struct session_table t;
    int result;

    session_table_init(&t, h->now);
    result = session_table_load(&t, h, e);
    *l = (struct session_list){0};
    if (result == 0) {
        *l = t.list;
        t.list = (struct session_list){0};
    }
    if (l->count > 0)
        qsort(l->at, l->count, sizeof(*l->at), by_last_line);
    session_table_release(&t);
    return result;
}

/* ---- by the index ---- */

/* A search for sessions in an index, last used first. */
struct walk {
    const struct session_index *x;
    struct session_list *list;
    size_t limit;
    struct str text;
    bool at_end; /* the text is looked for at the ends of ids */
};

static bool is_named(const struct walk *w, struct str id)
{
    return w->at_end ? str_ends(id, w->text) : str_starts(id, w->text);
}

/* Adds those of `count` sessions from record `first` on that have the name and no recent
 * messages. */
static int add_records(struct walk *w, uint64_t first, uint64_t count)
{
    struct session_list *l = w->list;
    size_t kept = l->count, own;
    int result = session_index_sessions(w->x, first, count, l);

    for (size_t i = kept; i < l->count && result == 0 && kept < w->limit; i++) {
        const struct session *recent = session_table_find(&w->x->tail, l->at[i].id, &own);

        if (!is_named(w, l->at[i].id) || (recent && recent->count > 0))
            continue;
        if (recent)
            session_add_later(&l->at[i], recent);
        l->at[kept++] = l->at[i];
    }
    l->count = kept;
    return result;
}

/* Adds sessions in the order of the records, until there are enough. */
static int add_in_order(struct walk *w)
{
    uint64_t first = 0, sessions = w->x->header.sessions;
    int result = 0;

    while (w->list->count < w->limit && first < sessions && result == 0) {
        uint64_t count = w->limit - w->list->count;

        count = count < RUN_LEAST ? RUN_LEAST : count > RUN_MOST ? RUN_MOST : count;
        count = count < sessions - first ? count : sessions - first;
        result = add_records(w, first, count);
        first += count;
    }
    return result;
}

/* Reads the numbers of the sessions from place `first` of an order on, and adds these sessions. */
static int add_places(struct walk *w, uint64_t first, uint64_t count)
{
    uint64_t sessions = w->x->header.sessions, numbers[RUN_MOST];
    bool *wanted = mem_zalloc((size_t)sessions * sizeof(*wanted));
    int result = 0;

    while (count > 0 && result == 0) {
        size_t n = count < RUN_MOST ? (size_t)count : RUN_MOST;

        result = session_index_numbers(w->x, w->at_end, first, n, numbers);
        for (size_t i = 0; i < n && result == 0; i++) {
            if (numbers[i] < sessions)
                wanted[numbers[i]] = true;
            else
                result = -1;
        }
        first += n;
        count -= n;
    }
    for (uint64_t i = 0; i < sessions && w->list->count < w->limit && result == 0; i++)
        if (wanted[i])
            result = add_records(w, i, 1);
    free(wanted);
    return result;
}

/* Adds the sessions that have the name. */
static int add_named(struct walk *w)
{
    uint64_t first, count;

    if (w->text.n == 0)
        return add_in_order(w);
    if (session_index_named(w->x, w->text, w->at_end, &first, &count) < 0)
        return -1;
    return count == w->x->header.sessions ? add_in_order(w) : add_places(w, first, count);
}

/* Adds a session that has lines after those in the index, with its beginning from there. If these
 * lines only give it a title, its place is that of its record (add_records). */
static int add_recent(struct walk *w, const struct session *recent)
{
    uint64_t number;
    int found = session_index_find(w->x, recent->id, &number);

    if (found < 0)
        return -1;
    if (!found) {
        *session_list_add(w->list) = *recent;
    } else if (recent->count > 0) {
        if (session_index_sessions(w->x, number, 1, w->list) < 0)
            return -1;
        session_add_later(&w->list->at[w->list->count - 1], recent);
    }
    return 0;
}

/* Lists the sessions whose ids have the text on one side. Their recent texts are borrowed. */
static int walk_index(struct walk *w)
{
    const struct session_list *tail = &w->x->tail.list;
    struct session *recent = mem_zalloc(tail->count * sizeof(*recent));
    int result = 0;

    if (tail->count > 0)
        memcpy(recent, tail->at, tail->count * sizeof(*recent));
    qsort(recent, tail->count, sizeof(*recent), by_last_line);
    for (size_t i = 0; i < tail->count && w->list->count < w->limit && result == 0; i++)
        if (is_named(w, recent[i].id))
            result = add_recent(w, &recent[i]);
    free(recent);
    if (result == 0 && w->list->count < w->limit)
        result = add_named(w);
    w->list->bad_lines = tail->bad_lines + w->x->header.bad;
    return result;
}

static int list_index(struct session_list *l, struct session_index *x, struct str text,
                      size_t limit)
{
    struct walk w = {.x = x, .list = l, .limit = limit, .text = text};
    int result = walk_index(&w);

    if (result == 0 && l->count == 0 && text.n >= SESSION_SUFFIX_MIN) {
        w.at_end = true;
        result = walk_index(&w);
    }
    take_texts(l, &x->tail.list);
    return result;
}

int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    struct session_index x;

    *l = (struct session_list){0};
    if (session_index_open(&x, h)) {
        if (list_index(l, &x, text, limit) == 0) {
            session_index_close(&x);
            return 0;
        }
        session_list_release(l);
        session_index_discard(&x);
    }
    x = (struct session_index){.fd = -1, .scan = {.fd = -1}};
    session_table_init(&x.tail, h->now);
    if (session_table_load(&x.tail, h, e) < 0) {
        session_table_release(&x.tail);
        return -1;
    }
    (void)list_index(l, &x, text, limit);
    session_table_release(&x.tail);
    return 0;
}

int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e)
{
    return session_list_named(l, h, STR(""), limit, e);
}

int session_title(const struct history *h, struct str id, struct buf *title, struct buf *key,
                  struct err *e)
{
    struct session_list l;

    if (session_list_named(&l, h, id, SIZE_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < l.count; i++)
        if (str_eq(l.at[i].id, id)) {
            buf_add_str(title, l.at[i].title);
            if (key)
                buf_add_str(key, l.at[i].title_key);
        }
    session_list_release(&l);
    return 0;
}
