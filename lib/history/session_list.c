#include "chathist/history/session_list.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/crew.h"
#include "chathist/base/json.h"
#include "chathist/base/keymap.h"
#include "chathist/base/mem.h"
#include "chathist/history/index.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "history/session_gather.h"
#include "history/session_name.h"

/* ---- by reading all lines ---- */

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
    struct str preview = message_preview(m, scratch);

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
        if (crew_cancelled(l->cancel)) {
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

int session_list_more(struct session_list *l, int dir, const char *history_path, struct err *e)
{
    const atomic_bool *cancel = l->cancel;
    struct scan s;
    int result = scan_open(&s, dir, history_path, SCAN_FORWARD, e);

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

int session_list_load(struct session_list *l, int dir, const char *history_path, struct err *e)
{
    *l = (struct session_list){0};
    return session_list_more(l, dir, history_path, e);
}

int session_list_recent(struct session_list *l, int dir, const char *history_path, off_t bytes,
                        bool *whole, struct err *e)
{
    struct scan s;
    struct line part;
    int result = 1;

    *l = (struct session_list){0};
    if (scan_open(&s, dir, history_path, SCAN_FORWARD, e) < 0)
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

static void session_release(struct session *s)
{
    if (s->borrowed)
        return;
    free(s->id);
    free(s->preview);
    free(s->first_role);
    free(s->created_at);
    free(s->last_used);
}

void session_list_release(struct session_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        session_release(&l->at[i]);
    while (l->texts_count > 0)
        free(l->texts[--l->texts_count]);
    free(l->texts);
    free(l->at);
    memset(l, 0, sizeof(*l));
}

/* ---- by the index ---- */

/* Is the list made? One of an index that turned out not to be true is none. */
static bool finish(struct index *x, struct session_list *l, int result)
{
    if (result == 0) {
        index_close(x);
        return true;
    }
    index_discard(x);
    session_list_release(l);
    return false;
}

/* Where all is known of a session, in one segment, nothing is looked up and nothing sorted:
 * segments have them in the order of their last lines. */
static bool list_by_index(struct session_list *l, const struct history *h, size_t limit)
{
    struct session_gather g = {.list = l, .limit = limit};
    struct index x;
    int result = 0;

    if (!index_open(&x, h))
        return false;
    for (size_t i = x.count; i-- > 0 && result == 0;) {
        result = session_gather_segment(&g, &x.segments[i], i == 0);
        l->bad_lines += x.segments[i].bad;
    }
    session_gather_release(&g);
    return finish(&x, l, result);
}

int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e)
{
    *l = (struct session_list){0};
    if (list_by_index(l, h, limit))
        return 0;
    if (session_list_load(l, h->dir_fd, h->path, e) < 0)
        return -1;
    while (l->count > limit)
        session_release(&l->at[--l->count]);
    return 0;
}

/* ---- some by a part of their ids ---- */

/* More than that are found as fast among all. */
#define NAMED_MOST ((size_t)256)

/* Those of each segment, the newest first; of some it has no more than `limit`. */
static int gather_named(struct session_gather *g, const struct index *x, enum segment_side side,
                        struct str text)
{
    int result = 0;

    for (size_t i = x->count; i-- > 0 && result == 0;)
        result = session_gather_named(g, &x->segments[i], side, text);
    return result;
}

static bool named_by_index(struct session_list *l, const struct history *h, struct str text,
                           size_t limit)
{
    struct session_gather g = {.list = l, .limit = limit};
    struct index x;
    int result;

    if (!index_open(&x, h))
        return false;
    for (size_t i = 0; i < x.count; i++)
        l->bad_lines += x.segments[i].bad;
    result = gather_named(&g, &x, SEGMENT_BEGINNING, text);
    if (result == 0 && l->count == 0 && text.n >= SESSION_SUFFIX_MIN)
        result = gather_named(&g, &x, SEGMENT_END, text);
    session_gather_release(&g);
    return finish(&x, l, result);
}

/* Leaves those that the text begins, or else ends. */
static void keep_named(struct session_list *l, struct str text, size_t limit)
{
    bool begun = false;
    size_t kept = 0;

    for (size_t i = 0; i < l->count; i++)
        begun = begun || str_starts((struct str){l->at[i].id, l->at[i].id_len}, text);
    for (size_t i = 0; i < l->count; i++) {
        struct str id = {l->at[i].id, l->at[i].id_len};

        if (kept < limit &&
            (begun ? str_starts(id, text) : text.n >= SESSION_SUFFIX_MIN && str_ends(id, text)))
            l->at[kept++] = l->at[i];
        else
            session_release(&l->at[i]);
    }
    l->count = kept;
}

int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e)
{
    size_t most = limit < NAMED_MOST ? limit : NAMED_MOST;

    if (text.n == 0)
        return session_list_newest(l, h, limit, e);
    *l = (struct session_list){0};
    if (named_by_index(l, h, text, most)) {
        if (l->count < most || most == limit)
            return 0;
        session_list_release(l);
    }
    if (session_list_newest(l, h, SIZE_MAX, e) < 0)
        return -1;
    keep_named(l, text, limit);
    return 0;
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
