#include "browse/model.h"

#include <string.h>

#include "chathist/history/message.h"
#include "browse/panel.h"
#include "browse/view.h"

/* How many lines of the list are read before and after the visible ones. */
#define AROUND(rows) ((rows)*4 + 64)
/* Keys typed ahead of a growing list of hits follow it for at most this many hits, so that End does
 * not read them all. */
#define FOLLOW_MAX ((size_t)1000)

/* ---- the screen ---- */

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* From this many columns on, the list and the messages stand side by side. */
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

/* Returns what the list knows about where a session is, without its id. Nothing needs to be
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

/* Returns true if the session has changed since its messages were read. `lines` is the number of
 * lines read, NULL if none were. */
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

/* Applies the moves typed ahead to line `at` of a list of `count` lines and returns the line to
 * choose. If the list is not `whole` yet, a move beyond its end is kept for later lines. */
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

/* Requests the visible lines, and a page before and after them, if they have not been read. */
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

/* Returns true if the panel shows the thread but the hit is only among all lines, or the reverse. */
static bool shows_others(const struct browse *b, struct str hit)
{
    return browse_target_is(&b->shown, b->target.history, buf_str(&b->target.id)) &&
           !str_eq(buf_str(&b->target.hit), hit) && (b->every || misses(b, hit));
}

/* Shows the chosen session in the panel, or requests its messages. */
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
    /* Messages that are already shown do not wait until they have been read again. */
    if (browse_target_is(&b->shown, history, id))
        show_hit(b);
}

/* Keeps the chosen line on its row after the list itself has changed. */
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

    /* Restoring the position of the last visit comes first. */
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

/* Finds the line that stays chosen in a list read again. *place is SIZE_MAX if it is gone. Returns
 * false if this part of the list cannot say, so that it has to be requested. */
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
    /* The session to restore may be further back in the file. */
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
    /* The start of a part of the file is not a position worth keeping. */
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
    /* Old hits are kept while the same search runs again, but only if it had given hits. */
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

/* Starts another list; keys typed ahead of the previous list do not apply to it. */
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

/* Replaces the old hits with those of the repeated search once it has reached as far. */
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
        /* If the browser was closed before the first hit came, no hit can be restored. */
        b->back.list = place == SIZE_MAX && !done && b->back.message.len > 0;
        b->wants.more = b->wants.more || b->back.list;
    }
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b);
    browse_go_ahead(b);
}

/* ---- moving ---- */

/* Returns true if the expected list begins at its first line, as new hits do and unscrolled sessions. */
static bool begins_at_first(const struct browse *b)
{
    return !b->back.list && (b->query.text.len > 0 || b->session_list.at == 0);
}

/* Returns true if a move has to wait for the list, or for moves that wait already. A move within
 * the visible lines is done at once. */
static bool is_ahead(const struct browse *b, long lines)
{
    return browse_awaits_list(b) || (lines > 0 && browse_ahead_any(&b->ahead) && !b->back.list);
}

static void move_list(struct browse *b, long lines)
{
    size_t at = browse_list(b)->at, count = browse_list_count(b);

    b->text_ahead.count = 0;
    if (is_ahead(b, lines)) {
        browse_ahead_move(&b->ahead, lines, begins_at_first(b));
        browse_go_ahead(b);
        return;
    }
    b->ahead = (struct browse_ahead){0};
    if (lines < 0)
        at = at > (size_t)-lines ? at - (size_t)-lines : 0;
    else
        at += (size_t)lines;
    if (at >= count)
        at = count > 0 ? count - 1 : 0;
    if (at != browse_list(b)->at)
        browse_choose(b, at);
}

static void move(struct browse *b, long lines)
{
    if (b->focus == BROWSE_TEXT)
        browse_pane_scroll(&b->pane, lines);
    else
        move_list(b, lines);
}

