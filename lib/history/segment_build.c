#include "history/segment_build.h"

#include <stdlib.h>

#include "chathist/base/crew.h"
#include "chathist/base/mem.h"

/* A part of at least HELPED bytes is read in pieces, by several threads. */
#define HELPED ((off_t)4 << 20)
#define PIECE ((size_t)1 << 20)
/* So much of it is read at once, by each. */
#define BLOCK ((size_t)64 << 10)

struct piece_of_build {
    struct segment_draft draft;
    int result;
};

struct build {
    const struct segment_job *job;
    struct segment_draft *whole;
    struct piece_of_build *pieces;
    size_t count;
    int result;
};

void segment_job_size(struct segment_job *j)
{
    j->piece = PIECE;
    j->threads = j->to - j->from < HELPED ? 1 : crew_size();
}

/* ---- a piece ---- */

/* Moves to the first line that begins at `begin` or behind it. 1; 0 when none does in what s reads,
 * -1. */
static int find_begin(struct scan *s, off_t begin, off_t from, struct line *l)
{
    int more;

    if (begin == from)
        return 1;
    scan_from(s, begin - 1);
    more = scan_line(s, l, NULL);
    return more > 0 ? l->terminated : more;
}

/* The lines that begin from `begin` on and before `end`. */
static int read_lines(const struct segment_job *job, off_t begin, off_t end,
                      struct segment_draft *d)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    struct line l;
    int more;

    /* The rest of a line that lies in many pieces is not read for each of them. */
    scan_share(&s, job->history, begin, end);
    if (s.block_size > BLOCK)
        s.block_size = BLOCK;
    more = find_begin(&s, begin, job->from, &l);
    if (s.size == end)
        s.size = job->to;
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

/* That of the piece behind the last one is the end. */
static off_t piece_begin(const struct segment_job *job, size_t number)
{
    off_t begin = job->from + (off_t)(number * job->piece);

    return begin < job->to ? begin : job->to;
}

static void read_piece(void *ctx, size_t number)
{
    struct build *b = ctx;
    struct piece_of_build *p = &b->pieces[number];

    segment_draft_init(&p->draft);
    p->result =
        read_lines(b->job, piece_begin(b->job, number), piece_begin(b->job, number + 1), &p->draft);
}

/* ---- all of them ---- */

/* Adds a piece to those before it. */
static bool join_piece(void *ctx, size_t number)
{
    struct build *b = ctx;
    struct piece_of_build *p = &b->pieces[number];

    b->result = crew_cancelled(b->job->cancel) ? -1 : p->result;
    if (b->result == 0)
        segment_join(b->whole, &p->draft);
    if (b->result == 0 && b->job->reached)
        b->result = b->job->reached(b->job->reached_ctx, piece_begin(b->job, number + 1));
    segment_draft_release(&p->draft);
    if (b->job->work)
        b->job->work((int)((number + 1) * 100 / b->count));
    return b->result == 0;
}

static int build_in_pieces(struct segment_draft *d, const struct segment_job *job, size_t count)
{
    struct build b = {
        .job = job, .whole = d, .pieces = mem_zalloc(count * sizeof(*b.pieces)), .count = count};

    crew_run(&(struct crew_job){.count = count,
                                .threads = job->threads,
                                .ctx = &b,
                                .work = read_piece,
                                .take = join_piece});
    for (size_t i = 0; i < count; i++)
        segment_draft_release(&b.pieces[i].draft);
    free(b.pieces);
    if (job->work)
        job->work(-1);
    return b.result;
}

int segment_build(struct segment_draft *d, const struct segment_job *job)
{
    size_t count = (size_t)(job->to - job->from + (off_t)job->piece - 1) / job->piece;

    if (count > 1)
        return build_in_pieces(d, job, count);
    return read_lines(job, job->from, job->to, d);
}
