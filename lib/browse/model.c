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
    buf_init(&b->shown.id, BUF_LINE);
    buf_init(&b->shown.hit, BUF_LINE);
    buf_init(&b->subject.id, BUF_LINE);
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
    browse_edit_release(&b->find);
    browse_sessions_release(&b->sessions);
    browse_hits_release(&b->hits);
    browse_pane_release(&b->pane);
    buf_release(&b->status);
    buf_release(&b->searched);
    buf_release(&b->wrong);
    buf_release(&b->shown.id);
    buf_release(&b->shown.hit);
    buf_release(&b->subject.id);
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

/* Drops the commands and moves that wait for the list or its messages. */
static void drop_held(struct browse *b)
{
    b->held.command = BROWSE_NOTHING;
    b->goal.from = BROWSE_NOTHING;
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

/* Has the search go on until it has this many hits. */
static void want_hits(struct browse *b, size_t count)
{
    if (b->hits_wanted < count)
        b->hits_wanted = count;
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
        want_hits(b, b->most_hits ? BROWSE_HITS_MAX : 2 * count);
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

static void set_focus(struct browse *b, long focus)
{
    b->focus = (enum browse_focus)focus;
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

void browse_changed(struct browse *b, size_t history)
{
    b->wants.messages = b->wants.messages || (b->shown.id.len > 0 && b->shown.history == history);
}

/* Returns the message id of the chosen hit, borrowed; empty without a hit. */
static struct str chosen_hit(const struct browse *b)
{
    return b->searching && b->hit_list.at < b->hits.count ? b->hits.at[b->hit_list.at].message
                                                          : STR("");
}

static bool misses(const struct browse *b, struct str hit)
{
    return hit.n > 0 && browse_find_message(&b->pane.thread, hit) == SIZE_MAX;
}

static void show_hit(struct browse *b)
{
    if (chosen_hit(b).n > 0)
        (void)browse_pane_show(&b->pane, chosen_hit(b), b->hits.at[b->hit_list.at].at);
}

bool browse_shows(const struct browse *b, size_t history, struct str id)
{
    return !b->another && b->shown.history == history && str_eq(buf_str(&b->shown.id), id);
}

/* Shows the chosen session in the panel, or requests its messages. `other`: another line was
 * chosen, so that its hit is to be seen; else the text keeps its place. */
static void show_chosen(struct browse *b, bool other)
{
    struct str id = STR(""), hit = chosen_hit(b);
    size_t history = 0;

    if (!browse_chosen(b, &history, &id)) {
        struct browse_parts none = {0};
        struct thread nothing = {0};

        if (b->shown.id.len == 0)
            return;
        buf_clear(&b->shown.id);
        b->another = b->wants.messages = false;
        browse_pane_set(&b->pane, &nothing, &none, false);
        return;
    }
    if (!browse_shows(b, history, id)) {
        buf_set(&b->shown.id, id);
        b->shown.history = history;
        b->another = b->wants.messages = true;
    }
    /* The panel has the thread, but the hit is only among all lines, or the reverse. */
    if (!str_eq(buf_str(&b->shown.hit), hit) && (b->every || misses(b, hit)))
        b->wants.messages = true;
    if (b->wants.messages)
        buf_set(&b->shown.hit, hit);
    /* Messages that are already shown do not wait until they have been read again. */
    if (other && !b->another)
        show_hit(b);
}

/* Keeps the chosen line on its row after the list itself has changed. */
static void choose_in_row(struct browse *b, size_t place, size_t row)
{
    struct browse_list *l = list_of(b);

    l->at = place;
    l->top = less(place, row);
    clamp_list(b);
}

/* Has the panel mark the text of `find`, or with `on` false again that of the search. */
static void set_found(struct browse *b, bool on)
{
    b->found = on;
    browse_pane_search(&b->pane, on ? buf_str(&b->find.text) : buf_str(&b->searched), !on);
}

void browse_choose(struct browse *b, size_t place)
{
    list_of(b)->at = place;
    b->back.list = b->back.text = b->following = false;
    if (b->found)
        set_found(b, false);
    clamp_list(b);
    show_chosen(b, true);
}

void browse_set_sessions(struct browse *b, size_t history, struct session_list *list)
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

void browse_finish_sessions(struct browse *b)
{
    b->sessions_known = true;
    b->wants.sessions = false;
    if (b->back.list && !b->searching) {
        b->back.list = false;
        show_chosen(b, true);
    }
}

void browse_set_messages(struct browse *b, struct thread *t, struct browse_parts *parts, bool every)
{
    bool other = every != b->every || misses(b, chosen_hit(b));
    bool same = !b->another;

    browse_pane_set(&b->pane, t, parts, same);
    b->every = every;
    b->another = b->wants.messages = false;
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
    if (!get_query(b, &text)) {
        b->searching = b->searching && b->searched.len > 0;
        return;
    }
    /* Old hits are kept while the same search runs again, but only if it had given hits. */
    b->repeating = again && b->searching && (b->repeating || b->answered);
    b->answered = false;
    b->hits_wanted = BROWSE_HITS_FIRST + (b->repeating ? b->hits.count : 0);
    buf_set(&b->searched, text);
    if (!again)
        set_found(b, false);
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
    return b->searched.len > 0 && !b->answered && !b->repeating;
}

/* Ends the search: the list shows the sessions again, with the session that was chosen. */
static void end_search(struct browse *b)
{
    struct buf id = BUF_INIT(BUF_LINE);
    struct str chosen;
    size_t history = 0, place = SIZE_MAX;

    if (b->searching && browse_chosen(b, &history, &chosen))
        buf_set(&id, chosen);
    drop_held(b);
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
    drop_held(b);
    browse_search(b, false);
}

static void set_role(struct browse *b, const char *role)
{
    b->role = role;
    browse_pane_set_role(&b->pane, role);
    search_other(b);
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
        choose_in_row(b, place != SIZE_MAX ? place : l->at, l->top == 0 ? l->at : row);
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
        choose_in_row(b, place, l->top == 0 ? place : row);
    return false;
}

void browse_add_hits(struct browse *b, struct browse_hits *h, enum browse_fit fit, bool done)
{
    bool first = !b->answered, other = b->back.list || b->hits.count == 0;

    b->hits_done = done;
    if (h->count > 0 || first)
        b->fit = fit;
    if (h->count > 0 && (first || b->hits.count == 0) && !b->repeating) {
        if (fit == BROWSE_FIT_SESSION)
            browse_say(b, "no message has all words; these sessions have them");
        else if (fit == BROWSE_FIT_NEARLY)
            browse_say(b, "no session has all words; these have all but one");
    }
    other = (first ? replace_hits(b, h) : add_hits(b, h)) || other;
    b->answered = true;
    if (b->back.list) {
        size_t place = browse_hits_find(&b->hits, BROWSE_ANY_HISTORY, buf_str(&b->back.session),
                                        buf_str(&b->back.message));

        if (place != SIZE_MAX)
            choose_in_row(b, place, b->back.row);
        /* If the browser was closed before the first hit came, no hit can be restored. */
        b->back.list = place == SIZE_MAX && !done && b->back.message.len > 0;
        if (b->back.list)
            want_hits(b, 2 * b->hits.count);
    }
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b, other);
}

/* ---- commands ---- */

void browse_ask(struct browse *b, enum browse_command command)
{
    b->asked = command;
    b->mode = BROWSE_ASKING;
}

/* ---- the command that is held ---- */

/* The data that a command needs. */
enum needs {
    NEEDS_NOTHING,
    NEEDS_LINES,    /* in the list nothing, in the messages these */
    NEEDS_SESSION,  /* the chosen session */
    NEEDS_MESSAGES, /* the messages */
    NEEDS_HITS,     /* the messages, and the number of hits in each */
};

static enum needs needs_of(const struct browse *b, struct browse_held held);

/* Drops a held command that leaves the browser or acts on a message: the next key cancels it. */
static void cancel_act(struct browse *b)
{
    enum browse_command command = b->held.command;

    if ((command >= BROWSE_LOAD || command == BROWSE_ENTER) &&
        needs_of(b, b->held) == NEEDS_MESSAGES)
        b->held.command = BROWSE_NOTHING;
}

/* Returns true if the list has been read and the position of the last visit was restored in it. */
static bool has_list(const struct browse *b)
{
    return !browse_awaits_list(b) && !b->back.list && b->goal.from == BROWSE_NOTHING;
}

/* ---- moving ---- */

/* Chooses the line that the moves lead to, if it was found or the list has its end before it. */
static void reach_goal(struct browse *b)
{
    struct browse_goal *g = &b->goal;
    size_t at = browse_list(b)->at, count = browse_list_count(b), to;
    bool last = g->from == BROWSE_LAST;

    if (g->from == BROWSE_NOTHING || browse_awaits_list(b))
        return;
    at = last ? less(count, 1) : g->from == BROWSE_FIRST ? 0 : at;
    to = g->lines < 0 ? less(at, (size_t)-g->lines) : at + (size_t)g->lines;
    if (b->searching && !b->hits_done && (last ? count < BROWSE_HITS_MAX : to >= count)) {
        want_hits(b, last ? BROWSE_HITS_MAX : 2 * count);
        return;
    }
    to = to < count ? to : less(count, 1);
    if (to != browse_list(b)->at || g->from != BROWSE_DOWN)
        browse_choose(b, to);
    g->from = BROWSE_NOTHING;
}

/* Moves in the list: by lines from the line that is chosen, or where the moves before it lead to
 * (BROWSE_DOWN), to its first line or to its last one. */
static void move_list(struct browse *b, enum browse_command from, long lines)
{
    struct browse_goal *g = &b->goal;
    /* The hits of a new search begin with the first one. */
    size_t at = b->query.text.len == 0  ? b->session_list.at
                : browse_awaits_list(b) ? 0
                                        : browse_list(b)->at;

    if (from != BROWSE_DOWN || g->from == BROWSE_NOTHING)
        *g = (struct browse_goal){from, 0};
    g->lines += lines;
    /* Nothing is above the first line and below the last one. */
    if (g->from == BROWSE_DOWN && g->lines < -(long)at && !b->back.list)
        g->lines = -(long)at;
    if (g->from == BROWSE_LAST ? g->lines > 0 : g->from == BROWSE_FIRST && g->lines < 0)
        g->lines = 0;
    reach_goal(b);
}

static void move_lines(struct browse *b, long lines)
{
    if (b->focus == BROWSE_TEXT)
        browse_pane_scroll(&b->pane, lines);
    else
        move_list(b, BROWSE_DOWN, lines);
}

/* A page is two halves; the greater half of an odd number of lines. */
static void move_halves(struct browse *b, long halves)
{
    struct browse_areas a = browse_areas(b);
    size_t rows = b->focus == BROWSE_TEXT ? a.text.rows : a.list.rows;
    long page = rows > 2 ? (long)rows - 1 : 1;

    move_lines(b, halves % 2 == 0 ? halves / 2 * page : halves * ((page + 1) / 2));
}

static void move_end(struct browse *b, long last)
{
    if (b->focus != BROWSE_TEXT)
        move_list(b, last ? BROWSE_LAST : BROWSE_FIRST, 0);
    else if (last)
        browse_pane_last(&b->pane);
    else
        browse_pane_first(&b->pane);
}

/* ---- what stays in the state ---- */

static void step_message(struct browse *b, long on)
{
    browse_pane_step(&b->pane, on);
}

/* Returns the place of the last row of the session below the chosen one in the list of hits, or of
 * the first row of the session above; SIZE_MAX without one. */
static size_t next_session(const struct browse *b, bool on)
{
    const struct browse_hits *h = &b->hits;
    size_t at = b->hit_list.at, group;

    while (at < h->count && h->at[at].group == h->at[b->hit_list.at].group)
        at += on ? 1 : SIZE_MAX; /* below 0 is above the count */
    if (at >= h->count)
        return SIZE_MAX;
    group = h->at[at].group;
    while (on ? at + 1 < h->count && h->at[at + 1].group == group
              : at > 0 && h->at[at - 1].group == group)
        at += on ? 1 : SIZE_MAX;
    return at;
}

/* From the last match of a session goes on to the next session with a hit; in the messages the
 * oldest one is first. Returns false without one. */
static bool leave_session(struct browse *b, bool on)
{
    size_t number, total, place;

    if (b->found || !b->searching || !browse_pane_hit_number(&b->pane, &number, &total) ||
        b->pane.hit != b->pane.at || number != (on ? total : 1))
        return false;
    place = next_session(b, on);
    if (place == SIZE_MAX)
        return false;
    browse_choose(b, place);
    browse_say(b, on ? "the next session with a hit" : "the session with a hit before");
    return true;
}

static void step_hit(struct browse *b, long on)
{
    bool wrapped;

    if (leave_session(b, on))
        return;
    if (!b->found && b->searched.len == 0)
        browse_say(b, "there is nothing to look for: / finds in these messages");
    else if (!browse_pane_next_hit(&b->pane, on, &wrapped))
        browse_say(b, "no hit in these messages");
    else if (wrapped)
        browse_say(b, on ? "search wrapped: on from the beginning"
                         : "search wrapped: on from the end");
}

static void ask_find(struct browse *b, long unused)
{
    (void)unused;
    b->mode = BROWSE_FINDING;
    b->find.chosen = b->find.text.len > 0;
}

static void zoom(struct browse *b, long unused)
{
    (void)unused;
    if (b->focus == BROWSE_BOX)
        b->focus = BROWSE_LIST;
    b->zoomed = !b->zoomed;
    browse_resize(b, b->rows, b->columns);
}

static void toggle_follow(struct browse *b, long unused)
{
    (void)unused;
    b->following = !b->following;
    browse_say(b, b->following ? "following the end of the session" : "no longer following");
    if (b->following)
        browse_pane_last(&b->pane);
}

static void fold(struct browse *b, long all)
{
    browse_pane_fold(&b->pane, all);
}

static void turn_focus(struct browse *b, long by)
{
    set_focus(b, ((long)b->focus + by + 3) % 3);
}

bool browse_can_go_back(const struct browse *b)
{
    return b->zoomed || b->found || b->focus == BROWSE_TEXT || b->query.text.len > 0 || b->role;
}

/* Goes one step back. */
static void go_back(struct browse *b, long unused)
{
    (void)unused;
    if (b->zoomed)
        zoom(b, 0);
    else if (b->found)
        set_found(b, false);
    else if (b->focus == BROWSE_TEXT)
        b->focus = BROWSE_LIST;
    else if (b->query.text.len > 0)
        end_search(b);
    else
        set_role(b, NULL);
}

static void next_role(struct browse *b, long unused)
{
    static const char *const next[] = {[ROLE_USER] = "assistant",
                                       [ROLE_ASSISTANT] = "system",
                                       [ROLE_SYSTEM] = "tool",
                                       [ROLE_TOOL] = NULL,
                                       [ROLE_OTHER] = NULL};

    (void)unused;
    set_role(b, b->role ? next[role_of(str_of(b->role))] : "user");
}

static void next_scope(struct browse *b, long unused)
{
    (void)unused;
    if (b->histories < 2) {
        browse_say(b, "there is no other history");
        return;
    }
    b->all = !b->all;
    b->wants.sessions = true;
    browse_set_sessions(b, 0, NULL);
    search_other(b);
}

/* Changes the order of the sessions, or of the hits, and chooses the first line. */
static void next_order(struct browse *b, long unused)
{
    (void)unused;
    drop_held(b);
    if (b->searching) {
        b->most_hits = !b->most_hits;
        browse_hits_sort(&b->hits, b->most_hits);
        browse_say(b, b->most_hits ? "the session with the most hits first"
                                   : "the session with the newest hit first");
    } else {
        b->order = (b->order + 1) % BROWSE_ORDERS;
        browse_set_sessions(b, 0, NULL);
        browse_say(b, browse_order_name(b->order));
    }
    browse_choose(b, 0);
}

static void open_help(struct browse *b, long unused)
{
    (void)unused;
    b->mode = BROWSE_HELPING;
    b->help_top = 0;
}

/* Makes the chosen session the subject of the following question. Without a session shows the text
 * `none` and returns false. */
static bool set_subject(struct browse *b, const char *none)
{
    struct str id;

    if (!browse_chosen(b, &b->subject.history, &id)) {
        browse_say(b, none);
        return false;
    }
    buf_set(&b->subject.id, id);
    return true;
}

static void ask_name(struct browse *b, long unused)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    (void)unused;
    if (!set_subject(b, "there is no session to export"))
        return;
    browse_add_file_name(&name, b);
    browse_edit_set(&b->name, buf_str(&name));
    buf_release(&name);
    b->mode = BROWSE_NAMING;
}

static void ask_deletion(struct browse *b, long unused)
{
    (void)unused;
    if (set_subject(b, "there is no session to delete"))
        browse_ask(b, BROWSE_DELETE);
}

static void ask_part(struct browse *b, long unused)
{
    (void)unused;
    if (set_subject(b, "there is nothing to copy"))
        b->mode = BROWSE_COPYING;
}

/* ---- commands ---- */

static const struct action {
    enum needs needs;
    void (*act)(struct browse *b, long arg); /* NULL: the caller does it */
    long arg;
} actions[] = {
    [BROWSE_UP] = {NEEDS_LINES, move_lines, -1},
    [BROWSE_DOWN] = {NEEDS_LINES, move_lines, 1},
    [BROWSE_PAGE_UP] = {NEEDS_LINES, move_halves, -2},
    [BROWSE_PAGE_DOWN] = {NEEDS_LINES, move_halves, 2},
    [BROWSE_HALF_UP] = {NEEDS_LINES, move_halves, -1},
    [BROWSE_HALF_DOWN] = {NEEDS_LINES, move_halves, 1},
    [BROWSE_FIRST] = {NEEDS_LINES, move_end, false},
    [BROWSE_LAST] = {NEEDS_LINES, move_end, true},
    [BROWSE_NEXT_PANEL] = {NEEDS_NOTHING, turn_focus, 1},
    [BROWSE_LAST_PANEL] = {NEEDS_NOTHING, turn_focus, -1},
    [BROWSE_TO_BOX] = {NEEDS_NOTHING, set_focus, BROWSE_BOX},
    [BROWSE_TO_LIST] = {NEEDS_NOTHING, set_focus, BROWSE_LIST},
    [BROWSE_TO_TEXT] = {NEEDS_NOTHING, set_focus, BROWSE_TEXT},
    [BROWSE_ENTER] = {NEEDS_MESSAGES, set_focus, BROWSE_TEXT},
    [BROWSE_NEXT_HIT] = {NEEDS_HITS, step_hit, true},
    [BROWSE_LAST_HIT] = {NEEDS_HITS, step_hit, false},
    [BROWSE_NEXT_MESSAGE] = {NEEDS_MESSAGES, step_message, true},
    [BROWSE_LAST_MESSAGE] = {NEEDS_MESSAGES, step_message, false},
    [BROWSE_FOLD] = {NEEDS_MESSAGES, fold, false},
    [BROWSE_FOLD_ALL] = {NEEDS_MESSAGES, fold, true},
    [BROWSE_ROLE] = {NEEDS_NOTHING, next_role, 0},
    [BROWSE_SCOPE] = {NEEDS_NOTHING, next_scope, 0},
    [BROWSE_ORDER] = {NEEDS_NOTHING, next_order, 0},
    [BROWSE_FIND] = {NEEDS_NOTHING, ask_find, 0},
    [BROWSE_ZOOM] = {NEEDS_NOTHING, zoom, 0},
    [BROWSE_FOLLOW] = {NEEDS_MESSAGES, toggle_follow, 0},
    [BROWSE_BACK] = {NEEDS_NOTHING, go_back, 0},
    [BROWSE_LOAD] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_CHAT] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_COPY_PART] = {NEEDS_MESSAGES, ask_part, 0},
    [BROWSE_PROMPT] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_COPY] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_PAGER] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_EDITOR] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_EXPORT] = {NEEDS_SESSION, ask_name, 0},
    [BROWSE_FORK] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_DELETE] = {NEEDS_SESSION, ask_deletion, 0},
    [BROWSE_HELP] = {NEEDS_NOTHING, open_help, 0},
    /* The commands without a row are the same as this one. */
    [BROWSE_CANCEL] = {NEEDS_NOTHING, NULL, 0},
};

