#include "chathist/convert/export_select.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/thread_pool.h"

#define STATE_FORMAT 1
#define HASH_DIGITS ((size_t)16)
/* How much of the history is read at once if the next line is near. */
#define PART ((off_t)128 << 10)

/* Returns the index of a session, and adds the session if necessary. */
static size_t selected_session(struct selection *s, struct str id)
{
    size_t i = hash_map_number(&s->places, &id);

    if (i == s->sessions_count) {
        s->sessions = mem_grow(s->sessions, &s->sessions_cap, i + 1, sizeof *s->sessions);
        s->sessions[s->sessions_count++] = (struct selection_session){
            .id = id, .first = SELECTION_NONE, .last = SELECTION_NONE, .after = -1};
    }
    return i;
}

/* ---- the state file ---- */

static void add_members(const struct selection *s, struct buf *out)
{
    json_add_member_int(out, "format", STATE_FORMAT);
    if (s->offset == 0)
        return;
    json_add_member_int(out, "offset", s->offset);
    json_add_member_int(out, "line", s->line);
    json_add_member_int(out, "length", (int64_t)s->length);
    json_add_key(out, "sessions");
    buf_add_byte(out, '{');
    for (size_t i = 0; i < s->sessions_count; i++) {
        const struct selection_session *session = &s->sessions[i];

        if (i > 0)
            buf_add_byte(out, ',');
        json_add_string(out, session->id);
        buf_add_byte(out, ':');
        buf_addf(out, "\"%016" PRIx64 "\"", session->exported);
    }
    buf_add_byte(out, '}');
}

/* Replaces the file by one with this text. The new file is locked before it is renamed, so that no
 * other run comes between. */
