#include "chathist/cli/export_out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/clock.h"
#include "chathist/base/json.h"

/* The longest part of a session's id in a file name. */
#define NAME_MAX_BYTES 120

/* So much is written at once. */
#define PENDING_MAX ((size_t)1 << 16)

int export_to_stdout(void *arg, struct str bytes, struct err *e)
{
    struct export_stdout *s = arg;
    struct buf visible = BUF_INIT(SIZE_MAX);

    (void)e;
    if (s->json && s->out->terminal) {
        json_add_visible(&visible, bytes);
        out_raw(s->out, buf_str(&visible));
    } else {
        out_text(s->out, bytes);
        out_text_end(s->out);
    }
    buf_release(&visible);
    return 0;
}

/* ---- a file that is replaced ---- */

static int flush_file(struct export_file *f, struct err *e)
{
    int rc = io_write_all(f->replace.fd, f->pending.data, f->pending.len);

    if (rc < 0)
        err_sys(e, errno, "cannot write '%s'", f->replace.path);
    buf_clear(&f->pending);
    return rc;
}

int export_file_begin(struct export_file *f, const char *path, struct err *e)
{
    buf_init(&f->pending, SIZE_MAX);
    return io_replace_begin(&f->replace, path, e);
}

int export_to_file(void *arg, struct str bytes, struct err *e)
{
    struct export_file *f = arg;

    buf_add_str(&f->pending, bytes);
    return f->pending.len < PENDING_MAX ? 0 : flush_file(f, e);
}

/* Do the files hold the same bytes? A doubt is a no. */
static bool same_content(int a, int b)
{
    char x[4096], y[4096];
    off_t at = 0;
    ssize_t n, m;

    do {
        n = io_pread_full(a, x, sizeof x, at);
        m = io_pread_full(b, y, sizeof y, at);
        if (n < 0 || n != m || memcmp(x, y, (size_t)n) != 0)
            return false;
        at += n;
    } while (n > 0);
    return true;
}

static bool is_unchanged(const struct export_file *f)
{
    int fd = io_open_regular(f->replace.path, O_RDONLY, 0, NULL, NULL, NULL);
    bool same = fd >= 0 && same_content(fd, f->replace.fd);

    if (fd >= 0)
        close(fd);
    return same;
}

int export_file_end(struct export_file *f, bool if_changed, struct err *e)
{
    int rc = 0;

    if (flush_file(f, e) < 0) {
        export_file_drop(f);
        return -1;
    }
    if (if_changed && is_unchanged(f))
        io_replace_drop(&f->replace);
    else
        rc = io_replace_end(&f->replace, e);
    buf_release(&f->pending);
    return rc;
}

void export_file_drop(struct export_file *f)
{
    io_replace_drop(&f->replace);
    buf_release(&f->pending);
}

void export_file_name(struct buf *out, const struct export_format *format, const struct message *m)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    struct buf time = BUF_INIT(BUF_SMALL);
    uint64_t hash = UINT64_C(14695981039346656037);
    size_t start;
    int64_t us;

    if (clock_parse_iso(m->timestamp, &us)) {
        clock_add_iso(&time, us);
        buf_add(out, time.data, strlen("2024-06-27"));
    } else {
        buf_add_c(out, "undated");
    }
    buf_add_byte(out, '_');
    start = out->len;
    for (size_t i = 0; i < m->session_id.n; i++) {
        unsigned char c = (unsigned char)m->session_id.p[i];

        hash = (hash ^ c) * UINT64_C(1099511628211);
        if (out->len - start > NAME_MAX_BYTES)
            continue;
        if (c != '\0' && strchr(plain, c))
            buf_add_byte(out, (char)c);
        else
            buf_addf(out, "%%%02X", c);
    }
    if (out->len - start > NAME_MAX_BYTES) {
        buf_truncate(out, start + NAME_MAX_BYTES - 20);
        buf_addf(out, "~%016llx", (unsigned long long)hash);
    }
    buf_addf(out, ".%s", format->suffix);
    buf_release(&time);
}

/* ---- a file that grows ---- */

static int cannot(const struct export_growth *g, struct err *e)
{
    return err_sys(e, errno, "cannot write '%s'", g->file.path);
}

/* Shortens it, so that the disk knows it. */
static int cut(struct export_growth *g, off_t length)
{
    if (ftruncate(g->file.fd, length) < 0 || fsync(g->file.fd) < 0)
        return -1;
    g->file.end = length;
    return 0;
}

int export_growth_open(struct export_growth *g, const char *path, const struct export_state *state,
                       struct append_wait *wait, struct err *e)
{
    struct stat st;
    int rc = 0;

    buf_init(&g->pending, SIZE_MAX);
    if (append_open(&g->file, IO_CWD, path, wait, e) < 0)
        return -1;
    if (fstat(g->file.fd, &st) < 0)
        rc = cannot(g, e);
    else if (state->growing && st.st_dev == state->device && st.st_ino == state->inode &&
             st.st_size > state->grown_from && cut(g, state->grown_from) < 0)
        rc = cannot(g, e);
    /* What is left ends as it did when the run before began. */
    g->before = g->file.end;
    if (rc < 0)
        export_growth_close(g);
    return rc;
}

int export_growth_begin(struct export_growth *g, struct export_state *state, struct err *e)
{
    struct stat st;
    char last = '\n';

    if (fstat(g->file.fd, &st) < 0 ||
        (st.st_size > 0 && io_pread_full(g->file.fd, &last, 1, st.st_size - 1) < 0))
        return cannot(g, e);
    g->file.torn = last != '\n';
    return export_state_begin(state, &st, e);
}

static int flush_growth(struct export_growth *g, struct err *e)
{
    int rc = 0;

    if (g->pending.len > 0)
        rc = append_write(&g->file, buf_str(&g->pending), false, e);
    buf_clear(&g->pending);
    return rc;
}

int export_to_growth(void *arg, struct str bytes, struct err *e)
{
    struct export_growth *g = arg;

    buf_add_str(&g->pending, bytes);
    return g->pending.len < PENDING_MAX ? 0 : flush_growth(g, e);
}

int export_growth_end(struct export_growth *g, struct err *e)
{
    if (flush_growth(g, e) < 0)
        return -1;
    if (fsync(g->file.fd) < 0 || io_sync_dir_of(g->file.path) < 0)
        return cannot(g, e);
    return 0;
}

void export_growth_undo(struct export_growth *g)
{
    /* If it stays, the state says from where: the next run takes it away. */
    (void)cut(g, g->before);
}

void export_growth_close(struct export_growth *g)
{
    append_close(&g->file);
    buf_release(&g->pending);
}