static enum needs needs_of(const struct browse *b, struct browse_held held)
{
    enum needs needs = actions[held.command].needs;

    if (held.focus == BROWSE_TEXT)
        return needs == NEEDS_LINES ? NEEDS_MESSAGES : needs;
    return held.command == BROWSE_ENTER && !b->choosing ? NEEDS_NOTHING : needs;
}

/* Returns true for a command that moves up in the messages. */
static bool moves_up(enum browse_command command)
{
    return command == BROWSE_UP || command == BROWSE_PAGE_UP || command == BROWSE_HALF_UP ||
           command == BROWSE_FIRST || command == BROWSE_LAST_MESSAGE ||
           command == BROWSE_NEXT_HIT || command == BROWSE_LAST_HIT;
}

/* Carries out a command, or returns it if the caller has to do it. */
static enum browse_command carry_out(struct browse *b, enum browse_command command)
{
    const struct action *a;

    if (command == BROWSE_BACK && !browse_can_go_back(b))
        return BROWSE_CLOSE;
    /* Enter chooses with --print; else it goes to the messages, and there it loads. */
    if (command == BROWSE_ENTER && b->focus == BROWSE_TEXT && (!b->choosing || b->for_chat))
        command = b->choosing ? BROWSE_PROMPT : BROWSE_LOAD;
    else if (command == BROWSE_ENTER && !b->choosing)
        command = BROWSE_TO_TEXT;
    if (command == BROWSE_CHAT && b->for_chat)
        command = BROWSE_LOAD;
    a = &actions[command];
    if (!a->act || command == BROWSE_ENTER)
        return command;
    if (b->focus == BROWSE_TEXT && moves_up(command))
        b->following = false;
    a->act(b, a->arg);
    return BROWSE_NOTHING;
}

