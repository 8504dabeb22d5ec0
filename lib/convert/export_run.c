#include "chathist/convert/export_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/system.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/convert/export_select.h"
#include "chathist/convert/redact.h"
#include "chathist/history/append.h"
#include "chathist/history/order.h"
#include "chathist/history/time_blocks.h"
#include "chathist/history/thread.h"
#include "convert/export_html.h"

/* The longest part of a session id in a file name. */
#define NAME_MAX_BYTES 120

/* ---- output: a file that is replaced ---- */

int export_to_file(void *arg, struct str bytes, struct err *e)
{
    const struct file_replace *f = arg;

    if (file_write_all(f->fd, bytes.p, bytes.n) < 0)
        return err_sys(e, errno, "cannot write '%s'", f->path);
    return 0;
}

/* Returns whether the old file holds the same bytes as the new one; false on any error. */
static bool is_unchanged(const struct file_replace *f)
{
    int fd = file_open_regular_at(FILE_CWD, f->path, O_RDONLY, 0, NULL, NULL, NULL);
    char x[4096], y[4096];
    off_t at = 0;
    ssize_t n = 1;
    bool same = fd >= 0;

    for (; same && n > 0; at += n) {
        n = file_pread_full(fd, x, sizeof x, at);
        same =
            n >= 0 && n == file_pread_full(f->fd, y, sizeof y, at) && memcmp(x, y, (size_t)n) == 0;
    }
    file_close(fd);
    return same;
}

/* Appends the name of the file of a session: that which the format demands, or
 * `DATE_SESSION.SUFFIX`, with the day of its first line.
 * Each byte of an id that is no letter, digit, `.`, `_` or `-` becomes `%XX`; an id that is too
 * long is cut. That one, and one with a capital letter, ends with a hash of all of it: on a file
 * system that ignores case, `Notes` and `notes` would be one file. */
static void add_file_name(struct buf *out, const struct export_format *format,
                          const struct message *m)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    struct buf time = BUF_INIT(BUF_SMALL);
    size_t start;
    bool hashed = false;
    int64_t us;

    if (format->file_name) {
        format->file_name(out, m);
        return;
    }
    if (time_parse_iso(m->timestamp, &us)) {
        time_add_iso(&time, us);
        buf_add(out, time.data, strlen("2024-06-27"));
    } else {
        buf_add_c(out, "undated");
    }
    buf_add_byte(out, '_');
    start = out->len;
    for (size_t i = 0; i < m->session_id.n; i++) {
        unsigned char c = (unsigned char)m->session_id.p[i];

        hashed = hashed || (c >= 'A' && c <= 'Z');
        if (out->len - start > NAME_MAX_BYTES)
            continue;
        if (c != '\0' && strchr(plain, c))
            buf_add_byte(out, (char)c);
        else
            buf_addf(out, "%%%02X", c);
    }
    if (out->len - start > NAME_MAX_BYTES) {
        buf_truncate(out, start + NAME_MAX_BYTES - 20);
        hashed = true;
    }
    if (hashed)
        buf_addf(out, "~%016" PRIx64, hash_fnv(m->session_id));
    buf_addf(out, ".%s", format->suffix);
    buf_release(&time);
}

/* ---- output: a file that grows, together with a state ---- */

struct export_growth {
    struct append file; /* locked against other exports */
    off_t before;       /* its length before this run */
};

static int growth_failed(const struct export_growth *g, struct err *e)
{
    return err_sys(e, errno, "cannot write '%s'", g->file.path);
}

/* Shortens the file, on disk too. */
static int growth_cut(struct export_growth *g, off_t length)
{
    if (ftruncate(g->file.fd, length) < 0 || system_sync(g->file.fd) < 0)
        return -1;
    g->file.end = length;
    return 0;
}

/* Opens the file, cuts off the bytes that a killed run has appended, and if there are new ones
 * (`more`), records in the state that the file is about to grow. */
