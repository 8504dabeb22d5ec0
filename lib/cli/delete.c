#include "chathist/cli/delete.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/search/search.h"

static struct str id_of(const struct session *s)
{
    return (struct str){s->id, s->id_len};
}

/* ---- choosing ---- */

static bool is_named(const struct delete_criteria *c, const struct session *s)
{
    for (size_t i = 0; i < c->ids_count; i++)
        if (str_eq(id_of(s), c->ids[i]))
            return true;
    return false;
}

static bool is_old(const struct delete_criteria *c, const struct session *s)
{
    int64_t at;

    return time_parse_iso((struct str){s->last_used, s->last_used_len}, &at) && at < c->before;
}

/* Clears the marks of the sessions without a message that contains the text. */
static int clear_unmatched(const struct session_list *l, bool *marked, const struct history *h,
                           struct str text, struct err *e)
{
    struct hash_map places = {0};
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
        hash_map_set(&places, id_of(&l->at[i]), i);
    while ((result = search_next(&search, &hit, e)) > 0) {
        const size_t *place = hash_map_find(&places, hit.message->session_id);

        if (place)
            found[*place] = true;
    }
    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && found[i];
    free(found);
    hash_map_release(&places);
    search_close(&search);
    pattern_release(&pattern);
    return result;
}

/* Deletes the oldest marked sessions first, until the size limit is met; clears the other marks. */
static void clear_below_limit(const struct session_list *l, bool *marked, uint64_t size,
                              uint64_t most)
{
    for (size_t i = l->count; i-- > 0;) {
        if (!marked[i])
            continue;
        marked[i] = size > most;
        if (marked[i])
            size -= l->at[i].bytes;
    }
}

/* Removes the sessions without a mark from the list, and counts the rest. */
static void keep_marked(struct deletion *d, const bool *marked)
{
    size_t kept = 0;

    d->messages = d->bytes = 0;
    for (size_t i = 0; i < d->list.count; i++) {
        if (!marked[i])
            continue;
        d->messages += d->list.at[i].count;
        d->bytes += d->list.at[i].bytes;
        d->list.at[kept++] = d->list.at[i];
    }
    d->list.count = kept;
}

bool delete_criteria_narrow(const struct delete_criteria *c)
{
    return c->aged || c->keeps || c->limited || c->match.p;
}

/* Adds the current session if it is named and has no lines yet. */
static void add_empty(struct session_list *l, const struct history *h,
                      const struct delete_criteria *c)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool wanted = false;

    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < c->ids_count; i++)
            wanted = wanted || str_eq(buf_str(&id), c->ids[i]);
        for (size_t i = 0; i < l->count; i++)
            wanted = wanted && !str_eq(id_of(&l->at[i]), buf_str(&id));
    }
    if (wanted) {
        struct session *s = session_list_add(l);

        s->id = session_list_keep(l, buf_str(&id));
        s->id_len = id.len;
        s->preview = s->first_role = s->created_at = s->last_used = session_list_keep(l, STR(""));
    }
    buf_release(&id);
}

/* Should the current session be kept? It is in use, however old its last line is. It is deleted only
 * if it was named, if it contains a text that is to be deleted, or if nothing is to be kept. */
static bool spares_current(const struct delete_criteria *c)
{
    return !c->named && !c->match.p && !(c->keeps && c->keep == 0);
}

/* Clears the mark of the current session. Returns true if it was set. */
static bool spare_current(const struct session_list *l, const struct history *h, bool *marked)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool spared = false;

    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < l->count; i++) {
            if (!marked[i] || !str_eq(id_of(&l->at[i]), buf_str(&id)))
                continue;
            marked[i] = false;
            spared = true;
        }
    }
    buf_release(&id);
    return spared;
}

int deletion_choose(struct deletion *d, const struct history *h, const struct delete_criteria *c,
                    struct err *e)
{
    struct stat st = {0};
    bool *marked;
    int result = 0;

