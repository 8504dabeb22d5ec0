#include "browse/list.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/session_list.h"

/* Maximum length of a snippet in code points. */
#define SNIPPET 160
/* A list with fewer columns shows years with two digits. */
#define NARROW 40
/* The last characters of an id, which distinguish sessions. */
#define ID_END 6
/* The chosen hit is sought among at most this many new ones. */
#define NEWER_MAX ((size_t)10000)

/* ---- sessions ---- */

static struct str keep(char **to, struct str s)
{
    char *at = *to;

    if (s.n > 0)
        memcpy(at, s.p, s.n);
    *to += s.n;
    return (struct str){at, s.n};
}

void browse_sought_set(struct browse_sought *s, size_t history, struct str id)
{
    *s = (struct browse_sought){.history = history, .place = SIZE_MAX};
    buf_init(&s->id, BUF_LINE);
    buf_add_str(&s->id, id);
}

void browse_wish_release(struct browse_wish *w)
{
    buf_release(&w->keep.id);
    buf_release(&w->shown.id);
}

void browse_sessions_add(struct browse_sessions *s, size_t history, const struct session *from)
{
    struct browse_session *to;
    char *own;

    s->at = mem_grow(s->at, &s->cap, s->count + 1, sizeof *s->at);
    to = &s->at[s->count++];
    *to = (struct browse_session){.history = history,
                                  .count = from->count,
                                  .last_line = from->last_line,
                                  .first = from->first_line,
                                  .end = from->end};
    own = to->own = mem_zalloc(from->id_len + from->preview_len + 1);
    to->id = keep(&own, (struct str){from->id, from->id_len});
    to->preview = keep(&own, (struct str){from->preview, from->preview_len});
    (void)time_parse_iso((struct str){from->last_used, from->last_used_len}, &to->used);
}

void browse_sessions_release(struct browse_sessions *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->at[i].own);
    free(s->at);
    buf_release(&s->keep.id);
    buf_release(&s->shown.id);
    *s = (struct browse_sessions){0};
}

const struct browse_session *browse_sessions_at(const struct browse_sessions *s, size_t place)
{
    return place >= s->first && place - s->first < s->count ? &s->at[place - s->first] : NULL;
}

size_t browse_sessions_find(const struct browse_sessions *s, size_t history, struct str id)
{
    for (size_t i = 0; i < s->count; i++)
        if ((history == BROWSE_ANY_HISTORY || s->at[i].history == history) &&
            str_eq(s->at[i].id, id))
            return s->first + i;
    return SIZE_MAX;
}

bool browse_sessions_tell(const struct browse_sessions *s, size_t history, struct str id,
                          size_t *place)
{
    if (s->keep.history == history && str_eq(buf_str(&s->keep.id), id)) {
        *place = s->keep.place;
        return true;
    }
    *place = browse_sessions_find(s, history, id);
    return *place != SIZE_MAX || s->partial || s->count == s->total;
}

/* ---- hits ---- */

void browse_hits_add(struct browse_hits *h, size_t history, const struct hit *hit)
{
    const struct message *m = hit->message;
    struct buf snippet = BUF_INIT(BUF_SMALL);
    struct browse_hit *to;
    char *own;

    h->at = mem_grow(h->at, &h->cap, h->count + 1, sizeof *h->at);
    to = &h->at[h->count++];
    *to = (struct browse_hit){.history = history, .at = hit->at};
    search_snippet(&snippet, hit->content, hit->at, hit->len, SNIPPET, true, &to->mark.at,
                   &to->mark.n);
    own = to->own = mem_zalloc(m->session_id.n + m->id.n + m->role_text.n + snippet.len + 1);
    to->session = keep(&own, m->session_id);
    to->message = keep(&own, m->id);
    to->role = keep(&own, m->role_text);
    to->snippet = keep(&own, buf_str(&snippet));
    buf_release(&snippet);
}

void browse_hits_move(struct browse_hits *to, struct browse_hits *from)
{
    to->at = mem_grow(to->at, &to->cap, to->count + from->count + 1, sizeof *to->at);
    if (from->count > 0)
        memcpy(to->at + to->count, from->at, from->count * sizeof *to->at);
    to->count += from->count;
    free(from->at);
    *from = (struct browse_hits){0};
}

