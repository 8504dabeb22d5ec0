#include "chathist/history/session_list.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "history/session_index.h"

/* Memory for texts is allocated in blocks of this size. */
#define TEXTS_BLOCK ((size_t)16 << 10)
/* Records that are read at once. */
#define RUN_MOST ((uint64_t)1024)

/* ---- a list ---- */

struct session *session_list_add(struct session_list *l)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof(*l->at));
    l->at[l->count] = (struct session){0};
    return &l->at[l->count++];
}

char *session_list_own(struct session_list *l, char *block)
{
    l->texts = mem_grow(l->texts, &l->texts_cap, l->texts_count + 1, sizeof(*l->texts));
    l->texts[l->texts_count++] = block;
    l->texts_left = 0;
    return block;
}

char *session_list_keep(struct session_list *l, struct str text)
{
    char *to;

    if (text.n >= TEXTS_BLOCK / 4)
        return session_list_own(l, mem_copy(text.p, text.n));
    if (text.n >= l->texts_left) {
        session_list_own(l, mem_zalloc(TEXTS_BLOCK));
        l->texts_left = TEXTS_BLOCK;
    }
    to = l->texts[l->texts_count - 1] + (TEXTS_BLOCK - l->texts_left);
    if (text.n > 0)
        memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    l->texts_left -= text.n + 1;
    return to;
}

void session_list_release(struct session_list *l)
{
    while (l->texts_count > 0)
        free(l->texts[--l->texts_count]);
    free(l->texts);
    free(l->at);
    *l = (struct session_list){0};
}

/* Moves the texts to another list. */
static void move_texts(struct session_list *from, struct session_list *to)
{
    for (size_t i = 0; i < from->texts_count; i++)
        session_list_own(to, from->texts[i]);
    from->texts_count = 0;
}

void session_add_json(struct buf *out, const struct session *s)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", (struct str){s->id, s->id_len});
    json_add_member(out, "timestamp", (struct str){s->last_used, s->last_used_len});
    json_add_member_int(out, "message_count", (int64_t)s->count);
    json_add_member(out, "preview", (struct str){s->preview, s->preview_len});
    json_add_member(out, "first_role", (struct str){s->first_role, s->first_role_len});
    json_add_member(out, "created_at", (struct str){s->created_at, s->created_at_len});
    json_add_member(out, "last_accessed", (struct str){s->last_used, s->last_used_len});
    buf_add_byte(out, '}');
}

/* ---- by reading all lines ---- */

static int by_last_line(const void *a, const void *b)
{
    off_t x = ((const struct session *)a)->last_line;
    off_t y = ((const struct session *)b)->last_line;

    return (x < y) - (x > y);
}

int session_list_recent(struct session_list *l, int dir, const char *history_path, off_t bytes,
                        bool *whole, struct err *e)
{
    struct session_table t;
    int result;

    session_table_init(&t);
    result = session_table_load(&t, dir, history_path, bytes, whole, NULL, e);
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

int session_list_load(struct session_list *l, int dir, const char *history_path, struct err *e)
{
    return session_list_recent(l, dir, history_path, 0, NULL, e);
}

/* ---- by the index ---- */

/* A walk through the sessions of an index, last used first. */
struct walk {
    const struct session_index *x;
    struct session_list *list;
    size_t limit;
    struct str text;
    bool at_end;         /* the text is looked for at the ends of ids */
    uint64_t first, end; /* records that are to be added next */
    int result;
};

static bool is_named(const struct walk *w, struct str id)
{
    return w->at_end ? str_ends(id, w->text) : str_starts(id, w->text);
}

static void add_records(struct walk *w)
{
    if (w->first < w->end && w->result == 0)
        w->result = session_index_sessions(w->x, w->first, w->end - w->first, w->list);
    w->first = w->end;
}

/* Takes the next record. Those that follow each other are read together. */
static bool take_record(void *arg, uint64_t number, struct str id)
{
    struct walk *w = arg;
    size_t own;

    if (is_named(w, id) && !session_table_find(&w->x->tail, id, &own)) {
        if (number != w->end || w->end - w->first == RUN_MOST) {
            add_records(w);
            w->first = number;
        }
        w->end = number + 1;
    }
    return w->result == 0 && w->list->count + (w->end - w->first) < w->limit;
}

/* Adds a session that has lines after those in the index, with its beginning from there. */
static int add_recent(struct walk *w, const struct session *recent)
{
    uint64_t number;
    struct session *s;
    int found = session_index_find(w->x, (struct str){recent->id, recent->id_len}, &number);

    if (found > 0 && session_index_sessions(w->x, number, 1, w->list) < 0)
        found = -1;
    if (found < 0)
        return -1;
    s = found ? &w->list->at[w->list->count - 1] : session_list_add(w->list);
    if (!found) {
        *s = *recent;
        return 0;
    }
    s->last_used = recent->last_used;
    s->last_used_len = recent->last_used_len;
    s->last_line = recent->last_line;
    s->count += recent->count;
    s->bytes += recent->bytes;
    return 0;
}

/* Lists the sessions whose ids have the text on one side. Their recent texts are borrowed. */
static int walk_index(struct walk *w)
{
    const struct session_list *tail = &w->x->tail.list;
    struct session *recent = mem_zalloc(tail->count * sizeof(*recent));

    if (tail->count > 0)
        memcpy(recent, tail->at, tail->count * sizeof(*recent));
    qsort(recent, tail->count, sizeof(*recent), by_last_line);
    for (size_t i = 0; i < tail->count && w->list->count < w->limit && w->result == 0; i++)
        if (is_named(w, (struct str){recent[i].id, recent[i].id_len}))
            w->result = add_recent(w, &recent[i]);
    free(recent);
    /* take_record sets w->result when it stops because a record is damaged. */
    if (w->list->count < w->limit && w->result == 0 &&
        session_index_each_id(w->x, take_record, w) < 0)
        w->result = -1;
    add_records(w);
    w->list->bad_lines = tail->bad_lines + w->x->header.bad;
    return w->result;
}

static int list_index(struct session_list *l, struct session_index *x, struct str text,
                      size_t limit)
{
    struct walk w = {.x = x, .list = l, .limit = limit, .text = text};
    int result = walk_index(&w);

    if (result == 0 && l->count == 0 && text.n >= SESSION_SUFFIX_MIN) {
        w.at_end = true;
        w.first = w.end = 0;
        result = walk_index(&w);
    }
    move_texts(&x->tail.list, l);
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
    session_table_init(&x.tail);
    if (session_table_load(&x.tail, h->dir_fd, h->path, 0, NULL, h->cancel, e) < 0) {
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
