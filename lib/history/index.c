#include "chathist/history/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/history/index_file.h"
#include "history/segment_runs.h"

/* What was appended becomes a segment when it is that large. */
#define TAIL_MAX ((off_t)64 << 10)
/* So many segments of about one size become one. */
#define ALIKE_MAX ((size_t)7)
/* And all of them when what was appended is that part of the first one. */
#define GROWN_PART 4
/* Of the reading of single lines. */
#define LINE_BLOCK ((size_t)8 << 10)

/* ---- segments ---- */

static struct segment *last_of(const struct index *x)
{
    return &x->segments[x->count - 1];
}

/* Up to where the history is covered. */
static off_t covered(const struct index *x)
{
    return x->count ? last_of(x)->to : 0;
}

/* Puts it behind the others, or in the place of those that it covers. false: it does not fit. */
static bool put_segment(struct index *x, const struct segment *s)
{
    size_t count = x->count;

    while (count > 0 && x->segments[count - 1].from >= s->from)
        count--;
    if (s->from != (count ? x->segments[count - 1].to : 0))
        return false;
    x->segments = mem_grow(x->segments, &x->cap, count + 1, sizeof(*x->segments));
    x->segments[count] = *s;
    x->count = count + 1;
    return true;
}

/* The mark of a segment: the upper half is a checksum of the last bytes before its end, which is
 * compared each time; the lower half is one of all its bytes in the history. */
#define END_OF_MARK (~UINT64_C(0) << 32)

static uint64_t mark_of(int history_fd, off_t from, off_t to)
{
    return (index_file_sample(history_fd, to) & END_OF_MARK) |
           (index_file_sum(history_fd, from, to) & ~END_OF_MARK);
}

static bool has_same_end(const struct segment *s, int history_fd)
{
    return ((s->mark ^ index_file_sample(history_fd, s->to)) & END_OF_MARK) == 0;
}

/* Returns whether the history still has the bytes that the segments were made of. Reads them all. */
static bool has_same_lines(const struct index *x)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct segment *s = &x->segments[i];

        if (s->mark != mark_of(x->scan.fd, s->from, s->to))
            return false;
    }
    return true;
}

/* What is not all there, or not what was written, ends the list. */
static void read_segments(struct index *x)
{
    struct segment s;
    struct stat st;

    x->end = INDEX_PREAMBLE;
    if (fstat(x->fd, &st) < 0)
        return;
    while (st.st_size > x->end &&
           segment_in_file(&s, x->fd, x->end, (uint64_t)(st.st_size - x->end)) &&
           s.to <= x->st.st_size && put_segment(x, &s))
        x->end += (off_t)s.size;
}

/* Is there an index of this history? */
static bool load(struct index *x)
{
    enum index_state state = index_file_state(x->fd, x->scan.fd, &x->st);

    if (state == INDEX_OTHER)
        return false;
    read_segments(x);
    if (x->count == 0)
        return false;
    /* Another program that appended lines may have changed earlier ones, too. */
    if (!has_same_end(last_of(x), x->scan.fd) || (state == INDEX_GROWN && !has_same_lines(x))) {
        /* It was changed by others, whatever its times say: the new one is not to go on with the
         * generation. */
        if (state == INDEX_SAME)
            history_remove_index(x->h);
        x->count = 0;
        return false;
    }
    if (state == INDEX_GROWN)
        index_file_note(x->fd, &x->st, false);
    return true;
}

/* ---- making ---- */

static struct segment_job job_of(const struct index *x, off_t from, off_t to)
{
    struct segment_job job = {
        .history = &x->scan, .from = from, .to = to, .work = x->h->work, .cancel = x->h->cancel};

    segment_job_size(&job);
    return job;
}

/* Makes the segment of a part in memory. */
static bool make_segment(struct index *x, off_t from, off_t to, struct buf *memory)
{
    struct segment_job job = job_of(x, from, to);
    struct segment_draft draft;
    struct segment s;
    bool made;

    segment_draft_init(&draft);
    buf_clear(memory);
    made = segment_build(&draft, &job) == 0 &&
           segment_format(&draft, from, to, mark_of(x->scan.fd, from, to), segment_write_memory,
                          memory) > 0;
    segment_draft_release(&draft);
    return made && segment_in_memory(&s, memory->data, memory->len) && put_segment(x, &s);
}

