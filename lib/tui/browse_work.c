#include "tui/browse_work.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/pipe.h"
#include "hist/filter.h"
#include "hist/pattern.h"
#include "hist/search.h"
#include "hist/session_list.h"
#include "tui/browse_child.h"
#include "tui/browse_source.h"

/* Of a file that was never read, so much of its end is looked at first. */
#define RECENT ((off_t)1 << 20)
/* The first hits, that fill a screen, are handed over one by one; the others when there are so
 * many, or after so many milliseconds. The search waits to be asked for more after so many. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20
#define ENOUGH 300
#define NICE 10

enum lane { LANE_SESSIONS, LANE_THREAD, LANE_SEARCH, LANE_RUN, LANES };

struct request {
    unsigned number;
    bool all;
    struct browse_wish wish;
    struct browse_target target;
    struct buf text;
    const char *role;
    enum browse_command about;
    struct words argv;
    struct request *next; /* of programs */
};

struct browse_work {
    size_t count;
    int wake[2];
    struct worker {
        struct browse_work *work;
        enum lane lane;
        bool started;
        pthread_t thread;
        struct history *histories; /* as they are for it: borrowed copies */
        struct request *request;   /* that waits */
        atomic_bool cancel;        /* what is being done is not wanted any more */
    } workers[LANES];

    pthread_mutex_t lock; /* over the requests and all that follows */
    pthread_cond_t changed;
    bool stop;
    size_t more; /* how many hits are wanted */
    struct browse_result *first, *last;

    /* Of the lane of sessions. */
    struct browse_source source;
    bool looked; /* the quick look has been */
};

/* ---- results ---- */

static struct browse_result *new_result(enum browse_result_kind kind)
{
    struct browse_result *r = mem_zalloc(sizeof *r);

    r->kind = kind;
    buf_init(&r->name, BUF_LINE);
    buf_init(&r->out, BUF_LINE);
    buf_init(&r->said, BUF_SMALL);
    return r;
}

void browse_result_free(struct browse_result *r)
{
    if (!r)
        return;
    err_release(&r->error);
    browse_sessions_release(&r->sessions);
    browse_parts_release(&r->parts);
    thread_release(&r->thread);
    browse_hits_release(&r->hits);
    buf_release(&r->name);
    buf_release(&r->out);
    buf_release(&r->said);
    free(r);
}

static void give(struct browse_work *w, struct browse_result *r)
{
    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_mutex_unlock(&w->lock);
    /* A full pipe wakes as well. */
    (void)!write(w->wake[1], "", 1);
}

struct browse_result *browse_work_next(struct browse_work *w)
{
    struct browse_result *r;
    char bytes[64];

