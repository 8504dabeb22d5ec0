#include "chathist/cli/delete.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/session_match.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"

bool delete_is_narrow(const struct delete_request *w)
{
    return choose_restricts(&w->choice) || w->choice.limit > 0 || w->keeps || w->limited ||
           w->choice.match;
}

/* ---- choosing ---- */

/* Clears the marks of the sessions that need not go: the oldest ones are deleted first, at most
 * `count`, until the history has at most max_size bytes. */
static void clear_beyond_limits(const struct deletion *d, bool *marked, size_t count)
{
    uint64_t size = d->size;

    for (size_t i = d->list.count; i-- > 0;) {
        if (!marked[i])
            continue;
        marked[i] = count > 0 && (!d->request->limited || size > d->request->max_size);
        if (marked[i]) {
            size -= d->list.at[i].bytes;
            count--;
        }
    }
}

/* Removes the sessions without a mark from the list, and counts the rest. */
static void restrict_to_marked(struct deletion *d, const bool *marked)
{
    session_list_restrict(&d->list, marked, SIZE_MAX);
    d->messages = d->bytes = 0;
    for (size_t i = 0; i < d->list.count; i++) {
        d->messages += d->list.at[i].count;
        d->bytes += d->list.at[i].bytes;
    }
}

/* Returns the place of the current session in the list, or the count of the list. *id is set to its
 * id, or left empty if no session is current. */
static size_t find_current(const struct deletion *d, const struct history *h, struct buf *id)
{
    size_t i = d->list.count;

    /* A pointer that cannot be read names nothing. */
    if (session_current(h, id, NULL, NULL) > 0)
        for (i = 0; i < d->list.count && !str_eq(d->list.at[i].id, buf_str(id));)
            i++;
    return i;
}

/* Adds the current session if it is named and has no lines yet. */
static void add_empty(struct deletion *d, const struct history *h)
{
    struct session_list *l = &d->list;
    struct buf id = BUF_INIT(BUF_SMALL);

    if (find_current(d, h, &id) == l->count && id.len > 0 &&
        filter_has(&d->request->choice.filter.sessions, buf_str(&id))) {
        struct session *s = session_list_add(l);

        s->id = session_list_copy(l, buf_str(&id));
        s->preview = s->title = s->first_role = s->created_at = s->last_used =
            session_list_copy(l, STR(""));
    }
    buf_release(&id);
}

/* Clears the mark of the current session: it is in use however old its last line is. It keeps
 * its mark if sessions were named, if a text is to be deleted, or if nothing is to be kept.
 * Returns true if a mark was cleared. */
static bool spare_current(const struct deletion *d, const struct history *h, bool *marked)
{
    const struct delete_request *w = d->request;
    struct buf id = BUF_INIT(BUF_SMALL);
    bool spared = false;
    size_t i;

    if (w->named || w->choice.match || (w->keeps && w->keep == 0))
        return false;
    i = find_current(d, h, &id);
    if (i < d->list.count && marked[i]) {
        marked[i] = false;
        spared = true;
    }
    buf_release(&id);
    return spared;
}

void delete_choose(struct deletion *d, const struct history *h, const struct delete_request *w)
{
    struct err e = ERR_INIT;
    struct stat st = {0};
    bool *marked;

    *d = (struct deletion){.request = w};
    if (session_list_load(&d->list, h, &e) < 0)
        die_err(&e);
    if (stat(h->path, &st) == 0)
        d->size = (uint64_t)st.st_size;
    if (!delete_is_narrow(w))
        add_empty(d, h);
    marked = mem_zalloc(d->list.count);
    for (size_t i = 0; i < d->list.count; i++)
        marked[i] = (!w->named || filter_has(&w->choice.filter.sessions, d->list.at[i].id)) &&
                    (!w->keeps || i >= w->keep);
    if (session_match_mark(&w->choice, &d->list, marked, h, &e) < 0)
        die_err(&e);
    d->current = spare_current(d, h, marked) && !w->limited;
    clear_beyond_limits(d, marked, w->choice.limit > 0 ? w->choice.limit : SIZE_MAX);
    restrict_to_marked(d, marked);
    free(marked);
}

/* ---- deleting ---- */

/* A rewrite that leaves out the chosen sessions. */
struct leave_out {
    struct deletion *d;
    const struct history *h;
    struct hash_map places; /* id -> its place in the list */
    struct message message;
    uint64_t *seen; /* the number of messages of each session so far */
    bool *goes;
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
        o->seen[*place] += !message_is_title(&o->message);
    if (!place || !o->goes[*place])
        rewrite_keep(r, l);
    else
        rewrite_erase(r, &o->message, false);
}

/* Called at the end of a rewrite: sessions that were not chosen by name are kept if they were
 * used, or made current, since they were chosen. Returns false if that needs another pass. */
static bool is_settled(void *arg)
{
    struct leave_out *o = arg;
    size_t count = o->d->list.count;
    bool *marked = mem_zalloc(count);
    bool good = true;

    for (size_t i = 0; i < count; i++)
        marked[i] = o->d->request->named || o->seen[i] <= o->d->list.at[i].count;
    (void)spare_current(o->d, o->h, marked);
    for (size_t i = 0; i < count; i++) {
        good = good && (marked[i] || !o->goes[i]);
        o->goes[i] = o->goes[i] && marked[i];
    }
    free(marked);
    return good;
}

/* Removes the pointer if it names a deleted session. Returns 0, or -1 with *e set. */
static int delete_pointer(const struct deletion *d, const struct history *h, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool names = find_current(d, h, &id) < d->list.count;

    buf_release(&id);
    if (names && file_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT)
        return err_sys(e, errno, "the sessions are erased, but cannot remove '%s'", h->pointer);
    return 0;
}

int delete_chosen(struct deletion *d, struct history *h, struct err *e)
{
    size_t count = d->list.count;
    struct leave_out out = {.d = d,
                            .h = h,
                            .message = MESSAGE_INIT,
                            .seen = mem_zalloc(count * sizeof(*out.seen)),
                            .goes = mem_zalloc(count * sizeof(*out.goes))};
    struct rewriter by = {
        .arg = &out, .begin = begin_deletion, .line = delete_line, .settled = is_settled};
    int result = -1;

    for (size_t i = 0; i < count; i++) {
        hash_map_set(&out.places, d->list.at[i].id, i);
        out.goes[i] = true;
    }
    if (rewrite_run(h, &by, e) >= 0) {
        for (size_t i = 0; i < count; i++) {
            bool gone = d->list.at[i].count > 0 && out.seen[i] == 0;

            d->gone += gone;
            d->spared += !gone && !out.goes[i];
            out.goes[i] = out.goes[i] && !gone;
            d->list.at[i].count = out.seen[i];
        }
        restrict_to_marked(d, out.goes);
        result = delete_pointer(d, h, e);
    }
    hash_map_release(&out.places);
    message_release(&out.message);
    free(out.seen);
    free(out.goes);
    return result;
}
