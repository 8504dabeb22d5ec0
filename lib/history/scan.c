/*
 * One window of the file is in memory, block.data[from…to): the bytes that were read but not
 * given to the caller. A forward scan extends it at its end, a backward scan at its beginning. A
 * line that is longer than a block makes the buffer larger by a fraction of its size, so that
 * each byte is moved a bounded number of times. Going backward, a very long line is read only
 * after its beginning was found.
 */
#include "chathist/history/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/memory.h"
#include "chathist/base/simd.h"

/* How much of a line that is too long is given. */
#define BEGINNING ((size_t)4096)
/* A block that is read before a line moves all bytes of the line that are in memory. */
#define HELD ((size_t)4 << 20)
/* A hole that is at least as large is not read. */
#define HOLE ((off_t)1 << 20)

int scan_open(struct scan *s, int dir, const char *path, enum scan_way way, struct err *e)
{
    struct err why = ERR_INIT;
    struct stat st;
    int reason = 0;

    *s =
        (struct scan){.way = way, .block_size = SCAN_BLOCK, .line_max = BUF_LINE, .held_max = HELD};
    buf_init(&s->block, SIZE_MAX);
    s->fd = file_open_regular_at(dir, path, O_RDONLY, 0, &st, &reason, &why);
    if (s->fd < 0 && reason != ENOENT) {
        err_set(e, ERR_FAILURE, "%s", err_text(&why));
        err_release(&why);
        return -1;
    }
    err_release(&why);
    s->size = s->fd < 0 ? 0 : st.st_size;
    s->sparse = s->fd >= 0 && file_is_sparse(s->fd, &st);
    s->next = way == SCAN_FORWARD ? 0 : s->size;
    s->path = mem_text(path);
    return 0;
}

void scan_share(struct scan *part, const struct scan *s, off_t at, off_t end)
{
    *part = (struct scan){.fd = s->fd,
                          .block_size = s->block_size,
                          .line_max = s->line_max,
                          .held_max = s->held_max,
                          .sparse = s->sparse,
                          .size = end,
                          .next = at,
                          .path = mem_text(s->path),
                          .shared = true};
    buf_init(&part->block, SIZE_MAX);
}

void scan_close(struct scan *s)
{
    if (s->fd >= 0 && !s->shared)
        close(s->fd);
    free(s->path);
    free(s->session);
    buf_release(&s->block);
    *s = (struct scan){.fd = -1};
}

void scan_from(struct scan *s, off_t at)
{
    s->next = at < s->size ? at : s->size;
    s->from = s->to = 0;
    s->bad = 0;
}

/* ---- the window ---- */

/* Makes room for n bytes after the window, or before it, and moves the window if needed. */
static void make_room(struct scan *s, size_t n, bool in_front)
{
    size_t held = s->to - s->from;

    if (in_front ? s->from >= n : s->block.len - s->to >= n)
        return;
    if (s->block.len < held + n) {
        size_t more = held + n + (held + n) / 4 - s->block.len;

        if (buf_room(&s->block, more))
            buf_grew(&s->block, more);
    }

    size_t to_front = in_front ? s->block.len - held : 0;

    memmove(s->block.data + to_front, s->block.data + s->from, held);
    s->from = to_front;
    s->to = to_front + held;
}

static int read_failed(const struct scan *s, struct err *e)
{
    return err_sys(e, errno, "cannot read '%s'", s->path);
}

/* Reads up to the next multiple of the block size. 1, 0 at the end of the file, -1. */
static int read_behind(struct scan *s, struct err *e)
{
    off_t block = (off_t)s->block_size;
    off_t stop = (s->next / block + 1) * block;
    size_t want = (size_t)((stop < s->size ? stop : s->size) - s->next);

    if (want == 0)
        return 0;
    make_room(s, want, false);

    ssize_t got = file_pread_full(s->fd, s->block.data + s->to, want, s->next);

    if (got < 0)
        return read_failed(s, e);
    s->to += (size_t)got;
    s->next += got;
    /* A writer that failed has taken its line back. */
    if ((size_t)got < want)
        s->size = s->next;
    return got > 0;
}

/* Reads from the next lower multiple of the block size. 1, 0 at the start of the file, -1; CUT when
 * the file has become shorter meanwhile (a writer that failed takes its line back): the
 * window no longer holds the bytes of the file. */
#define CUT 2

static int read_in_front(struct scan *s, struct err *e)
{
    off_t block = (off_t)s->block_size;

    if (s->next == 0)
        return 0;

    off_t start = (s->next - 1) / block * block;
    size_t want = (size_t)(s->next - start);

    make_room(s, want, true);

    ssize_t got = file_pread_full(s->fd, s->block.data + s->from - want, want, start);

    if (got < 0)
        return read_failed(s, e);
    s->from -= want;
    s->next = start;
    if ((size_t)got == want)
        return 1;
    s->to = s->from + (size_t)got;
    s->size = start + got;
    return CUT;
}

/* ---- lines, forward ---- */