static void move_pages(struct browse *b, long halves)
{
    struct browse_areas a = browse_areas(b);
    size_t rows = b->focus == BROWSE_TEXT ? a.text.rows : a.list.rows;
    long page = rows > 2 ? (long)rows - 1 : 1;

    move(b, halves % 2 == 0 ? halves / 2 * page : halves * (page + 1) / 2);
}

/* The position to restore does not matter then. */
static void move_list_end(struct browse *b, bool last)
{
    size_t count = browse_list_count(b);

    b->text_ahead.count = 0;
    if (browse_awaits_list(b)) {
        b->back.list = b->back.text = false;
        if (b->query.text.len == 0)
            b->session_list = (struct browse_list){0, 0};
        b->ahead = (struct browse_ahead){.last = last};
    } else if (last && !b->searching && b->sessions.partial) {
        b->ahead = (struct browse_ahead){.last = true};
        browse_go_ahead(b);
    } else {
        browse_choose(b, last && count > 0 ? count - 1 : 0);
    }
}

static void move_end(struct browse *b, bool last)
{
    if (b->focus != BROWSE_TEXT)
        move_list_end(b, last);
    else if (last)
        browse_pane_last(&b->pane);
    else
        browse_pane_first(&b->pane);
}

/* ---- what stays in the state ---- */

static void next_role(struct browse *b)
{
    static const char *const next[] = {[ROLE_USER] = "assistant",
                                       [ROLE_ASSISTANT] = "system",
                                       [ROLE_SYSTEM] = "tool",
                                       [ROLE_TOOL] = NULL,
                                       [ROLE_OTHER] = NULL};

    browse_set_role(b, b->role ? next[role_of(str_of(b->role))] : "user");
}

static void next_scope(struct browse *b)
{
    if (b->histories < 2)
        browse_say(b, "there is no other history");
    else
        browse_set_scope(b, !b->all);
}

static void next_hit(struct browse *b, bool on)
{
    if (b->query.text.len == 0)
        browse_say(b, "there is nothing to look for: / goes to the search box");
    else if (browse_pane_next_hit(&b->pane, on) == BROWSE_NOT_FOUND)
        browse_say(b, "no hit in these messages");
}

/* Enter, when it does not choose: goes to the next panel, or unfolds. */
static void go_on(struct browse *b)
{
    if (b->focus == BROWSE_BOX)
        b->focus = BROWSE_LIST;
    else if (b->focus == BROWSE_LIST)
        b->focus = BROWSE_TEXT;
    else
        browse_pane_fold(&b->pane);
}

/* Makes the chosen session the subject of the following question. Returns false without a session. */
static bool take_subject(struct browse *b)
{
    struct str id;

    if (!browse_chosen(b, &b->subject.history, &id))
        return false;
    buf_clear(&b->subject.id);
    buf_add_str(&b->subject.id, id);
    return true;
}

static void ask_name(struct browse *b)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    if (!take_subject(b))
        return;
    browse_add_file_name(&name, b);
    browse_edit_set(&b->name, buf_str(&name));
    buf_release(&name);
    b->mode = BROWSE_NAMING;
}

static void turn_focus(struct browse *b, int by)
{
    b->focus = (enum browse_focus)(((int)b->focus + by + 3) % 3);
}

/* Carries out a command that moves; returns false for other commands. */
static bool do_move(struct browse *b, enum browse_command command)
{
    switch (command) {
    case BROWSE_UP:
        move(b, -1);
        return true;
    case BROWSE_DOWN:
        move(b, 1);
        return true;
    case BROWSE_PAGE_UP:
        move_pages(b, -2);
        return true;
    case BROWSE_PAGE_DOWN:
        move_pages(b, 2);
        return true;
    case BROWSE_HALF_UP:
        move_pages(b, -1);
        return true;
    case BROWSE_HALF_DOWN:
        move_pages(b, 1);
        return true;
    case BROWSE_FIRST:
        move_end(b, false);
        return true;
    case BROWSE_LAST:
        move_end(b, true);
        return true;
    case BROWSE_NEXT_MESSAGE:
        browse_pane_step(&b->pane, true);
        return true;
    case BROWSE_LAST_MESSAGE:
        browse_pane_step(&b->pane, false);
        return true;
    case BROWSE_NEXT_HIT:
        next_hit(b, true);
        return true;
    case BROWSE_LAST_HIT:
        next_hit(b, false);
        return true;
    default:
        return false;
    }
}

