#include "chathist/convert/export_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/history/mend.h"
#include "chathist/convert/import_message.h"

#define FORMAT 1
/* Of a number made of a line. */
#define MARK_DIGITS ((size_t)16)

/* ---- what is remembered ---- */

static struct export_state_session *session_of(struct export_state *s, struct str id)
{
    const size_t *place = keymap_find(&s->places, id);
    struct export_state_session *new;

    if (place)
        return &s->sessions[*place];
    s->sessions =
        mem_grow(s->sessions, &s->sessions_cap, s->sessions_count + 1, sizeof *s->sessions);
    new = &s->sessions[s->sessions_count];
    *new = (struct export_state_session){.name = mem_copy(id.p, id.n), .after = -1};
    new->id = (struct str){new->name, id.n};
    keymap_set(&s->places, new->id, s->sessions_count++);
    return new;
}

/* ---- messages on bad lines ---- */

static void add_mark(struct export_state_marks *m, uint64_t mark)
{
    m->at = mem_grow(m->at, &m->cap, m->count + 1, sizeof *m->at);
    m->at[m->count++] = mark;
}

/* Its place, count when it is not there. */
static size_t find_mark(const struct export_state_marks *m, uint64_t mark)
{
    size_t i = 0;

    while (i < m->count && m->at[i] != mark)
        i++;
    return i;
}

static bool is_lost(const struct export_state *s, const struct message *m)
{
    return s->lost.count > 0 && find_mark(&s->lost, import_hash(m->line)) < s->lost.count;
}

static void remove_mark(struct export_state_marks *m, uint64_t mark)
{
    size_t i = find_mark(m, mark);

    if (i < m->count)
        m->at[i] = m->at[--m->count];
}

/* What a repair would make of the line. */
static void tell_bad(void *arg, const struct line *l)
{
    struct export_state *s = arg;
    struct str rest = l->text, garbage, message;

    while (l->at >= s->bad_from && !l->too_long && mend_next(&rest, &garbage, &message))
        add_mark(&s->on_bad, import_hash(message));
}

/* ---- the file ---- */

static void add_marks(struct buf *out, const uint64_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s\"%016" PRIx64 "\"", str_ends(buf_str(out), STR("[")) ? "" : ",", at[i]);
}

static void add_members(const struct export_state *s, struct buf *out)
{
    json_add_member_int(out, "format", FORMAT);
    if (s->offset == 0)
        return;
    json_add_member_int(out, "offset", s->offset);
    json_add_member_int(out, "line", s->line);
    json_add_member_int(out, "length", (int64_t)s->length);
    json_add_key(out, "sessions");
    buf_add_byte(out, '{');
    for (size_t i = 0; i < s->sessions_count; i++) {
        const struct export_state_session *session = &s->sessions[i];

        if (i > 0)
            buf_add_byte(out, ',');
        json_add_string(out, session->id);
        buf_add_byte(out, ':');
        buf_addf(out, "\"%016" PRIx64 "\"", session->last);
    }
    buf_add_byte(out, '}');
    if ((s->rewritten ? 0 : s->lost.count) + s->on_bad_passed == 0)
        return;
    json_add_key(out, "lost");
    buf_add_byte(out, '[');
    add_marks(out, s->lost.at, s->rewritten ? 0 : s->lost.count);
    add_marks(out, s->on_bad.at, s->on_bad_passed);
    buf_add_byte(out, ']');
}

