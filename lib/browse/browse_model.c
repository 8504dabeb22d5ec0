#include "browse/browse_model.h"

#include <string.h>

/* So many lines of the list are read before and behind those that are seen. */
#define AROUND(rows) ((rows)*4 + 64)
/* Keys ahead of a list of hits that grows follow it so far: End must not read them all. */
#define FOLLOW_MAX ((size_t)1000)

/* ---- the screen ---- */

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* Side by side from so many columns on. */
#define BESIDE 80
#define LIST_MIN 32
#define LIST_MAX 64

struct browse_areas browse_areas(const struct browse *b)
{
    size_t rows = b->rows, columns = b->columns, body = less(rows, 3), wide = columns * 2 / 5;
    struct browse_areas a = {.stacked = columns < BESIDE,
                             .box = {0, 0, 1, columns},
                             .foot = {less(rows, 1), 0, 1, columns}};

    if (a.stacked) {
        size_t above = body / 3 > 2 ? body / 3 : body > 4 ? 2 : 1;

        a.list = (struct browse_rect){2, 0, above < body ? above : body, columns};
        a.rule = 2 + a.list.rows;
        a.text = (struct browse_rect){a.rule + 1, 0, less(body, a.list.rows + 1), columns};
    } else {
        wide = wide < LIST_MIN ? LIST_MIN : wide > LIST_MAX ? LIST_MAX : wide;
        a.list = (struct browse_rect){2, 0, body, wide};
        a.rule = wide;
        a.text = (struct browse_rect){2, wide + 2, body, columns - wide - 2};
    }
    return a;
}

/* ---- a session to be read ---- */

void browse_target_init(struct browse_target *t)
{
    *t = (struct browse_target){0};
    buf_init(&t->id, BUF_LINE);
    buf_init(&t->hit, BUF_LINE);
}

void browse_target_release(struct browse_target *t)
{
    buf_release(&t->id);
    buf_release(&t->hit);
}

bool browse_target_is(const struct browse_target *t, size_t history, struct str id)
{
    return t->history == history && str_eq(buf_str(&t->id), id);
}

/* Where a session is, as far as the list tells. The id is left out, and nothing is to be
 * released. */
static struct browse_target target_known(const struct browse_sessions *sessions, size_t history,
                                         struct str id)
{
    struct browse_target t = {.history = history, .end = -1, .last_line = -1};
    const struct browse_sought *sought = &sessions->shown;
    const struct browse_session *s =
        browse_sessions_at(sessions, browse_sessions_find(sessions, history, id));

    if (s && sessions->partial) {
        t.first = s->first;
        t.end = s->end;
    }
    if (s) {
        t.last_line = s->last_line;
        t.count = s->count;
    } else if (sought->place != SIZE_MAX && sought->history == history &&
               str_eq(buf_str(&sought->id), id)) {
        t.last_line = sought->last_line;
        t.count = sought->count;
    }
    return t;
}

/* Have lines come to the session, or gone, since its messages were read? `lines` is how many were
 * read, NULL if none were. */
static bool target_changed(const struct browse_target *t, const struct browse_target *now,
                           const uint64_t *lines)
{
    if (now->last_line < 0)
        return false;
    if (t->last_line < 0)
        return lines && *lines != now->count;
    return t->last_line != now->last_line || t->count != now->count || t->end != now->end;
}

/* ---- keys typed ahead ---- */

bool browse_ahead_any(const struct browse_ahead *a)
{
    return a->last || a->lines != 0;
}

void browse_ahead_move(struct browse_ahead *a, long lines, bool first)
{
    a->lines += lines;
    if ((a->last && a->lines > 0) || (!a->last && first && a->lines < 0))
        a->lines = 0;
}

/* Which line of a list of `count` is to be chosen, seen from line `at`. A move beyond a list that
 * is not `whole` yet is kept for the lines to come. */
