#include "chathist/base/thread_pool.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/memory.h"

struct thread_pool {
    const struct thread_pool_job *job;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t changed;
    bool *done; /* of each piece */
    size_t begun, taken;
    bool stop;
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

bool thread_pool_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(thread, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Is there a piece that may be begun? What is done waits in memory until it is taken: there is one
 * for each thread, and one more. */
static bool may_begin(const struct thread_pool *c)
{
    return !c->stop && c->begun < c->job->count && c->begun - c->taken <= c->job->threads;
}

/* Under the lock: does the next piece, without it meanwhile. */
static void do_next(struct thread_pool *c)
{
    size_t number = c->begun++;

    pthread_mutex_unlock(&c->lock);
    c->job->work(c->job->ctx, number);
    pthread_mutex_lock(&c->lock);
    c->done[number] = true;
    pthread_cond_broadcast(&c->changed);
}

static void *help(void *arg)
{
    struct thread_pool *c = arg;

    pthread_mutex_lock(&c->lock);
    while (!c->stop && c->begun < c->job->count) {
        if (may_begin(c))
            do_next(c);
        else
            pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Takes the pieces, working at others until the next one is there. */
static bool take_all(struct thread_pool *c)
{
    bool more = true;

    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->job->count && more; i++) {
        while (!c->done[i]) {
            if (may_begin(c))
                do_next(c);
            else
                pthread_cond_wait(&c->changed, &c->lock);
        }
        pthread_mutex_unlock(&c->lock);
        more = !c->job->take || c->job->take(c->job->ctx, i);
        pthread_mutex_lock(&c->lock);
        c->taken++;
        pthread_cond_broadcast(&c->changed);
    }
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return more;
}

bool thread_pool_run(const struct thread_pool_job *job)
{
    struct thread_pool c = {.job = job, .done = mem_zalloc(job->count + 1)};
    pthread_t helpers[THREAD_POOL_MAX];
    size_t started = 0;
    bool all;

    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.changed, NULL);
    /* Without a helper the caller does all the work. */
    while (started + 1 < job->threads && started + 1 < job->count &&
           thread_pool_start(&helpers[started], help, &c))
        started++;
    all = take_all(&c);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    pthread_cond_destroy(&c.changed);
    pthread_mutex_destroy(&c.lock);
    free(c.done);
    return all;
}