void browse_hits_release(struct browse_hits *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->at[i].own);
    free(h->at);
    *h = (struct browse_hits){0};
}

size_t browse_hits_find(const struct browse_hits *h, size_t history, struct str session,
                        struct str message)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct browse_hit *hit = &h->at[i];

        if ((history == BROWSE_ANY_HISTORY || history == hit->history) &&
            str_eq(hit->message, message) && str_eq(hit->session, session))
            return i;
    }
    return SIZE_MAX;
}

static size_t find_same(const struct browse_hits *h, const struct browse_hit *hit)
{
    return browse_hits_find(h, hit->history, hit->session, hit->message);
}

bool browse_hits_caught_up(const struct browse_hits *again, const struct browse_hits *had,
                           size_t at)
{
    if (again->count < had->count)
        return false;
    return at >= had->count || again->count - had->count >= NEWER_MAX ||
           find_same(again, &had->at[at]) != SIZE_MAX;
}

/* ---- lines ---- */

/* Appends the time, such as `17:00`, if it is today, else the date: `2024-06-27`, or `24-06-27` in 8
 * columns. Blanks before it fill the column. */
static void add_when(struct buf *out, int64_t used, int64_t now, size_t columns)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t day, today;
    size_t from = columns < 10 ? 2 : 0, n = columns;

    if (used != 0)
        time_add_local(&text, used);
    if (time_local_day(used, &day) && time_local_day(now, &today) && day == today) {
        from = 11;
        n = 5;
    }
    if (text.len < from + n)
        buf_addf(out, "%*s", (int)columns, "-");
    else
        buf_addf(out, "%*.*s", (int)columns, (int)n, text.data + from);
    buf_release(&text);
}

void browse_row_session(struct browse_lines *l, const struct browse_session *s, bool partial,
                        size_t columns, int64_t now)
{
    struct browse_layout how = {.width = columns, .styles = BROWSE_DIM};
    struct buf text = BUF_INIT(BUF_SMALL);

    add_when(&text, s->used, now, columns < NARROW ? 8 : 10);
    if (partial)
        buf_add_c(&text, "    \xe2\x80\xa6  ");
    else
        buf_addf(&text, " %4" PRIu64 "  ", s->count);
    browse_lines_add_one(l, STR_NONE, &how);
    /* The text contains only blanks and digits, so bytes are columns. */
    buf_add_str(&l->text, buf_str(&text));
    browse_lines_styled(l, text.len, BROWSE_DIM);
    how.styles = 0;
    browse_lines_append(l, s->preview, &how);
    buf_release(&text);
}

static const char *short_role(struct str role)
{
    switch (role_of(role)) {
    case ROLE_USER:
        return "user";
    case ROLE_ASSISTANT:
        return "asst";
    case ROLE_SYSTEM:
        return "sys ";
    case ROLE_TOOL:
        return "tool";
    default:
        return "?   ";
    }
}

/* Drops the beginning of a snippet if the match would otherwise be cut off. */
static struct str from_mark(const struct browse_hit *h, size_t columns, struct browse_place *mark)
{
    struct str text = h->snippet;
    size_t cut = 0, before = 0;

    *mark = h->mark;
    for (size_t at = 0; at < h->mark.at;) {
        struct str one = utf8_first((struct str){text.p + at, text.n - at}, 1);

        before++;
        at += one.n;
    }
    /* The last column may be needed for the sign that more follows. */
    if (before + utf8_count((struct str){text.p + mark->at, mark->n}) < columns)
        return text;
    for (size_t keep_columns = columns / 3; before > keep_columns; before--)
        cut += utf8_first((struct str){text.p + cut, text.n - cut}, 1).n;
    mark->at -= cut;
    return (struct str){text.p + cut, text.n - cut};
}

