#include "hist/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/io.h"
#include "base/json.h"
#include "base/keymap.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "hist/message.h"
#include "hist/scan.h"

/* A suffix that names a session is at least this long. */
#define SUFFIX_MIN 4
/* So many of the sessions that an ambiguous name could mean are shown. */
#define CANDIDATES_SHOWN 3

/* ---- the current session ---- */

static int64_t mtime_us(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * CLOCK_SECOND + st->st_mtim.tv_nsec / 1000;
}

int session_current(const struct history *h, struct buf *id, int64_t *since, struct err *e)
{
    char text[256];
    struct err why = ERR_INIT;
    struct stat st;
    int reason = 0;

    if (!h->trusted)
        return 0;

    int fd = io_open_regular(h->pointer, O_RDONLY, 0, &st, &reason, &why);

    if (fd < 0) {
        int result = reason == ENOENT ? 0 : err_set(e, ERR_FAILURE, "%s", err_text(&why));

        err_release(&why);
        return result;
    }

    ssize_t got = io_read_full(fd, text, sizeof(text));

    if (got < 0)
        err_sys(e, errno, "cannot read '%s'", h->pointer);
    close(fd);
    if (got < 0)
        return -1;

    struct str name = str_trim((struct str){text, (size_t)got});

    if (!id_session_valid(name))
        return 0;
    buf_clear(id);
    buf_add_str(id, name);
    if (since)
        *since = mtime_us(&st);
    return 1;
}

int session_make_current(struct history *h, struct str id, struct err *e)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    int result;

    /* The pointer would not be followed: some other client's idea of an id. */
    if (!id_session_valid(id))
        return err_set(e, ERR_USAGE, "cannot continue session '%.*s': not an id that chat takes",
                       (int)(id.n > 200 ? 200 : id.n), id.p);
    result = history_enter(h, NULL, e);
    if (result == 0) {
        buf_add_str(&line, id);
        buf_add_byte(&line, '\n');
        result = io_replace_file(h->pointer, buf_str(&line), e);
    }
    buf_release(&line);
    return result;
}

/* The newest message, of one session when session_id is not absent. 1, 0, -1. What is wanted of it
 * is copied: its session to *id or its time to *at, where they are not NULL; a time that cannot be
 * read is left alone. */
static int newest(const char *path, struct str session_id, struct buf *id, int64_t *at,
                  struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;

    if (scan_open(&s, path, SCAN_BACKWARD, e) < 0)
        return -1;
    if (session_id.p)
        scan_only(&s, session_id);

    int result = scan_message(&s, &m, NULL, e);

    if (result > 0 && id) {
        buf_clear(id);
        buf_add_str(id, m.session_id);
    }
    if (result > 0 && at)
        clock_parse_iso(m.timestamp, at);
    message_release(&m);
    scan_close(&s);
    return result;
}

int session_expired(const struct history *h, struct str id, int64_t since, int64_t timeout_ms,
                    int64_t now, struct err *e)
{
    int64_t last = since;

    /* A last line could only make it younger, so that it need not be looked for. */
    if ((now - since) / 1000 <= timeout_ms)
        return 0;
    if (h->unreadable)
        return 1;
    if (newest(h->path, id, NULL, &last, e) < 0)
        return -1;
    return (now - last) / 1000 > timeout_ms;
}

int session_last(const struct history *h, struct buf *id, struct err *e)
{
    return newest(h->path, STR_NONE, id, NULL, e);
}

/* ---- all sessions ---- */

/* Replaces an owned text. Most timestamps have one length, and then no memory is asked for. */
static void set_text(char **text, size_t *len, struct str value)
{
    if (*text && *len == value.n) {
        memcpy(*text, value.p, value.n);
        return;
    }
    free(*text);
    *text = mem_copy(value.p, value.n);
    *len = value.n;
}