static enum browse_command carry_out_or_hold(struct browse *b, enum browse_command command);

/* ---- modes ---- */

static enum browse_command press_help(struct browse *b, int32_t key)
{
    enum browse_command command = browse_command(BROWSE_LIST, key);
    size_t rows = b->rows > 2 ? b->rows - 2 : 1, last;
    struct browse_lines lines = {0};

    browse_help(&lines, b->columns);
    last = less(lines.count, rows);
    browse_lines_release(&lines);
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

static enum browse_command press_part(struct browse *b, int32_t key)
{
    b->mode = BROWSE_NORMAL;
    switch (key) {
    case 'm':
        return BROWSE_COPY;
    case 'c':
        return BROWSE_COPY_CODE;
    case 'i':
        return BROWSE_COPY_ID;
    case 's':
        return BROWSE_COPY_SESSION;
    default:
        return BROWSE_NOTHING;
    }
}

/* Applies a key to a text that is typed at the foot. Enter and Esc end it. Returns true for
 * Enter. */
static bool press_line(struct browse *b, struct browse_edit *line, int32_t key)
{
    if (key == BROWSE_KEY_ENTER || key == BROWSE_KEY_ESCAPE)
        b->mode = BROWSE_NORMAL;
    else
        browse_edit_key(line, key);
    return key == BROWSE_KEY_ENTER;
}

static enum browse_command press_find(struct browse *b, int32_t key)
{
    if (!press_line(b, &b->find, key))
        return BROWSE_NOTHING;
    set_found(b, b->find.text.len > 0);
    b->held.command = BROWSE_NOTHING;
    return b->found ? carry_out_or_hold(b, BROWSE_NEXT_HIT) : BROWSE_NOTHING;
}

/* ---- data that is not there yet ---- */

static bool has_messages(const struct browse *b)
{
    return has_list(b) && !b->wants.messages;
}

bool browse_is_looking(const struct browse *b)
{
    return needs_of(b, b->held) == NEEDS_HITS && has_messages(b);
}

static bool question_is_held(const struct browse *b)
{
    return needs_of(b, b->held) == NEEDS_SESSION;
}

/* Returns true if a command can be carried out now. */
static bool is_ready(const struct browse *b, struct browse_held held)
{
    switch (needs_of(b, held)) {
    case NEEDS_MESSAGES:
        return has_messages(b);
    case NEEDS_HITS:
        return has_messages(b) && !browse_pane_is_counting(&b->pane);
    case NEEDS_SESSION:
        return has_list(b);
    default:
        return true;
    }
}

/* Holds a command whose data is not there yet. Returns BROWSE_LATER if another one is held: the key
 * has to be pressed again. A command that needs no data is carried out before one that is held. */
static enum browse_command carry_out_or_hold(struct browse *b, enum browse_command command)
{
    struct browse_held held = {command, b->focus};
    enum needs needs = needs_of(b, held);