void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, size_t columns)
{
    struct browse_layout how = {.width = columns, .styles = BROWSE_DIM};
    size_t id = h->session.n > ID_END ? h->session.n - ID_END : 0;
    struct str end = {h->session.p + id, h->session.n - id};
    struct browse_place mark;
    struct str text;
    size_t used;

    browse_lines_add_one(l, end, &how);
    buf_add_c(&l->text, " ");
    buf_add_c(&l->text, short_role(h->role));
    buf_add_c(&l->text, " ");
    browse_lines_styled(l, 6, BROWSE_HEAD);
    used = browse_line_columns(l, l->count - 1);
    text = from_mark(h, columns > used ? columns - used : 0, &mark);
    if (text.p != h->snippet.p && columns > used) {
        buf_add_c(&l->text, "\xe2\x80\xa6");
        browse_lines_styled(l, 3, BROWSE_DIM);
    }
    how = (struct browse_layout){.width = columns, .hits = &mark, .hit_count = 1};
    browse_lines_append(l, text, &how);
}

void browse_source_init(struct browse_source *s, const struct history *histories, size_t count)
{
    *s = (struct browse_source){.histories = histories, .count = count};
    s->lists = mem_zalloc(count * sizeof *s->lists);
    s->watches = mem_zalloc(count * sizeof *s->watches);
    s->open = mem_zalloc(count * sizeof *s->open);
}

void browse_source_release(struct browse_source *s)
{
    for (size_t i = 0; i < s->count; i++)
        session_list_release(&s->lists[i]);
    free(s->lists);
    free(s->watches);
    free(s->open);
    free(s->merged);
}

/* ---- reading the lists ---- */

/* Reads the list of a history again if the history has changed. Returns 1 if it was read, 0, or
 * -1. */
static int update_list(struct browse_source *s, size_t i, struct err *e)
{
    enum browse_change change = browse_watch_look(&s->watches[i], s->histories[i].path);

    if (s->open[i] && change == BROWSE_SAME)
        return 0;
    session_list_release(&s->lists[i]);
    s->open[i] = session_list_newest(&s->lists[i], &s->histories[i], SIZE_MAX, e) == 0;
    return s->open[i] ? 1 : -1;
}

static int64_t used_at(const struct session *s)
{
    int64_t at = 0;

    (void)time_parse_iso((struct str){s->last_used, s->last_used_len}, &at);
    return at;
}

/* Merges the lists by the times of use. The sessions of one history keep their order. */
static void merge_lists(struct browse_source *s)
{
    size_t *next = mem_zalloc(s->scope * sizeof *next);
    int64_t *used = mem_zalloc(s->scope * sizeof *used);

    s->merged = mem_resize(s->merged, s->total, sizeof *s->merged);
    for (size_t i = 0; i < s->scope; i++)
        used[i] = s->lists[i].count ? used_at(&s->lists[i].at[0]) : 0;
    for (size_t place = 0; place < s->total; place++) {
        size_t newest = SIZE_MAX;

        for (size_t i = 0; i < s->scope; i++)
            if (next[i] < s->lists[i].count && (newest == SIZE_MAX || used[i] > used[newest]))
                newest = i;
        s->merged[place] = (struct browse_entry){newest, &s->lists[newest].at[next[newest]]};
        if (++next[newest] < s->lists[newest].count)
            used[newest] = used_at(&s->lists[newest].at[next[newest]]);
    }
    free(next);
    free(used);
}

static int update_lists(struct browse_source *s, size_t scope, struct err *e)
{
    bool changed = scope != s->scope || s->number == 0;

    for (size_t i = 0; i < scope; i++) {
        int result = update_list(s, i, e);

        if (result < 0) {
            s->scope = 0;
            return -1;
        }
        changed = changed || result > 0;
    }
    if (!changed)
        return 0;
    s->scope = scope;
    s->number++;
    s->total = 0;
    for (size_t i = 0; i < scope; i++)
        s->total += s->lists[i].count;
    merge_lists(s);
    return 0;
}

/* ---- reading a part ---- */

