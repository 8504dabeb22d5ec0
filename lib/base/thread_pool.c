#include "chathist/base/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/memory.h"

struct thread_pool {
    struct thread_pool_work job;
    struct helper {
        struct thread_pool *pool;
        size_t thread;
        pthread_t id;
    } helpers[THREAD_POOL_MAX];
    size_t helper_count;

    pthread_mutex_t lock; /* over everything below, and while job.begin runs */
    pthread_cond_t changed;
    bool done[THREAD_POOL_AHEAD(
        THREAD_POOL_MAX)]; /* the pieces under way that are done, by number */
    size_t begun, passed;  /* how many pieces; passed: were done with */
    bool open;             /* the caller has the piece after these */
    bool last;             /* no other piece begins */
};

bool thread_pool_cancelled(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

size_t thread_pool_size(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 4 ? 4 : (size_t)n;
}

static bool *done_of(struct thread_pool *p, size_t number)
{
    return &p->done[number % THREAD_POOL_AHEAD(p->job.threads)];
}

/* Under the lock: does the next piece, without the lock meanwhile, or waits if too many are under
 * way. */
static void do_next(struct thread_pool *p, size_t thread)
{
    size_t number = p->begun;

    if (number - p->passed >= THREAD_POOL_AHEAD(p->job.threads)) {
        pthread_cond_wait(&p->changed, &p->lock);
        return;
    }
    p->last = !p->job.begin(p->job.ctx, number);
    if (!p->last) {
        p->begun++;
        *done_of(p, number) = false;
        pthread_mutex_unlock(&p->lock);
        p->job.work(p->job.ctx, number, thread);
        pthread_mutex_lock(&p->lock);
        *done_of(p, number) = true;
    }
    pthread_cond_broadcast(&p->changed);
}

static void *work_in_thread(void *arg)
{
    struct helper *h = arg;

    pthread_mutex_lock(&h->pool->lock);
    while (!h->pool->last)
        do_next(h->pool, h->thread);
    pthread_mutex_unlock(&h->pool->lock);
    return NULL;
}

struct thread_pool *thread_pool_new(const struct thread_pool_work *work)
{
    struct thread_pool *p = mem_zalloc(sizeof *p);

    p->job = *work;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return p;
}

void thread_pool_free(struct thread_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->last = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    while (p->helper_count > 0)
        pthread_join(p->helpers[--p->helper_count].id, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void thread_pool_help(struct thread_pool *p)
{
    sigset_t all, before;
    bool started = true;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started && p->helper_count + 1 < p->job.threads) {
        struct helper *h = &p->helpers[p->helper_count];

        h->pool = p;
        h->thread = p->helper_count + 1;
        started = pthread_create(&h->id, NULL, work_in_thread, h) == 0;
        p->helper_count += started;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool thread_pool_next(struct thread_pool *p, size_t *number)
{
    pthread_mutex_lock(&p->lock);
    if (p->open) {
        p->passed++;
        pthread_cond_broadcast(&p->changed);
    }
    for (;;) {
        p->open = p->passed < p->begun && *done_of(p, p->passed);
        if (p->open || (p->last && p->passed == p->begun))
            break;
        if (p->last)
            pthread_cond_wait(&p->changed, &p->lock);
        else
            do_next(p, 0);
    }
    *number = p->passed;
    pthread_mutex_unlock(&p->lock);
    return p->open;
}

/* ---- pieces that can fail ---- */

struct run {
    const struct thread_pool_job *job;
    struct {
        int rc;
        struct err err;
    } at[THREAD_POOL_SLOTS];
};

static bool begin_slot(void *ctx, size_t number)
{
    struct run *r = ctx;
    size_t slot = number % THREAD_POOL_SLOTS;

    r->at[slot].rc = r->job->begin(r->job->ctx, slot, &r->at[slot].err);
    return r->at[slot].rc != 0;
}

static void work_in_slot(void *ctx, size_t number, size_t thread)
{
    struct run *r = ctx;
    size_t slot = number % THREAD_POOL_SLOTS;

    if (r->at[slot].rc > 0)
        r->at[slot].rc = r->job->work(r->job->ctx, slot, thread, &r->at[slot].err);
}

int thread_pool_run(const struct thread_pool_job *job, struct err *e)
{
    struct run r = {.job = job};
    struct thread_pool *pool =
        thread_pool_new(&(struct thread_pool_work){job->threads, &r, begin_slot, work_in_slot});
    size_t number;
    int rc = 0;

    if (!job->alone)
        thread_pool_help(pool);
    while (rc == 0 && thread_pool_next(pool, &number)) {
        size_t slot = number % THREAD_POOL_SLOTS;

        rc = r.at[slot].rc < 0 ? err_set(e, r.at[slot].err.kind, "%s", err_text(&r.at[slot].err))
                               : job->join(job->ctx, slot, e);
    }
    thread_pool_free(pool);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        err_release(&r.at[i].err);
    return rc;
}
