/*
 * thread_pool - does numbered pieces of work on several threads, and hands over the results in order.
 */
#ifndef CHATHIST_BASE_THREAD_POOL_H
#define CHATHIST_BASE_THREAD_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The largest number of threads: more would wait for memory. */
#define THREAD_POOL_MAX ((size_t)8)

struct thread_pool_job {
    size_t count;   /* of pieces: 0 to count - 1 */
    size_t threads; /* 1 to THREAD_POOL_MAX, including the caller's thread */
    void *ctx;
    /* Does one piece, on any of the threads. */
    void (*work)(void *ctx, size_t number);
    /* Called on the caller's thread for each finished piece, in order. At most threads + 1 pieces
     * are started before it is called for the first of them. If it returns false, no other piece is
     * started or handed over. May be NULL. */
    bool (*take)(void *ctx, size_t number);
};

/* Returns true if all pieces were handed over. */
bool thread_pool_run(const struct thread_pool_job *job);

/* Returns true if another thread has set *cancel, which may be NULL. */
bool thread_pool_cancelled(const atomic_bool *cancel);
/* Returns the number of processors, at most four. */
size_t thread_pool_size(void);
/* Starts a thread that gets no signals, so that the caller gets them. Returns false on failure. */
bool thread_pool_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
