/*
 * thread_pool - does numbered pieces of work on several threads, and hands over the results in
 * order.
 */
#ifndef CHATHIST_BASE_THREAD_POOL_H
#define CHATHIST_BASE_THREAD_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/error.h"

/* The largest number of threads: more would wait for memory. */
#define THREAD_POOL_MAX ((size_t)8)
/* At most this many pieces have begun and are not done with. */
#define THREAD_POOL_AHEAD(threads) ((threads) + 1)

/* The caller asks for each piece. Its thread works, too. */
struct thread_pool_work {
    size_t threads; /* 1 to THREAD_POOL_MAX, including the caller's thread */
    void *ctx;
    /* Called for each piece before it begins, for one at a time and in order. If it returns false,
     * the piece and all after it do not exist. */
    bool (*begin)(void *ctx, size_t number);
    /* Does a piece on one of the threads; `thread` is 0 for the caller's. */
    void (*work)(void *ctx, size_t number, size_t thread);
};
struct thread_pool;

/* Copies *work. Begins nothing yet. */
struct thread_pool *thread_pool_new(const struct thread_pool_work *work);
/* Begins no other piece, waits for those that are under way, and frees the pool. */
void thread_pool_free(struct thread_pool *p);
/* Starts the other threads, which get no signals, so that the caller gets them. If none can be
 * started, the caller does all the work. */
void thread_pool_help(struct thread_pool *p);
/* Is done with the piece that the last call returned. Returns true and the number of the next one,
 * finished, or false after the last one. */
bool thread_pool_next(struct thread_pool *p, size_t *number);

/* Pieces that can fail. Each has a slot, its place in an array of the caller with
 * THREAD_POOL_SLOTS elements, from `begin` until `join` has returned. */
#define THREAD_POOL_SLOTS THREAD_POOL_AHEAD(THREAD_POOL_MAX)
struct thread_pool_job {
    size_t threads;
    bool alone; /* the caller's thread does all the work */
    void *ctx;
    /* As in struct thread_pool_work. `begin` returns 1, 0 after the last piece, or -1 with *e
     * set; `work` returns 0, or -1 with *e set. */
    int (*begin)(void *ctx, size_t slot, struct err *e);
    int (*work)(void *ctx, size_t slot, size_t thread, struct err *e);
    /* Called on the caller's thread for each finished piece, in order. Returns 0, or -1 with *e
     * set. */
    int (*join)(void *ctx, size_t slot, struct err *e);
};
/* Does all pieces, up to the first error. Returns 0, or -1 with its *e. */
int thread_pool_run(const struct thread_pool_job *job, struct err *e);

/* Returns true if another thread has set *cancel, which may be NULL. */
bool thread_pool_cancelled(const atomic_bool *cancel);
/* Returns the number of processors, at most four. */
size_t thread_pool_size(void);

#endif
