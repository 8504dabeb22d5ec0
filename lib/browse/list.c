#include "browse/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/buf.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* Maximum length of a snippet in code points. */
#define SNIPPET 160
/* A list with fewer columns shows years with two digits. */
#define NARROW 40
/* The last characters of an id, which distinguish sessions. */
#define ID_END 6

/* ---- sessions ---- */

static struct str keep(char **to, struct str s)
{
    char *at = *to;

    if (s.n > 0)
        memcpy(at, s.p, s.n);
    *to += s.n;
    return (struct str){at, s.n};
}

static struct str id_of(const struct session *s)
{
    return (struct str){s->id, s->id_len};
}

/* Returns the time of the last use in microseconds since 1970; 0 if it is unreadable. */
static int64_t used_at(const struct session *s)
{
    int64_t at = 0;

    (void)time_parse_iso((struct str){s->last_used, s->last_used_len}, &at);
    return at;
}

/* Merges the lists by the times of use. The sessions of one history keep their order. */
static void merge(struct browse_sessions *s, size_t scope)
{
    size_t *next = mem_zalloc(scope * sizeof *next);
    int64_t *used = mem_zalloc(scope * sizeof *used);

    for (size_t i = 0; i < scope; i++)
        used[i] = s->lists[i].count > 0 ? used_at(&s->lists[i].at[0]) : 0;
    for (size_t place = 0; place < s->count; place++) {
        size_t newest = SIZE_MAX;

        for (size_t i = 0; i < scope; i++)
            if (next[i] < s->lists[i].count && (newest == SIZE_MAX || used[i] > used[newest]))
                newest = i;
        s->at[place] = (struct browse_session){newest, &s->lists[newest].at[next[newest]]};
        if (++next[newest] < s->lists[newest].count && scope > 1)
            used[newest] = used_at(&s->lists[newest].at[next[newest]]);
    }
    free(next);
    free(used);
}

void browse_sessions_put(struct browse_sessions *s, size_t history, struct session_list *list,
                         size_t scope)
{
    while (s->histories <= history || s->histories < scope) {
        s->lists = mem_resize(s->lists, s->histories + 1, sizeof *s->lists);
        s->lists[s->histories++] = (struct session_list){0};
    }
    if (list) {
        session_list_release(&s->lists[history]);
        s->lists[history] = *list;
        *list = (struct session_list){0};
    }
    s->count = 0;
    for (size_t i = 0; i < scope; i++)
        s->count += s->lists[i].count;
    s->at = mem_resize(s->at, s->count, sizeof *s->at);
    merge(s, scope);
}

void browse_sessions_release(struct browse_sessions *s)
{
    for (size_t i = 0; i < s->histories; i++)
        session_list_release(&s->lists[i]);
    free(s->lists);
    free(s->at);
    *s = (struct browse_sessions){0};
}

size_t browse_sessions_find(const struct browse_sessions *s, size_t history, struct str id)
{
    for (size_t i = 0; i < s->count; i++)
        if ((history == BROWSE_ANY_HISTORY || s->at[i].history == history) &&
            str_eq(id_of(s->at[i].of), id))
            return i;
    return SIZE_MAX;
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
    *to = (struct browse_hit){.history = history, .at = hit->in_content ? hit->at : 0};
    search_snippet(&snippet, hit->text, hit->at, hit->len, SNIPPET, true, &to->mark.at,
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

/* ---- lines ---- */

/* Appends the time, such as `17:00`, if it is today, else the date: `2024-06-27`, or `24-06-27` in
 * 8 columns. Blanks before it fill the column. */
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

void browse_row_session(struct browse_lines *l, const struct session *s, bool whole, size_t columns,
                        int64_t now)
{
    struct browse_layout how = {.width = columns, .styles = BROWSE_DIM};
    struct buf text = BUF_INIT(BUF_SMALL);

    add_when(&text, used_at(s), now, columns < NARROW ? 8 : 10);
    if (whole)
        buf_addf(&text, " %4" PRIu64 "  ", s->count);
    else
        buf_add_c(&text, "    \xe2\x80\xa6  ");
    browse_lines_add_one(l, STR_NONE, &how);
    /* The text contains only blanks and digits, so bytes are columns. */
    buf_add_str(&l->text, buf_str(&text));
    browse_lines_styled(l, text.len, BROWSE_DIM);
    how.styles = 0;
    browse_lines_append(l, (struct str){s->preview, s->preview_len}, &how);
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

bool browse_stamp_renew(struct browse_stamp *s, const char *path)
{
    struct browse_stamp now = {0}, before = *s;
    struct stat st;

    if (stat(path, &st) == 0)
        now = (struct browse_stamp){st.st_dev, st.st_ino, st.st_size, st.st_ctim};
    *s = now;
    return now.dev != before.dev || now.ino != before.ino || now.size != before.size ||
           now.changed.tv_sec != before.changed.tv_sec ||
           now.changed.tv_nsec != before.changed.tv_nsec;
}