    /* Messages of a session that is left are not wanted any more. */
    if (needs == NEEDS_LINES)
        b->held.command = BROWSE_NOTHING;
    if (needs <= NEEDS_LINES)
        return carry_out(b, command);
    if (b->held.command != BROWSE_NOTHING)
        return BROWSE_LATER;
    if (is_ready(b, held))
        return carry_out(b, command);
    b->held = held;
    return BROWSE_NOTHING;
}

enum browse_command browse_go_on(struct browse *b)
{
    struct browse_held held = b->held;
    enum browse_focus focus = b->focus;
    enum browse_command command;

    if (!b->back.list)
        reach_goal(b);
    if (held.command == BROWSE_NOTHING || b->mode != BROWSE_NORMAL || !is_ready(b, held))
        return BROWSE_NOTHING;
    b->held.command = BROWSE_NOTHING;
    /* The focus is where it was when the key was pressed. */
    b->focus = held.focus;
    command = carry_out(b, held.command);
    b->focus = focus;
    return command;
}

static void edit_query(struct browse *b, int32_t key, int64_t now)
{
    if (!browse_edit_key(&b->query, key))
        return;
    b->back.list = b->back.text = false;
    drop_held(b);
    b->search_due = now + BROWSE_DEBOUNCE_MS;
}

void browse_paste(struct browse *b, int32_t key, int64_t now)
{
    cancel_act(b);
    if (b->mode == BROWSE_NAMING) {
        browse_edit_key(&b->name, key);
    } else if (b->mode == BROWSE_FINDING) {
        browse_edit_key(&b->find, key);
    } else if (b->mode == BROWSE_NORMAL && !question_is_held(b)) {
        buf_clear(&b->status);
        set_focus(b, BROWSE_BOX);
        edit_query(b, key, now);
    }
}

enum browse_command browse_press(struct browse *b, int32_t key, int64_t now)
{
    enum browse_command command = browse_command(b->focus, key);