static size_t ahead_place(struct browse_ahead *a, size_t at, size_t count, bool whole)
{
    size_t end = count > 0 ? count - 1 : 0, from = a->last || at > end ? end : at;
    size_t far = (size_t)(a->lines < 0 ? -a->lines : a->lines), rest = 0;

    if (a->lines < 0) {
        from = from > far ? from - far : 0;
    } else {
        rest = far > end - from ? far - (end - from) : 0;
        from += far - rest;
    }
    if (whole)
        *a = (struct browse_ahead){0};
    else if (!a->last)
        a->lines = (long)rest;
    return from;
}

/* ---- beginning and end ---- */

void browse_init(struct browse *b, size_t histories)
{
    *b = (struct browse){.histories = histories, .rows = 24, .columns = 80};
    browse_edit_init(&b->query);
    browse_edit_init(&b->name);
    browse_pane_init(&b->pane);
    buf_init(&b->status, BUF_SMALL);
    buf_init(&b->searched, BUF_SMALL);
    browse_target_init(&b->shown);
    browse_target_init(&b->target);
    browse_target_init(&b->subject);
    buf_init(&b->back.session, BUF_LINE);
    buf_init(&b->back.message, BUF_LINE);
    buf_init(&b->back.top, BUF_LINE);
    buf_init(&b->back.at, BUF_LINE);
    b->wants.sessions = true;
}

void browse_release(struct browse *b)
{
    browse_edit_release(&b->query);
    browse_edit_release(&b->name);
    browse_sessions_release(&b->sessions);
    browse_hits_release(&b->hits);
    browse_hits_release(&b->fresh);
    browse_pane_release(&b->pane);
    buf_release(&b->status);
    buf_release(&b->searched);
    browse_target_release(&b->shown);
    browse_target_release(&b->target);
    browse_target_release(&b->subject);
    buf_release(&b->back.session);
    buf_release(&b->back.message);
    buf_release(&b->back.top);
    buf_release(&b->back.at);
}

static void set(struct buf *to, struct str text)
{
    buf_clear(to);
    buf_add_str(to, text);
}

/* ---- the list ---- */

size_t browse_list_count(const struct browse *b)
{
    return b->searching ? b->hits.count : b->sessions.total;
}

bool browse_awaits_list(const struct browse *b)
{
    if (b->search_due != 0 ||
        (b->searched.len > 0 && b->fresh_number != b->search_number && !b->refreshing))
        return true;
    if (b->searching)
        return b->hits.count == 0 && !b->hits_done;
    return !b->sessions_known || (b->sessions.partial && b->sessions.total == 0);
}

static struct browse_list *list_of(struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
}

const struct browse_list *browse_list(const struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
}

/* The lines that are seen, and a page more on both sides, are there or asked for. */
static void want_lines(struct browse *b, size_t rows)
{
    const struct browse_sessions *s = &b->sessions;
    size_t first = less(b->session_list.top, rows), end = b->session_list.top + 2 * rows;

    if (end > s->total)
        end = s->total;
    if (!s->partial && first < end && (first < s->first || end > s->first + s->count))
        b->wants.sessions = true;
}

static void clamp_list(struct browse *b)
{
    struct browse_list *l = list_of(b);
    size_t count = browse_list_count(b), rows = browse_areas(b).list.rows;

    if (l->at >= count)
        l->at = less(count, 1);
    if (l->top > l->at)
        l->top = l->at;
    if (rows > 0 && l->at >= l->top + rows)
        l->top = l->at - rows + 1;
    if (l->top + rows > count)
        l->top = less(count, rows);
    if (b->searching && !b->hits_done && l->at + 2 * rows >= count)
        b->wants.more = true;
    if (!b->searching)
        want_lines(b, rows);
}

void browse_resize(struct browse *b, size_t rows, size_t columns)
{
    struct browse_areas a;

    b->rows = rows;
    b->columns = columns;
    a = browse_areas(b);
    browse_pane_resize(&b->pane, a.text.columns > 2 ? a.text.columns : 2,
                       a.text.rows > 0 ? a.text.rows : 1);
    clamp_list(b);
}