/* The same at `at` of a file, however large the part is: its size, or 0. */
static uint64_t write_segment(const struct index *x, off_t from, off_t to, int fd, off_t at)
{
    struct segment_runs r = {.job = job_of(x, from, to),
                             .dir = x->h->dir_fd,
                             .beside = history_index(x->h),
                             .held = SEGMENT_HELD};
    uint64_t size = 0;

    if (segment_runs_read(&r) == 0)
        size = segment_runs_write(&r, mark_of(x->scan.fd, from, to), fd, at);
    segment_runs_release(&r);
    return size;
}

/* Is the history still the one that was read? It can be replaced at any time, by one from which
 * something was erased. */
static bool is_history(const struct index *x)
{
    return index_file_named(x->h->dir_fd, x->h->path, &x->st);
}

/* Writes it: in the place of one that is right, of the same generation. */
static bool write_new(const struct index *x, off_t end, int fd)
{
    uint64_t generation = index_file_generation(x->h->dir_fd, history_index(x->h), x->scan.fd);

    return write_segment(x, 0, end, fd, INDEX_PREAMBLE) > 0 &&
           index_file_begin(fd, x->scan.fd, &x->st, generation) == 0 && is_history(x);
}

/* Goes on with the one that was made, if that is what lies in its place. */
static bool take_over(struct index *x, off_t end)
{
    int reason, fd = index_file_open(x->h->dir_fd, history_index(x->h), &reason);
    struct index made = {.fd = fd, .st = x->st};

    if (fd < 0)
        return false;
    read_segments(&made);
    if (covered(&made) != end || !has_same_end(&made.segments[0], x->scan.fd)) {
        free(made.segments);
        close(fd);
        return false;
    }
    if (x->fd >= 0)
        close(x->fd);
    free(x->segments);
    x->fd = fd;
    x->segments = made.segments;
    x->count = made.count;
    x->cap = made.cap;
    x->end = made.end;
    return true;
}

/* Makes it of the history up to `end`. It need not reach the disk: what a power cut leaves of it is
 * seen to be no index. */
static bool make_new(struct index *x, off_t end)
{
    const char *path = history_index(x->h);
    struct index_making m;

    if (!index_making_begin(&m, x->h->dir_fd, path) ||
        !index_making_end(&m, write_new(x, end, m.fd)))
        return false;
    if (is_history(x))
        return take_over(x, end);
    io_unlink(x->h->dir_fd, path);
    return false;
}

/* ---- what was appended ---- */

/* Where the next segment begins, that the history up to `end` is covered by few. */
static off_t next_begin(const struct index *x, off_t end)
{
    size_t i = x->count, alike;

    if (end - x->segments[0].to > x->segments[0].to / GROWN_PART)
        return 0;
    for (;;) {
        off_t from = x->segments[i - 1].to, size = end - from;

        for (alike = 0; i - alike > 1; alike++) {
            const struct segment *s = &x->segments[i - alike - 1];

            if (s->to - s->from > size * 2)
                break;
        }
        if (alike < ALIKE_MAX)
            return from;
        i -= alike;
    }
}

/* Is there nothing but what a program left that was killed behind the last segment of the file? It
 * is taken away. By now there may be a segment of another program. */
static bool clear_behind(const struct index *x)
{
    struct stat st;
    struct segment another;
    off_t more;

    if (fstat(x->fd, &st) < 0 || !index_file_named(x->h->dir_fd, history_index(x->h), &st))
        return false;
    more = st.st_size - x->end;
    if (more > 0 && segment_in_file(&another, x->fd, x->end, (uint64_t)more))
        return false;
    return ftruncate(x->fd, x->end) == 0;
}

/* Writes a segment there. The lock of the file is held. */
static bool write_locked(struct index *x, off_t from, off_t end)
{
    struct segment s;
    uint64_t size;

    if (!is_history(x) || !clear_behind(x))
        return false;
    size = write_segment(x, from, end, x->fd, x->end);
    if (size > 0 && is_history(x) && segment_in_file(&s, x->fd, x->end, size) &&
        put_segment(x, &s)) {
        x->end += (off_t)size;
        return true;
    }
    if (ftruncate(x->fd, x->end) < 0)
        errno = 0; /* what is there is no segment, or one that the next program is to judge */
    return false;
}

