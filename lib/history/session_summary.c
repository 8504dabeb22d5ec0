#include "chathist/history/session_summary.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/history/order.h"
#include "chathist/history/title.h"

/* Memory for texts is allocated in blocks of this size. */
#define TEXTS_BLOCK ((size_t)4 << 10)

void session_add_json(struct buf *out, const struct session *s)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", s->id);
    json_add_member(out, "timestamp", s->last_used);
    json_add_member_int(out, "message_count", (int64_t)s->count);
    json_add_member(out, "preview", s->preview);
    if (s->title.n > 0)
        json_add_member(out, "title", s->title);
    json_add_member(out, "first_role", s->first_role);
    json_add_member(out, "created_at", s->created_at);
    json_add_member(out, "last_accessed", s->last_used);
    if (s->came) {
        json_add_key(out, "came_with_repository");
        buf_add_c(out, "true");
    }
    buf_add_byte(out, '}');
}

struct str session_label(const struct session *s)
{
    return s->title.n > 0 ? s->title : s->preview;
}

void session_set_titles(struct session_list *l, struct session *s, const struct titles *t)
{
    const struct title *title = titles_find(t);
    struct buf set = BUF_INIT(SIZE_MAX);

    titles_write(t, &set);
    s->title = session_list_copy(l, title ? title->text : STR(""));
    s->title_set = session_list_copy(l, buf_str(&set));
    buf_release(&set);
}

int session_compare(const void *a, const void *b)
{
    const struct session *x = a, *y = b;

    return line_compare(x->used, x->last_line, y->used, y->last_line);
}

void session_add_later(struct session_list *l, struct session *s, const struct session *later)
{
    bool first_message = s->count == 0 && later->count > 0;

    if (first_message)
        s->first_role = later->first_role;
    if (first_message || (!s->asked && later->asked)) {
        s->preview = later->preview;
        s->asked = later->asked;
    }
    if (later->title_set.n > 0) {
        struct titles t = {0};

        titles_add_known(&t, s->title_set);
        titles_add_known(&t, later->title_set);
        session_set_titles(l, s, &t);
        titles_release(&t);
    }
    if (later->count > 0 && later->used >= s->used) {
        s->last_used = later->last_used;
        s->used = later->used;
    }
    if (later->count > 0)
        s->last_line = later->last_line;
    s->count += later->count;
    s->titles += later->titles;
    s->bytes += later->bytes;
}

struct session *session_list_add(struct session_list *l)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof(*l->at));
    l->at[l->count] = (struct session){0};
    return &l->at[l->count++];
}

void session_list_restrict(struct session_list *l, const bool *marked, size_t limit)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->count && kept < limit; i++)
        if (marked[i])
            l->at[kept++] = l->at[i];
    l->count = kept;
}

char *session_list_own(struct session_list *l, char *block)
{
    l->texts = mem_grow(l->texts, &l->texts_cap, l->texts_count + 1, sizeof(*l->texts));
    l->texts[l->texts_count++] = block;
    l->texts_left = 0;
    return block;
}

struct str session_list_copy(struct session_list *l, struct str text)
{
    char *to;

    if (text.n >= TEXTS_BLOCK / 4)
        return (struct str){session_list_own(l, mem_copy(text.p, text.n)), text.n};
    if (text.n >= l->texts_left) {
        session_list_own(l, mem_zalloc(TEXTS_BLOCK));
        l->texts_left = TEXTS_BLOCK;
    }
    to = l->texts[l->texts_count - 1] + (TEXTS_BLOCK - l->texts_left);
    if (text.n > 0)
        memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    l->texts_left -= text.n + 1;
    return (struct str){to, text.n};
}

void session_list_release(struct session_list *l)
{
    while (l->texts_count > 0)
        free(l->texts[--l->texts_count]);
    free(l->texts);
    free(l->at);
    *l = (struct session_list){0};
}
