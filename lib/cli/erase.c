#include "chathist/cli/erase.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/keymap.h"
#include "chathist/base/mem.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/search/search.h"

static struct str id_of(const struct session *s)
{
    return (struct str){s->id, s->id_len};
}

/* ---- choosing ---- */

static bool is_named(const struct erase_wish *w, const struct session *s)
{
    for (size_t i = 0; i < w->ids_count; i++)
        if (str_eq(id_of(s), w->ids[i]))
            return true;
    return false;
}

static bool is_old(const struct erase_wish *w, const struct session *s)
{
    int64_t at;

    return clock_parse_iso((struct str){s->last_used, s->last_used_len}, &at) && at < w->before;
}

/* Clears *goes for the sessions without a message that holds the text. */
static int only_matching(const struct session_list *l, bool *goes, const struct history *h,
                         struct str text, struct err *e)
{
    struct keymap places = {0};
    struct pattern pattern;
    struct search search;
    struct hit hit;
    bool *found;
    int result;

    pattern_init(&pattern);
    if (pattern_add(&pattern, text, e) < 0 ||
        search_open(&search, h->dir_fd, h->path, &pattern, NULL, SCAN_FORWARD, e) < 0) {
        pattern_release(&pattern);
        return -1;
    }
    found = mem_zalloc(l->count);
    for (size_t i = 0; i < l->count; i++)
        keymap_set(&places, id_of(&l->at[i]), i);
    while ((result = search_next(&search, &hit, e)) > 0) {
        const size_t *place = keymap_find(&places, hit.message->session_id);

        if (place)
            found[*place] = true;
    }
    for (size_t i = 0; i < l->count; i++)
        goes[i] = goes[i] && found[i];
    free(found);
    keymap_release(&places);
    search_close(&search);
    pattern_release(&pattern);
    return result;
}

/* Of those that go, the ones used last stay that need not go. */
static void only_excess(const struct session_list *l, bool *goes, uint64_t size, uint64_t most)
{
    for (size_t i = l->count; i-- > 0;) {
        if (!goes[i])
            continue;
        goes[i] = size > most;
        if (goes[i])
            size -= l->at[i].bytes;
    }
}

/* Leaves the marked sessions in the list, and counts them. */
static void take(struct erase *x, const bool *goes)
{
    struct session_list rest = {0};
    struct session_list kept = {0};
    size_t kept_cap = 0, rest_cap = 0;

    x->messages = x->bytes = 0;
    for (size_t i = 0; i < x->list.count; i++) {
        struct session_list *to = goes[i] ? &kept : &rest;

        to->at = mem_grow(to->at, goes[i] ? &kept_cap : &rest_cap, to->count + 1, sizeof(*to->at));
        to->at[to->count++] = x->list.at[i];
        x->messages += goes[i] ? x->list.at[i].count : 0;
        x->bytes += goes[i] ? x->list.at[i].bytes : 0;
    }
    kept.bad_lines = x->list.bad_lines;
    free(x->list.at);
    session_list_release(&rest);
    x->list = kept;
}

bool erase_is_narrow(const struct erase_wish *w)
{
    return w->aged || w->keeps || w->limited || w->match.p;
}

/* Adds the current session when it was named and has no lines yet. */
static void add_empty(struct session_list *l, const struct history *h, const struct erase_wish *w)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    size_t cap = l->count;
    bool wanted = false;

    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < w->ids_count; i++)
            wanted = wanted || str_eq(buf_str(&id), w->ids[i]);
        for (size_t i = 0; i < l->count; i++)
            wanted = wanted && !str_eq(id_of(&l->at[i]), buf_str(&id));
    }
    if (wanted) {
        l->at = mem_grow(l->at, &cap, l->count + 1, sizeof(*l->at));
        l->at[l->count++] = (struct session){.id = mem_copy(buf_c(&id), id.len),
                                             .id_len = id.len,
                                             .preview = mem_copy("", 0),
                                             .first_role = mem_copy("", 0),
                                             .created_at = mem_copy("", 0),
                                             .last_used = mem_copy("", 0)};
    }
    buf_release(&id);
}

/* Does it tell the current session from others, which is in use however long ago that was? What is
 * named is meant, and so is what holds a text that is to be gone. */
static bool spares_current(const struct erase_wish *w)
{
    return !w->named && !w->match.p && !(w->keeps && w->keep == 0);
}

/* Clears the mark of the current session: was it set? */
static bool spare_current(const struct session_list *l, const struct history *h, bool *goes)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool spared = false;

    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < l->count; i++) {
            if (!goes[i] || !str_eq(id_of(&l->at[i]), buf_str(&id)))
                continue;
            goes[i] = false;
            spared = true;
        }
    }
    buf_release(&id);
    return spared;
}

