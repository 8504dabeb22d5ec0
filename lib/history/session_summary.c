#include "chathist/history/session_summary.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"

/* Memory for texts is allocated in blocks of this size. */
#define TEXTS_BLOCK ((size_t)16 << 10)

void session_add_json(struct buf *out, const struct session *s)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", (struct str){s->id, s->id_len});
    json_add_member(out, "timestamp", (struct str){s->last_used, s->last_used_len});
    json_add_member_int(out, "message_count", (int64_t)s->count);
    json_add_member(out, "preview", (struct str){s->preview, s->preview_len});
    if (s->title_len > 0)
        json_add_member(out, "title", (struct str){s->title, s->title_len});
    json_add_member(out, "first_role", (struct str){s->first_role, s->first_role_len});
    json_add_member(out, "created_at", (struct str){s->created_at, s->created_at_len});
    json_add_member(out, "last_accessed", (struct str){s->last_used, s->last_used_len});
    buf_add_byte(out, '}');
}

struct str session_label(const struct session *s)
{
    return s->title_len > 0 ? (struct str){s->title, s->title_len}
                            : (struct str){s->preview, s->preview_len};
}

bool session_title_yields(const struct session *s, struct str key)
{
    return str_compare(key, (struct str){s->title_key, s->title_key_len}) >= 0;
}

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