    while (read(w->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        continue;
    pthread_mutex_lock(&w->lock);
    r = w->first;
    if (r)
        w->first = r->next;
    if (!w->first)
        w->last = NULL;
    pthread_mutex_unlock(&w->lock);
    return r;
}

/* ---- sessions ---- */

/* What a first glance tells of a large file. */
static void look(struct browse_work *w, const char *path)
{
    struct session_list recent;
    struct browse_result *r;
    bool whole = true;

    w->looked = true;
    if (session_list_recent(&recent, path, RECENT, &whole, NULL) < 0)
        return;
    if (!whole) {
        r = new_result(BROWSE_SESSIONS);
        r->sessions.partial = true;
        r->sessions.total = recent.count;
        for (size_t i = 0; i < recent.count; i++)
            browse_sessions_add(&r->sessions, 0, &recent.at[i]);
        give(w, r);
    }
    session_list_release(&recent);
}

static void serve_sessions(struct worker *k, const struct request *q)
{
    struct browse_work *w = k->work;
    struct browse_result *r;

    if (!w->looked)
        look(w, k->histories[0].path);
    r = new_result(BROWSE_SESSIONS);
    if (browse_source_read(&w->source, &q->wish, &r->sessions, &r->error) < 0 &&
        r->error.kind == ERR_SIGNAL)
        browse_result_free(r);
    else
        give(w, r);
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

static void serve_thread(struct worker *k, const struct request *q)
{
    const struct browse_target *t = &q->target;
    const struct history *h = &k->histories[t->history];
    struct browse_result *r = new_result(BROWSE_THREAD);

    r->number = q->number;
    if (t->end < 0)
        (void)thread_find(&r->thread, h, buf_str(&t->id), false, &r->error);
    else
        (void)thread_load_between(&r->thread, h->path, buf_str(&t->id), t->first, t->end,
                                  &r->error);
    r->every = read_every(&r->thread, h, t);
    browse_parts_make(&r->parts, &r->thread);
    give(k->work, r);
}

/* ---- hits ---- */

/* Hands over what was found, and waits when that is enough for now. */
static void hand_over(struct worker *k, struct browse_result **r, size_t *given)
{
    struct browse_work *w = k->work;
    unsigned number = (*r)->number;

    *given += (*r)->hits.count;
    give(w, *r);
    *r = new_result(BROWSE_HITS);
    (*r)->number = number;
    pthread_mutex_lock(&w->lock);
    while (*given >= w->more && !w->stop && !k->request)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static int search_one(struct worker *k, size_t history, struct pattern *pattern,
                      const struct filter *filter, struct browse_result **r, size_t *given)
{
    const struct history *h = &k->histories[history];
    struct search s;
    struct hit hit;
    int64_t since = clock_ticks();
    size_t threads = crew_size();
    int result;

    if (search_open(&s, h->path, pattern, filter, SCAN_BACKWARD, &(*r)->error) < 0)
        return -1;
    s.cancel = &k->cancel;
    s.history = h;
    /* One processor is the keyboard's. */
    s.threads = threads > 1 ? threads - 1 : 1;
    while ((result = search_next(&s, &hit, &(*r)->error)) > 0 && !atomic_load(&k->cancel)) {
        if (result == SEARCH_FAILED)
            continue;
        browse_hits_add(&(*r)->hits, history, &hit);
        if (*given < SCREENFUL || (*r)->hits.count >= PORTION ||
            clock_ticks() - since >= PORTION_MS) {
            hand_over(k, r, given);
            since = clock_ticks();
        }
    }
    search_close(&s);
    return result;
}

static void serve_search(struct worker *k, const struct request *q)
{
    struct browse_work *w = k->work;
    struct browse_result *r;
    struct pattern pattern;
    struct filter filter = {0};
    size_t given = 0;

    if (q->text.len == 0)
        return;
    r = new_result(BROWSE_HITS);
    r->number = q->number;
    pattern_init(&pattern);
    (void)pattern_add(&pattern, buf_str(&q->text), NULL);
    if (q->role)
        filter_add(&filter.roles, str_of(q->role));
    for (size_t i = 0; i < (q->all ? w->count : 1) && !atomic_load(&k->cancel); i++)
        (void)search_one(k, i, &pattern, &filter, &r, &given);
    r->done = true;
    give(w, r);
    filter_release(&filter);
    pattern_release(&pattern);
}

/* ---- programs ---- */

static void serve_run(struct worker *k, const struct request *q)
{
    struct browse_result *r = new_result(BROWSE_RAN);

    r->about = q->about;
    buf_add_str(&r->name, buf_str(&q->text));
    r->status = browse_child_run(q->argv.at, &r->out, &r->said, &k->cancel, &r->error);
    give(k->work, r);
}

/* ---- requests ---- */

static void free_request(struct request *q)
{
    if (!q)
        return;
    free_request(q->next);
    browse_wish_release(&q->wish);
    browse_target_release(&q->target);
    buf_release(&q->text);
    words_release(&q->argv);
    free(q);
}

/* Where it can be done for a thread alone, as on Linux, the keyboard comes first. */
static void give_way(void)
{
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, 0, NICE);
#endif
}

static void *serve(void *arg)
{
    static void (*const lanes[LANES])(struct worker *, const struct request *) = {
        serve_sessions, serve_thread, serve_search, serve_run};
    struct worker *k = arg;
    struct browse_work *w = k->work;

    give_way();
    pthread_mutex_lock(&w->lock);
    while (!w->stop || (k->lane == LANE_RUN && k->request)) {
        struct request *q = k->request;

        if (!q) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        k->request = q->next;
        q->next = NULL;
        atomic_store(&k->cancel, false);
        pthread_mutex_unlock(&w->lock);
        lanes[k->lane](k, q);
        free_request(q);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static struct request *new_request(void)
{
    struct request *q = mem_zalloc(sizeof *q);

    browse_target_init(&q->target);
    buf_init(&q->text, BUF_SMALL);
    return q;
}

static void ask(struct browse_work *w, enum lane lane, struct request *q)
{
    struct worker *k = &w->workers[lane];
    struct request **end = &k->request;

    pthread_mutex_lock(&w->lock);
    /* What a program is to do is not given up for the next one. */
    while (lane == LANE_RUN && *end)
        end = &(*end)->next;
    free_request(*end);
    *end = q;
    if (lane == LANE_SEARCH) {
        atomic_store(&k->cancel, true);
        w->more = ENOUGH;
    }
    if (!k->started)
        k->started = crew_start(&k->thread, serve, k);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void browse_work_sessions(struct browse_work *w, const struct browse *b)
{
    struct request *q = new_request();

    browse_wish(b, &q->wish);
    ask(w, LANE_SESSIONS, q);
}

void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target)
{
    struct request *q = new_request();

    q->number = number;
    q->target.history = target->history;
    q->target.first = target->first;
    q->target.end = target->end;
    buf_add_str(&q->target.id, buf_str(&target->id));
    buf_add_str(&q->target.hit, buf_str(&target->hit));
    ask(w, LANE_THREAD, q);
}

void browse_work_search(struct browse_work *w, unsigned number, struct str text, const char *role,
                        bool all)
{
    struct request *q = new_request();

    q->number = number;
    q->role = role;
    q->all = all;
    buf_add_str(&q->text, text);
    ask(w, LANE_SEARCH, q);
}

void browse_work_more(struct browse_work *w, size_t held)
{
    pthread_mutex_lock(&w->lock);
    w->more = held + ENOUGH;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void browse_work_run(struct browse_work *w, enum browse_command about, struct str name,
                     struct words *argv)
{
    struct request *q = new_request();

    q->about = about;
    buf_add_str(&q->text, name);
    q->argv = *argv;
    *argv = (struct words){0};
    ask(w, LANE_RUN, q);
}

/* ---- beginning and end ---- */

/* What of a history is for the thread that draws is left out: to speak on the terminal. */
static struct history *borrow(struct worker *k, const struct history *histories, size_t count)
{
    struct history *copies = mem_zalloc(count * sizeof *copies);

    for (size_t i = 0; i < count; i++) {
        copies[i] = histories[i];
        copies[i].work = NULL;
        copies[i].tell = NULL;
        copies[i].cancel = &k->cancel;
    }
    return copies;
}

struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e)
{
    struct browse_work *w = mem_zalloc(sizeof *w);

    if (pipe_open(w->wake) < 0 || fcntl(w->wake[0], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(w->wake[1], F_SETFL, O_NONBLOCK) < 0) {
        err_set(e, ERR_FAILURE, "cannot make a pipe");
        free(w);
        return NULL;
    }
    w->count = count;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (size_t i = 0; i < LANES; i++) {
        w->workers[i].work = w;
        w->workers[i].lane = (enum lane)i;
        atomic_init(&w->workers[i].cancel, false);
        w->workers[i].histories = borrow(&w->workers[i], histories, count);
    }
    browse_source_init(&w->source, w->workers[LANE_SESSIONS].histories, count);
    return w;
}

void browse_work_free(struct browse_work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    /* But for what other programs were asked to do. */
    for (size_t i = 0; i < LANE_RUN; i++)
        atomic_store(&w->workers[i].cancel, true);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < LANES; i++) {
        if (w->workers[i].started)
            pthread_join(w->workers[i].thread, NULL);
        free_request(w->workers[i].request);
    }
    browse_source_release(&w->source);
    for (size_t i = 0; i < LANES; i++)
        free(w->workers[i].histories);
    for (struct browse_result *r; (r = browse_work_next(w));)
        browse_result_free(r);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->wake[0]);
    close(w->wake[1]);
    free(w);
}

int browse_work_fd(const struct browse_work *w)
{
    return w->wake[0];
}