static int growth_open(struct export_growth *g, const char *path, struct selection *state,
                       bool more, struct append_wait *wait, struct err *e)
{
    struct stat st;
    char last = '\n';
    int64_t born;
    int rc;

    if (append_open(&g->file, FILE_CWD, path, wait, e) < 0)
        return -1;
    born = system_birth(g->file.fd);
    rc = fstat(g->file.fd, &st);
    if (rc == 0 && state->growing && st.st_dev == state->device && st.st_ino == state->inode &&
        state->born == born && st.st_size > state->grown_from) {
        rc = growth_cut(g, state->grown_from);
        st.st_size = state->grown_from;
    }
    if (rc == 0 && st.st_size > 0 && file_pread_full(g->file.fd, &last, 1, st.st_size - 1) < 0)
        rc = -1;
    g->before = g->file.end;
    g->file.torn = last != '\n';
    if (rc < 0)
        (void)growth_failed(g, e);
    else if (more)
        rc = selection_save_growth(state, &st, born, e);
    if (rc < 0)
        append_close(&g->file);
    return rc;
}

static int write_to_growth(void *arg, struct str bytes, struct err *e)
{
    struct export_growth *g = arg;

    return append_write(&g->file, bytes, false, e);
}

/* ---- one run ---- */

/* Reads and converts lines on one of the threads. */
struct reader {
    struct selection_part part;
    struct redactor *redactor; /* NULL without --redact */
    size_t redacted;           /* number of secrets that were replaced */
    struct words kept;         /* the files that do not change */
    struct buf clean;          /* a line without its secrets */
    struct message line;
    struct line_times times;
};

struct run {
    struct export_job *job;
    const struct history *history;
    /* The sessions of job->list, and the places of their ids, borrowed. Of an export whose lines
     * keep the order of the file, only if it is restricted. */
    struct session_list list;
    struct hash_map chosen;
    struct selection select;
    size_t *order; /* indexes of the exported sessions, in the order of the output */
    size_t count;
    off_t done, all; /* bytes of the lines that were written, and of all */
    unsigned read;   /* lines since cancel_fd was looked at */
    size_t threads;
    struct reader readers[THREAD_POOL_MAX]; /* the first is the caller's */
};

static int readers_open(struct run *r, struct err *e)
{
    for (size_t i = 0; i < r->threads; i++) {
        struct reader *d = &r->readers[i];

        *d = (struct reader){
            .part = {BUF_INIT(BUF_LINE), 0},
            .clean = BUF_INIT(4 * BUF_LINE),
            .line = MESSAGE_INIT,
            .times = {.now = r->history->now, .scan = &r->select.scan, .h = r->history}};
        if (r->job->redact && !(d->redactor = redactor_new(e)))
            return -1;
    }
    return 0;
}

/* ---- which sessions ---- */

/* Returns whether the output has the lines in the order of the file, and not sessions by their
 * times. */
static bool in_file_order(const struct run *r)
{
    const struct export_job *job = r->job;

    return job->format->lines || job->messages || (job->state && !job->directory);
}

/* Lists the chosen sessions. That comes after selection_load: a session that begins between the two
 * would count as exported in the state, and not be exported. */
static int load_chosen(struct run *r, struct err *e)
{
    struct session_list *l = &r->list;

    if (!r->job->restricted && in_file_order(r))
        return 0;
    if (r->job->list(r->job->arg, l, e) < 0)
        return -1;
    for (size_t i = 0; i < l->count; i++)
        hash_map_set(&r->chosen, l->at[i].id, i);
    return 0;
}

static bool is_selected(const struct run *r, struct str session_id)
{
    return !r->job->restricted || hash_map_find(&r->chosen, session_id);
}

/* Returns whether the lines can be exported as they are read, so that none has to be found
 * again. */
static bool is_streamed(const struct run *r)
{
    const struct export_job *job = r->job;

    return job->format->lines && job->all && !job->state && !job->directory && !job->messages;
}

static void want(struct run *r, size_t session)
{
    struct selection_session *s = &r->select.sessions[session];

    if (!is_selected(r, s->id) || (r->job->state && !s->grown))
        return;
    s->wanted = true;
    r->all += s->bytes;
    r->order[r->count++] = session;
}

/* Selects all sessions; the one used last comes last. */
static void want_all(struct run *r)
{
    for (size_t i = r->list.count; i-- > 0 && !in_file_order(r);) {
        size_t session = selection_find(&r->select, r->list.at[i].id);

        if (session != SELECTION_NONE)
            want(r, session);
    }
    for (size_t i = 0; i < r->select.lines_count && in_file_order(r); i++)
        if (r->select.sessions[r->select.lines[i].session].last == i)
            want(r, r->select.lines[i].session);
}

/* Selects the named sessions that have lines, and reports the others. Returns false if sessions
 * were named and no session has lines. */