    *d = (struct deletion){.named = c->named};
    if (session_list_load(&d->list, h->dir_fd, h->path, e) < 0)
        return -1;
    if (stat(h->path, &st) == 0)
        d->size = (uint64_t)st.st_size;
    if (!delete_criteria_narrow(c))
        add_empty(&d->list, h, c);
    marked = mem_zalloc(d->list.count);
    for (size_t i = 0; i < d->list.count; i++) {
        const struct session *s = &d->list.at[i];

        marked[i] = (!c->named || is_named(c, s)) && (!c->aged || is_old(c, s)) &&
                    (!c->keeps || i >= c->keep);
    }
    d->spares_current = spares_current(c);
    if (d->spares_current)
        d->current = spare_current(&d->list, h, marked) && !c->limited;
    if (c->match.p)
        result = clear_unmatched(&d->list, marked, h, c->match, e);
    if (result == 0 && c->limited)
        clear_below_limit(&d->list, marked, d->size, c->max_size);
    keep_marked(d, marked);
    free(marked);
    if (result < 0)
        deletion_release(d);
    return result;
}

void deletion_clear(struct deletion *d)
{
    session_list_release(&d->list);
    d->messages = d->bytes = 0;
}

void deletion_release(struct deletion *d)
{
    session_list_release(&d->list);
}

/* ---- deleting ---- */

/* A rewrite that leaves out the chosen sessions. */
struct leave_out {
    struct deletion *d;
    const struct history *h;
    struct hash_map places; /* id -> its place in the list */
    struct message message;
    uint64_t *seen; /* the number of lines of each session so far */
    bool *stays;
};

static void begin_deletion(void *arg)
{
    struct leave_out *o = arg;

    for (size_t i = 0; i < o->d->list.count; i++)
        o->seen[i] = 0;
}

static void delete_line(void *arg, struct rewrite *r, const struct line *l)
{
    struct leave_out *o = arg;
    const size_t *place = NULL;

    if (!l->too_long && message_parse(&o->message, l->text))
        place = hash_map_find(&o->places, o->message.session_id);
    if (place)
        o->seen[*place]++;
    if (!place || o->stays[*place])
        rewrite_keep(r, l);
}

/* Called at the end of a rewrite: sessions that were not chosen by name are kept if they were used, or
 * made current, since they were chosen. Returns false if that needs another pass. */
static bool is_settled(void *arg)
{
    struct leave_out *o = arg;
    size_t count = o->d->list.count;
    bool *marked = mem_zalloc(count);
    bool good = true;

    for (size_t i = 0; i < count; i++)
        marked[i] = o->d->named || o->seen[i] <= o->d->list.at[i].count;
    if (o->d->spares_current)
        (void)spare_current(&o->d->list, o->h, marked);
    for (size_t i = 0; i < count; i++) {
        good = good && (marked[i] || o->stays[i]);
        o->stays[i] = o->stays[i] || !marked[i];
    }
    free(marked);
    return good;
}

static void settle_list(struct leave_out *o)
{
    size_t before = o->d->list.count;
    bool *marked = mem_zalloc(before);

    for (size_t i = 0; i < before; i++) {
        marked[i] = !o->stays[i];
        o->d->list.at[i].count = o->seen[i];
    }
    keep_marked(o->d, marked);
    o->d->spared = before - o->d->list.count;
    free(marked);
}

/* Removes the pointer if it names a deleted session. Returns 0, or -1 with *e set. */
static int delete_pointer(const struct deletion *d, const struct history *h, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool names = false;
    int result = 0;

    /* A pointer that cannot be read names nothing. */
    if (session_current(h, &id, NULL, NULL) > 0) {
        for (size_t i = 0; i < d->list.count; i++)
            names = names || str_eq(buf_str(&id), id_of(&d->list.at[i]));
    }
    if (names && file_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT)
        result = err_sys(e, errno, "the sessions are erased, but cannot remove '%s'", h->pointer);
    buf_release(&id);
    return result;
}

int deletion_run(struct deletion *d, struct history *h, struct err *e)
{
    size_t count = d->list.count;
    struct leave_out out = {.d = d,
                            .h = h,
                            .message = MESSAGE_INIT,
                            .seen = mem_zalloc(count * sizeof(*out.seen)),
                            .stays = mem_zalloc(count * sizeof(*out.stays))};
    struct rewriter by = {
        .arg = &out, .begin = begin_deletion, .line = delete_line, .settled = is_settled};
    int result = -1;

    for (size_t i = 0; i < count; i++)
        hash_map_set(&out.places, id_of(&d->list.at[i]), i);
    if (count == 0 || rewrite_run(h, &by, e) >= 0) {
        settle_list(&out);
        result = delete_pointer(d, h, e);
    }
    hash_map_release(&out.places);
    message_release(&out.message);
    free(out.seen);
    free(out.stays);
    return result;
}