    /* A search seldom begins with it. */
    if (key == '?' && b->focus == BROWSE_BOX && (b->query.text.len == 0 || b->query.chosen))
        command = BROWSE_HELP;
    buf_clear(&b->status);
    cancel_act(b);
    if (b->mode == BROWSE_HELPING)
        return press_help(b, key);
    if (b->mode != BROWSE_NORMAL && key == BROWSE_CTRL('c'))
        return BROWSE_CANCEL;
    if (b->mode == BROWSE_ASKING) {
        b->mode = BROWSE_NORMAL;
        return key == 'y' || key == 'Y' ? b->asked : BROWSE_NOTHING;
    }
    if (b->mode == BROWSE_NAMING)
        return press_line(b, &b->name, key) && b->name.text.len > 0 ? BROWSE_EXPORT
                                                                    : BROWSE_NOTHING;
    if (b->mode == BROWSE_FINDING)
        return press_find(b, key);
    if (b->mode == BROWSE_COPYING)
        return press_part(b, key);
    /* A key typed after a question that is held is its answer, not a command. */
    if (question_is_held(b)) {
        if (command == BROWSE_CANCEL || command == BROWSE_SUSPEND || command == BROWSE_REDRAW)
            return command;
        if (key == BROWSE_KEY_ESCAPE)
            b->held.command = BROWSE_NOTHING;
        return BROWSE_NOTHING;
    }
    if (command == BROWSE_NOTHING && b->focus == BROWSE_BOX) {
        edit_query(b, key, now);
        return BROWSE_NOTHING;
    }
    return carry_out_or_hold(b, command);
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