static bool want_named(struct run *r)
{
    const struct filter_list *named = r->job->named;
    bool any = named->count == 0;

    for (size_t i = 0; i < named->count; i++) {
        struct str id = named->at[i];
        size_t session = selection_find(&r->select, id);

        any = any || session != SELECTION_NONE;
        if (session == SELECTION_NONE)
            r->job->absent(r->job->arg, id);
        else if (!r->select.sessions[session].wanted)
            want(r, session);
    }
    return any;
}

/* ---- messages ---- */

/* Returns the line without secrets. A valid line stays valid. */
static struct str cleaned(struct reader *d, struct str line)
{
    if (!d->redactor || !message_parse(&d->line, line))
        return line;
    buf_clear(&d->clean);
    d->redacted += redact_json(d->redactor, d->line.line, &d->clean);
    return buf_str(&d->clean);
}

static int cancelled(int cancel_fd, struct err *e)
{
    if (cancel_fd >= 0 && file_wait(cancel_fd, 0) > 0)
        return err_set(e, ERR_SIGNAL, "interrupted");
    return 0;
}

static void report_written(const struct run *r)
{
    if (r->job->work)
        r->job->work(&(struct task){"write", NULL, (uint64_t)r->done, (uint64_t)r->all});
}

/* Lines that are read between two looks at cancel_fd. */
#define CANCEL_LINES 64

/* To be called for each line. Does something on the caller's thread only. */
static int make_progress(struct run *r, const struct reader *d, struct err *e)
{
    if (d != r->readers || r->read++ % CANCEL_LINES != 0)
        return 0;
    report_written(r);
    return cancelled(r->job->cancel_fd, e);
}

static int read_line(struct run *r, struct reader *d, size_t i, struct err *e)
{
    struct str line;

    if (selection_read(&r->select, &d->part, i, &line, e) < 0)
        return -1;
    if (!message_parse(&d->line, cleaned(d, line)))
        return err_set(e, ERR_FAILURE, "cannot read '%s': it has changed", r->history->path);
    return make_progress(r, d, e);
}

/* Returns what the list of sessions says of a session, or NULL. */
static const struct session *listed(const struct run *r, size_t session)
{
    const size_t *place = hash_map_find(&r->chosen, r->select.sessions[session].id);

    return place ? &r->list.at[*place] : NULL;
}

/* `index`, which may be NULL, is another document that gets the session, too. */
static int write_thread(struct run *r, struct reader *d, struct export *x, struct export *index,
                        size_t session, struct err *e)
{
    struct thread t = {0};
    int rc = 0;

    x->listed = listed(r, session);
    if (index)
        index->listed = x->listed;
    for (size_t i = r->select.sessions[session].first; rc == 0 && i != SELECTION_NONE;
         i = r->select.lines[i].next) {
        rc = read_line(r, d, i, e);
        if (rc < 0)
            break;
        thread_add(&t, d->line.line);
        t.at[t.count - 1].at = r->select.lines[i].at;
        if (x->listed)
            rc = line_times_get(&d->times, r->select.lines[i].at, d->line.timestamp,
                                &t.at[t.count - 1].time, e);
    }
    /* New lines are always exported unchanged. */
    if (!r->job->raw && (!r->job->state || r->job->directory))
        thread_finish(&t);
    if (index)
        index->title_line = t.title;
    if (rc == 0 && t.count > 0 && index)
        rc = export_session(index, t.at, t.count, e);
    x->title_line = t.title;
    if (rc == 0 && t.count > 0)
        rc = export_session(x, t.at, t.count, e);
    thread_release(&t);
    return rc;
}

static int write_session(struct run *r, struct reader *d, struct export *x, size_t session,
                         struct err *e)
{
    if (!x->format->lines)
        return write_thread(r, d, x, NULL, session, e);
    for (size_t i = r->select.sessions[session].first; i != SELECTION_NONE;
         i = r->select.lines[i].next)
        if (read_line(r, d, i, e) < 0 || export_line(x, &d->line, e) < 0)
            return -1;
    return 0;
}

/* ---- several threads ---- */

/* The lines of a piece have about this size, unless a session or a line is longer. */
#define PIECE ((off_t)1 << 20)
#define SMALL_PIECE ((off_t)64 << 10)
/* A piece whose lines are closer together is read at once. */
#define PIECE_SPAN (4 * PIECE)
/* The caller's thread writes a larger session, because its text should not be in memory. */
#define PIECE_MAX (8 * PIECE)