static void seek(const struct browse_source *s, const struct browse_sought *wish,
                 struct browse_sought *sought)
{
    if (wish->id.len == 0)
        return;
    browse_sought_set(sought, wish->history, buf_str(&wish->id));
    for (size_t i = 0; i < s->total; i++) {
        const struct browse_entry *entry = &s->merged[i];
        const struct session *session = entry->session;

        /* If several histories have the session, the first one is used. */
        if ((wish->history != entry->history && wish->history != BROWSE_ANY_HISTORY) ||
            (sought->place != SIZE_MAX && s->merged[sought->place].history <= entry->history) ||
            !str_eq((struct str){session->id, session->id_len}, buf_str(&wish->id)))
            continue;
        sought->place = i;
        sought->count = session->count;
        sought->last_line = session->last_line;
    }
}

/* Returns the first place to read. The chosen session may have moved, and with it the places around
 * it. */
static size_t first_place(const struct browse_source *s, const struct browse_wish *wish,
                          const struct browse_sessions *out)
{
    size_t first = wish->first, place = out->keep.place;

    if (wish->number != s->number && out->keep.id.len > 0 && place != SIZE_MAX)
        first = place > wish->count / 2 ? place - wish->count / 2 : 0;
    if (first + wish->count > s->total)
        first = s->total > wish->count ? s->total - wish->count : 0;
    return first;
}

int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e)
{
    if (update_lists(s, wish->all ? s->count : 1, e) < 0)
        return -1;
    out->total = s->total;
    out->number = s->number;
    out->bad_lines = s->lists[0].bad_lines;
    seek(s, &wish->keep, &out->keep);
    seek(s, &wish->shown, &out->shown);
    out->first = first_place(s, wish, out);
    for (size_t i = out->first; i < s->total && i - out->first < wish->count; i++)
        browse_sessions_add(out, s->merged[i].history, s->merged[i].session);
    return 0;
}

/* The sample covers this much of the beginning and of the end of a history. */
#define HEAD ((off_t)4 << 10)
#define TAIL SESSION_INDEX_LEAST

static uint64_t sum_of(int fd, off_t from, off_t to, uint64_t before)
{
    struct buf bytes = BUF_INIT(SIZE_MAX);
    size_t n = (size_t)(to - from);
    char *room = buf_room(&bytes, n);
    ssize_t got = file_pread_full(fd, room, n, from);
    uint64_t sum = checksum((struct str){room, got < 0 ? 0 : (size_t)got}, before);

    buf_release(&bytes);
    return sum;
}

/* Returns a checksum of samples of the first `size` bytes, or 0 if they cannot be read. */
static uint64_t sample_of(const char *path, off_t size)
{
    struct stat st;
    int reason, fd = file_open_regular(path, O_RDONLY, 0, &st, &reason, NULL);
    off_t tail = size < TAIL ? 0 : size - TAIL;
    uint64_t sum;

    if (fd < 0)
        return 0;
    sum = sum_of(fd, 0, tail < HEAD ? tail : HEAD, (uint64_t)size);
    sum = sum_of(fd, tail, size, sum) | 1;
    close(fd);
    return sum;
}

static struct browse_watch stamp_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct browse_watch){.exists = false};
    return (struct browse_watch){.exists = true,
                                 .dev = st.st_dev,
                                 .ino = st.st_ino,
                                 .size = st.st_size,
                                 .changed = st.st_ctim};
}

static bool is_same_file(const struct browse_watch *a, const struct browse_watch *b)
{
    return a->exists && b->exists && a->dev == b->dev && a->ino == b->ino;
}

static bool is_same(const struct browse_watch *a, const struct browse_watch *b)
{
    if (!a->exists && !b->exists)
        return true;
    return is_same_file(a, b) && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

enum browse_change browse_watch_look(struct browse_watch *w, const char *path)
{
    struct browse_watch before = *w, now = stamp_of(path);

    if (is_same(&before, &now))
        return BROWSE_SAME;
    *w = now;
    if (!now.exists)
        return BROWSE_OTHER;
    w->sample = sample_of(path, now.size);
    if (is_same_file(&before, &now) && now.size > before.size && before.sample != 0 &&
        before.sample == sample_of(path, before.size))
        return BROWSE_GROWN;
    return BROWSE_OTHER;
}
