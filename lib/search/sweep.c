#include "chathist/search/sweep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "chathist/base/crew.h"
#include "chathist/base/mem.h"

/* Pieces that are being read or wait to be given, for each thread. */
#define AHEAD ((size_t)2)

struct slot {
    struct piece piece;
    bool done;
    int errnum; /* why it could not be read */
};

struct sweep {
    struct sweep_job job;
    struct piece_reader own; /* the caller's */
    struct helper {
        struct sweep *sweep;
        struct piece_reader reader;
        pthread_t thread;
    } helpers[CREW_MAX];
    size_t helper_count;
    bool asked_for_help;
    struct skip_map map; /* does not change while there are helpers */

    pthread_mutex_t lock; /* over all that follows */
    pthread_cond_t changed;
    bool stop;
    off_t next_end; /* the next piece to be read ends here */
    size_t next_size;
    size_t taken, given; /* numbers of pieces */
    struct slot slots[CREW_MAX * AHEAD];
    size_t slot_count;

    size_t left; /* items of the piece that is given now, when it is `open` */
    bool open;
};

struct sweep *sweep_new(const struct sweep_job *job)
{
    struct sweep *s = mem_zalloc(sizeof *s);

    s->job = *job;
    s->job.piece.map = &s->map;
    s->own = (struct piece_reader){.job = &s->job.piece, .ctx = job->ctx[0]};
    s->next_end = job->piece.size;
    s->next_size = job->piece.block_size;
    s->slot_count = job->threads * AHEAD;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    return s;
}

void sweep_free(struct sweep *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->helper_count; i++) {
        pthread_join(s->helpers[i].thread, NULL);
        piece_reader_release(&s->helpers[i].reader);
    }
    for (size_t i = 0; i < s->slot_count; i++)
        piece_release(&s->slots[i].piece);
    skip_map_release(&s->map);
    piece_reader_release(&s->own);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- under the lock ---- */

static struct slot *slot_of(struct sweep *s, size_t number)
{
    return &s->slots[number % s->slot_count];
}

/* What is left is not to be read any more. */
static void heed_cancel(struct sweep *s)
{
    if (crew_cancelled(s->job.cancel))
        s->next_end = 0;
}

static bool can_take(const struct sweep *s)
{
    return s->next_end > 0 && s->taken - s->given < s->slot_count;
}

/* Cuts the next piece off what is left. */
static struct slot *take(struct sweep *s)
{
    struct slot *slot = slot_of(s, s->taken++);
    off_t block = (off_t)s->job.piece.block_size, size = (off_t)s->next_size;
    off_t least = s->next_end > size ? (s->next_end - 1 - (size - block)) / block * block : 0;
    off_t begin = skip_map_begin(&s->map, s->next_end, least);

    slot->piece.begin = begin;
    slot->piece.end = s->next_end;
    slot->done = false;
    slot->errnum = 0;
    s->next_end = skip_map_end(&s->map, begin);
    if (s->next_size * 2 <= s->job.piece_max)
        s->next_size *= 2;
    return slot;
}

/* Reads a piece that was taken, without the lock meanwhile. */
static void read_piece(struct sweep *s, struct piece_reader *r, struct slot *slot)
{
    int errnum;

    pthread_mutex_unlock(&s->lock);
    errnum = piece_read(r, &slot->piece) < 0 ? errno : 0;
    pthread_mutex_lock(&s->lock);
    slot->errnum = errnum;
    slot->done = true;
    pthread_cond_broadcast(&s->changed);
}

/* ---- helpers ---- */

static void *help(void *arg)
{
    struct helper *h = arg;
    struct sweep *s = h->sweep;

    pthread_mutex_lock(&s->lock);
    while (!s->stop && s->next_end > 0) {
        if (can_take(s))
            read_piece(s, &h->reader, take(s));
        else
            pthread_cond_wait(&s->changed, &s->lock);
        heed_cancel(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* What is left is a lot: is all of it to be read, and with how many threads? Without a helper the
 * caller does all the work. */
static void get_help(struct sweep *s)
{
    s->asked_for_help = true;
    if (s->job.narrow) {
        s->job.narrow(s->job.narrow_arg, &s->map);
        s->next_end = skip_map_end(&s->map, s->next_end);
        if (skip_map_left(&s->map, s->next_end) < s->job.helped)
            return;
    }
    while (s->helper_count + 1 < s->job.threads) {
        struct helper *h = &s->helpers[s->helper_count];

        h->sweep = s;
        h->reader =
            (struct piece_reader){.job = &s->job.piece, .ctx = s->job.ctx[s->helper_count + 1]};
        if (!crew_start(&h->thread, help, h))
            break;
        s->helper_count++;
    }
}

/* ---- in order ---- */

/* The next piece, read: 1, 0, -1. */
static int next_piece(struct sweep *s, struct slot **slot, struct err *e)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    if (s->open) {
        s->given++;
        s->open = false;
        pthread_cond_broadcast(&s->changed);
    }
    if (!s->asked_for_help && s->given > 0 && s->next_end >= s->job.helped)
        get_help(s);
    *slot = slot_of(s, s->given);
    heed_cancel(s);
    while (s->given < s->taken ? !(*slot)->done : s->next_end > 0) {
        if (can_take(s))
            read_piece(s, &s->own, take(s));
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    if (s->given < s->taken) {
        s->open = true;
        result = 1;
        if ((*slot)->errnum)
            result = err_sys(e, (*slot)->errnum, "cannot read '%s'", s->job.path);
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

int sweep_next(struct sweep *s, struct piece_item *hit, uint64_t *bad, struct err *e)
{
    struct slot *slot = slot_of(s, s->given);

    for (;;) {
        while (s->open && s->left > 0) {
            *hit = slot->piece.items[--s->left];
            if (!hit->bad)
                return 1;
            (*bad)++;
        }

        int more = next_piece(s, &slot, e);

        if (more <= 0)
            return more;
        s->left = slot->piece.count;
    }
}

int sweep_count(struct sweep *s, uint64_t *hits, uint64_t *bad, struct err *e)
{
    struct slot *slot;
    int more;

    *hits = *bad = 0;
    while ((more = next_piece(s, &slot, e)) > 0) {
        *hits += slot->piece.hits;
        *bad += slot->piece.bad;
    }
    return more;
}

size_t sweep_missed(struct sweep *s)
{
    size_t missed;

    /* When the caller has enough the helpers are still at work. */
    pthread_mutex_lock(&s->lock);
    missed = s->next_end == 0 && !crew_cancelled(s->job.cancel) ? s->map.missing : 0;
    pthread_mutex_unlock(&s->lock);
    return missed;
}
