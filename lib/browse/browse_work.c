#include "browse/browse_work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chathist/base/crew.h"
#include "chathist/base/mem.h"
#include "chathist/base/pipe.h"
#include "browse/browse_serve.h"

/* The search waits to be asked for more after so many hits. */
#define ENOUGH 300
#define NICE 10
/* The end waits so long in silence, in milliseconds. */
#define SILENCE_MS 500

enum lane { LANE_SESSIONS, LANE_THREAD, LANE_SEARCH, LANE_RUN, LANE_COPY, LANES };

static const struct {
    browse_serve *serve;
    enum browse_result_kind kind;
    bool each; /* no request is given up for the next one */
    bool owed; /* nor for the end */
} lanes[LANES] = {
    [LANE_SESSIONS] = {browse_serve_sessions, BROWSE_SESSIONS, false, false},
    [LANE_THREAD] = {browse_serve_thread, BROWSE_THREAD, false, false},
    [LANE_SEARCH] = {browse_serve_search, BROWSE_HITS, false, false},
    [LANE_RUN] = {browse_serve_run, BROWSE_RAN, true, true},
    [LANE_COPY] = {browse_serve_copy, BROWSE_COPIED, false, true},
};

struct browse_work {
    int wake[2];
    struct worker {
        struct browse_work *work;
        enum lane lane;
        bool started;
        pthread_t thread;
        struct browse_server server;
        struct browse_request *request; /* that waits */
        bool over;                      /* the thread has nothing more to do */
    } workers[LANES];

    pthread_mutex_t lock; /* over the requests and all that follows */
    pthread_cond_t changed;
    bool stop;
    size_t more; /* how many hits are wanted */
    struct browse_result *first, *last;
};

/* ---- results ---- */

static void wake(struct browse_work *w)
{
    /* A full pipe wakes as well. */
    (void)!write(w->wake[1], "", 1);
}

/* Empties the pipe. */
static void drain(struct browse_work *w)
{
    char bytes[64];

    while (read(w->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        continue;
}

static void give(void *worker, struct browse_result *r)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

struct browse_result *browse_work_next(struct browse_work *w)
{
    struct browse_result *r;

    drain(w);
    pthread_mutex_lock(&w->lock);
    r = w->first;
    if (r)
        w->first = r->next;
    if (!w->first)
        w->last = NULL;
    pthread_mutex_unlock(&w->lock);
    return r;
}

int browse_work_fd(const struct browse_work *w)
{
    return w->wake[0];
}

/* ---- the threads ---- */

static void rest(void *worker, size_t given)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    pthread_mutex_lock(&w->lock);
    while (given >= w->more && !w->stop && !k->request)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Where it can be done for a thread alone, as on Linux, the keyboard comes first. */
static void give_way(void)
{
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, 0, NICE);
#endif
}

static void *serve(void *worker)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    give_way();
    pthread_mutex_lock(&w->lock);
    while (!w->stop || (lanes[k->lane].owed && k->request)) {
        struct browse_request *q = k->request;

        if (!q) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        k->request = q->next;
        q->next = NULL;
        atomic_store(&k->server.cancel, false);
        pthread_mutex_unlock(&w->lock);
        lanes[k->lane].serve(&k->server, q);
        browse_request_free(q);
        pthread_mutex_lock(&w->lock);
    }
    k->over = true;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    return NULL;
}

/* ---- requests ---- */

/* Under the lock: takes a request over. false: there is no thread for it. */
static bool accept_request(struct worker *k, struct browse_request *q)
{
    struct browse_request **end = &k->request;

    if (!k->started)
        k->started = crew_start(&k->thread, serve, k);
    if (!k->started)
        return false;
    while (lanes[k->lane].each && *end)
        end = &(*end)->next;
    browse_request_free(*end);
    *end = q;
    pthread_cond_broadcast(&k->work->changed);
    return true;
}

static void refuse(struct worker *k, struct browse_request *q)
{
    struct browse_result *r = browse_result_new(lanes[k->lane].kind);

    err_set(&r->error, ERR_FAILURE, "cannot start a thread");
    r->number = q->number;
    r->about = q->about;
    r->status = -1;
    r->sent = q->sent;
    r->done = true;
    browse_request_free(q);
    give(k, r);
}

