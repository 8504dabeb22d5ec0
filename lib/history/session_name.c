#include "history/session_name.h"

#include <stdlib.h>

#include "chathist/base/mem.h"
#include "chathist/history/index.h"
#include "history/segment_names.h"

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

static void consider(void *ctx, const struct segment_session *of, struct str id)
{
    (void)of;
    session_name_consider(ctx, id);
}

/* Considers those ids of all segments that have the text on a side. As they are told each segment
 * by itself, the newest first, of each so many are enough as there is to know. */
static int consider_side(struct session_name *n, const struct index *x, enum segment_side side)
{
    size_t enough = n->most < SIZE_MAX ? n->most + 1 : n->most;
    int result = 0;

    for (size_t i = x->count; i-- > 0 && result == 0;)
        result = segment_each_named(&x->segments[i], side, n->text, enough, consider, n);
    return result;
}

bool session_name_consider_all(struct session_name *n, const struct history *h)
{
    struct index x;
    int result;

    if (!index_open(&x, h))
        return false;
    result = consider_side(n, &x, SEGMENT_BEGINNING);
    if (result == 0 && n->begun.count == 0 && n->text.n >= SESSION_SUFFIX_MIN)
        result = consider_side(n, &x, SEGMENT_END);
    if (result == 0) {
        index_close(&x);
        return true;
    }
    index_discard(&x);
    session_name_clear(n);
    return false;
}

const struct session_ids *session_name_meant(const struct session_name *n)
{
    return n->begun.count > 0 ? &n->begun : &n->ended;
}
