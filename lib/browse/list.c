#include "browse/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/buf.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/wide.h"

/* Maximum length of a snippet in code points. */
#define SNIPPET 160
/* A list with fewer columns shows years with two digits. */
#define NARROW 40
/* The name of a history takes this part of a row. */
#define PLACE_PART 4

/* ---- sessions ---- */

static struct str replace_copy(char **to, struct str s)
{
    char *at = *to;

    if (s.n > 0)
        memcpy(at, s.p, s.n);
    *to += s.n;
    return (struct str){at, s.n};
}

static const struct order {
    const char *name;
    enum rows_by by;
    bool reverse;
} orders[] = {
    [BROWSE_NEWEST] = {"newest first", ROWS_LAST, false},
    [BROWSE_OLDEST] = {"oldest first", ROWS_LAST, true},
    [BROWSE_LONGEST] = {"longest first", ROWS_COUNT, false},
    [BROWSE_BY_TITLE] = {"by title", ROWS_TITLE, false},
};

const char *browse_order_name(enum browse_order order)
{
    return orders[order].name;
}

void browse_sessions_put(struct session_rows *r, size_t history, struct session_list *list,
                         size_t scope, enum browse_order order)
{
    if (list) {
        session_list_release(&r->lists[history]);
        r->lists[history] = *list;
        *list = (struct session_list){0};
    }
    r->count = 0;
    r->limit = SIZE_MAX;
    r->by = orders[order].by;
    r->reverse = orders[order].reverse;
    for (size_t i = 0; i < scope; i++)
        session_rows_add(r, i);
    session_rows_sort(r);
}

size_t browse_sessions_find(const struct session_rows *r, size_t history, struct str id)
{
    for (size_t i = 0; i < r->count; i++)
        if ((history == BROWSE_ANY_HISTORY || r->at[i].history == history) &&
            str_eq(r->at[i].session->id, id))
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
    (void)time_parse_iso(m->timestamp, &to->time);
    search_snippet(&snippet, hit->text, hit->at, hit->len, SNIPPET, true, &to->mark.at,
                   &to->mark.n);
    own = to->own = mem_zalloc(m->session_id.n + m->id.n + m->role_text.n + snippet.len + 1);
    to->session = replace_copy(&own, m->session_id);
    to->message = replace_copy(&own, m->id);
    to->role = replace_copy(&own, m->role_text);
    to->snippet = replace_copy(&own, buf_str(&snippet));
    buf_release(&snippet);
}

/* A session, and the number of its hits. */
struct place {
    size_t group, count;
};