bool browse_chosen(const struct browse *b, size_t *history, struct str *id)
{
    const struct browse_list *l = browse_list(b);
    const struct browse_session *s;

    if (b->searching) {
        if (l->at >= b->hits.count)
            return false;
        *history = b->hits.at[l->at].history;
        *id = b->hits.at[l->at].session;
        return true;
    }
    s = browse_sessions_at(&b->sessions, l->at);
    if (!s)
        return false;
    *history = s->history;
    *id = s->id;
    return true;
}

/* ---- the messages ---- */

static void show_nothing(struct browse *b)
{
    struct browse_target *t = &b->target;
    struct thread nothing = {0};
    struct browse_parts none = {0};

    if (t->id.len == 0 && b->shown.id.len == 0)
        return;
    buf_clear(&t->id);
    buf_clear(&b->shown.id);
    b->thread_number++;
    b->wants.thread = false;
    browse_pane_take(&b->pane, &nothing, &none, false);
}

static void reread(struct browse *b)
{
    b->thread_number++;
    b->wants.thread = true;
}

void browse_reread(struct browse *b, size_t history)
{
    if (b->target.id.len == 0 || b->target.history != history)
        return;
    b->target.end = -1;
    reread(b);
}

struct str browse_chosen_hit(const struct browse *b)
{
    return b->searching && b->hit_list.at < b->hits.count ? b->hits.at[b->hit_list.at].message
                                                          : STR("");
}

static bool misses(const struct browse *b, struct str hit)
{
    return hit.n > 0 && browse_pane_find(&b->pane, hit) == SIZE_MAX;
}

static void show_hit(struct browse *b)
{
    if (browse_chosen_hit(b).n > 0)
        (void)browse_pane_show(&b->pane, browse_chosen_hit(b), b->hits.at[b->hit_list.at].at);
}

/* Are other lines of the session in the panel than are to be? */
static bool shows_others(const struct browse *b, struct str hit)
{
    return browse_target_is(&b->shown, b->target.history, buf_str(&b->target.id)) &&
           !str_eq(buf_str(&b->target.hit), hit) && (b->every || misses(b, hit));
}

/* The chosen session is in the panel, or to be read for it. */
static void show_chosen(struct browse *b)
{
    struct browse_target *t = &b->target, now;
    const uint64_t *lines;
    bool other;
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id)) {
        if (browse_list(b)->at >= browse_list_count(b))
            show_nothing(b);
        return;
    }
    now = target_known(&b->sessions, history, id);
    lines = browse_target_is(&b->shown, t->history, buf_str(&t->id)) ? &b->pane.thread.all : NULL;
    other = !browse_target_is(t, history, id);
    if (other || target_changed(t, &now, lines) || shows_others(b, browse_chosen_hit(b))) {
        if (other)
            set(&t->id, id);
        set(&t->hit, browse_chosen_hit(b));
        t->history = history;
        t->first = now.first;
        t->end = now.end;
        reread(b);
    }
    if (other || now.last_line >= 0) {
        t->last_line = now.last_line;
        t->count = now.count;
    }
    /* What is there already need not wait for what is read again. */
    if (browse_target_is(&b->shown, history, id))
        show_hit(b);
}

/* The list has changed, not by keys: what was chosen stays on its line. */
static void keep_line(struct browse *b, size_t place, size_t row)
{
    struct browse_list *l = list_of(b);

    l->at = place;
    l->top = less(place, row);
    clamp_list(b);
}

void browse_choose(struct browse *b, size_t place)
{
    list_of(b)->at = place;
    b->back.list = b->back.text = false;
    b->ahead = (struct browse_ahead){0};
    clamp_list(b);
    show_chosen(b);
}

