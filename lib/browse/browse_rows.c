#include "browse/browse_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/clock.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"

/* Code points of a snippet. */
#define SNIPPET 160
/* A list of fewer columns shows years in two digits. */
#define NARROW 40
/* So much of the end of an id tells sessions apart. */
#define ID_END 6
/* So many hits that came at once are read for the one that was chosen. */
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
    (void)clock_parse_iso((struct str){from->last_used, from->last_used_len}, &to->used);
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

/* `17:00` of today, else `2024-06-27`, or `24-06-27` in 8 columns; with blanks before it. */
static void add_when(struct buf *out, int64_t used, int64_t now, size_t columns)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t day, today;
    size_t from = columns < 10 ? 2 : 0, n = columns;

    if (used != 0)
        clock_add_local(&text, used);
    if (clock_local_day(used, &day) && clock_local_day(now, &today) && day == today) {
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
    /* Its blanks are the columns. */
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

/* Leaves out the beginning of a snippet whose match would not be seen. */
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
    /* The last column may have to tell that more follows. */
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