struct piece {
    size_t first, end; /* a part of run.order */
    off_t from, until; /* the part of the history that has the lines */
    off_t bytes;       /* of the lines */
    struct scan scan;  /* of write_stream */
    struct export text;
    uint64_t bad_lines;
    struct buf name; /* of a part of a page */
    size_t number;   /* its number among the parts of its day, from 1 */
};

struct pieces {
    struct run *run;
    struct export *to; /* NULL: a file for each session */
    struct scan scan;  /* of write_stream */
    struct piece at[THREAD_POOL_SLOTS];
    size_t next;   /* an index of run.order */
    size_t number; /* the number of the last part */
    off_t next_line;
};

static int begin_sessions(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;
    const struct run *r = p->run;
    struct piece *piece = &p->at[slot];
    off_t most = p->to ? PIECE : SMALL_PIECE;

    (void)e;
    if (p->next == r->count)
        return 0;
    piece->first = p->next;
    piece->bytes = 0;
    piece->from = r->select.scan.size;
    piece->until = 0;
    do {
        const struct selection_session *s = &r->select.sessions[r->order[p->next++]];
        const struct selection_line *first = &r->select.lines[s->first];
        const struct selection_line *last = &r->select.lines[s->last];

        piece->bytes += s->bytes;
        piece->from = first->at < piece->from ? first->at : piece->from;
        piece->until =
            last->at + (off_t)last->n > piece->until ? last->at + (off_t)last->n : piece->until;
    } while (p->next < r->count &&
             piece->bytes + r->select.sessions[r->order[p->next]].bytes < most);
    piece->end = p->next;
    return 1;
}

static int do_sessions(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct pieces *p = ctx;
    struct run *r = p->run;
    struct piece *piece = &p->at[slot];
    struct reader *d = &r->readers[thread];
    int rc = 0;

    if (piece->bytes > PIECE_MAX)
        return 0;
    /* If this fails, the lines are read one by one. */
    if (piece->until - piece->from <= PIECE_SPAN)
        (void)selection_read_part(&r->select, &d->part, piece->from,
                                  (size_t)(piece->until - piece->from), NULL);
    for (size_t i = piece->first; rc == 0 && i < piece->end; i++)
        rc = write_session(r, d, &piece->text, r->order[i], e);
    return rc;
}

/* Writes the text that a thread has made. */
static int write_piece(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;
    struct piece *piece = &p->at[slot];
    struct run *r = p->run;

    r->select.bad_lines += piece->bad_lines;
    r->done += piece->bytes > 0 ? piece->bytes : piece->until - piece->from;
    report_written(r);
    if (cancelled(r->job->cancel_fd, e) < 0)
        return -1;
    if (p->to && piece->bytes > PIECE_MAX)
        return write_session(r, r->readers, p->to, r->order[piece->first], e);
    return p->to ? export_add_part(p->to, &piece->text, e) : 0;
}

static int write_pieces(struct pieces *p, int (*begin)(void *, size_t, struct err *),
                        int (*work)(void *, size_t, size_t, struct err *),
                        int (*join)(void *, size_t, struct err *), struct err *e)
{
    int rc;

    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        export_part(&p->at[i].text, p->to ? p->to->format : p->run->job->format);
        p->at[i].text.place = p->run->job->place;
    }
    rc = thread_pool_run(
        &(struct thread_pool_job){
            .threads = p->run->threads, .ctx = p, .begin = begin, .work = work, .join = join},
        e);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        export_release(&p->at[i].text);
    return rc;
}

static int write_selected(struct run *r, struct export *x, struct err *e)
{
    struct pieces p = {.run = r, .to = x};
    struct reader *d = r->readers;

    for (size_t i = 0; x->format->lines && i < r->select.lines_count; i++) {
        if (!r->select.sessions[r->select.lines[i].session].wanted)
            continue;
        r->done += (off_t)r->select.lines[i].n;
        if (read_line(r, d, i, e) < 0 || export_line(x, &d->line, e) < 0)
            return -1;
    }
    if (x->format->lines)
        return 0;
    /* Formats ask whether other sessions come before: this thread writes the first ones. */
    while (p.next < r->count && (x->sessions == 0 || x->messages == 0)) {
        r->done += r->select.sessions[r->order[p.next]].bytes;
        if (write_session(r, d, x, r->order[p.next++], e) < 0)
            return -1;
    }
    return p.next < r->count ? write_pieces(&p, begin_sessions, do_sessions, write_piece, e) : 0;
}