static void session_init(struct session *s, const struct message *m, struct buf *scratch)
{
    struct str preview = utf8_first(message_content(m, scratch), SESSION_PREVIEW);

    *s = (struct session){
        .id = mem_copy(m->session_id.p, m->session_id.n),
        .id_len = m->session_id.n,
        .preview = mem_copy(preview.p, preview.n),
        .preview_len = preview.n,
        .first_role = mem_copy(m->role_text.p, m->role_text.n),
        .first_role_len = m->role_text.n,
        .created_at = mem_copy(m->timestamp.p, m->timestamp.n),
        .created_at_len = m->timestamp.n,
    };
}

static int by_last_line(const void *a, const void *b)
{
    off_t x = ((const struct session *)a)->last_line;
    off_t y = ((const struct session *)b)->last_line;

    return (x < y) - (x > y);
}

/* The session that a message belongs to, made when it is the first of it. */
static struct session *session_of(struct session_list *l, size_t *cap, struct keymap *places,
                                  const struct message *m, struct buf *scratch)
{
    const size_t *place = keymap_find(places, m->session_id);

    l->at = mem_grow(l->at, cap, l->count + 1, sizeof(*l->at));
    if (place)
        return &l->at[*place];

    struct session *s = &l->at[l->count];

    session_init(s, m, scratch);
    keymap_set(places, (struct str){s->id, s->id_len}, l->count++);
    return s;
}

static bool is_cancelled(const struct session_list *l)
{
    return l->cancel && atomic_load_explicit(l->cancel, memory_order_relaxed);
}

/* Behind the last line that was taken, is there one without a newline at the end of the file? */
static bool ends_torn(const struct scan *s, off_t taken)
{
    struct buf last = BUF_INIT(BUF_SMALL);
    off_t end = scan_offset(s);
    bool torn = end > taken && (scan_again(s, end - 1, 1, &last, NULL) < 0 || *last.data != '\n');

    buf_release(&last);
    return torn;
}

/* Takes in the lines that the scan gives. 0, -1. */
static int take_lines(struct session_list *l, struct scan *s, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct keymap places = {0};
    struct line line;
    size_t cap = l->count;
    uint64_t bad = 0; /* before the last session's line */
    off_t taken = l->end;
    int result;

    for (size_t i = 0; i < l->count; i++)
        keymap_set(&places, (struct str){l->at[i].id, l->at[i].id_len}, i);
    while ((result = scan_message(s, &m, &line, e)) > 0) {
        struct session *session = session_of(l, &cap, &places, &m, &scratch);

        set_text(&session->last_used, &session->last_used_len, m.timestamp);
        if (session->count++ == 0)
            session->first_line = line.at;
        session->last_line = line.at;
        session->bytes += line.text.n + line.terminated;
        session->end = taken = line.at + (off_t)line.text.n + line.terminated;
        bad = s->bad;
        if (is_cancelled(l)) {
            result = err_set(e, ERR_SIGNAL, "interrupted");
            break;
        }
    }
    l->bad_lines += s->bad - l->bad_behind;
    l->bad_behind = 0;
    l->end = scan_offset(s);
    /* A line that is being written is looked at again when it has its newline. */
    if (result == 0 && ends_torn(s, taken)) {
        l->bad_behind = s->bad - bad;
        l->end = taken;
    }
    if (l->count)
        qsort(l->at, l->count, sizeof(*l->at), by_last_line);
    keymap_release(&places);
    message_release(&m);
    buf_release(&scratch);
    return result;
}

int session_list_more(struct session_list *l, const char *history_path, struct err *e)
{
    const atomic_bool *cancel = l->cancel;
    struct scan s;
    int result = scan_open(&s, history_path, SCAN_FORWARD, e);

    if (result == 0) {
        scan_from(&s, l->end);
        result = take_lines(l, &s, e);
        scan_close(&s);
    }
    if (result < 0) {
        session_list_release(l);
        l->cancel = cancel;
    }
    return result;
}

int session_list_load(struct session_list *l, const char *history_path, struct err *e)
{
    *l = (struct session_list){0};
    return session_list_more(l, history_path, e);
}

int session_list_recent(struct session_list *l, const char *history_path, off_t bytes, bool *whole,
                        struct err *e)
{
    struct scan s;
    struct line part;
    int result = 1;

