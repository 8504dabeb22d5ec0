#include "history/session_gather.h"

#include <stdlib.h>

#include "chathist/base/mem.h"
#include "history/segment_names.h"

/* So many records are asked for at once. */
#define RECORDS ((size_t)4096)
/* Texts that lie within so many bytes are read together. */
#define NEAR_BYTES ((uint64_t)16 << 10)

void session_gather_release(struct session_gather *g)
{
    keymap_release(&g->places);
}

/* Texts that sessions borrow. */
static char *keep_texts(struct session_gather *g, struct buf *texts)
{
    struct session_list *l = g->list;

    l->texts = mem_grow(l->texts, &g->texts_cap, l->texts_count + 1, sizeof(*l->texts));
    l->texts[l->texts_count] = buf_detach(texts);
    return l->texts[l->texts_count++];
}

/* What an older segment knows of a session: its beginning. */
static void add_older(struct session *s, const struct segment_session *from, char *texts)
{
    s->count += from->count;
    s->bytes += from->bytes;
    s->first_role = texts;
    s->first_role_len = (size_t)from->role_len;
    s->created_at = texts + from->role_len + 1;
    s->created_at_len = (size_t)from->created_len;
    s->preview = s->created_at + from->created_len + 1 + from->last_len + 1;
    s->preview_len = (size_t)from->preview_len;
}

static void add_session(struct session_gather *g, const struct segment_session *from, char *id,
                        char *texts)
{
    struct session_list *l = g->list;
    struct session *s;

    s = &l->at[l->count++];
    *s = (struct session){.id = id,
                          .id_len = (size_t)from->id_len,
                          .last_used = texts + from->role_len + 1 + from->created_len + 1,
                          .last_used_len = (size_t)from->last_len,
                          .last_line = (off_t)from->last_line,
                          .borrowed = true};
    add_older(s, from, texts);
}

/* Sessions in the order of their records. `fresh`: of those that are in the list, the
 * beginning was added before. */
static int gather_some(struct session_gather *g, const struct segment *s, bool oldest, bool fresh,
                       const struct segment_session *of, size_t count)
{
    struct buf ids = BUF_INIT(SIZE_MAX), texts = BUF_INIT(SIZE_MAX);
    char *id, *text;

    if (segment_ids(s, of, count, &ids) < 0 || segment_texts(s, of, count, &texts) < 0) {
        buf_release(&ids);
        buf_release(&texts);
        return -1;
    }
    id = keep_texts(g, &ids);
    text = keep_texts(g, &texts);
    for (size_t i = 0; i < count && g->list->count < g->limit; i++) {
        char *own = id + (of[i].id_at - of[0].id_at);
        struct str name = {own, (size_t)of[i].id_len};
        const size_t *place = keymap_find(&g->places, name);

        if (place && !fresh)
            add_older(&g->list->at[*place], &of[i], text + (of[i].text_at - of[0].text_at));
        if (place)
            continue;
        add_session(g, &of[i], own, text + (of[i].text_at - of[0].text_at));
        if (!oldest)
            keymap_set(&g->places, name, g->list->count - 1);
    }
    return 0;
}

int session_gather_older(struct session_gather *g, const struct segment *s)
{
    int result = 0;

    for (size_t i = 0; i < g->list->count && result >= 0; i++) {
        struct session *session = &g->list->at[i];
        struct segment_session found;
        struct buf texts = BUF_INIT(SIZE_MAX);

        result = segment_find(s, (struct str){session->id, session->id_len}, &found);
        if (result > 0)
            result = segment_texts(s, &found, 1, &texts);
        if (texts.len > 0)
            add_older(session, &found, keep_texts(g, &texts));
        buf_release(&texts);
    }
    return result < 0 ? -1 : 0;
}

/* Makes room for so many sessions more. */
static void make_room(struct session_gather *g, size_t more)
{
    size_t most = g->list->count + more;

    if (most <= g->cap)
        return;
    g->list->at = mem_resize(g->list->at, most, sizeof(*g->list->at));
    g->cap = most;
}

static int gather_records(struct session_gather *g, const struct segment *s, uint64_t first,
                          uint64_t count, bool oldest, bool fresh)
{
    size_t left = g->limit - g->list->count;
    size_t more = left < count ? left : (size_t)count, room = more < RECORDS ? more : RECORDS;
    struct segment_session *of = mem_zalloc(room * sizeof(*of));
    int result = 0;

    make_room(g, more);
    for (uint64_t at = 0; result == 0 && at < count && g->list->count < g->limit;) {
        size_t n = count - at < room ? (size_t)(count - at) : room;

        result = segment_sessions(s, first + at, n, of);
        if (result == 0)
            result = gather_some(g, s, oldest, fresh, of, n);
        at += n;
    }
    free(of);
    return result;
}

int session_gather_segment(struct session_gather *g, const struct segment *s, bool oldest)
{
    bool some = g->limit - g->list->count < s->sessions;

    if (some && session_gather_older(g, s) < 0)
        return -1;
    return gather_records(g, s, 0, s->sessions, oldest, some);
}

int session_gather_records(struct session_gather *g, const struct segment *s, uint64_t first,
                           uint64_t count)
{
    return gather_records(g, s, first, count, true, true);
}

/* Sessions that are told, in the order of their records. */
struct told {
    struct segment_session *at;
    size_t count, cap;
};

static void keep_told(void *ctx, const struct segment_session *of, struct str id)
{
    struct told *t = ctx;

    (void)id;
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->at[t->count++] = *of;
}

/* How many from the first on have their texts so near that these are read at once. */
static size_t count_near(const struct segment_session *of, size_t count)
{
    size_t n = 1;

    while (n < count && of[n].text_at - of[0].text_at < NEAR_BYTES)
        n++;
    return n;
}

int session_gather_named(struct session_gather *g, const struct segment *s, enum segment_side side,
                         struct str text)
{
    struct told t = {0};
    int result = session_gather_older(g, s);

    if (result < 0 || g->list->count == g->limit)
        return result;
    /* As many of those that are told may be in the list as it has. */
    result = segment_each_named(s, side, text, g->limit, keep_told, &t);
    make_room(g, t.count);
    for (size_t i = 0, n; i < t.count && result == 0; i += n) {
        n = count_near(t.at + i, t.count - i);
        result = gather_some(g, s, false, true, t.at + i, n);
    }
    free(t.at);
    return result;
}