/* ---- the lines in the order of reading: see is_streamed ---- */

static int begin_lines(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;

    struct piece *piece = &p->at[slot];
    int rc;

    piece->from = p->next_line;
    rc = scan_split(&p->scan, &p->next_line, PIECE, &piece->scan, e);
    piece->until = p->next_line;
    return rc;
}

static int do_lines(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct pieces *p = ctx;
    struct piece *piece = &p->at[slot];
    struct reader *d = &p->run->readers[thread];
    struct line l;
    int rc = 0;

    while (rc >= 0 && (rc = scan_message(&piece->scan, &d->line, &l, e)) > 0) {
        if (!is_selected(p->run, d->line.session_id))
            continue;
        /* A line stays valid without its secrets. */
        if (d->redactor)
            (void)message_parse(&d->line, cleaned(d, l.text));
        rc = export_line(&piece->text, &d->line, e);
    }
    piece->bad_lines = piece->scan.bad;
    scan_close(&piece->scan);
    return rc;
}

static int write_stream(struct run *r, struct export *x, struct err *e)
{
    struct pieces p = {.run = r, .to = x};
    int rc;

    if (scan_open(&p.scan, r->history->dir_fd, r->history->path, e) < 0)
        return -1;
    r->all = p.scan.size;
    rc = write_pieces(&p, begin_lines, do_lines, write_piece, e);
    scan_close(&p.scan);
    return rc;
}

/* ---- the messages of --messages ---- */

struct named {
    struct thread thread; /* consecutive messages of one session */
    size_t bad;
    size_t searched; /* the bytes of the text without a line end */
    bool too_long;   /* the text belongs to a line whose beginning was dropped */
};

/* Returns 0 if a document may have this number of sessions, or -1 with *e set. */
static int check_single(const struct export_format *format, size_t sessions, struct err *e)
{
    if (!format->single || sessions < 2)
        return 0;
    return err_set(e, ERR_USAGE,
                   "a file of format %s has one session: give a directory for --output",
                   format->name);
}

static int write_group(struct export *x, struct named *n, struct err *e)
{
    int rc = 0;

    if (n->thread.count > 0 && x->sessions > 0)
        rc = check_single(x->format, 2, e);
    if (rc == 0 && n->thread.count > 0)
        rc = export_session(x, n->thread.at, n->thread.count, e);
    thread_release(&n->thread);
    return rc;
}

static int export_named(struct run *r, struct export *x, struct named *n, struct str line,
                        struct err *e)
{
    struct reader *d = r->readers;

    if (make_progress(r, d, e) < 0)
        return -1;
    if (str_trim(line).n == 0)
        return 0;
    if (!message_parse(&d->line, line)) {
        n->bad++;
        return 0;
    }
    message_parse(&d->line, cleaned(d, line));
    if (x->format->lines)
        return export_line(x, &d->line, e);
    if (n->thread.count > 0 && !str_eq(n->thread.at[0].session_id, d->line.session_id) &&
        write_group(x, n, e) < 0)
        return -1;
    thread_add(&n->thread, d->line.line);
    return 0;
}

/* Exports the complete lines of `text` and removes them; at the end also the last one. A text that is longer than a
 * line of a history can be is dropped. */
static int export_named_lines(struct run *r, struct export *x, struct named *n, struct buf *text,
                              bool ended, struct err *e)
{
    struct str rest = buf_str(text);
    size_t searched = n->searched;

    while (rest.n > 0 && (ended || memchr(rest.p + searched, '\n', rest.n - searched))) {
        struct str line = str_cut(&rest, '\n');

        if (!n->too_long && export_named(r, x, n, line, e) < 0)
            return -1;
        n->too_long = false;
        searched = 0;
    }
    buf_consume(text, text->len - rest.n);
    if (text->len > BUF_LINE) {
        n->bad += !n->too_long;
        n->too_long = true;
        buf_clear(text);
    }
    n->searched = text->len;
    return 0;
}