    *l = (struct session_list){0};
    if (scan_open(&s, history_path, SCAN_FORWARD, e) < 0)
        return -1;
    *whole = s.size <= bytes;
    if (!*whole) {
        scan_from(&s, s.size - bytes);
        result = scan_line(&s, &part, e);
    }
    if (result > 0)
        result = take_lines(l, &s, e);
    if (result < 0)
        session_list_release(l);
    scan_close(&s);
    return result;
}

void session_list_release(struct session_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        struct session *s = &l->at[i];

        free(s->id);
        free(s->preview);
        free(s->first_role);
        free(s->created_at);
        free(s->last_used);
    }
    free(l->at);
    *l = (struct session_list){0};
}

void session_add_json(struct buf *out, const struct session *s)
{
    buf_add_byte(out, '{');
    json_add_member(out, "session_id", (struct str){s->id, s->id_len});
    json_add_member(out, "timestamp", (struct str){s->last_used, s->last_used_len});
    json_add_member_int(out, "message_count", (int64_t)s->count);
    json_add_member(out, "preview", (struct str){s->preview, s->preview_len});
    json_add_member(out, "first_role", (struct str){s->first_role, s->first_role_len});
    json_add_member(out, "created_at", (struct str){s->created_at, s->created_at_len});
    json_add_member(out, "last_accessed", (struct str){s->last_used, s->last_used_len});
    buf_add_byte(out, '}');
}

/* ---- names ---- */

static int absent(struct str name, struct err *e)
{
    return err_set(e, ERR_ABSENT, "no session '%.*s'", (int)(name.n > 200 ? 200 : name.n),
                   name.p ? name.p : "");
}

/* Takes the one session that the name begins, or else ends. 0, or -1. */
static int pick(const struct session_list *l, struct str name, bool suffix, struct buf *id,
                struct err *e)
{
    struct buf shown = BUF_INIT(BUF_SMALL);
    size_t found = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct str candidate = {l->at[i].id, l->at[i].id_len};

        if (!(suffix ? str_ends(candidate, name) : str_starts(candidate, name)))
            continue;
        if (found++ == 0) {
            buf_clear(id);
            buf_add_str(id, candidate);
        }
        if (found <= CANDIDATES_SHOWN)
            buf_addf(&shown, "%s%s", found > 1 ? ", " : "", l->at[i].id);
    }

    int result = 0;

    if (found > 1)
        result = err_set(e, ERR_FAILURE, "session '%.*s' is ambiguous: %s%s", (int)name.n, name.p,
                         buf_c(&shown), found > CANDIDATES_SHOWN ? ", …" : "");
    else if (found == 0)
        result = !suffix && name.n >= SUFFIX_MIN ? pick(l, name, true, id, e) : absent(name, e);
    buf_release(&shown);
    return result;
}

/* Is it the id of a session with lines, or of the current one, which may have none yet? 1, 0,
 * -1. */
static int is_id(const struct history *h, struct str name, struct err *e)
{
    struct buf current = BUF_INIT(BUF_SMALL);
    int result = newest(h->path, name, NULL, NULL, e);

    if (result == 0 && session_current(h, &current, NULL, NULL) > 0)
        result = str_eq(buf_str(&current), name);
    buf_release(&current);
    return result;
}

int session_resolve(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    struct session_list l;
    int found;

    if (str_eq_c(name, "current") || str_eq_c(name, "last")) {
        bool current = str_eq_c(name, "current");

        found = current ? session_current(h, id, NULL, e) : session_last(h, id, e);
        if (found == 0)
            err_set(e, ERR_ABSENT, current ? "there is no current session" : "there is no session");
        return found > 0 ? 0 : -1;
    }
    if (name.n == 0)
        return absent(name, e);

    found = is_id(h, name, e);
    if (found < 0)
        return -1;
    if (found > 0) {
        buf_clear(id);
        buf_add_str(id, name);
        return 0;
    }
    if (session_list_load(&l, h->path, e) < 0)
        return -1;
    found = pick(&l, name, false, id, e);
    session_list_release(&l);
    return found;
}