static bool do_focus(struct browse *b, enum browse_command command)
{
    switch (command) {
    case BROWSE_NEXT_PANEL:
        turn_focus(b, 1);
        return true;
    case BROWSE_LAST_PANEL:
        turn_focus(b, -1);
        return true;
    case BROWSE_TO_BOX:
        b->focus = BROWSE_BOX;
        return true;
    case BROWSE_TO_LIST:
        b->focus = BROWSE_LIST;
        return true;
    case BROWSE_TO_TEXT:
        b->focus = BROWSE_TEXT;
        return true;
    default:
        return false;
    }
}

/* Carries out the other commands and returns what the caller has to do. */
static enum browse_command do_other(struct browse *b, enum browse_command command)
{
    switch (command) {
    case BROWSE_ENTER:
        if (b->choosing && b->focus != BROWSE_TEXT)
            return BROWSE_ENTER;
        go_on(b);
        return BROWSE_NOTHING;
    case BROWSE_FOLD:
        browse_pane_fold(&b->pane);
        return BROWSE_NOTHING;
    case BROWSE_FOLD_ALL:
        browse_pane_fold_all(&b->pane);
        return BROWSE_NOTHING;
    case BROWSE_ROLE:
        next_role(b);
        return BROWSE_NOTHING;
    case BROWSE_SCOPE:
        next_scope(b);
        return BROWSE_NOTHING;
    case BROWSE_HELP:
        b->mode = BROWSE_HELPING;
        b->help_top = 0;
        return BROWSE_NOTHING;
    case BROWSE_EXPORT:
        ask_name(b);
        return BROWSE_NOTHING;
    case BROWSE_DELETE:
        if (take_subject(b))
            browse_ask(b, BROWSE_DELETE);
        return BROWSE_NOTHING;
    default:
        return command;
    }
}

/* ---- modes ---- */

static enum browse_command press_help(struct browse *b, int32_t key)
{
    enum browse_command command = browse_command(BROWSE_LIST, key);
    size_t count = browse_help_count(b->columns), rows = b->rows > 2 ? b->rows - 2 : 1;
    size_t last = count > rows ? count - rows : 0;

    if (command == BROWSE_CANCEL || command == BROWSE_SUSPEND || command == BROWSE_REDRAW)
        return command;
    if (command == BROWSE_DOWN || command == BROWSE_PAGE_DOWN)
        b->help_top += command == BROWSE_DOWN ? 1 : rows;
    else if (command == BROWSE_UP || command == BROWSE_PAGE_UP)
        b->help_top -= command == BROWSE_UP && b->help_top > 0 ? 1
                       : b->help_top < rows                    ? b->help_top
                                                               : rows;
    else
        b->mode = BROWSE_NORMAL;
    b->help_top = b->help_top < last ? b->help_top : last;
    return BROWSE_NOTHING;
}

static enum browse_command press_answer(struct browse *b, int32_t key)
{
    b->mode = BROWSE_NORMAL;
    if (key == BROWSE_CTRL('c'))
        return BROWSE_CANCEL;
    return key == 'y' || key == 'Y' ? b->asked : BROWSE_NOTHING;
}

static enum browse_command press_name(struct browse *b, int32_t key)
{
    if (key == BROWSE_CTRL('c'))
        return BROWSE_CANCEL;
    if (key == BROWSE_KEY_ESCAPE || (key == BROWSE_KEY_ENTER && b->name.text.len == 0)) {
        b->mode = BROWSE_NORMAL;
    } else if (key == BROWSE_KEY_ENTER) {
        b->mode = BROWSE_NORMAL;
        return BROWSE_EXPORT;
    } else {
        browse_edit_key(&b->name, key);
    }
    return BROWSE_NOTHING;
}