static int write_named(struct run *r, struct export *x, struct err *e)
{
    const char *path = r->job->messages;
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : file_open_input(path, e);
    struct buf text = BUF_INIT(2 * BUF_LINE);
    struct named n = {0};
    int more = 1, rc = fd < 0 ? -1 : 0;

    while (rc == 0 && more > 0) {
        more = file_read_some(fd, &text);
        if (more < 0)
            rc = is_stdin ? err_sys(e, errno, "cannot read standard input")
                          : err_sys(e, errno, "cannot read '%s'", path);
        else
            rc = export_named_lines(r, x, &n, &text, more == 0, e);
    }
    if (rc == 0)
        rc = write_group(x, &n, e);
    if (rc == 0)
        r->job->bad_entries = n.bad;
    thread_release(&n.thread);
    buf_release(&text);
    if (!is_stdin && fd >= 0)
        close(fd);
    return rc;
}

/* ---- destinations ---- */

/* Writes a document of one session, or of all (SELECTION_NONE). `follows`: the file already has a
 * document. */
static int write_document(struct run *r, struct reader *d, size_t session, export_sink *sink,
                          void *arg, bool follows, struct err *e)
{
    struct export x;
    int rc = export_begin(&x, r->job->format, sink, arg, e);

    x.sessions = follows;
    x.place = r->job->place;
    if (rc == 0)
        rc = session != SELECTION_NONE ? write_session(r, d, &x, session, e)
             : r->job->messages        ? write_named(r, &x, e)
             : is_streamed(r)          ? write_stream(r, &x, e)
                                       : write_selected(r, &x, e);
    if (rc == 0)
        rc = export_end(&x, e);
    export_release(&x);
    return rc;
}

/* Replaces a file by a document of one session, or of all. The file of one session stays if it has
 * this content already. */
static int replace_file(struct run *r, struct reader *d, size_t session, const char *path,
                        struct err *e)
{
    bool one_of_many = session != SELECTION_NONE, keeps = r->job->format->file_name != NULL;
    struct file_replace f;
    int rc = -1;

    if (file_replace_begin(&f, path, e) < 0)
        return -1;
    f.one_of_many = one_of_many;
    if (write_document(r, d, session, export_to_file, &f, false, e) == 0 &&
        cancelled(r->job->cancel_fd, e) == 0)
        rc = 0;
    if (rc == 0 && ((!one_of_many && !keeps) || !is_unchanged(&f))) {
        if (!keeps || access(path, F_OK) < 0)
            return file_replace_end(&f, e);
        words_add(&d->kept, str_of(path));
    }
    file_replace_drop(&f);
    return rc;
}

static int write_to_sink(struct run *r, struct err *e)
{
    const struct export_job *job = r->job;

    if (write_document(r, r->readers, SELECTION_NONE, job->sink, job->arg, false, e) < 0)
        return -1;
    /* After a failure, which the caller reports, no line counts as exported. */
    if (job->state && job->flush(job->arg) < 0)
        r->select.moved = false;
    return 0;
}

static int write_to_growing_file(struct run *r, struct err *e)
{
    struct append_wait wait = history_wait(r->history);
    struct export_growth g;
    int rc = 0;

    if (r->count == 0 && !r->select.growing)
        return 0;
    if (growth_open(&g, r->job->output, &r->select, r->count > 0, &wait, e) < 0)
        return -1;
    if (r->count > 0) {
        rc = write_document(r, r->readers, SELECTION_NONE, write_to_growth, &g, g.before > 0, e);
        if (rc == 0 && (system_sync(g.file.fd) < 0 || file_sync_dir_of(g.file.path) < 0))
            rc = growth_failed(&g, e);
        /* If this fails, the next run does it: the state has the length. */
        if (rc < 0)
            (void)growth_cut(&g, g.before);
    }
    r->select.moved = r->select.moved || r->select.growing;
    append_close(&g.file);
    return rc;
}

static int do_files(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct pieces *p = ctx;
    struct run *r = p->run;
    struct piece *piece = &p->at[slot];
    struct reader *d = &r->readers[thread];
    struct buf name = BUF_INIT(BUF_SMALL);
    int rc = 0;

    for (size_t i = piece->first; rc == 0 && i < piece->end; i++) {
        size_t redacted = d->redacted;
        char *path;

        /* The first line gives the name. Its secrets are counted when it is written. */
        rc = read_line(r, d, r->select.sessions[r->order[i]].first, e);
        if (rc < 0)
            break;
        d->redacted = redacted;
        buf_clear(&name);
        add_file_name(&name, r->job->format, &d->line);
        path = path_join(r->job->output, buf_c(&name));
        rc = replace_file(r, d, r->order[i], path, e);
        free(path);
    }
    buf_release(&name);
    return rc;
}

