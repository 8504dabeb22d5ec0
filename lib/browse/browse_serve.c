#include "browse/browse_serve.h"

#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/crew.h"
#include "chathist/base/mem.h"
#include "chathist/history/filter.h"
#include "chathist/search/pattern.h"
#include "chathist/search/search.h"
#include "chathist/history/session_list.h"
#include "browse/browse_child.h"
#include "browse/browse_clipboard.h"

/* Of a file that was never read, so much of its end is looked at first. */
#define RECENT ((off_t)1 << 20)
/* The first hits, that fill a screen, are handed over one by one; the others when there are so
 * many, or after so many milliseconds. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20

/* ---- requests ---- */

struct browse_request *browse_request_new(void)
{
    struct browse_request *q = mem_zalloc(sizeof *q);

    browse_target_init(&q->target);
    buf_init(&q->text, BUF_LINE);
    return q;
}

void browse_request_free(struct browse_request *q)
{
    while (q) {
        struct browse_request *next = q->next;

        browse_wish_release(&q->wish);
        browse_target_release(&q->target);
        buf_release(&q->text);
        words_release(&q->argv);
        free(q);
        q = next;
    }
}

/* ---- sessions ---- */

/* What a first glance tells of a large file. */
static void look(struct browse_server *s)
{
    struct session_list recent;
    struct browse_result *r;
    bool whole = true;

    s->looked = true;
    if (session_list_recent(&recent, s->histories[0].dir_fd, s->histories[0].path, RECENT, &whole,
                            NULL) < 0)
        return;
    if (!whole) {
        r = browse_result_new(BROWSE_SESSIONS);
        r->sessions.partial = true;
        r->sessions.total = recent.count;
        for (size_t i = 0; i < recent.count; i++)
            browse_sessions_add(&r->sessions, 0, &recent.at[i]);
        s->give(s->ctx, r);
    }
    session_list_release(&recent);
}

void browse_serve_sessions(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r;

    if (!s->looked)
        look(s);
    r = browse_result_new(BROWSE_SESSIONS);
    if (browse_source_read(&s->source, &q->wish, &r->sessions, &r->error) < 0 &&
        r->error.kind == ERR_SIGNAL)
        browse_result_free(r);
    else
        s->give(s->ctx, r);
}

/* ---- messages ---- */

static bool has_message(const struct thread *t, struct str id)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(t->at[i].id, id))
            return true;
    return false;
}

/* Every line, if a message is among them that the thread does not have. Of a part of the file that
 * cannot be told. */
static bool read_every(struct thread *t, const struct history *h, const struct browse_target *of)
{
    struct thread every;

    if (of->hit.len == 0 || of->end >= 0 || has_message(t, buf_str(&of->hit)) ||
        thread_find(&every, h, buf_str(&of->id), true, NULL) < 0)
        return false;
    if (!has_message(&every, buf_str(&of->hit))) {
        thread_release(&every);
        return false;
    }
    thread_release(t);
    *t = every;
    return true;
}

void browse_serve_thread(struct browse_server *s, const struct browse_request *q)
{
    const struct browse_target *t = &q->target;
    const struct history *h = &s->histories[t->history];
    struct browse_result *r = browse_result_new(BROWSE_THREAD);

    r->number = q->number;
    if (t->end < 0)
        (void)thread_find(&r->thread, h, buf_str(&t->id), false, &r->error);
    else
        (void)thread_load_between(&r->thread, h->dir_fd, h->path, buf_str(&t->id), t->first, t->end,
                                  &r->error);
    r->every = read_every(&r->thread, h, t);
    browse_parts_make(&r->parts, &r->thread);
    s->give(s->ctx, r);
}

/* ---- hits ---- */

/* Hands over what was found, and waits when that is enough for now. */
static void hand_over(struct browse_server *s, struct browse_result **r, size_t *given)
{
    unsigned number = (*r)->number;

    *given += (*r)->hits.count;
    s->give(s->ctx, *r);
    *r = browse_result_new(BROWSE_HITS);
    (*r)->number = number;
    s->rest(s->ctx, *given);
}

static int search_one(struct browse_server *server, size_t history, struct pattern *pattern,
                      const struct filter *filter, struct browse_result **r, size_t *given)
{
    const struct history *h = &server->histories[history];
    struct search s;
    struct hit hit;
    int64_t since = clock_ticks();
    size_t threads = crew_size();
    int result;

    if (search_open(&s, h->dir_fd, h->path, pattern, filter, SCAN_BACKWARD, &(*r)->error) < 0)
        return -1;
    s.cancel = &server->cancel;
    s.history = h;
    /* One processor is the keyboard's. */
    s.threads = threads > 1 ? threads - 1 : 1;
    while ((result = search_next(&s, &hit, &(*r)->error)) > 0 && !atomic_load(&server->cancel)) {
        if (result == SEARCH_FAILED)
            continue;
        browse_hits_add(&(*r)->hits, history, &hit);
        if (*given < SCREENFUL || (*r)->hits.count >= PORTION ||
            clock_ticks() - since >= PORTION_MS) {
            hand_over(server, r, given);
            since = clock_ticks();
        }
    }
    search_close(&s);
    return result;
}

void browse_serve_search(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r;
    struct pattern pattern;
    struct filter filter = {0};
    size_t given = 0;

    if (q->text.len == 0)
        return;
    r = browse_result_new(BROWSE_HITS);
    r->number = q->number;
    pattern_init(&pattern);
    (void)pattern_add(&pattern, buf_str(&q->text), NULL);
    if (q->role)
        filter_add(&filter.roles, str_of(q->role));
    for (size_t i = 0; i < (q->all ? s->count : 1) && !atomic_load(&s->cancel); i++)
        (void)search_one(s, i, &pattern, &filter, &r, &given);
    r->done = true;
    s->give(s->ctx, r);
    filter_release(&filter);
    pattern_release(&pattern);
}

/* ---- other programs ---- */

void browse_serve_run(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r = browse_result_new(BROWSE_RAN);

    r->about = q->about;
    buf_add_str(&r->name, buf_str(&q->text));
    r->status = browse_child_run(q->argv.at, &r->out, &r->said, &s->cancel, &r->error);
    r->ended = atomic_load(&s->cancel);
    s->give(s->ctx, r);
}

void browse_serve_copy(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r = browse_result_new(BROWSE_COPIED);

    r->status = browse_clipboard_programs(buf_str(&q->text), &s->cancel);
    r->sent = q->sent;
    if (r->status < 0 && !q->sent && q->text.len > BROWSE_CLIPBOARD_MAX)
        err_set(&r->error, ERR_FAILURE,
                "cannot copy %zu bytes: terminals take %zu, and there is no wl-copy, xclip, xsel "
                "or pbcopy",
                q->text.len, BROWSE_CLIPBOARD_MAX);
    s->give(s->ctx, r);
}