static int most_first(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

/* Appends the name of the session of a hit among those of all histories. */
static struct str hit_session_key(struct buf *key, const struct browse_hit *hit)
{
    buf_clear(key);
    buf_addf(key, "%zu ", hit->history);
    buf_add_str(key, hit->session);
    return buf_str(key);
}

static bool is_result(const struct browse_hit *hit)
{
    return role_of(hit->role) == ROLE_TOOL;
}

/* Returns whether the hit is a result of a tool that is not the first hit of its session. */
static bool can_fold(const struct browse_hits *h, size_t i)
{
    return i > 0 && h->at[i - 1].group == h->at[i].group && is_result(&h->at[i]);
}

/* Returns whether a session is one of those in h->turned: a number is not 0. */
static bool is_turned(const struct browse_hits *h, struct str key)
{
    const size_t *turned = h->turned.count > 0 ? hash_map_find(&h->turned, key) : NULL;

    return turned && *turned != 0;
}

/* Makes the rows. Two results or more are folded if there are other hits, too. */
static void make_rows(struct browse_hits *h)
{
    struct buf key = BUF_INIT(BUF_LINE);
    bool others = false;

    for (size_t i = 0; i < h->count && !others; i++)
        others = !is_result(&h->at[i]);
    h->rows = mem_grow(h->rows, &h->row_cap, h->count + 1, sizeof *h->rows);
    h->row_count = 0;
    for (size_t i = 0, n; i < h->count; i += n) {
        bool folds = false;

        for (n = 0; i + n < h->count && h->at[i + n].group == h->at[i].group && can_fold(h, i + n);)
            n++;
        if (others && n > 1)
            folds = is_turned(h, hit_session_key(&key, &h->at[i])) == h->unfolded;
        if (!folds)
            n = 1;
        h->rows[h->row_count++] = (struct browse_hit_row){i, folds ? n : 0};
    }
    buf_release(&key);
}

void browse_hits_sort(struct browse_hits *h, bool most)
{
    size_t groups = h->groups.count, sum = 0;
    struct place *places = mem_zalloc((groups + 1) * sizeof *places);
    /* Where the next hit of a group is to stand, and its next result of a tool. */
    size_t *next = mem_zalloc((groups + 1) * sizeof *next);
    size_t *result = mem_zalloc((groups + 1) * sizeof *result);
    struct browse_hit *sorted = mem_zalloc(h->cap * sizeof *sorted);

    for (size_t i = 0; i < groups; i++)
        places[i].group = i;
    for (size_t i = 0; i < h->count; i++) {
        size_t group = h->at[i].group;

        result[group] += places[group].count == 0 || !is_result(&h->at[i]);
        places[group].count++;
    }
    if (most)
        qsort(places, groups, sizeof *places, most_first);
    for (size_t i = 0; i < groups; i++) {
        size_t group = places[i].group;

        next[group] = sum;
        result[group] += sum;
        sum += places[i].count;
        places[i].count = 0;
    }
    for (size_t i = 0; i < groups; i++)
        places[i].group = i;
    for (size_t i = 0; i < h->count; i++) {
        size_t group = h->at[i].group;
        bool first = places[group].count++ == 0;

        sorted[!first && is_result(&h->at[i]) ? result[group]++ : next[group]++] = h->at[i];
    }
    free(places);
    free(next);
    free(result);
    free(h->at);
    h->at = sorted;
    make_rows(h);
}

void browse_hits_move(struct browse_hits *to, struct browse_hits *from, bool most)
{
    struct buf key = BUF_INIT(BUF_LINE);

    to->at = mem_grow(to->at, &to->cap, to->count + from->count + 1, sizeof *to->at);
    for (size_t i = 0; i < from->count; i++) {
        struct browse_hit *hit = &to->at[to->count++];
        struct str text;

        *hit = from->at[i];
        text = hit_session_key(&key, hit);
        hit->group = hash_map_number(&to->groups, &text);
    }
    buf_release(&key);
    free(from->at);
    hash_map_release(&from->groups);
    *from = (struct browse_hits){0};
    browse_hits_sort(to, most);
}

bool browse_hits_folds(const struct browse_hits *h, size_t row)
{
    return row < h->row_count && can_fold(h, h->rows[row].hit);
}

static size_t row_of_hit(const struct browse_hits *h, size_t hit)
{
    size_t row = 0;

    while (row + 1 < h->row_count && h->rows[row + 1].hit <= hit)
        row++;
    return row;
}

size_t browse_hits_fold(struct browse_hits *h, size_t row, bool all)
{
    struct buf key = BUF_INIT(BUF_LINE);
    size_t hit = h->rows[row].hit;

    if (all) {
        hash_map_release(&h->turned);
        h->turned = (struct hash_map){0};
        h->unfolded = h->rows[row].folded > 0;
    } else {
        bool turned = is_turned(h, hit_session_key(&key, &h->at[hit]));

        (void)hash_map_add(&h->turned, buf_str(&key));
        *hash_map_find(&h->turned, buf_str(&key)) = !turned;
    }
    make_rows(h);
    buf_release(&key);
    return row_of_hit(h, hit);
}

struct browse_hits browse_hits_restart(struct browse_hits *h)
{
    struct browse_hits before = *h;

    *h = (struct browse_hits){.turned = before.turned, .unfolded = before.unfolded};
    before.turned = (struct hash_map){0};
    return before;
}

void browse_hits_release(struct browse_hits *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->at[i].own);
    free(h->at);
    free(h->rows);
    hash_map_release(&h->groups);
    hash_map_release(&h->turned);
    *h = (struct browse_hits){0};
}

size_t browse_hits_find(const struct browse_hits *h, size_t history, struct str session,
                        struct str message)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct browse_hit *hit = &h->at[i];

        if ((history == BROWSE_ANY_HISTORY || history == hit->history) &&
            str_eq(hit->message, message) && str_eq(hit->session, session))
            return row_of_hit(h, i);
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

/* Adds the sign of a session that is marked or to be deleted, or a blank; nothing if no session
 * is. */
static void add_sign(struct browse_lines *l, size_t history, struct str id,
                     const struct browse_rows *how)
{
    const struct browse_mark *mark = browse_marks_find(how->marks, history, id);
    bool deleted = mark && mark->deletion > 0, marked = mark && mark->marked;

    if (how->marks && how->marks->marked + how->marks->deleted > 0)
        browse_lines_put(l, deleted ? STR("D ") : marked ? STR("* ") : STR("  "), BROWSE_BOLD);
}

/* Begins a row with the sign of its session and the time. */
static void begin_list_row(struct browse_lines *l, int64_t time, size_t history, struct str id,
                           const struct browse_rows *how)
{
    struct browse_layout plain = {.width = how->columns};
    struct buf text = BUF_INIT(BUF_SMALL);

    browse_lines_add_one(l, STR_NONE, &plain);
    add_sign(l, history, id, how);
    add_when(&text, time, how->now, how->columns < NARROW ? 8 : 10);
    browse_lines_put(l, buf_str(&text), BROWSE_DIM);
    buf_release(&text);
}

/* Adds the name of the history if the rows have it, or as many of the last parts of the path as
 * fit, but those that no other history has, of which the beginning is shown. */