void browse_go_ahead(struct browse *b)
{
    size_t at = browse_list(b)->at, count = browse_list_count(b), place;
    bool whole = b->searching ? b->hits_done || count >= FOLLOW_MAX : !b->sessions.partial;
    struct browse_ahead rest = b->ahead;

    /* What is found again comes first. */
    if (!browse_ahead_any(&rest) || browse_awaits_list(b) || b->back.list)
        return;
    place = ahead_place(&rest, at, count, whole);
    if (place != at)
        browse_choose(b, place);
    b->ahead = rest;
}

void browse_wish(const struct browse *b, struct browse_wish *w)
{
    const struct browse_list *l = &b->session_list;
    const struct browse_session *had = browse_sessions_at(&b->sessions, l->at);
    size_t rows = browse_areas(b).list.rows, around = AROUND(rows);
    bool back = b->back.list && b->back.session.len > 0;

    *w = (struct browse_wish){.all = b->all,
                              .first = less(l->top, around),
                              .count = rows + 2 * around,
                              .number = b->sessions.number};
    if (back)
        browse_sought_set(&w->keep, BROWSE_ANY_HISTORY, buf_str(&b->back.session));
    else if (had)
        browse_sought_set(&w->keep, had->history, had->id);
    if (b->target.id.len > 0)
        browse_sought_set(&w->shown, b->target.history, buf_str(&b->target.id));
}

/* Where in a list with other places is the line that is to stay chosen? SIZE_MAX: it is gone.
 * false: that is to be asked for. */
static bool find_line(const struct browse *b, const struct browse_sessions *s, size_t *place)
{
    const struct browse_session *had = browse_sessions_at(&b->sessions, b->session_list.at);
    bool back = b->back.list && !b->searching && b->back.session.len > 0;
    struct str id = back ? buf_str(&b->back.session) : had ? had->id : STR_NONE;
    size_t history = back ? BROWSE_ANY_HISTORY : had ? had->history : 0;

    *place = SIZE_MAX;
    return !id.p || browse_sessions_tell(s, history, id, place);
}

static void put_sessions(struct browse *b, struct browse_sessions *s)
{
    browse_sessions_release(&b->sessions);
    b->sessions = *s;
    *s = (struct browse_sessions){0};
    b->sessions_known = true;
}

void browse_take_sessions(struct browse *b, struct browse_sessions *s)
{
    struct browse_list *l = &b->session_list;
    bool back = b->back.list && !b->searching && b->back.session.len > 0;
    bool moved = !b->sessions_known || s->partial || s->number != b->sessions.number;
    size_t row = back ? b->back.row : less(l->at, l->top), place = SIZE_MAX;

    if ((moved || back) && !find_line(b, s, &place)) {
        b->wants.sessions = true;
        browse_sessions_release(s);
        return;
    }
    put_sessions(b, s);
    if (back && (place != SIZE_MAX || !b->sessions.partial))
        b->back.list = false;
    if (b->searching) {
        l->at = place != SIZE_MAX ? place : l->at;
        l->top = less(l->at, row);
        show_chosen(b);
        return;
    }
    if (place != SIZE_MAX)
        keep_line(b, place, l->top == 0 && !back ? place : row);
    clamp_list(b);
    /* What is looked for may be further back in the file. */
    if (!b->back.list)
        show_chosen(b);
    browse_go_ahead(b);
}

void browse_take_thread(struct browse *b, unsigned number, struct thread *t,
                        struct browse_parts *parts, bool every)
{
    bool other = every != b->every || misses(b, browse_chosen_hit(b));
    bool same = browse_target_is(&b->shown, b->target.history, buf_str(&b->target.id));

    if (number != b->thread_number) {
        browse_parts_release(parts);
        thread_release(t);
        return;
    }
    /* The beginning of a part of the file is none to stay at. */
    if (b->shown.end >= 0 && b->pane.top == 0 && b->pane.top_line == 0 && b->pane.at == 0)
        same = false;
    browse_pane_take(&b->pane, t, parts, same);
    b->every = every;
    b->shown.end = b->target.end;
    b->shown.history = b->target.history;
    set(&b->shown.id, buf_str(&b->target.id));
    set(&b->shown.hit, buf_str(&b->target.hit));
    if (b->back.text && str_eq(buf_str(&b->shown.id), buf_str(&b->back.session))) {
        browse_pane_return(&b->pane, buf_str(&b->back.top), b->back.top_part, b->back.top_line,
                           buf_str(&b->back.at));
        b->back.text = false;
    } else if (!same || other) {
        show_hit(b);
    }
}