/* Cuts a line that is too long to its beginning. */
static void shorten(const struct scan *s, struct line *l)
{
    size_t most = s->line_max < BEGINNING ? s->line_max : BEGINNING;

    if (l->text.n > s->line_max) {
        l->too_long = true;
        l->text.n = most;
    }
}

/* Moves over a large hole after the window, or before it. The window is then useless. */
static bool pass_hole(struct scan *s)
{
    off_t to = s->next, distance;

    if (!s->sparse)
        return false;
    to = s->way == SCAN_FORWARD ? file_hole_end(s->fd, to, s->size) : file_hole_begin(s->fd, to);
    distance = to < s->next ? s->next - to : to - s->next;
    if (distance >= HOLE)
        s->next = to;
    return distance >= HOLE;
}

/* Reads to the end of a line that has more than line_max bytes or a hole, keeping its beginning
 * alone. */
static int pass_over(struct scan *s, struct line *l, struct err *e)
{
    size_t held = s->to - s->from, most = s->line_max < BEGINNING ? s->line_max : BEGINNING;
    size_t keep = held < most ? held : most;
    const char *newline = NULL;
    int more;

    l->too_long = true;
    do {
        s->to = s->from + keep;
        (void)pass_hole(s);
        more = read_behind(s, e);
        if (more < 0)
            return -1;
        newline = memchr(s->block.data + s->from + keep, '\n', s->to - s->from - keep);
    } while (more && !newline);

    l->text = (struct str){s->block.data + s->from, keep};
    l->terminated = newline != NULL;
    s->from = newline ? (size_t)(newline + 1 - s->block.data) : s->to;
    return 1;
}

static int line_forward(struct scan *s, struct line *l, struct err *e)
{
    const char *newline = NULL;
    size_t seen = 0; /* the first bytes of the line that were already searched for a newline */
    size_t held;

    *l = (struct line){.at = s->next - (off_t)(s->to - s->from)};
    for (;;) {
        held = s->to - s->from;
        if (held > seen)
            newline = memchr(s->block.data + s->from + seen, '\n', held - seen);
        if (newline)
            break;
        if (held > s->line_max || (held > 0 && pass_hole(s)))
            return pass_over(s, l, e);
        seen = held;

        int more = read_behind(s, e);

        if (more < 0)
            return -1;
        if (!more)
            break;
    }
    if (held == 0)
        return 0;

    const char *start = s->block.data + s->from;

    l->text = (struct str){start, newline ? (size_t)(newline - start) : held};
    l->terminated = newline != NULL;
    s->from += l->text.n + (newline ? 1 : 0);
    shorten(s, l);
    return 1;
}

/* ---- lines, backward ---- */

/* A line of which too much to be held is here, or that has a hole: finds where it begins, and only
 * then reads it, the beginning alone when it is too long. 1, -1, or CUT. */
static int line_from_afar(struct scan *s, struct line *l, off_t end, struct err *e)
{
    size_t begin = 0, n;
    int more = 1;

    while (more && !begin) {
        s->to = s->from;
        l->too_long = pass_hole(s) || l->too_long;
        more = read_in_front(s, e);
        if (more < 0 || more == CUT)
            return more;
        begin = simd_after_newline(s->block.data + s->from, s->to - s->from);
    }
    l->at = s->next + (off_t)begin;
    n = (size_t)(end - l->at);
    l->too_long = n > s->line_max || l->too_long;
    if (l->too_long)
        n = s->line_max < BEGINNING ? s->line_max : BEGINNING;

    /* The line is put after the lines that were not given yet. */
    s->to = s->from + begin;
    make_room(s, n, false);

    ssize_t got = file_pread_full(s->fd, s->block.data + s->to, n, l->at);

    if (got < 0)
        return read_failed(s, e);
    l->text = (struct str){s->block.data + s->to, n};
    if ((size_t)got == n)
        return 1;
    s->size = s->next = l->at + got;
    s->from = s->to = 0;
    return CUT;
}

/* 1, 0, -1, or CUT: to be called again. */
static int try_backward(struct scan *s, struct line *l, struct err *e)
{
    size_t begin = 0;
    size_t seen = 0; /* the last bytes of the line that were already searched for a newline */
    size_t n;
    off_t end;
    int more = 1;

    if (s->from == s->to)
        more = read_in_front(s, e);
    if (more != 1)
        return more;

    size_t tail = s->block.data[s->to - 1] == '\n'; /* its own newline is no other line's end */

    *l = (struct line){.terminated = tail};
    for (;;) {
        n = s->to - s->from - tail;
        begin = simd_after_newline(s->block.data + s->from, n - seen);
        if (begin)
            break;
        end = s->next + (off_t)n;
        l->too_long = pass_hole(s);
        if (n > s->line_max || n > s->held_max || l->too_long)
            return line_from_afar(s, l, end, e);
        seen = n;
        more = read_in_front(s, e);
        if (more < 0 || more == CUT)
            return more;
        if (!more)
            break;
    }
    l->text = (struct str){s->block.data + s->from + begin, n - begin};
    l->at = s->next + (off_t)begin;
    s->to = s->from + begin;
    shorten(s, l);
    return 1;
}