    cancel_act(b);
    if (b->mode != BROWSE_NORMAL)
        return BROWSE_NOTHING;
    if (inside(a.box, row, column)) {
        set_focus(b, BROWSE_BOX);
    } else if (inside(a.list, row, column)) {
        size_t place = browse_list(b)->top + row - a.list.row;

        b->focus = BROWSE_LIST;
        if (browse_awaits_list(b) || place >= browse_list_count(b))
            return BROWSE_NOTHING;
        drop_held(b);
        browse_choose(b, place);
    } else if (inside(a.text, row, column)) {
        b->focus = BROWSE_TEXT;
        if (!has_messages(b))
            return BROWSE_NOTHING;
        browse_pane_point(&b->pane, row - a.text.row);
    } else {
        return BROWSE_NOTHING;
    }
    if (twice && b->focus == BROWSE_TEXT)
        browse_pane_fold(&b->pane, false);
    return twice && b->focus == BROWSE_LIST ? browse_press(b, BROWSE_KEY_ENTER, now)
                                            : BROWSE_NOTHING;
}

void browse_wheel(struct browse *b, size_t row, size_t column, long lines)
{
    struct browse_areas a = browse_areas(b);

    cancel_act(b);
    if (b->mode != BROWSE_NORMAL)
        return;
    b->following = b->following && lines > 0;
    if (inside(a.text, row, column))
        browse_pane_scroll(&b->pane, lines);
    else if (inside(a.list, row, column) && !browse_awaits_list(b))
        move_list(b, BROWSE_DOWN, lines);
}
