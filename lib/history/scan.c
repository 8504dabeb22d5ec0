/*
 * One window of the file is in memory, block.data[from…to): the bytes that were read but not
 * given to the caller. A line that is longer than a block makes the buffer larger by a fraction of
 * its size, so that each byte is moved a bounded number of times.
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

#define BEGINNING ((size_t)4096)
/* How much of the end of the file scan_find reads first. */
#define FIND_FIRST ((off_t)64 << 10)

int scan_open(struct scan *s, int dir, const char *path, struct err *e)
{
    struct err why = ERR_INIT;
    struct stat st;
    int reason = 0;

    *s = (struct scan){.block_size = SCAN_BLOCK, .line_max = BUF_LINE};
    buf_init(&s->block, SIZE_MAX);
    s->fd = file_open_regular_at(dir, path, O_RDONLY, 0, &st, &reason, &why);
    if (s->fd < 0 && reason != ENOENT) {
        err_set(e, ERR_FAILURE, "%s", err_text(&why));
        err_release(&why);
        return -1;
    }
    err_release(&why);
    if (s->fd >= 0 && file_refuse_holes(s->fd, &st, path, e) < 0) {
        close(s->fd);
        return -1;
    }
    s->size = s->fd < 0 ? 0 : st.st_size;
    s->path = mem_text(path);
    return 0;
}

void scan_share(struct scan *part, const struct scan *s, off_t at, off_t end)
{
    *part = (struct scan){.fd = s->fd,
                          .block_size = s->block_size,
                          .line_max = s->line_max,
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

/* Makes room for n bytes after the window, and moves the window if needed. */
static void widen_window(struct scan *s, size_t n)
{
    size_t held = s->to - s->from;

    if (s->block.len - s->to >= n)
        return;
    if (s->block.len < held + n) {
        size_t more = held + n + (held + n) / 4 - s->block.len;

        if (buf_room(&s->block, more))
            buf_grew(&s->block, more);
    }
    memmove(s->block.data, s->block.data + s->from, held);
    s->from = 0;
    s->to = held;
}

static int read_failed(const struct scan *s, struct err *e)
{
    return err_sys(e, errno, "cannot read '%s'", s->path);
}

/* Reads up to the next multiple of the block size. 1, 0 at the end of the file, -1. */
static int read_block(struct scan *s, struct err *e)
{
    off_t block = (off_t)s->block_size;
    off_t stop = (s->next / block + 1) * block;
    size_t want = (size_t)((stop < s->size ? stop : s->size) - s->next);

    if (want == 0)
        return 0;
    widen_window(s, want);

    ssize_t got = file_pread_full(s->fd, s->block.data + s->to, want, s->next);

    if (got < 0)
        return read_failed(s, e);
    s->to += (size_t)got;
    s->next += got;
    /* A writer that failed has taken its line back. */
    if ((size_t)got < want)
        s->size = s->next;
    if (s->work)
        s->work(&(struct task){s->task, NULL, (uint64_t)s->next, (uint64_t)s->size});
    return got > 0;
}

/* ---- lines ---- */

/* Returns how much of a line that is too long is given. */
static size_t beginning(const struct scan *s)
{
    return s->line_max < BEGINNING ? s->line_max : BEGINNING;
}

/* Reads to the end of a line that has more than line_max bytes, keeping its beginning alone. */
static int pass_long_line(struct scan *s, struct line *l, struct err *e)
{
    size_t held = s->to - s->from, keep = held < beginning(s) ? held : beginning(s);
    const char *newline = NULL;
    int more;

    l->too_long = true;
    do {
        s->to = s->from + keep;
        more = read_block(s, e);
        if (more < 0)
            return -1;
        newline = memchr(s->block.data + s->from + keep, '\n', s->to - s->from - keep);
    } while (more && !newline);

    l->text = (struct str){s->block.data + s->from, keep};
    l->terminated = newline != NULL;
    s->from = newline ? (size_t)(newline + 1 - s->block.data) : s->to;
    return 1;
}

int scan_line(struct scan *s, struct line *l, struct err *e)
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
        if (held > s->line_max)
            return pass_long_line(s, l, e);
        seen = held;

        int more = read_block(s, e);

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
    l->too_long = l->text.n > s->line_max;
    if (l->too_long)
        l->text.n = beginning(s);
    return 1;
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

int scan_before(const struct scan *s, off_t *end, off_t n, struct scan *part, struct err *e)
{
    off_t from = *end;

    if (*end == 0)
        return 0;
    for (; from >= *end; n *= 2) {
        from = 0;
        if (*end > n && line_after(s, *end - n, &from, e) < 0)
            return -1;
    }
    scan_share(part, s, from, *end);
    *end = from;
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
bool scan_may_match(const struct scan *s, struct str text)
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

enum scan_verdict scan_judge(const struct line *l, struct message *m)
{
    if (str_trim(l->text).n == 0)
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

        if (scan_may_match(s, l->text))
            verdict = scan_judge(l, m);
        s->bad += verdict == SCAN_BAD;
        if (verdict == SCAN_MESSAGE &&
            (!s->session || str_eq(m->session_id, (struct str){s->session, s->session_len})))
            return 1;
    }
    return result;
}

static bool is_one_of(struct str id, const struct str *ids, size_t count)
{
    while (count > 0 && (ids[count - 1].n == 0 || !str_eq(ids[count - 1], id)))
        count--;
    return count > 0;
}

int scan_find(struct scan *s, const struct str *ids, size_t count, struct message *m, struct err *e)
{
    off_t from, n = FIND_FIRST, found = -1;
    struct line l;
    int more;

    do {
        from = s->size > n ? s->size - n : 0;
        scan_from(s, from);
        /* The first line was cut. */
        more = from > 0 ? scan_line(s, &l, e) : 1;
        while (more > 0 && (more = scan_message(s, m, &l, e)) > 0)
            if (is_one_of(m->id, ids, count))
                found = l.at;
        n *= 8;
    } while (more == 0 && found < 0 && from > 0);
    if (more < 0 || found < 0)
        return more;
    scan_from(s, found);
    return scan_message(s, m, NULL, e);
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