/* The new file is locked before it has the name, so that no other run comes between. */
static int replace(struct export_state *s, struct str text, struct err *e)
{
    struct io_replace r;
    int fd;

    (void)io_sweep(IO_CWD, s->path, true, true, NULL);
    if (io_replace_begin(&r, s->path, e) < 0)
        return -1;
    fd = fcntl(r.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || io_write_all(r.fd, text.p, text.n) < 0) {
        err_sys(e, errno, "cannot write '%s'", s->path);
        io_replace_drop(&r);
    } else if (io_replace_end(&r, e) == 0) {
        append_close(&s->file);
        s->file.fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool read_off(struct str object, const char *key, off_t *out)
{
    int64_t n;

    if (!json_int(json_get(object, key), &n) || n < 0)
        return false;
    *out = (off_t)n;
    return true;
}

/* A line's number, as add_members writes it. */
static bool read_mark(struct str value, uint64_t *mark)
{
    if (json_type(value) != JSON_STRING || value.n != MARK_DIGITS + 2 ||
        strspn(value.p + 1, "0123456789abcdef") != MARK_DIGITS)
        return false;
    *mark = strtoull(value.p + 1, NULL, 16);
    return true;
}

/* What an older version wrote there is no number: false. */
static bool read_sessions(struct export_state *s, struct str sessions)
{
    struct buf id = BUF_INIT(BUF_LINE);
    bool ok = true;

    for (struct json_iter it = json_iter(sessions); ok && it.object && json_next(&it);) {
        struct str key = {it.key.p - 1, it.key.n + 2}; /* with its quotes: a string */
        uint64_t last;

        ok = read_mark(it.value, &last);
        if (ok)
            session_of(s, json_text(key, &id))->last = last;
    }
    buf_release(&id);
    return ok;
}

static bool read_lost(struct export_state *s, struct str lost)
{
    uint64_t mark;

    for (struct json_iter it = json_iter(lost); json_next(&it);) {
        if (!read_mark(it.value, &mark))
            return false;
        add_mark(&s->lost, mark);
    }
    return true;
}

static bool read_members(struct export_state *s, struct str text)
{
    struct str object, growing;
    int64_t n, device, inode;
    off_t length;

    if (!json_check(text, &object, NULL) || json_type(object) != JSON_OBJECT ||
        !json_int(json_get(object, "format"), &n) || n != FORMAT)
        return false;
    if (read_off(object, "offset", &s->offset)) {
        if (!read_off(object, "line", &s->line) || !read_off(object, "length", &length) ||
            s->line + length > s->offset)
            return false;
        s->length = (size_t)length;
        if (!read_sessions(s, json_get(object, "sessions")) ||
            !read_lost(s, json_get(object, "lost")))
            return false;
    }
    growing = json_get(object, "growing");
    s->growing = json_type(growing) == JSON_OBJECT;
    if (!s->growing)
        return true;
    if (!json_int(json_get(growing, "device"), &device) ||
        !json_int(json_get(growing, "inode"), &inode) ||
        !read_off(growing, "length", &s->grown_from))
        return false;
    s->device = (dev_t)device;
    s->inode = (ino_t)inode;
    return true;
}

int export_state_open(struct export_state *s, const char *path, struct append_wait *wait,
                      struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result = 0;

    *s = (struct export_state){.path = path, .saved = BUF_INIT(SIZE_MAX)};
    if (append_open(&s->file, IO_CWD, path, wait, e) < 0)
        return -1;
    if (io_read_all(s->file.fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    else if (str_trim(buf_str(&text)).n > 0 && !read_members(s, buf_str(&text)))
        result = err_set(e, ERR_FAILURE, "cannot use '%s': it is no state of an export", path);
    add_members(s, &s->saved);
    buf_release(&text);
    if (result < 0)
        export_state_close(s);
    return result;
}

int export_state_begin(struct export_state *s, const struct stat *file, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result;

    buf_add_byte(&text, '{');
    buf_add_str(&text, buf_str(&s->saved));
    json_add_key(&text, "growing");
    buf_add_byte(&text, '{');
    json_add_member_int(&text, "device", (int64_t)file->st_dev);
    json_add_member_int(&text, "inode", (int64_t)file->st_ino);
    json_add_member_int(&text, "length", file->st_size);
    buf_add_c(&text, "}}\n");
    result = replace(s, buf_str(&text), e);
    buf_release(&text);
    return result;
}

int export_state_save(struct export_state *s, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result;

    buf_add_byte(&text, '{');
    add_members(s, &text);
    buf_add_c(&text, "}\n");
    result = replace(s, buf_str(&text), e);
    buf_release(&text);
    return result;
}

void export_state_close(struct export_state *s)
{
    for (size_t i = 0; i < s->sessions_count; i++)
        free(s->sessions[i].name);
    free(s->sessions);
    keymap_release(&s->places);
    free(s->lost.at);
    free(s->on_bad.at);
    buf_release(&s->saved);
    append_close(&s->file);
}

/* ---- the history ---- */

/* Is it the last exported line of all? */
static bool is_last(const struct export_state *s, const struct message *m)
{
    const size_t *place = keymap_find(&s->places, m->session_id);

    return place && s->sessions[*place].last == import_hash(m->line);
}

/* Does the last exported line still stand where it was? */
static int stands(const struct export_state *s, const struct scan *history, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_LINE + 1);
    size_t n = s->length + 1; /* with its newline */
    int result = 0;

    if (s->line + (off_t)n <= history->size) {
        result = scan_again(history, s->line, n, &line, e);
        if (result == 0)
            result = line.data[n - 1] == '\n' &&
                     message_parse(&m, (struct str){line.data, s->length}) && is_last(s, &m);
    }
    message_release(&m);
    buf_release(&line);
    return result;
}

/* Finds each session's last exported line. *behind: the recovered messages behind one of them,
 * which are new for that alone. */
static int find_last(struct export_state *s, struct scan *history,
                     struct export_state_marks *behind, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct line l;
    int result;

    while ((result = scan_message(history, &m, &l, e)) > 0) {
        const size_t *place = keymap_find(&s->places, m.session_id);
        struct export_state_session *session = place ? &s->sessions[*place] : NULL;

        if (session && session->after < 0 && session->last == import_hash(m.line))
            session->after = l.at;
        else if (session && session->after >= 0 && is_lost(s, &m))
            add_mark(behind, import_hash(m.line));
    }
    message_release(&m);
    return result;
}

static void remove_marks(struct export_state_marks *m, const struct export_state_marks *gone)
{
    for (size_t i = 0; i < gone->count; i++)
        remove_mark(m, gone->at[i]);
}

/* Goes through all of the history. Has a message been recovered? Then `lost` are those, 1; else 0,
 * and it is as it was; -1. */
static int find_recovered(struct export_state *s, struct scan *history, struct err *e)
{
    struct export_state_marks behind = {0}, left = {0};
    int result = find_last(s, history, &behind, e);

    for (size_t i = 0; i < s->lost.count; i++)
        add_mark(&left, s->lost.at[i]);
    /* What is still on a bad line. */
    remove_marks(&left, &s->on_bad);
    s->on_bad.count = 0;
    if (result == 0 && left.count > 0) {
        remove_marks(&left, &behind);
        free(s->lost.at);
        s->lost = left;
        left = (struct export_state_marks){0};
        result = 1;
    }
    free(left.at);
    free(behind.at);
    return result;
}

int export_state_find(struct export_state *s, struct scan *history, bool from_there, struct err *e)
{
    int there, recovered = 0;

    history->tell_bad = tell_bad;
    history->tell_arg = s;
    if (s->offset == 0)
        return 0;
    there = stands(s, history, e);
    if (there < 0)
        return -1;
    if (!there || s->lost.count > 0)
        recovered = find_recovered(s, history, e);
    if (recovered < 0)
        return -1;
    if (there && !recovered) {
        s->bad_from = s->offset;
        scan_from(history, from_there ? s->offset : 0);
        return 0;
    }
    if (!recovered)
        s->lost.count = 0;
    s->rewritten = true;
    s->offset = 0;
    scan_from(history, 0);
    return 0;
}

/* Does it stand behind what of its session was exported? */
static bool is_behind(const struct export_state *s, const struct message *m, off_t at)
{
    const size_t *place;

    if (!s->rewritten)
        return at >= s->offset;
    place = keymap_find(&s->places, m->session_id);
    return !place || at > s->sessions[*place].after;
}

bool export_state_is_new(const struct export_state *s, const struct message *m, off_t at)
{
    return is_behind(s, m, at) || (s->rewritten && is_lost(s, m));
}

void export_state_pass(struct export_state *s, const struct message *m, const struct line *l)
{
    off_t end = l->at + (off_t)l->text.n + 1;

    if (is_behind(s, m, l->at))
        session_of(s, m->session_id)->last = import_hash(m->line);
    else if (s->rewritten && is_lost(s, m))
        remove_mark(&s->lost, import_hash(m->line));
    if (end <= s->offset)
        return;
    s->offset = end;
    s->on_bad_passed = s->on_bad.count;
    s->line = l->at;
    s->length = l->text.n;
    s->moved = true;
}