/* ---- waiting for data ---- */

static void push_ahead(struct browse_ahead_text *a, enum browse_command command)
{
    if (a->count < BROWSE_AHEAD_MAX)
        a->at[a->count++] = command;
}

/* Removes and returns the first command; the queue is not empty. */
static enum browse_command pop_ahead(struct browse_ahead_text *a)
{
    enum browse_command command = a->at[0];

    memmove(a->at, a->at + 1, --a->count * sizeof *a->at);
    return command;
}

/* Returns true if the list has been read and the keys typed ahead of it have been applied. */
static bool has_list(const struct browse *b)
{
    return !browse_awaits_list(b) && !b->back.list && !browse_ahead_any(&b->ahead);
}

bool browse_knows_chosen(const struct browse *b)
{
    size_t history;
    struct str id;

    return has_list(b) &&
           (browse_chosen(b, &history, &id) || browse_list(b)->at >= browse_list_count(b));
}

/* Returns true if the panel shows the messages of the chosen line, with the chosen hit among them
 * unless that has disappeared from the file. */
static bool has_messages(const struct browse *b)
{
    size_t history;
    struct str id, hit = browse_chosen_hit(b);

    if (!has_list(b))
        return false;
    if (!browse_chosen(b, &history, &id))
        return browse_list(b)->at >= browse_list_count(b);
    return browse_target_is(&b->shown, history, id) &&
           (hit.n == 0 || browse_pane_find(&b->pane, hit) != SIZE_MAX ||
            (b->shown.end < 0 && str_eq(buf_str(&b->shown.hit), hit)));
}

bool browse_is_settled(const struct browse *b)
{
    return has_messages(b) && b->text_ahead.count == 0 && !b->pane.seek.going;
}

static bool asks(enum browse_command command)
{
    return command == BROWSE_EXPORT || command == BROWSE_DELETE;
}

static bool question_waits(const struct browse *b)
{
    return b->text_ahead.count > 0 && asks(b->text_ahead.at[b->text_ahead.count - 1]);
}

/* Returns true if a command can be carried out now. A command for messages waits until they are read. */
static bool is_ready(const struct browse *b, enum browse_command command)
{
    switch (command) {
    case BROWSE_EXPORT:
    case BROWSE_DELETE:
        return b->text_ahead.count == 0 && browse_knows_chosen(b);
    case BROWSE_NEXT_MESSAGE:
    case BROWSE_LAST_MESSAGE:
    case BROWSE_NEXT_HIT:
    case BROWSE_LAST_HIT:
    case BROWSE_FOLD:
    case BROWSE_FOLD_ALL:
        return browse_is_settled(b);
    case BROWSE_UP:
    case BROWSE_DOWN:
    case BROWSE_PAGE_UP:
    case BROWSE_PAGE_DOWN:
    case BROWSE_HALF_UP:
    case BROWSE_HALF_DOWN:
    case BROWSE_FIRST:
    case BROWSE_LAST:
    case BROWSE_ENTER:
        return b->focus != BROWSE_TEXT || browse_is_settled(b);
    default:
        return true;
    }
}

static void edit_query(struct browse *b, int32_t key, int64_t now)
{
    if (!browse_edit_key(&b->query, key))
        return;
    b->back.list = b->back.text = false;
    b->ahead = (struct browse_ahead){0};
    b->text_ahead.count = 0;
    b->search_due = now + BROWSE_DEBOUNCE_MS;
}

void browse_paste(struct browse *b, int32_t key, int64_t now)
{
    if (b->mode == BROWSE_NAMING) {
        browse_edit_key(&b->name, key);
    } else if (b->mode == BROWSE_NORMAL && !question_waits(b)) {
        buf_clear(&b->status);
        b->focus = BROWSE_BOX;
        edit_query(b, key, now);
    }
}

