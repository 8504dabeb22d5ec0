/*
 * crew - work in numbered pieces, done by several threads and taken in its order.
 */
#ifndef CHATHIST_BASE_CREW_H
#define CHATHIST_BASE_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The most that are of any use: the memory is then busy. */
#define CREW_MAX ((size_t)8)

struct crew_job {
    size_t count;   /* of pieces: 0 to count - 1 */
    size_t threads; /* 1 to CREW_MAX, the caller's own among them */
    void *ctx;
    /* Does one piece, on any of the threads. */
    void (*work)(void *ctx, size_t number);
    /* Called by the caller's thread for each piece, in their order. Until it is, no more are begun
     * than one for each thread and one beside them. false: that is enough. What is being worked at
     * is finished, and not taken. NULL: there is nothing to take. */
    bool (*take)(void *ctx, size_t number);
};

/* Were all of them taken? */
bool crew_run(const struct crew_job *job);

/* Has another thread asked to give up? NULL: nobody can. */
bool crew_cancelled(const atomic_bool *cancel);
/* As many threads as there are processors, four at most. */
size_t crew_size(void);
/* Starts a thread that gets no signals: they are the caller's. false: it cannot be started. */
bool crew_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
