#include "hist/session_name.h"

#include <stdlib.h>

#include "base/mem.h"
#include "hist/index.h"

void session_name_init(struct session_name *n, struct str text, size_t most)
{
    *n = (struct session_name){.text = text, .most = most};
}

static void clear(struct session_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        buf_release(&ids->at[i]);
    free(ids->at);
    *ids = (struct session_ids){0};
}

void session_name_clear(struct session_name *n)
{
    clear(&n->begun);
    clear(&n->ended);
}

static void add(struct session_ids *ids, struct str id, size_t most)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (str_eq(buf_str(&ids->at[i]), id))
            return;
    }
    ids->more = ids->count == most;
    if (ids->more)
        return;
    ids->at = mem_grow(ids->at, &ids->cap, ids->count + 1, sizeof(*ids->at));
    buf_init(&ids->at[ids->count], BUF_LINE);
    buf_add_str(&ids->at[ids->count++], id);
}

void session_name_consider(struct session_name *n, struct str id)
{
    if (!n->begun.more && str_starts(id, n->text))
        add(&n->begun, id, n->most);
    if (n->begun.count == 0 && n->text.n >= SESSION_SUFFIX_MIN && !n->ended.more &&
        str_ends(id, n->text))
        add(&n->ended, id, n->most);
}

static void consider(void *ctx, struct str id)
{
    session_name_consider(ctx, id);
}

bool session_name_consider_all(struct session_name *n, const struct history *h)
{
    struct index x;
    int result = 1;

    if (!index_open(&x, h))
        return false;
    for (size_t i = x.count; i-- > 0 && result > 0;)
        result = segment_each_id(&x.segments[i], consider, n);
    if (result > 0) {
        index_close(&x);
        return true;
    }
    if (result < 0)
        index_discard(&x);
    else
        index_close(&x);
    session_name_clear(n);
    return false;
}

const struct session_ids *session_name_meant(const struct session_name *n)
{
    return n->begun.count > 0 ? &n->begun : &n->ended;
}