static void ask(struct browse_work *w, enum lane lane, struct browse_request *q)
{
    struct worker *k = &w->workers[lane];
    bool accepted;

    pthread_mutex_lock(&w->lock);
    if (lane == LANE_SEARCH) {
        atomic_store(&k->server.cancel, true);
        w->more = ENOUGH;
    }
    accepted = accept_request(k, q);
    pthread_mutex_unlock(&w->lock);
    if (!accepted)
        refuse(k, q);
}

void browse_work_sessions(struct browse_work *w, const struct browse *b)
{
    struct browse_request *q = browse_request_new();

    browse_wish(b, &q->wish);
    ask(w, LANE_SESSIONS, q);
}

void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target)
{
    struct browse_request *q = browse_request_new();

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
    struct browse_request *q = browse_request_new();

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
    struct browse_request *q = browse_request_new();

    q->about = about;
    buf_add_str(&q->text, name);
    q->argv = *argv;
    *argv = (struct words){0};
    ask(w, LANE_RUN, q);
}

void browse_work_copy(struct browse_work *w, struct str text, bool sent)
{
    struct browse_request *q = browse_request_new();

    q->sent = sent;
    buf_add_str(&q->text, text);
    ask(w, LANE_COPY, q);
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
        copies[i].cancel = &k->server.cancel;
    }
    return copies;
}

static void set_up(struct browse_work *w, enum lane lane, const struct history *histories,
                   size_t count)
{
    struct worker *k = &w->workers[lane];
    struct browse_server *s = &k->server;

    k->work = w;
    k->lane = lane;
    atomic_init(&s->cancel, false);
    s->histories = borrow(k, histories, count);
    s->count = count;
    s->give = give;
    s->rest = rest;
    s->ctx = k;
    browse_source_init(&s->source, s->histories, count);
}

struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e)
{
    struct browse_work *w = mem_zalloc(sizeof *w);

    if (pipe_open_wake(w->wake) < 0) {
        err_sys(e, errno, "cannot make a pipe");
        free(w);
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (size_t i = 0; i < LANES; i++)
        set_up(w, (enum lane)i, histories, count);
    return w;
}

/* Is something owed that goes on? */
static bool is_at_work(struct browse_work *w)
{
    bool at_work = false;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < LANES; i++)
        at_work |= lanes[i].owed && w->workers[i].started && !w->workers[i].over;
    pthread_mutex_unlock(&w->lock);
    return at_work;
}

/* Under the lock. */
static void give_up(struct worker *k)
{
    browse_request_free(k->request);
    k->request = NULL;
    atomic_store(&k->server.cancel, true);
}

/* Waits for what is owed, or until the user does not want to. */
static void wait_for_owed(struct browse_work *w, const struct browse_patience *patience)
{
    struct pollfd fds[2] = {{.fd = patience->fd, .events = POLLIN},
                            {.fd = w->wake[0], .events = POLLIN}};
    int silence = SILENCE_MS;

    while (is_at_work(w)) {
        int ready = poll(fds, 2, silence);

        if (ready == 0) {
            silence = -1;
            if (patience->tell)
                patience->tell();
        }
        if (ready <= 0)
            continue;
        drain(w);
        if (!fds[0].revents)
            continue;
        fds[0].fd = -1;
        silence = -1;
        pthread_mutex_lock(&w->lock);
        for (size_t i = 0; i < LANES; i++)
            give_up(&w->workers[i]);
        pthread_mutex_unlock(&w->lock);
    }
}

void browse_work_end(struct browse_work *w, const struct browse_patience *patience)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    for (size_t i = 0; i < LANES; i++)
        if (patience->none || !lanes[i].owed)
            give_up(&w->workers[i]);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    wait_for_owed(w, patience);
    for (size_t i = 0; i < LANES; i++) {
        if (w->workers[i].started)
            pthread_join(w->workers[i].thread, NULL);
        w->workers[i].started = false;
    }
}

void browse_work_free(struct browse_work *w)
{
    for (size_t i = 0; i < LANES; i++) {
        browse_source_release(&w->workers[i].server.source);
        free(w->workers[i].server.histories);
    }
    for (struct browse_result *r; (r = browse_work_next(w));)
        browse_result_free(r);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->wake[0]);
    close(w->wake[1]);
    free(w);
}
