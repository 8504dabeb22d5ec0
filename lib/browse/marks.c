#include "browse/marks.h"

#include <stdlib.h>

#include "chathist/base/memory.h"

void browse_marks_release(struct browse_marks *m)
{
    free(m->at);
    hash_map_release(&m->numbers);
    *m = (struct browse_marks){0};
}

/* A copied history has the same ids. Returns where the id begins. */
static size_t make_key(struct buf *key, size_t history, struct str id)
{
    size_t at;

    buf_addf(key, "%zu ", history);
    at = key->len;
    buf_add_str(key, id);
    return at;
}

const struct browse_mark *browse_marks_find(const struct browse_marks *m, size_t history,
                                            struct str id)
{
    struct buf key = BUF_INIT(BUF_LINE);
    const size_t *number = NULL;

    if (!m || m->count == 0)
        return NULL;
    make_key(&key, history, id);
    number = hash_map_find(&m->numbers, buf_str(&key));
    buf_release(&key);
    return number ? &m->at[*number] : NULL;
}

static struct browse_mark *find_or_add(struct browse_marks *m, size_t history, struct str id)
{
    struct buf text = BUF_INIT(BUF_LINE);
    size_t at = make_key(&text, history, id), number;
    struct str key = buf_str(&text);

    number = hash_map_number(&m->numbers, &key);
    if (number == m->count) {
        m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof *m->at);
        m->at[m->count++] = (struct browse_mark){.history = history, .id = str_skip(key, at)};
    }
    buf_release(&text);
    return &m->at[number];
}

static void set_marked(struct browse_marks *m, struct browse_mark *one, bool marked)
{
    m->marked += marked;
    m->marked -= one->marked;
    one->marked = marked;
}

static void set_deletion(struct browse_marks *m, struct browse_mark *one, size_t deletion)
{
    m->deleted += deletion > 0;
    m->deleted -= one->deletion > 0;
    one->deletion = deletion;
}

void browse_marks_set(struct browse_marks *m, size_t history, struct str id, bool marked)
{
    set_marked(m, find_or_add(m, history, id), marked);
}

void browse_marks_delete(struct browse_marks *m, size_t history, struct str id, size_t deletion)
{
    set_deletion(m, find_or_add(m, history, id), deletion);
}

void browse_marks_delete_marked(struct browse_marks *m)
{
    m->deletions++;
    for (size_t i = 0; i < m->count; i++) {
        if (m->at[i].marked)
            set_deletion(m, &m->at[i], m->deletions);
        set_marked(m, &m->at[i], false);
    }
}

const struct browse_mark *browse_marks_undo(struct browse_marks *m)
{
    const struct browse_mark *kept = NULL;
    size_t last = 0;

    for (size_t i = 0; i < m->count; i++)
        last = m->at[i].deletion > last ? m->at[i].deletion : last;
    for (size_t i = 0; i < m->count && last > 0; i++) {
        if (m->at[i].deletion != last)
            continue;
        set_deletion(m, &m->at[i], 0);
        kept = &m->at[i];
    }
    return kept;
}

void browse_marks_keep(struct browse_marks *m)
{
    for (size_t i = 0; i < m->count; i++)
        set_deletion(m, &m->at[i], 0);
}
