#include "chathist/base/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "test.h"

#define COUNT ((size_t)40)

/* Pieces, and what is done with each: on any thread, and then on this one, in order, until it has
 * enough. */
struct job {
    size_t count, threads;
    void *ctx;
    void (*work)(void *ctx, size_t number);
    bool (*take)(void *ctx, size_t number);
};

static bool begin(void *ctx, size_t number)
{
    return number < ((const struct job *)ctx)->count;
}

static void do_piece(void *ctx, size_t number, size_t thread)
{
    const struct job *job = ctx;

    (void)thread;
    job->work(job->ctx, number);
}

static bool run(struct job job)
{
    struct thread_pool *p =
        thread_pool_new(&(struct thread_pool_work){job.threads, &job, begin, do_piece});
    bool more = true;
    size_t number;

    thread_pool_help(p);
    while (more && thread_pool_next(p, &number))
        more = job.take(job.ctx, number);
    thread_pool_free(p);
    return more;
}

struct seen {
    atomic_int times[COUNT]; /* that each piece was done */
    size_t taken[COUNT];
    size_t count;
    size_t enough;
};

/* Some pieces take longer than those behind them. */
static void work(void *ctx, size_t number)
{
    struct seen *seen = ctx;
    struct timespec while_ = {0, number % 5 == 0 ? 2000000 : 0};

    nanosleep(&while_, NULL);
    atomic_fetch_add(&seen->times[number], 1);
}

static bool take(void *ctx, size_t number)
{
    struct seen *seen = ctx;

    seen->taken[seen->count++] = number;
    return seen->count < seen->enough;
}

static void runs(size_t threads, size_t count)
{
    struct seen seen = {.enough = SIZE_MAX};
    bool once = true, in_order = true;

    CHECK(run((struct job){count, threads, &seen, work, take}));
    for (size_t i = 0; i < count; i++) {
        once = once && seen.times[i] == 1;
        in_order = in_order && seen.taken[i] == i;
    }
    CHECK(once);
    CHECK(in_order);
    CHECK(seen.count == count);
}

TEST(each_piece_is_done_once_and_taken_in_order)
{
    for (size_t threads = 1; threads <= THREAD_POOL_MAX; threads++)
        runs(threads, COUNT);
    runs(4, 1);
    runs(4, 0);
}

/* How many pieces were begun that are not taken. */
struct ahead {
    atomic_int now, most;
};

static void begin_one(void *ctx, size_t number)
{
    struct ahead *a = ctx;
    int now = atomic_fetch_add(&a->now, 1) + 1;

    (void)number;
    if (now > atomic_load(&a->most))
        atomic_store(&a->most, now);
}

static bool take_slowly(void *ctx, size_t number)
{
    const struct timespec while_ = {0, 1000000};
    struct ahead *a = ctx;

    (void)number;
    nanosleep(&while_, NULL);
    atomic_fetch_sub(&a->now, 1);
    return true;
}

TEST(few_pieces_wait_to_be_taken)
{
    for (size_t threads = 1; threads <= 4; threads++) {
        struct ahead a = {0, 0};

        CHECK(run((struct job){COUNT, threads, &a, begin_one, take_slowly}));
        CHECK_INT(a.now, 0);
        CHECK(a.most >= 1 && a.most <= (int)threads + 1);
    }
}

TEST(it_ends_when_the_taker_has_enough)
{
    struct seen seen = {.enough = 3};
    size_t done = 0;

    CHECK(!run((struct job){COUNT, 2, &seen, work, take}));
    CHECK(seen.count == 3);
    for (size_t i = 0; i < COUNT; i++)
        done += seen.times[i] > 0;
    CHECK(done < COUNT);
}

/* Which threads can get a signal: the caller's alone. Both pieces are under way at once. */
struct threads {
    pthread_barrier_t both;
    pthread_t caller;
    atomic_int seen, with_signals, of_caller;
};

static void look(void *ctx, size_t number)
{
    struct threads *t = ctx;
    bool is_caller = pthread_equal(pthread_self(), t->caller);
    sigset_t blocked;

    (void)number;
    pthread_barrier_wait(&t->both);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    t->seen++;
    t->of_caller += is_caller;
    t->with_signals += !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM);
}

static bool take_each(void *ctx, size_t number)
{
    (void)ctx;
    (void)number;
    return true;
}

TEST(its_threads_get_no_signals)
{
    struct threads t = {.caller = pthread_self()};

    pthread_barrier_init(&t.both, NULL, 2);
    CHECK(run((struct job){2, 2, &t, look, take_each}));
    pthread_barrier_destroy(&t.both);
    CHECK_INT(t.seen, 2);
    CHECK_INT(t.of_caller, 1);
    CHECK_INT(t.with_signals, 1);
}

/* Pieces that can fail: the numbers of those that were joined, and the first error. */
struct failing {
    size_t begun, joined;
    size_t fails; /* the number of the piece that fails */
    bool in_begin;
    size_t at[THREAD_POOL_SLOTS];
};

static int begin_failing(void *ctx, size_t slot, struct err *e)
{
    struct failing *f = ctx;

    if (f->begun == COUNT)
        return 0;
    f->at[slot] = f->begun++;
    return f->in_begin && f->at[slot] == f->fails ? err_set(e, ERR_USAGE, "no begin") : 1;
}

static int work_failing(void *ctx, size_t slot, size_t thread, struct err *e)
{
    const struct failing *f = ctx;

    (void)thread;
    return !f->in_begin && f->at[slot] == f->fails ? err_set(e, ERR_USAGE, "no work") : 0;
}

static int join_failing(void *ctx, size_t slot, struct err *e)
{
    struct failing *f = ctx;

    return f->at[slot] == f->joined++ ? 0 : err_set(e, ERR_USAGE, "not in order");
}

static void run_failing(size_t fails, bool in_begin, int wanted, size_t joined, const char *text)
{
    struct failing f = {.fails = fails, .in_begin = in_begin};
    struct err e = ERR_INIT;

    for (size_t threads = 1; threads <= THREAD_POOL_MAX; threads++) {
        f.begun = f.joined = 0;
        CHECK_INT(thread_pool_run(&(struct thread_pool_job){.threads = threads,
                                                            .ctx = &f,
                                                            .begin = begin_failing,
                                                            .work = work_failing,
                                                            .join = join_failing},
                                  &e),
                  wanted);
        CHECK(f.joined == joined);
        CHECK_STR(err_text(&e), text);
        err_release(&e);
    }
}

TEST(an_error_ends_the_run_after_the_pieces_before_it)
{
    run_failing(COUNT, false, 0, COUNT, "");
    run_failing(7, false, -1, 7, "no work");
    run_failing(7, true, -1, 7, "no begin");
}
