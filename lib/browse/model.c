#include "browse/model.h"

#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/search/query.h"

#define NAME_MAX_BYTES ((size_t)100)

/* ---- the screen ---- */

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

    if (b->zoomed) {
        a.stacked = true;
        a.rule = 1;
        a.list = a.text = (struct browse_rect){2, 0, body, columns};
        *(b->focus == BROWSE_TEXT ? &a.list : &a.text) = (struct browse_rect){2, 0, 0, columns};
    } else if (a.stacked) {
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

/* ---- beginning and end ---- */

void browse_init(struct browse *b, size_t histories)
{
    *b = (struct browse){.histories = histories, .rows = 24, .columns = 80};
    browse_edit_init(&b->query);
    browse_edit_init(&b->name);
    browse_edit_init(&b->find);
    browse_pane_init(&b->pane);
    buf_init(&b->status, BUF_SMALL);
    buf_init(&b->searched, BUF_SMALL);
    buf_init(&b->wrong, BUF_LINE);
    browse_target_init(&b->shown);
    browse_target_init(&b->target);
    browse_target_init(&b->subject);
    buf_init(&b->back.session, BUF_LINE);
    buf_init(&b->back.message, BUF_LINE);
    buf_init(&b->back.top, BUF_LINE);
    buf_init(&b->back.at, BUF_LINE);
    browse_want_sessions(b);
}

void browse_release(struct browse *b)
{
    browse_edit_release(&b->query);
    browse_edit_release(&b->name);
    browse_edit_release(&b->find);
    browse_sessions_release(&b->sessions);
    browse_hits_release(&b->hits);
    browse_pane_release(&b->pane);
    buf_release(&b->status);
    buf_release(&b->searched);
    buf_release(&b->wrong);
    browse_target_release(&b->shown);
    browse_target_release(&b->target);
    browse_target_release(&b->subject);
    buf_release(&b->back.session);
    buf_release(&b->back.message);
    buf_release(&b->back.top);
    buf_release(&b->back.at);
}

/* ---- reports and questions ---- */

void browse_say(struct browse *b, const char *text)
{
    buf_set(&b->status, str_of(text));
}

void browse_add_file_name(struct buf *out, const struct browse *b)
{
    struct str id = buf_str(&b->subject.id);

    for (size_t i = 0; i < id.n && i < NAME_MAX_BYTES; i++)
        buf_add_byte(out, id.p[i] == '/' ? '_' : id.p[i]);
    buf_add_c(out, ".md");
}

/* ---- the list ---- */

size_t browse_list_count(const struct browse *b)
{
    return b->searching ? b->hits.count : b->sessions.rows.count;
}

void browse_want_sessions(struct browse *b)
{
    b->wants.sessions = true;
    b->sessions_number++;
}

bool browse_awaits_sessions(const struct browse *b)
{
    return b->sessions_read != b->sessions_number;
}

bool browse_awaits_list(const struct browse *b)
{
    if (b->search_due != 0 || browse_is_searching(b))
        return true;
    if (b->searching)
        return !b->hits_done &&
               (b->hits.count == 0 || (b->most_hits && b->hits.count < BROWSE_HITS_MAX));
    return !b->sessions_known;
}

static struct browse_list *list_of(struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
}

const struct browse_list *browse_list(const struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
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
    if (b->searching && !b->hits_done && (b->most_hits || l->at + 2 * rows >= count))
        b->wants.hits = b->most_hits ? BROWSE_HITS_MAX : 2 * count;
}

void browse_resize(struct browse *b, size_t rows, size_t columns)
{
    struct browse_areas a;

    b->rows = rows;
    b->columns = columns;
    a = browse_areas(b);
    if (!b->zoomed || b->focus == BROWSE_TEXT)
        browse_pane_resize(&b->pane, a.text.columns > 2 ? a.text.columns : 2,
                           a.text.rows > 0 ? a.text.rows : 1);
    clamp_list(b);
}

void browse_set_focus(struct browse *b, enum browse_focus focus)
{
    b->focus = focus;
    if (b->zoomed)
        browse_resize(b, b->rows, b->columns);
}

bool browse_chosen(const struct browse *b, size_t *history, struct str *id)
{
    size_t at = browse_list(b)->at;

    if (at >= browse_list_count(b))
        return false;
    if (b->searching) {
        *history = b->hits.at[at].history;
        *id = b->hits.at[at].session;
    } else {
        *history = b->sessions.rows.at[at].history;
        *id = b->sessions.rows.at[at].session->id;
    }
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

void browse_changed(struct browse *b, size_t history)
{
    browse_want_sessions(b);
    if (b->target.id.len == 0 || b->target.history != history)
        return;
    b->wants.thread = true;
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

/* Returns true if the panel shows the thread but the hit is only among all lines, or the
 * reverse. */
static bool shows_others(const struct browse *b, struct str hit)
{
    return browse_target_is(&b->shown, b->target.history, buf_str(&b->target.id)) &&
           !str_eq(buf_str(&b->target.hit), hit) && (b->every || misses(b, hit));
}

/* Requests the messages of a session for the panel. */
static void want_messages(struct browse *b, size_t history, struct str id)
{
    struct browse_target *t = &b->target;

    if (!browse_target_is(t, history, id)) {
        buf_set(&t->id, id);
        t->history = history;
        if (browse_act_waits(b) && b->waits.chosen) {
            b->waits.count--;
            browse_say(b, "given up: another session is chosen");
        }
    }
    buf_set(&t->hit, browse_chosen_hit(b));
    b->thread_number++;
    b->wants.thread = true;
}

/* Shows the chosen session in the panel, or requests its messages. `other`: another line was
 * chosen, so that its hit is to be seen; else the text keeps its place. */
static void show_chosen(struct browse *b, bool other)
{
    const struct browse_target *t = &b->target;
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id)) {
        show_nothing(b);
        return;
    }
    if (!browse_target_is(t, history, id) || shows_others(b, browse_chosen_hit(b)))
        want_messages(b, history, id);
    /* Messages that are already shown do not wait until they have been read again. */
    if (other && browse_target_is(&b->shown, history, id))
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
    b->back.list = b->back.text = b->following = false;
    if (b->found)
        browse_set_found(b, false);
    clamp_list(b);
    show_chosen(b, true);
}

/* Puts a list (NULL: none) into the list of sessions, and keeps the chosen session on its row. */
static void renew_sessions(struct browse *b, size_t history, struct session_list *list)
{
    bool back = b->back.list && !b->searching;
    struct browse_list *l = &b->session_list;
    size_t of = BROWSE_ANY_HISTORY, place = SIZE_MAX,
           row = back ? b->back.row : less(l->at, l->top);
    struct buf id = BUF_INIT(BUF_LINE);

    if (back) {
        buf_set(&id, buf_str(&b->back.session));
    } else if (l->at < b->sessions.rows.count) {
        of = b->sessions.rows.at[l->at].history;
        buf_set(&id, b->sessions.rows.at[l->at].session->id);
    }
    browse_sessions_put(&b->sessions, history, list, b->all ? b->histories : 1, b->order);
    if (id.len > 0)
        place = browse_sessions_find(&b->sessions, of, buf_str(&id));
    buf_release(&id);
    if (place != SIZE_MAX) {
        l->at = place;
        /* At the top new sessions are seen. */
        l->top = l->top > 0 || back ? less(place, row) : 0;
        b->back.list = b->back.list && !back;
    }
    clamp_list(b);
    /* The session to restore may be in another history. */
    if (!b->back.list || b->searching)
        show_chosen(b, false);
}

void browse_take_sessions(struct browse *b, size_t history, struct session_list *list)
{
    b->sessions_known = true;
    renew_sessions(b, history, list);
}

void browse_take_all_sessions(struct browse *b, unsigned number)
{
    b->sessions_known = true;
    b->sessions_read = number;
    if (b->back.list && !b->searching && !browse_awaits_sessions(b)) {
        b->back.list = false;
        show_chosen(b, true);
    }
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
    browse_pane_take(&b->pane, t, parts, same);
    b->every = every;
    b->shown.history = b->target.history;
    buf_set(&b->shown.id, buf_str(&b->target.id));
    buf_set(&b->shown.hit, buf_str(&b->target.hit));
    if (b->back.text && str_eq(buf_str(&b->shown.id), buf_str(&b->back.session))) {
        show_hit(b);
        browse_pane_return(&b->pane, buf_str(&b->back.top), b->back.top_part, b->back.top_line,
                           buf_str(&b->back.at));
        b->back.text = false;
    } else if (b->following && same) {
        browse_pane_last(&b->pane);
    } else if (!same || other) {
        show_hit(b);
    }
}

const struct message *browse_message(const struct browse *b)
{
    return browse_pane_has(&b->pane) ? &b->pane.thread.at[b->pane.at] : NULL;
}

/* ---- searching ---- */

/* Gets the query in the box; blanks alone are an empty text. Returns false if it is malformed, and
 * says in b->wrong why. */
static bool get_query(struct browse *b, struct str *text)
{
    struct err e = ERR_INIT;
    struct query q;

    *text = buf_str(&b->query.text);
    buf_clear(&b->wrong);
    if (query_parse(&q, *text, time_now(), &e) == 0) {
        if (query_is_empty(&q))
            *text = STR("");
        query_release(&q);
        return true;
    }
    buf_add_c(&b->wrong, err_text(&e));
    err_release(&e);
    return false;
}

void browse_search(struct browse *b, bool again)
{
    struct str text;

    b->search_due = 0;
    if (!get_query(b, &text))
        return;
    /* Old hits are kept while the same search runs again, but only if it had given hits. */
    b->repeating = again && b->searching && (b->repeating || b->hits_number == b->search_number);
    b->search_number++;
    b->wants.hits = 0;
    buf_set(&b->searched, text);
    if (!again)
        browse_set_found(b, false);
    b->wants.search = true;
    if (text.n == 0) {
        browse_hits_release(&b->hits);
        b->searching = false;
        b->hits_done = true;
        clamp_list(b);
        show_chosen(b, true);
    }
}

bool browse_is_searching(const struct browse *b)
{
    return b->searched.len > 0 && b->hits_number != b->search_number && !b->repeating;
}

void browse_set_found(struct browse *b, bool on)
{
    b->found = on;
    browse_pane_search(&b->pane, on ? buf_str(&b->find.text) : buf_str(&b->searched), !on);
}

void browse_end_search(struct browse *b)
{
    struct buf id = BUF_INIT(BUF_LINE);
    struct str chosen;
    size_t history = 0, place = SIZE_MAX;

    if (b->searching && browse_chosen(b, &history, &chosen))
        buf_set(&id, chosen);
    b->waits.count = 0;
    b->back.list = b->back.text = false;
    browse_edit_set(&b->query, STR(""));
    browse_search(b, false);
    if (id.len > 0)
        place = browse_sessions_find(&b->sessions, history, buf_str(&id));
    if (place != SIZE_MAX)
        browse_choose(b, place);
    buf_release(&id);
}

void browse_open(struct browse *b, size_t history, struct str id)
{
    buf_set(&b->back.session, id);
    b->back.row = 0;
    b->back.list = true;
    b->back.text = false;
    b->all = b->all || history > 0;
    b->focus = BROWSE_TEXT;
}

/* Starts another list; keys typed ahead of the previous list do not apply to it. */
static void search_other(struct browse *b)
{
    if (b->query.text.len == 0)
        return;
    b->waits.count = 0;
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
    browse_want_sessions(b);
    renew_sessions(b, 0, NULL);
    search_other(b);
}

void browse_set_order(struct browse *b, enum browse_order order)
{
    b->order = order;
    b->waits.count = 0;
    renew_sessions(b, 0, NULL);
    browse_choose(b, 0);
}

void browse_set_most_hits(struct browse *b, bool most)
{
    b->most_hits = most;
    b->waits.count = 0;
    browse_hits_sort(&b->hits, most);
    browse_choose(b, 0);
}

void browse_tick(struct browse *b, int64_t now)
{
    if (b->search_due != 0 && now >= b->search_due)
        browse_search(b, false);
}

/* Puts the first hits of a search in the place of the old ones. If it was repeated, the chosen hit
 * stays on its row. Returns true if another hit is chosen. */
static bool replace_hits(struct browse *b, struct browse_hits *h)
{
    struct browse_hits old = b->hits;
    struct browse_list *l = &b->hit_list;
    size_t row = less(l->at, l->top), place = SIZE_MAX;
    bool kept = b->repeating && l->at < old.count;

    b->hits = (struct browse_hits){0};
    browse_hits_move(&b->hits, h, b->most_hits);
    b->searching = true;
    b->hits_total = 0;
    if (kept)
        place = browse_hits_find(&b->hits, old.at[l->at].history, old.at[l->at].session,
                                 old.at[l->at].message);
    browse_hits_release(&old);
    if (!b->repeating)
        *l = (struct browse_list){0, 0};
    else
        keep_line(b, place != SIZE_MAX ? place : l->at, l->top == 0 ? l->at : row);
    b->repeating = false;
    return place == SIZE_MAX;
}

/* Adds hits. Some stand among the old ones, so the chosen one may move; it stays on its row. At the
 * top of the order by the number of hits the top stays chosen, unless its messages are being read.
 * Returns true if another hit is chosen. */
static bool add_hits(struct browse *b, struct browse_hits *h)
{
    struct browse_list *l = &b->hit_list;
    const char *chosen = l->at < b->hits.count ? b->hits.at[l->at].own : NULL;
    size_t row = less(l->at, l->top), place = b->most_hits ? 0 : l->at;

    browse_hits_move(&b->hits, h, b->most_hits);
    if (!chosen || (b->most_hits && l->at == 0 && b->focus != BROWSE_TEXT))
        return chosen && b->hits.at[0].own != chosen;
    while (b->hits.at[place].own != chosen)
        place++;
    if (place != l->at)
        keep_line(b, place, l->top == 0 ? place : row);
    return false;
}

void browse_take_count(struct browse *b, unsigned number, uint64_t count)
{
    if (number == b->search_number && number == b->hits_number)
        b->hits_total = count;
}

/* Says at the foot what the hits of a new search do not hold. */
static void report_fit(struct browse *b)
{
    if (b->fit == BROWSE_FIT_SESSION)
        browse_say(b, "no message has all words; these sessions have them");
    else if (b->fit == BROWSE_FIT_NEARLY)
        browse_say(b, "no session has all words; these have all but one");
}

void browse_take_hits(struct browse *b, unsigned number, struct browse_hits *h, enum browse_fit fit,
                      bool done)
{
    bool other = b->back.list || b->hits.count == 0;
    bool first = number != b->hits_number || b->hits.count == 0;

    if (number != b->search_number) {
        browse_hits_release(h);
        return;
    }
    b->hits_done = done;
    if (h->count > 0 || number != b->hits_number)
        b->fit = fit;
    if (first && h->count > 0 && !b->repeating)
        report_fit(b);
    if (number != b->hits_number)
        other = replace_hits(b, h) || other;
    else
        other = add_hits(b, h) || other;
    b->hits_number = number;
    if (b->back.list) {
        size_t place = browse_hits_find(&b->hits, BROWSE_ANY_HISTORY, buf_str(&b->back.session),
                                        buf_str(&b->back.message));

        if (place != SIZE_MAX)
            keep_line(b, place, b->back.row);
        /* If the browser was closed before the first hit came, no hit can be restored. */
        b->back.list = place == SIZE_MAX && !done && b->back.message.len > 0;
        if (b->back.list)
            b->wants.hits = 2 * b->hits.count;
    }
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b, other);
}