const struct message *browse_message(const struct browse *b)
{
    return browse_pane_has(&b->pane) ? &b->pane.thread.at[b->pane.at] : NULL;
}

/* ---- searching ---- */

void browse_search(struct browse *b, bool again)
{
    struct str text = buf_str(&b->query.text);

    b->search_due = 0;
    /* What has not been answered yet has nothing to be kept until it is again. */
    b->refreshing = again && b->searching && (b->refreshing || b->fresh_number == b->search_number);
    b->search_number++;
    b->wants.more = false;
    browse_hits_release(&b->fresh);
    if (!again)
        browse_pane_search(&b->pane, text);
    set(&b->searched, text);
    b->wants.search = true;
    if (text.n == 0) {
        browse_hits_release(&b->hits);
        b->searching = false;
        b->hits_done = true;
        clamp_list(b);
        show_chosen(b);
        browse_go_ahead(b);
    }
}

/* For another list: keys that were ahead of the last one are not for it. */
static void search_other(struct browse *b)
{
    if (b->query.text.len == 0)
        return;
    b->ahead = (struct browse_ahead){0};
    b->text_ahead.count = 0;
    browse_search(b, false);
}

void browse_set_role(struct browse *b, const char *role)
{
    b->role = role;
    browse_pane_set_role(&b->pane, role);
    search_other(b);
}

void browse_set_scope(struct browse *b, bool all)
{
    b->all = all;
    b->wants.sessions = true;
    search_other(b);
}

void browse_tick(struct browse *b, int64_t now)
{
    if (b->search_due != 0 && now >= b->search_due)
        browse_search(b, false);
}

/* The hits of the same search, read again, have caught up with what was there. */
static void swap_fresh(struct browse *b)
{
    struct browse_list *l = &b->hit_list;
    size_t row = less(l->at, l->top), place = SIZE_MAX;

    if (l->at < b->hits.count) {
        const struct browse_hit *hit = &b->hits.at[l->at];

        place = browse_hits_find(&b->fresh, hit->history, hit->session, hit->message);
    }
    browse_hits_release(&b->hits);
    b->hits = b->fresh;
    b->fresh = (struct browse_hits){0};
    b->refreshing = false;
    keep_line(b, place != SIZE_MAX ? place : l->at, l->top == 0 ? l->at : row);
    show_chosen(b);
    browse_go_ahead(b);
}

void browse_take_hits(struct browse *b, unsigned number, struct browse_hits *h, bool done)
{
    bool first = number != b->fresh_number;

    if (number != b->search_number) {
        browse_hits_release(h);
        return;
    }
    b->hits_done = done;
    if (b->refreshing) {
        b->fresh_number = number;
        browse_hits_move(&b->fresh, h);
        if (done || browse_hits_caught_up(&b->fresh, &b->hits, b->hit_list.at))
            swap_fresh(b);
        else
            b->wants.more = true;
        return;
    }
    if (first) {
        browse_hits_release(&b->hits);
        b->fresh_number = number;
        b->searching = true;
        b->hit_list = (struct browse_list){0, 0};
    }
    browse_hits_move(&b->hits, h);
    if (b->back.list) {
        size_t place = browse_hits_find(&b->hits, BROWSE_ANY_HISTORY, buf_str(&b->back.session),
                                        buf_str(&b->back.message));

        if (place != SIZE_MAX)
            keep_line(b, place, b->back.row);
        /* A search that was left before its hits came has none to be found. */
        b->back.list = place == SIZE_MAX && !done && b->back.message.len > 0;
        b->wants.more = b->wants.more || b->back.list;
    }
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b);
    browse_go_ahead(b);
}