static int write_to_directory(struct run *r, struct err *e)
{
    struct pieces p = {.run = r};
    char *inside = path_join(r->job->output, ".");
    int rc = file_make_dirs(r->job->output, e) < 0 ? -1 : 0;

    if (rc == 0) {
        file_sweep_dir(r->job->output, r->job->format->suffix);
        rc = write_pieces(&p, begin_sessions, do_files, write_piece, e);
    }
    if (rc == 0 && r->count > 0 && file_sync_dir_of(inside) < 0)
        rc = err_sys(e, errno, "cannot write '%s'", r->job->output);
    free(inside);
    return rc;
}

/* ---- the parts of a page of everything (export_page.h) ---- */

struct begun {
    int64_t day; /* the day of the first line, in days since 1970; LINE_OLDEST: unknown */
    off_t first_line;
    size_t session;
};

static int by_day(const void *a, const void *b)
{
    const struct begun *x = a, *y = b;

    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return (x->first_line > y->first_line) - (x->first_line < y->first_line);
}

static int64_t day_of(const struct run *r, size_t session)
{
    const struct session *s = listed(r, session);
    const int64_t day = (int64_t)24 * 60 * 60 * 1000000;

    return !s || s->created == LINE_OLDEST ? LINE_OLDEST : s->created / day - (s->created < 0);
}

/* Puts the sessions into the order in which they began, so that a new one, or one that grows, changes
 * only the parts of its day. */
static void order_by_day(struct run *r)
{
    struct begun *all = mem_zalloc((r->count + 1) * sizeof *all);

    for (size_t i = 0; i < r->count; i++) {
        const struct selection_session *s = &r->select.sessions[r->order[i]];

        all[i] = (struct begun){day_of(r, r->order[i]), r->select.lines[s->first].at, r->order[i]};
    }
    qsort(all, r->count, sizeof *all, by_day);
    for (size_t i = 0; i < r->count; i++)
        r->order[i] = all[i].session;
    free(all);
}

static int begin_page_part(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;
    const struct run *r = p->run;
    struct piece *piece = &p->at[slot];
    struct buf date = BUF_INIT(BUF_SMALL);
    int64_t day;

    (void)e;
    if (p->next == r->count)
        return 0;
    day = day_of(r, r->order[p->next]);
    piece->number =
        p->next > 0 && day_of(r, r->order[p->next - 1]) == day ? ++p->number : (p->number = 1);
    piece->first = p->next;
    piece->bytes = 0;
    do
        piece->bytes += r->select.sessions[r->order[p->next++]].bytes;
    while (p->next < r->count && day_of(r, r->order[p->next]) == day &&
           piece->bytes + r->select.sessions[r->order[p->next]].bytes <= PIECE_MAX);
    piece->end = p->next;

    time_add_iso(&date, day == LINE_OLDEST ? 0 : day * 24 * 60 * 60 * 1000000);
    buf_clear(&piece->name);
    buf_addf(&piece->name, EXPORT_HTML_PARTS "/%.10s-%016" PRIx64,
             day == LINE_OLDEST ? "undated" : buf_c(&date), hash_fnv(str_of(r->history->path)));
    if (piece->number > 1)
        buf_addf(&piece->name, "-%zu", piece->number);
    buf_addf(&piece->name, ".%s", export_html_part.suffix);
    buf_release(&date);
    return 1;
}

/* Writes the file of a part, unless it has this content already, and the lines of its sessions for
 * the page. */
static int do_part(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct pieces *p = ctx;
    struct run *r = p->run;
    struct piece *piece = &p->at[slot];
    char *path = path_join(r->job->output, buf_c(&piece->name));
    struct file_replace f;
    struct export x;
    int rc = file_replace_begin(&f, path, e);

    if (rc == 0) {
        f.one_of_many = true;
        rc = export_begin(&x, &export_html_part, export_to_file, &f, e);
        for (size_t i = piece->first; rc == 0 && i < piece->end; i++) {
            piece->text.file = buf_str(&piece->name);
            rc = write_thread(r, &r->readers[thread], &x, &piece->text, r->order[i], e);
        }
        if (rc == 0)
            rc = export_end(&x, e);
        export_release(&x);
        if (rc == 0 && !is_unchanged(&f))
            rc = file_replace_end(&f, e);
        else
            file_replace_drop(&f);
    }
    free(path);
    return rc;
}