static int line_backward(struct scan *s, struct line *l, struct err *e)
{
    int result;

    do {
        result = try_backward(s, l, e);
    } while (result == CUT);
    return result;
}

int scan_line(struct scan *s, struct line *l, struct err *e)
{
    return s->way == SCAN_FORWARD ? line_forward(s, l, e) : line_backward(s, l, e);
}

void scan_between(struct scan *s, off_t at, off_t end)
{
    s->next = at;
    s->size = end;
}

off_t scan_offset(const struct scan *s)
{
    return s->next - (off_t)(s->to - s->from);
}

/* How much is read at once to find the end of a line. */
#define SHORT_BLOCK ((size_t)16 << 10)

/* Sets *next to the beginning of the first line after the offset `at`, or to the end of the file.
 * Returns 0, or -1 with *e set. */
static int line_after(const struct scan *s, off_t at, off_t *next, struct err *e)
{
    struct scan part;
    struct line l;
    int result;

    *next = s->size;
    if (at >= s->size)
        return 0;
    scan_share(&part, s, at, s->size);
    part.block_size = SHORT_BLOCK;
    result = scan_line(&part, &l, e);
    if (result > 0)
        *next = scan_offset(&part);
    scan_close(&part);
    return result < 0 ? -1 : 0;
}

int scan_split(const struct scan *s, off_t *next, off_t n, struct scan *part, struct err *e)
{
    off_t at = *next;

    if (at >= s->size)
        return 0;
    if (line_after(s, at + n, next, e) < 0)
        return -1;
    scan_share(part, s, at, *next);
    return 1;
}

/* ---- messages ---- */

void scan_only(struct scan *s, struct str session_id)
{
    size_t n = session_id.n;

    free(s->session);
    s->session = mem_copy(session_id.p, n);
    s->session_len = n;
    s->session_plain = id_session_valid(session_id);

    /* Horspool's table: the distance of a byte's last place in the id, its end left out, from that
     * end. A smaller step than possible is always right. */
    memset(s->skip, n < 255 ? (int)n : 255, sizeof(s->skip));
    for (size_t i = 0; i + 1 < n; i++) {
        size_t distance = n - 1 - i;

        s->skip[(unsigned char)session_id.p[i]] = (unsigned char)(distance < 255 ? distance : 255);
    }
}

static bool holds_session(const struct scan *s, struct str text)
{
    struct str id = {s->session, s->session_len};

    for (size_t i = 0; i + id.n <= text.n;) {
        unsigned char last = (unsigned char)text.p[i + id.n - 1];

        if (memcmp(text.p + i, id.p, id.n) == 0)
            return true;
        i += s->skip[last];
    }
    return false;
}

/* A line can belong to the session if it contains the id, or an escape that could be a part of
 * it. */
bool scan_may_give(const struct scan *s, struct str text)
{
    if (!s->session_len || holds_session(s, text))
        return true;
    while (text.n) {
        const char *backslash = memchr(text.p, '\\', text.n);

        if (!backslash)
            return false;
        if (!s->session_plain)
            return true;

        size_t passed = (size_t)(backslash - text.p) + 1;

        text = str_skip(text, passed);
        if (text.n && text.p[0] == 'u')
            return true;
    }
    return false;
}

static bool is_blank(struct str text)
{
    return str_trim(text).n == 0;
}

enum scan_verdict scan_judge(const struct line *l, struct message *m)
{
    if (is_blank(l->text))
        return SCAN_NOTHING;
    if (!l->too_long && message_parse(m, l->text))
        return SCAN_MESSAGE;
    return l->terminated ? SCAN_BAD : SCAN_NOTHING;
}

int scan_message(struct scan *s, struct message *m, struct line *l, struct err *e)
{
    struct line own;
    int result;

    if (!l)
        l = &own;
    while ((result = scan_line(s, l, e)) > 0) {
        enum scan_verdict verdict = SCAN_NOTHING;

        if (scan_may_give(s, l->text))
            verdict = scan_judge(l, m);
        s->bad += verdict == SCAN_BAD;
        if (verdict == SCAN_MESSAGE &&
            (!s->session || str_eq(m->session_id, (struct str){s->session, s->session_len})))
            return 1;
    }
    return result;
}

void scan_let_go(struct scan *s)
{
    buf_release(&s->block);
    s->from = s->to = 0;
}

int scan_again(const struct scan *s, off_t at, size_t n, struct buf *out, struct err *e)
{
    buf_clear(out);

    char *to = buf_room(out, n);
    ssize_t got = to ? file_pread_full(s->fd, to, n, at) : 0;

    if (got < 0)
        return read_failed(s, e);
    if ((size_t)got < n)
        return err_set(e, ERR_FAILURE, "cannot read '%s': it has become shorter", s->path);
    buf_grew(out, n);
    return 0;
}
