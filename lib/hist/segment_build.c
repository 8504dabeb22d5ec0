#include "hist/segment_build.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "hist/sweep.h"

/* A part of at least HELPED bytes is read in pieces, by several threads. */
#define HELPED ((off_t)4 << 20)
#define PIECE ((size_t)2 << 20)

struct piece_of_build {
    struct segment_draft draft;
    bool done;
    int result;
};

struct build {
    const struct segment_job *job;
    struct piece_of_build *pieces;
    size_t count;

    pthread_mutex_t lock; /* over what follows, and `done` of each piece */
    pthread_cond_t changed;
    size_t taken;
    bool stop;
};

void segment_job_size(struct segment_job *j)
{
    j->piece = PIECE;
    j->threads = j->to - j->from < HELPED ? 1 : sweep_threads();
}

/* ---- a piece ---- */

/* Moves to the first line that begins at `begin` or behind it. 1; 0 when there is none, -1. */
static int find_begin(struct scan *s, off_t begin, off_t from, struct line *l)
{
    if (begin == from)
        return 1;
    scan_from(s, begin - 1);
    return scan_line(s, l, NULL);
}

/* The lines that begin from `begin` on and before `end`. */
static int read_lines(const struct segment_job *job, off_t begin, off_t end,
                      struct segment_draft *d)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    struct line l;
    int more;

    scan_share(&s, job->history, begin, job->to);
    more = find_begin(&s, begin, job->from, &l);
    while (more > 0 && scan_offset(&s) < end && (more = scan_line(&s, &l, NULL)) > 0) {
        switch (scan_judge(&l, &m)) {
        case SCAN_MESSAGE:
            segment_add(d, &m, l.at, l.text.n + l.terminated);
            break;
        case SCAN_BAD:
            segment_add_bad(d, l.at);
            break;
        case SCAN_NOTHING:
            break;
        }
    }
    /* A file that became shorter has not got what is to be covered. */
    if (more >= 0 && s.size < job->to)
        more = -1;
    message_release(&m);
    scan_close(&s);
    return more < 0 ? -1 : 0;
}

static void read_piece(struct build *b, size_t number)
{
    struct piece_of_build *p = &b->pieces[number];
    off_t begin = b->job->from + (off_t)(number * b->job->piece);
    off_t end = begin + (off_t)b->job->piece;

    segment_draft_init(&p->draft);
    p->result = read_lines(b->job, begin, end < b->job->to ? end : b->job->to, &p->draft);
}

/* ---- threads ---- */

/* Under the lock: reads the next piece, without it meanwhile. false: there is none. */
static bool read_next(struct build *b)
{
    size_t number = b->taken;

    if (b->stop || number == b->count)
        return false;
    b->taken++;
    pthread_mutex_unlock(&b->lock);
    read_piece(b, number);
    pthread_mutex_lock(&b->lock);
    b->pieces[number].done = true;
    pthread_cond_broadcast(&b->changed);
    return true;
}

static void *help(void *arg)
{
    struct build *b = arg;

    pthread_mutex_lock(&b->lock);
    while (read_next(b))
        ;
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Signals are the caller's. Without a helper the caller does all the work. */
static size_t start_helpers(struct build *b, pthread_t *helpers, size_t count)
{
    sigset_t all, before;
    size_t started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < count && pthread_create(&helpers[started], NULL, help, b) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Joins the pieces in their order, reading others until the next one is there. */
static int join_all(struct build *b, struct segment_draft *d)
{
    int result = 0;

    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count && result == 0; i++) {
        struct piece_of_build *p = &b->pieces[i];

        while (!p->done) {
            if (!read_next(b))
                pthread_cond_wait(&b->changed, &b->lock);
        }
        pthread_mutex_unlock(&b->lock);
        result = p->result;
        if (result == 0)
            segment_join(d, &p->draft);
        segment_draft_release(&p->draft);
        if (b->job->work)
            b->job->work(true);
        pthread_mutex_lock(&b->lock);
    }
    b->stop = true;
    pthread_mutex_unlock(&b->lock);
    return result;
}

static int build_in_pieces(struct segment_draft *d, const struct segment_job *job, size_t count)
{
    struct build b = {.job = job, .pieces = mem_zalloc(count * sizeof(*b.pieces)), .count = count};
    pthread_t helpers[SWEEP_THREADS];
    size_t most = job->threads - 1 < SWEEP_THREADS ? job->threads - 1 : SWEEP_THREADS;
    size_t started;
    int result;

    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    started = start_helpers(&b, helpers, most);
    result = join_all(&b, d);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
    for (size_t i = 0; i < count; i++)
        segment_draft_release(&b.pieces[i].draft);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    free(b.pieces);
    if (job->work)
        job->work(false);
    return result;
}

int segment_build(struct segment_draft *d, const struct segment_job *job)
{
    size_t count = (size_t)(job->to - job->from + (off_t)job->piece - 1) / job->piece;

    if (count > 1)
        return build_in_pieces(d, job, count);
    return read_lines(job, job->from, job->to, d);
}