static int join_part(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;
    struct piece *piece = &p->at[slot];
    struct run *r = p->run;

    for (size_t i = piece->first; i < piece->end; i++)
        r->done += r->select.sessions[r->order[i]].bytes;
    report_written(r);
    (void)hash_map_add(r->job->parts, buf_str(&piece->name));
    return cancelled(r->job->cancel_fd, e) < 0 ? -1 : export_add_part(p->to, &piece->text, e);
}

static int write_parts(struct run *r, struct export *to, struct err *e)
{
    struct pieces p = {.run = r, .to = to};
    int rc;

    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        buf_init(&p.at[i].name, BUF_SMALL);
    order_by_day(r);
    rc = write_pieces(&p, begin_page_part, do_part, join_part, e);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        buf_release(&p.at[i].name);
    return rc;
}

/* ---- the whole run ---- */

static int write_output(struct run *r, struct err *e)
{
    struct export *document = r->job->document;

    if (document && !r->job->directory && r->job->expect)
        r->job->expect(r->job->arg, r->all);
    if (document)
        return r->job->directory ? write_parts(r, document, e) : write_selected(r, document, e);
    if (r->job->directory)
        return write_to_directory(r, e);
    if (check_single(r->job->format, r->count, e) < 0)
        return -1;
    if (r->job->expect)
        r->job->expect(r->job->arg, r->all);
    if (!r->job->output)
        return write_to_sink(r, e);
    if (r->job->state)
        return write_to_growing_file(r, e);
    (void)file_sweep(FILE_CWD, r->job->output, true, true, NULL);
    return replace_file(r, r->readers, SELECTION_NONE, r->job->output, e);
}

/* Selects lines of the history. Returns 1; 0 if no named session has lines; -1 with *e set. */
static int select_lines(struct run *r, struct err *e)
{
    const struct export_job *job = r->job;
    bool streamed = is_streamed(r);
    size_t most;

    if ((!streamed && selection_load(&r->select, r->history->dir_fd, r->history->path,
                                     job->directory, job->work, e) < 0) ||
        load_chosen(r, e) < 0)
        return -1;
    if (streamed)
        return 1;
    most = job->all ? r->select.sessions_count : job->named->count;
    r->order = mem_zalloc((most + 1) * sizeof *r->order);
    if (!job->all)
        return want_named(r);
    want_all(r);
    return 1;
}

static int from_history(struct run *r, struct err *e)
{
    struct append_wait wait = history_wait(r->history);
    int rc;

    rc = r->job->state ? selection_open_state(&r->select, r->job->state, &wait, e) : 0;
    if (rc == 0)
        rc = select_lines(r, e);
    if (rc > 0) {
        rc = write_output(r, e);
        if (rc == 0 && r->select.moved && r->job->state)
            rc = selection_save(&r->select, e);
        r->job->bad_lines = r->select.bad_lines;
    }
    selection_release(&r->select);
    hash_map_release(&r->chosen);
    session_list_release(&r->list);
    return rc;
}

int export_run(struct export_job *job, const struct history *h, struct err *e)
{
    struct run r = {.job = job,
                    .history = h,
                    .select = SELECTION_INIT,
                    /* Those that write files wait for the disk. */
                    .threads = job->directory ? THREAD_POOL_MAX : thread_pool_size()};
    int rc = readers_open(&r, e);

    job->redacted = job->bad_entries = 0;
    job->bad_lines = 0;
    if (rc == 0)
        rc = job->messages ? write_output(&r, e) : from_history(&r, e);
    for (size_t i = 0; i < r.threads; i++) {
        struct reader *d = &r.readers[i];

        job->redacted += d->redacted;
        for (size_t k = 0; k < d->kept.count; k++)
            job->kept(job->arg, d->kept.at[k]);
        words_release(&d->kept);
        redactor_free(d->redactor);
        buf_release(&d->part.text);
        buf_release(&d->clean);
        message_release(&d->line);
        line_times_release(&d->times);
    }
    free(r.order);
    return rc;
}