int erase_choose(struct erase *x, const struct history *h, const struct erase_wish *w,
                 struct err *e)
{
    struct stat st = {0};
    bool *goes;
    int result = 0;

    *x = (struct erase){.named = w->named};
    if (session_list_load(&x->list, h->dir_fd, h->path, e) < 0)
        return -1;
    if (stat(h->path, &st) == 0)
        x->size = (uint64_t)st.st_size;
    if (!erase_is_narrow(w))
        add_empty(&x->list, h, w);
    goes = mem_zalloc(x->list.count);
    for (size_t i = 0; i < x->list.count; i++) {
        const struct session *s = &x->list.at[i];

        goes[i] = (!w->named || is_named(w, s)) && (!w->aged || is_old(w, s)) &&
                  (!w->keeps || i >= w->keep);
    }
    x->spares_current = spares_current(w);
    if (x->spares_current)
        x->current = spare_current(&x->list, h, goes) && !w->limited;
    if (w->match.p)
        result = only_matching(&x->list, goes, h, w->match, e);
    if (result == 0 && w->limited)
        only_excess(&x->list, goes, x->size, w->max_size);
    take(x, goes);
    free(goes);
    if (result < 0)
        erase_release(x);
    return result;
}

void erase_forget(struct erase *x)
{
    session_list_release(&x->list);
    x->messages = x->bytes = 0;
}

void erase_release(struct erase *x)
{
    session_list_release(&x->list);
}

/* ---- erasing ---- */

/* A rewrite that leaves out what was chosen. */
struct leave_out {
    struct erase *x;
    const struct history *h;
    struct keymap places; /* id -> its place in the list */
    struct message message;
    uint64_t *seen; /* lines of each so far */
    bool *stays;
};

static void begin(void *arg)
{
    struct leave_out *o = arg;

    for (size_t i = 0; i < o->x->list.count; i++)
        o->seen[i] = 0;
}

static void judge(void *arg, struct rewrite *r, const struct line *l)
{
    struct leave_out *o = arg;
    const size_t *place = NULL;

    if (!l->too_long && message_parse(&o->message, l->text))
        place = keymap_find(&o->places, o->message.session_id);
    if (place)
        o->seen[*place]++;
    if (!place || o->stays[*place])
        rewrite_keep(r, l);
}

/* What was chosen for its age, its size or its place among the others is another one when it was
 * used, or made current, since. What was named is meant as it is. */
static bool settled(void *arg)
{
    struct leave_out *o = arg;
    size_t count = o->x->list.count;
    bool *goes = mem_zalloc(count);
    bool good = true;

    for (size_t i = 0; i < count; i++)
        goes[i] = o->x->named || o->seen[i] <= o->x->list.at[i].count;
    if (o->x->spares_current)
        (void)spare_current(&o->x->list, o->h, goes);
    for (size_t i = 0; i < count; i++) {
        good = good && (goes[i] || o->stays[i]);
        o->stays[i] = o->stays[i] || !goes[i];
    }
    free(goes);
    return good;
}

static void settle_list(struct leave_out *o)
{
    size_t before = o->x->list.count;
    bool *goes = mem_zalloc(before);

    for (size_t i = 0; i < before; i++) {
        goes[i] = !o->stays[i];
        o->x->list.at[i].count = o->seen[i];
    }
    take(o->x, goes);
    o->x->spared = before - o->x->list.count;
    free(goes);
}

/* Removes the current session's pointer when it names one that went. 0, -1. */
static int erase_pointer(const struct erase *x, const struct history *h, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool names = false;
    int result = 0;

    /* One that cannot be read names nothing. */
    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < x->list.count; i++)
            names = names || str_eq(buf_str(&id), id_of(&x->list.at[i]));
    }
    if (names && io_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT)
        result = err_sys(e, errno, "the sessions are erased, but cannot remove '%s'", h->pointer);
    buf_release(&id);
    return result;
}

int erase_run(struct erase *x, struct history *h, struct err *e)
{
    size_t count = x->list.count;
    struct leave_out out = {.x = x,
                            .h = h,
                            .message = MESSAGE_INIT,
                            .seen = mem_zalloc(count * sizeof(*out.seen)),
                            .stays = mem_zalloc(count * sizeof(*out.stays))};
    struct rewriter by = {.arg = &out, .begin = begin, .line = judge, .settled = settled};
    int result = -1;

    for (size_t i = 0; i < count; i++)
        keymap_set(&out.places, id_of(&x->list.at[i]), i);
    if (count == 0 || rewrite_run(h, &by, e) >= 0) {
        settle_list(&out);
        result = erase_pointer(x, h, e);
    }
    keymap_release(&out.places);
    message_release(&out.message);
    free(out.seen);
    free(out.stays);
    return result;
}