enum browse_command browse_press(struct browse *b, int32_t key, int64_t now)
{
    enum browse_command command = browse_command(b->focus, key);

    buf_clear(&b->status);
    b->pane.seek.going = false;
    if (b->mode == BROWSE_HELPING)
        return press_help(b, key);
    if (b->mode == BROWSE_ASKING)
        return press_answer(b, key);
    if (b->mode == BROWSE_NAMING)
        return press_name(b, key);
    /* A key typed after a question that waits is its answer, not a command. */
    if (question_waits(b)) {
        if (command == BROWSE_CANCEL || command == BROWSE_SUSPEND || command == BROWSE_REDRAW)
            return command;
        if (key == BROWSE_KEY_ESCAPE)
            b->text_ahead.count--;
        return BROWSE_NOTHING;
    }
    if (command == BROWSE_NOTHING && b->focus == BROWSE_BOX) {
        edit_query(b, key, now);
        return BROWSE_NOTHING;
    }
    if (!is_ready(b, command)) {
        /* The focus may have moved when it is carried out, and Enter would then choose. */
        push_ahead(&b->text_ahead, command == BROWSE_ENTER ? BROWSE_FOLD : command);
        return BROWSE_NOTHING;
    }
    if (do_move(b, command) || do_focus(b, command))
        return BROWSE_NOTHING;
    return do_other(b, command);
}

bool browse_go_on(struct browse *b)
{
    enum browse_focus focus = b->focus;

    if (b->pane.seek.going && browse_pane_seek(&b->pane) == BROWSE_NOT_FOUND)
        browse_say(b, "no hit in these messages");
    while (b->text_ahead.count > 0 && !b->pane.seek.going && b->mode == BROWSE_NORMAL &&
           (has_messages(b) || (browse_knows_chosen(b) && asks(b->text_ahead.at[0])))) {
        enum browse_command command = pop_ahead(&b->text_ahead);

        /* The focus is where it was when the key was pressed. */
        b->focus = BROWSE_TEXT;
        if (!do_move(b, command))
            (void)do_other(b, command);
        b->focus = focus;
    }
    return b->pane.seek.going;
}

/* ---- the mouse ---- */

static bool inside(struct browse_rect r, size_t row, size_t column)
{
    return row >= r.row && row < r.row + r.rows && column >= r.column &&
           column < r.column + r.columns;
}

enum browse_command browse_click(struct browse *b, size_t row, size_t column, bool twice,
                                 int64_t now)
{
    struct browse_areas a = browse_areas(b);

    if (b->mode != BROWSE_NORMAL)
        return BROWSE_NOTHING;
    if (inside(a.box, row, column)) {
        b->focus = BROWSE_BOX;
    } else if (inside(a.list, row, column)) {
        size_t place = browse_list(b)->top + row - a.list.row;

        b->focus = BROWSE_LIST;
        if (browse_awaits_list(b) || place >= browse_list_count(b))
            return BROWSE_NOTHING;
        b->text_ahead.count = 0;
        browse_choose(b, place);
    } else if (inside(a.text, row, column)) {
        b->focus = BROWSE_TEXT;
        if (!has_messages(b))
            return BROWSE_NOTHING;
        browse_pane_point(&b->pane, row - a.text.row);
    } else {
        return BROWSE_NOTHING;
    }
    return twice && b->focus != BROWSE_BOX ? browse_press(b, BROWSE_KEY_ENTER, now)
                                           : BROWSE_NOTHING;
}

void browse_wheel(struct browse *b, size_t row, size_t column, long lines)
{
    struct browse_areas a = browse_areas(b);

    if (b->mode != BROWSE_NORMAL)
        return;
    if (inside(a.text, row, column))
        browse_pane_scroll(&b->pane, lines);
    else if (inside(a.list, row, column))
        move_list(b, lines);
}
