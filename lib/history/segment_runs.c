#include "history/segment_runs.h"

#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "history/segment_merge.h"
#include "history/segment_walk.h"

struct place {
    int fd;
    off_t at;
};

/* A segment_write. */
static bool write_at(void *ctx, uint64_t at, const char *bytes, size_t n)
{
    const struct place *p = ctx;

    return io_pwrite_all(p->fd, bytes, n, p->at + (off_t)at) == 0;
}

/* So that nothing is left of it, however this ends. */
static int open_nameless(const struct segment_runs *r)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int fd = io_open_temporary(r->dir, r->beside, &name);

    /* Where a file that is open keeps its name, there are no runs. */
    if (fd >= 0 && io_unlink(r->dir, buf_c(&name)) < 0) {
        close(fd);
        io_unlink(r->dir, buf_c(&name));
        fd = -1;
    }
    buf_release(&name);
    return fd;
}

/* Makes a run of the lines up to `to`. */
static int end_run(struct segment_runs *r, off_t to)
{
    struct place p;
    struct segment s;
    uint64_t size, ids;

    if (r->fd < 0)
        r->fd = open_nameless(r);
    if (r->fd < 0)
        return -1;
    p = (struct place){r->fd, r->end};
    size = segment_format(&r->draft, r->from, to, 0, write_at, &p);
    segment_draft_release(&r->draft);
    segment_draft_init(&r->draft);
    if (size == 0 || !segment_in_file(&s, r->fd, r->end, size) ||
        segment_walk_write(&s, write_at, &p, &ids) < 0)
        return -1;
    r->at = mem_grow(r->at, &r->cap, r->count + 1, sizeof(*r->at));
    r->at[r->count++] = s;
    r->end += (off_t)(size + ids);
    r->from = to;
    return 0;
}

/* Told by segment_build. */
static int reached(void *ctx, off_t to)
{
    struct segment_runs *r = ctx;

    return to < r->job.to && segment_draft_size(&r->draft) >= r->held ? end_run(r, to) : 0;
}

int segment_runs_read(struct segment_runs *r)
{
    r->fd = -1;
    r->from = r->job.from;
    r->job.reached = reached;
    r->job.reached_ctx = r;
    segment_draft_init(&r->draft);
    if (segment_build(&r->draft, &r->job) < 0)
        return -1;
    return r->count > 0 ? end_run(r, r->job.to) : 0;
}

uint64_t segment_runs_write(struct segment_runs *r, uint64_t mark, int fd, off_t at)
{
    struct place p = {fd, at};

    if (r->count > 0) {
        /* What the threads had is of no use for what comes. */
        mem_give_back();
        return segment_merge(r->at, r->count, &r->job, mark, write_at, &p);
    }
    return segment_format(&r->draft, r->job.from, r->job.to, mark, write_at, &p);
}

void segment_runs_release(struct segment_runs *r)
{
    segment_draft_release(&r->draft);
    free(r->at);
    if (r->fd >= 0)
        close(r->fd);
}