static bool write_behind(struct index *x, off_t from, off_t end)
{
    bool written;

    if (flock(x->fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    written = write_locked(x, from, end);
    flock(x->fd, LOCK_UN);
    return written;
}

/* Where the last whole line ends. -1: it cannot be read. */
static off_t end_of_lines(struct index *x)
{
    struct scan back;
    struct line l;
    off_t end = -1;

    scan_share(&back, &x->scan, x->st.st_size, x->st.st_size);
    back.way = SCAN_BACKWARD;
    if (scan_line(&back, &l, NULL) > 0)
        end = l.terminated ? x->st.st_size : l.at;
    scan_close(&back);
    return end;
}

/* Covers the whole lines, which end at `end`. */
static bool cover(struct index *x, off_t end)
{
    off_t from = covered(x);

    if (x->count == 0)
        return end >= INDEX_LEAST && make_new(x, end);
    if (end - from > TAIL_MAX) {
        off_t begin = next_begin(x, end);

        if (begin == 0 ? make_new(x, end) : write_behind(x, begin, end))
            return true;
    }
    return from == end || make_segment(x, from, end, &x->memory[0]);
}

static bool catch_up(struct index *x)
{
    off_t size = x->st.st_size, end = size;

    if (covered(x) < size)
        end = end_of_lines(x);
    if (end < covered(x) || !cover(x, end))
        return false;
    return end == size || make_segment(x, end, size, &x->memory[1]);
}

/* ---- using it ---- */

void index_close(struct index *x)
{
    if (x->fd >= 0)
        close(x->fd);
    free(x->segments);
    buf_release(&x->memory[0]);
    buf_release(&x->memory[1]);
    scan_close(&x->scan);
}

void index_discard(struct index *x)
{
    history_remove_index(x->h);
    index_close(x);
}

bool index_open(struct index *x, const struct history *h)
{
    const char *path = history_index(h);
    int reason = 0;

    if (!path)
        return false;
    *x = (struct index){.h = h, .fd = -1};
    if (scan_open(&x->scan, h->dir_fd, h->path, SCAN_FORWARD, NULL) < 0)
        return false;
    buf_init(&x->memory[0], SIZE_MAX);
    buf_init(&x->memory[1], SIZE_MAX);
    if (x->scan.fd < 0 || x->scan.sparse || x->scan.size < INDEX_LEAST ||
        fstat(x->scan.fd, &x->st) < 0 || x->st.st_uid != geteuid())
        goto none;
    x->fd = index_file_open(h->dir_fd, path, &reason);
    if (x->fd < 0 && reason != ENOENT)
        goto none;
    if (x->fd >= 0)
        load(x);
    x->scan.size = x->st.st_size;
    if (!catch_up(x))
        goto none;
    x->scan.block_size = LINE_BLOCK;
    return true;

none:
    index_close(x);
    return false;
}

const char *index_defect(const struct history *h, bool *removable)
{
    const char *path = history_index(h), *defect = NULL;
    struct index x = {.h = h, .fd = -1};
    int reason = 0;

    *removable = true;
    if (!path || scan_open(&x.scan, h->dir_fd, h->path, SCAN_FORWARD, NULL) < 0)
        return NULL;
    x.fd = index_file_open(h->dir_fd, path, &reason);
    if (x.fd < 0 && reason != ENOENT) {
        defect = "it cannot be used as an index, and keeps one from being made";
        *removable = h->dir && reason == EPERM && io_stat(h->dir_fd, path, &x.st) == 0 &&
                     x.st.st_uid == geteuid();
    } else if (x.fd >= 0 && x.scan.fd >= 0 &&
               index_file_state(x.fd, x.scan.fd, &x.st) == INDEX_SAME) {
        read_segments(&x);
        if (!has_same_lines(&x))
            defect = "it is not the index of these lines";
    }
    index_close(&x);
    return defect;
}