static void add_history(struct browse_lines *l, size_t history, const struct browse_rows *how)
{
    struct buf name = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE), end = BUF_INIT(BUF_LINE);
    size_t columns = how->columns / PLACE_PART, least;
    struct str rest;

    if (!how->places)
        return;
    history_name_add_end(&name, how->places, how->places_count, history);
    vis_add_line(&text, buf_str(&name), true);
    least = text.len;
    buf_clear(&name);
    buf_clear(&text);
    history_name_add(&name, &how->places[history]);
    vis_add_line(&text, buf_str(&name), true);
    rest = buf_str(&text);
    while (wide_columns(rest) > columns && rest.n > least)
        (void)str_cut(&rest, '/');
    buf_clear(&name);
    if (wide_columns(rest) > columns && memchr(rest.p, '/', rest.n)) {
        wide_add_fitted(&name, rest, columns);
        rest = buf_str(&name);
    }
    wide_add_end(&end, rest, columns);
    buf_add_byte(&end, ' ');
    browse_lines_put(l, buf_str(&end), BROWSE_TOOL);
    buf_release(&name);
    buf_release(&text);
    buf_release(&end);
}

void browse_row_session(struct browse_lines *l, const struct row *r, const struct browse_rows *how)
{
    const struct browse_mark *mark = browse_marks_find(how->marks, r->history, r->session->id);
    struct browse_layout plain = {.width = how->columns,
                                  .styles = mark && mark->deletion > 0 ? BROWSE_DIM : 0};
    struct buf count = BUF_INIT(BUF_SMALL);
    int64_t used = 0;

    buf_addf(&count, " %4" PRIu64 "  ", r->session->count);
    (void)time_parse_iso(r->session->last_used, &used);
    begin_list_row(l, used, r->history, r->session->id, how);
    browse_lines_put(l, buf_str(&count), BROWSE_DIM);
    add_history(l, r->history, how);
    if (r->session->came)
        browse_lines_put(l, STR("(came with the repository) "), BROWSE_TOOL);
    browse_lines_append(l, session_label(r->session), &plain);
    buf_release(&count);
}

static const char *const short_roles[] = {[ROLE_USER] = "user ",
                                          [ROLE_ASSISTANT] = "asst ",
                                          [ROLE_SYSTEM] = "sys  ",
                                          [ROLE_TOOL] = "tool ",
                                          [ROLE_OTHER] = "?    "};

/* Drops the beginning of a snippet if the match would otherwise be cut off. */
static struct str from_mark(const struct browse_hit *h, size_t columns, struct browse_place *mark)
{
    struct str text = h->snippet;
    size_t cut = 0, before = 0;

    *mark = h->mark;
    for (size_t at = 0; at < h->mark.at;) {
        struct str one = utf8_first(str_skip(text, at), 1);

        before++;
        at += one.n;
    }
    /* The last column may be needed for the sign that more follows. */
    if (before + utf8_count((struct str){text.p + mark->at, mark->n}) < columns)
        return text;
    for (size_t keep_columns = columns / 3; before > keep_columns; before--)
        cut += utf8_first(str_skip(text, cut), 1).n;
    mark->at -= cut;
    return str_skip(text, cut);
}

/* Begins a row of the session of the row above. */
static void begin_following_row(struct browse_lines *l, const struct browse_hit *h,
                                const struct browse_rows *how)
{
    struct browse_layout plain = {.width = how->columns};

    browse_lines_add_one(l, STR_NONE, &plain);
    add_sign(l, h->history, h->session, how);
    browse_lines_put(l, how->columns < NARROW ? STR("       ") : STR("         "), BROWSE_DIM);
    browse_lines_put(l, STR("\xe2\x94\x94 "), BROWSE_DIM);
}

void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, bool follows,
                    const struct browse_rows *how)
{
    struct browse_layout marked = {.width = how->columns, .hit_count = 1};
    enum role role = role_of(h->role);
    struct browse_place mark;
    struct str text;
    size_t used;

    if (follows) {
        begin_following_row(l, h, how);
    } else {
        begin_list_row(l, h->time, h->history, h->session, how);
        browse_lines_put(l, STR(" "), BROWSE_DIM);
    }
    browse_lines_put(l, str_of(short_roles[role]), browse_role_styles(role));
    if (!follows)
        add_history(l, h->history, how);
    used = browse_line_columns(l, l->count - 1);
    text = from_mark(h, how->columns > used ? how->columns - used : 0, &mark);
    if (text.p != h->snippet.p && how->columns > used)
        browse_lines_put(l, STR("\xe2\x80\xa6"), BROWSE_DIM);
    marked.hits = &mark;
    browse_lines_append(l, text, &marked);
}

void browse_row_folded(struct browse_lines *l, const struct browse_hit *first, size_t count,
                       const struct browse_rows *how)
{
    struct browse_layout plain = {.width = how->columns, .styles = BROWSE_DIM};
    struct buf text = BUF_INIT(BUF_SMALL);

    begin_following_row(l, first, how);
    buf_addf(&text, "+%zu in results of tools", count);
    browse_lines_append(l, buf_str(&text), &plain);
    buf_release(&text);
}