static int replace_state(struct selection *s, struct str text, struct err *e)
{
    struct file_replace r;
    int fd;

    (void)file_sweep(FILE_CWD, s->path, true, true, NULL);
    if (file_replace_begin(&r, s->path, e) < 0)
        return -1;
    fd = fcntl(r.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || file_write_all(r.fd, text.p, text.n) < 0) {
        err_sys(e, errno, "cannot write '%s'", s->path);
        file_replace_drop(&r);
    } else if (file_replace_end(&r, e) == 0) {
        append_close(&s->file);
        s->file.fd = fd;
        return 0;
    }
    file_close(fd);
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

/* Reads a hash as add_members writes it. Returns false for any other value. */
static bool read_hash(struct str value, uint64_t *hash)
{
    if (json_type(value) != JSON_STRING || value.n != HASH_DIGITS + 2 ||
        strspn(value.p + 1, "0123456789abcdef") != HASH_DIGITS)
        return false;
    *hash = strtoull(value.p + 1, NULL, 16);
    return true;
}

static bool read_sessions(struct selection *s, struct str sessions)
{
    struct buf id = BUF_INIT(BUF_LINE);
    bool ok = true;

    for (struct json_iter it = json_iter(sessions); ok && it.object && json_next(&it);) {
        struct str key = {it.key.p - 1, it.key.n + 2}; /* with its quotes: a string */
        uint64_t last;

        ok = read_hash(it.value, &last);
        if (ok) {
            size_t i = selected_session(s, json_text(key, &id));

            s->sessions[i].exported = last;
        }
    }
    buf_release(&id);
    return ok;
}

static bool read_members(struct selection *s, struct str text)
{
    struct str object, growing;
    int64_t n, device, inode;
    off_t length;

    if (!json_check(text, &object, NULL) || json_type(object) != JSON_OBJECT ||
        !json_int(json_get(object, "format"), &n) || n != STATE_FORMAT)
        return false;
    if (read_off(object, "offset", &s->offset)) {
        if (!read_off(object, "line", &s->line) || !read_off(object, "length", &length) ||
            s->line + length > s->offset)
            return false;
        s->length = (size_t)length;
        if (!read_sessions(s, json_get(object, "sessions")))
            return false;
    }
    growing = json_get(object, "growing");
    s->growing = json_type(growing) == JSON_OBJECT;
    if (!s->growing)
        return true;
    if (!json_int(json_get(growing, "device"), &device) ||
        !json_int(json_get(growing, "inode"), &inode) ||
        !json_int(json_get(growing, "born"), &s->born) ||
        !read_off(growing, "length", &s->grown_from))
        return false;
    s->device = (dev_t)device;
    s->inode = (ino_t)inode;
    return true;
}

int selection_open_state(struct selection *s, const char *path, struct append_wait *wait,
                         struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result = 0;

    if (append_open(&s->file, FILE_CWD, path, wait, e) < 0)
        return -1;
    s->path = path;
    if (file_read_all(s->file.fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    else if (str_trim(buf_str(&text)).n > 0 && !read_members(s, buf_str(&text)))
        result = err_set(e, ERR_FAILURE, "cannot use '%s': it is no state of an export", path);
    add_members(s, &s->saved);
    buf_release(&text);
    return result;
}

/* Writes the state with these members, and a last one that may be empty. */
static int write_state(struct selection *s, const struct buf *members, struct str growing,
                       struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int result;

    buf_add_byte(&text, '{');
    buf_add_str(&text, buf_str(members));
    buf_add_str(&text, growing);
    buf_add_c(&text, "}\n");
    result = replace_state(s, buf_str(&text), e);
    buf_release(&text);
    return result;
}

int selection_save_growth(struct selection *s, const struct stat *file, int64_t born, struct err *e)
{
    struct buf growing = BUF_INIT(BUF_SMALL);
    int result;

    buf_addf(&growing,
             ",\"growing\":{\"device\":%lld,\"inode\":%lld,\"born\":%lld,\"length\":%lld}",
             (long long)file->st_dev, (long long)file->st_ino, (long long)born,
             (long long)file->st_size);
    result = write_state(s, &s->saved, buf_str(&growing), e);
    buf_release(&growing);
    return result;
}

int selection_save(struct selection *s, struct err *e)
{
    struct buf members = BUF_INIT(SIZE_MAX);
    int result;

    add_members(s, &members);
    result = write_state(s, &members, STR_NONE, e);
    buf_release(&members);
    return result;
}

/* ---- new lines ---- */

/* Returns the session whose last exported line this is, or NULL. */
static struct selection_session *last_exported(const struct selection *s, const struct message *m)
{
    const size_t *place = hash_map_find(&s->places, m->session_id);

    return place && s->sessions[*place].exported == hash_fnv(m->line) ? &s->sessions[*place] : NULL;
}

/* Returns 1 if the last exported line is still where it was, 0 if not, -1 with *e set. */
static int last_line_stands(const struct selection *s, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_LINE + 1);
    size_t n = s->length + 1; /* with its newline */
    int result = 0;

    if (s->line + (off_t)n <= s->scan.size) {
        result = scan_again(&s->scan, s->line, n, &line, e);
        if (result == 0)
            result = line.data[n - 1] == '\n' &&
                     message_parse(&m, (struct str){line.data, s->length}) && last_exported(s, &m);
    }
    message_release(&m);
    buf_release(&line);
    return result;
}

/* Finds the last exported line of each session in a history that was rewritten. */
static int find_last_lines(struct selection *s, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct line l;
    int result;

    while ((result = scan_message(&s->scan, &m, &l, e)) > 0) {
        struct selection_session *session = last_exported(s, &m);

        if (session && session->after < 0)
            session->after = l.at;
    }
    message_release(&m);
    return result;
}

/* Compares the state with the history, and lets the scan begin where new lines can be, or with
 * `whole` at the first line. Returns 0, or -1 with *e set. */
static int compare_state(struct selection *s, bool whole, struct err *e)
{
    int stands;

    if (s->offset == 0)
        return 0;
    stands = last_line_stands(s, e);
    if (stands < 0)
        return -1;
    if (stands) {
        scan_from(&s->scan, whole ? 0 : s->offset);
        return 0;
    }
    if (find_last_lines(s, e) < 0)
        return -1;
    s->rewritten = true;
    s->offset = 0;
    scan_from(&s->scan, 0);
    return 0;
}

/* ---- the selection ---- */

/* The messages in a part of the history, which one of the threads reads. */
struct piece {
    struct scan scan;
    struct piece_line {
        off_t at;
        size_t n;
        size_t id_at, id_n; /* the session: a part of `ids` */
        uint64_t hash;      /* the hash of a line that can be new for the state */
    } * lines;
    size_t count, cap;
    struct buf ids; /* consecutive equal ones are there once */
    uint64_t bad_lines;
};

struct pieces {
    struct selection *select;
    bool whole;        /* lines that are not new are listed, too */
    task_report *work; /* NULL: none */
    off_t next;        /* the next piece begins here */
    off_t new_from;    /* no line before this place is new for the state */
    struct piece at[THREAD_POOL_SLOTS];
};

static int begin_part(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;

    return scan_split(&p->select->scan, &p->next, p->select->piece_size, &p->at[slot].scan, e);
}

static void add_piece_line(struct piece *piece, const struct message *m, const struct line *l,
                           bool hashed)
{
    const struct piece_line *last = piece->count > 0 ? &piece->lines[piece->count - 1] : NULL;
    struct piece_line line = {.at = l->at, .n = l->text.n, .id_n = m->session_id.n};

    if (last && str_eq((struct str){piece->ids.data + last->id_at, last->id_n}, m->session_id)) {
        line.id_at = last->id_at;
    } else {
        line.id_at = piece->ids.len;
        buf_add_str(&piece->ids, m->session_id);
    }
    if (hashed)
        line.hash = hash_fnv(m->line);
    piece->lines = mem_grow(piece->lines, &piece->cap, piece->count + 1, sizeof *piece->lines);
    piece->lines[piece->count++] = line;
}

static int collect_lines(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct pieces *p = ctx;
    struct piece *piece = &p->at[slot];
    struct message m = MESSAGE_INIT;
    struct line l;
    int result;

    (void)thread;
    piece->count = 0;
    buf_clear(&piece->ids);
    while ((result = scan_message(&piece->scan, &m, &l, e)) > 0)
        /* A line without an end may still be written: a state leaves it to the next run. */
        if (l.terminated || !p->select->path)
            add_piece_line(piece, &m, &l, l.at >= p->new_from);
    piece->bad_lines = piece->scan.bad;
    scan_close(&piece->scan);
    message_release(&m);
    return result;
}

/* Returns whether a line is new for the state, and if so makes it the last exported one of its
 * session. */
static bool pass_line(struct selection *s, struct selection_session *session,
                      const struct piece_line *l)
{
    off_t end = l->at + (off_t)l->n + 1;
    bool is_new = s->rewritten ? l->at > session->after : l->at >= s->offset;

    if (is_new)
        session->exported = l->hash;
    if (end > s->offset) {
        s->offset = end;
        s->line = l->at;
        s->length = l->n;
        s->moved = true;
    }
    return is_new;
}

static void select_line(struct selection *s, size_t index, const struct piece_line *l, bool grown)
{
    struct selection_session *session = &s->sessions[index];
    size_t i = s->lines_count;

    s->lines = mem_grow(s->lines, &s->lines_cap, i + 1, sizeof *s->lines);
    s->lines[i] = (struct selection_line){l->at, l->n, index, SELECTION_NONE};
    s->lines_count++;
    if (session->last == SELECTION_NONE)
        session->first = i;
    else
        s->lines[session->last].next = i;
    session->last = i;
    session->bytes += (off_t)l->n;
    session->grown = session->grown || grown;
}

static int join_lines(void *ctx, size_t slot, struct err *e)
{
    struct pieces *p = ctx;
    struct selection *s = p->select;
    struct piece *piece = &p->at[slot];
    size_t index = 0;

    (void)e;
    if (p->work)
        p->work(&(struct task){"read", NULL, (uint64_t)p->next, (uint64_t)s->scan.size});
    for (size_t i = 0; i < piece->count; i++) {
        const struct piece_line *l = &piece->lines[i];
        bool is_new;

        if (i == 0 || l->id_at != l[-1].id_at || l->id_n != l[-1].id_n)
            index = selected_session(s, (struct str){piece->ids.data + l->id_at, l->id_n});
        is_new = !s->path || pass_line(s, &s->sessions[index], l);
        if (is_new || p->whole)
            select_line(s, index, l, is_new);
    }
    s->bad_lines += piece->bad_lines;
    return 0;
}

static int load_lines(struct selection *s, bool whole, task_report *work, struct err *e)
{
    struct pieces *p = mem_zalloc(sizeof *p);
    int rc;

    *p = (struct pieces){.select = s,
                         .whole = whole,
                         .work = work,
                         .next = scan_offset(&s->scan),
                         .new_from = s->path ? s->offset : s->scan.size};
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        buf_init(&p->at[i].ids, SIZE_MAX);
    rc = thread_pool_run(&(struct thread_pool_job){.threads = thread_pool_size(),
                                                   .alone = s->scan.size - p->next <= s->piece_size,
                                                   .ctx = p,
                                                   .begin = begin_part,
                                                   .work = collect_lines,
                                                   .join = join_lines},
                         e);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        free(p->at[i].lines);
        buf_release(&p->at[i].ids);
    }
    free(p);
    return rc;
}

int selection_load(struct selection *s, int dir, const char *history_path, bool whole,
                   task_report *work, struct err *e)
{
    if (scan_open(&s->scan, dir, history_path, e) < 0)
        return -1;
    if (s->path && compare_state(s, whole, e) < 0)
        return -1;
    return load_lines(s, whole, work, e);
}

size_t selection_find(const struct selection *s, struct str id)
{
    const size_t *place = hash_map_find(&s->places, id);

    return place && s->sessions[*place].first != SELECTION_NONE ? *place : SELECTION_NONE;
}

int selection_read_part(const struct selection *s, struct selection_part *part, off_t at, size_t n,
                        struct err *e)
{
    if (scan_again(&s->scan, at, n, &part->text, e) < 0) {
        buf_clear(&part->text);
        return -1;
    }
    part->at = at;
    return 0;
}

int selection_read(const struct selection *s, struct selection_part *part, size_t i,
                   struct str *line, struct err *e)
{
    const struct selection_line *l = &s->lines[i];
    off_t end = l->at + (off_t)l->n, most = s->scan.size - l->at;

    if (l->at < part->at || end > part->at + (off_t)part->text.len) {
        bool near = l->at >= part->at && l->at - part->at < 2 * PART;
        off_t n = PART < most ? PART : most;

        /* The lines of a session are close together as a rule. A writer can have taken back what
         * is after this line. */
        if ((!near || n <= (off_t)l->n ||
             selection_read_part(s, part, l->at, (size_t)n, NULL) < 0) &&
            selection_read_part(s, part, l->at, l->n, e) < 0)
            return -1;
    }
    *line = (struct str){part->text.data + (l->at - part->at), l->n};
    return 0;
}

void selection_release(struct selection *s)
{
    free(s->sessions);
    free(s->lines);
    hash_map_release(&s->places);
    buf_release(&s->saved);
    scan_close(&s->scan);
    if (s->path)
        append_close(&s->file);
}
