#include "browse/model.h"

#include <string.h>

#include "chathist/history/message.h"

/* The end of a growing list of hits is awaited until there are this many, so that End does not read
 * them all. */
#define FOLLOW_MAX ((size_t)1000)
#define NAME_MAX_BYTES ((size_t)100)

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
    browse_want_sessions(b);
}

void browse_release(struct browse *b)
{
    browse_edit_release(&b->query);
    browse_edit_release(&b->name);
    browse_sessions_release(&b->sessions);
    browse_hits_release(&b->hits);
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

/* ---- reports and questions ---- */

void browse_say(struct browse *b, const char *text)
{
    set(&b->status, str_of(text));
}

void browse_ask(struct browse *b, enum browse_command command)
{
    b->asked = command;
    b->mode = BROWSE_ASKING;
}

void browse_add_file_name(struct buf *out, const struct browse *b)
{
    struct str id = buf_str(&b->subject.id);

    for (size_t i = 0; i < id.n && i < NAME_MAX_BYTES; i++)
        buf_add_byte(out, id.p[i] == '/' ? '_' : id.p[i]);
    buf_add_c(out, ".md");
}

/* ---- commands that wait ---- */

/* The data that a command needs. */
enum needs {
    NEEDS_NOTHING,
    NEEDS_SESSION,  /* the chosen session */
    NEEDS_LINES,    /* the lines to move over, of the list or the messages */
    NEEDS_MESSAGES, /* the messages */
};

static enum needs needs_of(const struct browse *b, const struct browse_wait *w);

/* Returns true for a command that leaves the browser or acts on a message: the next key cancels
 * it. */
static bool is_act(const struct browse *b, const struct browse_wait *w)
{
    return needs_of(b, w) == NEEDS_MESSAGES &&
           (w->command >= BROWSE_LOAD || (w->command == BROWSE_ENTER && w->focus != BROWSE_TEXT));
}

static bool act_waits(const struct browse *b)
{
    return b->waits.count > 0 && is_act(b, &b->waits.at[b->waits.count - 1]);
}

static void cancel_act(struct browse *b)
{
    if (act_waits(b))
        b->waits.count--;
}

/* ---- the list ---- */

size_t browse_list_count(const struct browse *b)
{
    return b->searching ? b->hits.count : b->sessions.count;
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

/* Returns true until the first result of a requested list. A repeated search counts as read. */
static bool awaits_list(const struct browse *b)
{
    if (b->search_due != 0 ||
        (b->searched.len > 0 && b->hits_number != b->search_number && !b->repeating))
        return true;
    if (b->searching)
        return b->hits.count == 0 && !b->hits_done;
    return !b->sessions_known || (b->sessions_partial && b->sessions.count == 0);
}

/* Returns true if the list has been read and the position of the last visit was restored in it. */
static bool has_list(const struct browse *b)
{
    return !awaits_list(b) && !b->back.list;
}

static bool is_whole(const struct browse *b)
{
    return b->searching ? b->hits_done : !b->sessions_partial || !browse_awaits_sessions(b);
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
    if (b->searching && !b->hits_done && l->at + 2 * rows >= count)
        b->wants.more = true;
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
    size_t at = browse_list(b)->at;

    if (at >= browse_list_count(b))
        return false;
    if (b->searching) {
        *history = b->hits.at[at].history;
        *id = b->hits.at[at].session;
    } else {
        *history = b->sessions.at[at].history;
        *id = (struct str){b->sessions.at[at].of->id, b->sessions.at[at].of->id_len};
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
    b->target.end = -1;
    b->wants.thread = true;
}

/* Returns the message id of the chosen hit, borrowed; empty without a hit. */
static struct str chosen_hit(const struct browse *b)
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
    if (chosen_hit(b).n > 0)
        (void)browse_pane_show(&b->pane, chosen_hit(b), b->hits.at[b->hit_list.at].at);
}

/* Returns true if the panel shows the thread but the hit is only among all lines, or the
 * reverse. */
static bool shows_others(const struct browse *b, struct str hit)
{
    return browse_target_is(&b->shown, b->target.history, buf_str(&b->target.id)) &&
           !str_eq(buf_str(&b->target.hit), hit) && (b->every || misses(b, hit));
}

/* Gets the range of the file with the lines of a session, if the list was read from the end of
 * it. */
static void find_range(const struct browse *b, struct browse_target *t, struct str id)
{
    size_t place =
        b->sessions_partial ? browse_sessions_find(&b->sessions, t->history, id) : SIZE_MAX;

    t->end = -1;
    if (place == SIZE_MAX)
        return;
    t->first = b->sessions.at[place].of->first_line;
    t->end = b->sessions.at[place].of->end;
}

/* Requests the messages of a session for the panel. */
static void want_messages(struct browse *b, size_t history, struct str id)
{
    struct browse_target *t = &b->target;

    if (!browse_target_is(t, history, id)) {
        set(&t->id, id);
        t->history = history;
        if (act_waits(b) && b->waits.chosen) {
            b->waits.count--;
            browse_say(b, "given up: another session is chosen");
        }
    }
    set(&t->hit, chosen_hit(b));
    find_range(b, t, id);
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
    if (!browse_target_is(t, history, id) || (t->end >= 0 && !b->sessions_partial) ||
        shows_others(b, chosen_hit(b)))
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
    b->back.list = b->back.text = false;
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
        set(&id, buf_str(&b->back.session));
    } else if (l->at < b->sessions.count) {
        of = b->sessions.at[l->at].history;
        set(&id, (struct str){b->sessions.at[l->at].of->id, b->sessions.at[l->at].of->id_len});
    }
    browse_sessions_put(&b->sessions, history, list, b->all ? b->histories : 1);
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
    /* The session to restore may be further back in the file, or in another history. */
    if (!b->back.list || b->searching)
        show_chosen(b, false);
}

void browse_take_sessions(struct browse *b, size_t history, struct session_list *list, bool whole)
{
    b->sessions_known = true;
    b->sessions_partial = !whole;
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
    bool other = every != b->every || misses(b, chosen_hit(b));
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
    b->repeating = again && b->searching && (b->repeating || b->hits_number == b->search_number);
    b->search_number++;
    b->wants.more = false;
    if (!again)
        browse_pane_search(&b->pane, text);
    set(&b->searched, text);
    b->wants.search = true;
    if (text.n == 0) {
        browse_hits_release(&b->hits);
        b->searching = false;
        b->hits_done = true;
        clamp_list(b);
        show_chosen(b, true);
    }
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

    b->hits = *h;
    *h = (struct browse_hits){0};
    b->searching = true;
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

void browse_take_hits(struct browse *b, unsigned number, struct browse_hits *h, bool done)
{
    bool other = b->back.list || b->hits.count == 0;

    if (number != b->search_number) {
        browse_hits_release(h);
        return;
    }
    b->hits_done = done;
    if (number != b->hits_number)
        other = replace_hits(b, h) || other;
    else
        browse_hits_move(&b->hits, h);
    b->hits_number = number;
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
        show_chosen(b, other);
}

/* ---- moving ---- */

static long page_of(const struct browse *b)
{
    struct browse_areas a = browse_areas(b);
    size_t rows = b->focus == BROWSE_TEXT ? a.text.rows : a.list.rows;

    return rows > 2 ? (long)rows - 1 : 1;
}

static void move_list(struct browse *b, long lines)
{
    size_t at = browse_list(b)->at, count = browse_list_count(b);
    size_t to = lines < 0 ? less(at, (size_t)-lines) : at + (size_t)lines;

    to = to < count ? to : less(count, 1);
    if (to != at)
        browse_choose(b, to);
}

static void move_lines(struct browse *b, long lines)
{
    if (b->focus == BROWSE_TEXT)
        browse_pane_scroll(&b->pane, lines);
    else
        move_list(b, lines);
}

/* A page is two halves; the greater half of an odd number of lines. */
static void move_halves(struct browse *b, long halves)
{
    long page = page_of(b);

    move_lines(b, halves % 2 == 0 ? halves / 2 * page : halves * ((page + 1) / 2));
}

static void move_end(struct browse *b, long last)
{
    if (b->focus != BROWSE_TEXT)
        browse_choose(b, last ? less(browse_list_count(b), 1) : 0);
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

static void step_hit(struct browse *b, long on)
{
    if (b->query.text.len == 0)
        browse_say(b, "there is nothing to look for: / goes to the search box");
    else if (!browse_pane_next_hit(&b->pane, on))
        browse_say(b, "no hit in these messages");
}

static void fold(struct browse *b, long all)
{
    if (all)
        browse_pane_fold_all(&b->pane);
    else
        browse_pane_fold(&b->pane);
}

static void turn_focus(struct browse *b, long by)
{
    b->focus = (enum browse_focus)(((long)b->focus + by + 3) % 3);
}

static void set_focus(struct browse *b, long focus)
{
    b->focus = (enum browse_focus)focus;
}

/* Enter, when it does not choose: goes to the next panel, or unfolds. */
static void go_on(struct browse *b, long unused)
{
    (void)unused;
    if (b->focus == BROWSE_TEXT)
        browse_pane_fold(&b->pane);
    else
        turn_focus(b, 1);
}

static void next_role(struct browse *b, long unused)
{
    static const char *const next[] = {[ROLE_USER] = "assistant",
                                       [ROLE_ASSISTANT] = "system",
                                       [ROLE_SYSTEM] = "tool",
                                       [ROLE_TOOL] = NULL,
                                       [ROLE_OTHER] = NULL};

    (void)unused;
    browse_set_role(b, b->role ? next[role_of(str_of(b->role))] : "user");
}

static void next_scope(struct browse *b, long unused)
{
    (void)unused;
    if (b->histories < 2)
        browse_say(b, "there is no other history");
    else
        browse_set_scope(b, !b->all);
}

static void help(struct browse *b, long unused)
{
    (void)unused;
    b->mode = BROWSE_HELPING;
    b->help_top = 0;
}

/* Makes the chosen session the subject of the following question. Returns false without a
 * session. */
static bool take_subject(struct browse *b)
{
    struct str id;

    if (!browse_chosen(b, &b->subject.history, &id))
        return false;
    buf_clear(&b->subject.id);
    buf_add_str(&b->subject.id, id);
    return true;
}

static void ask_name(struct browse *b, long unused)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    (void)unused;
    if (!take_subject(b))
        return;
    browse_add_file_name(&name, b);
    browse_edit_set(&b->name, buf_str(&name));
    buf_release(&name);
    b->mode = BROWSE_NAMING;
}

static void ask_deletion(struct browse *b, long unused)
{
    (void)unused;
    if (take_subject(b))
        browse_ask(b, BROWSE_DELETE);
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
    [BROWSE_ENTER] = {NEEDS_MESSAGES, go_on, 0},
    [BROWSE_NEXT_HIT] = {NEEDS_MESSAGES, step_hit, true},
    [BROWSE_LAST_HIT] = {NEEDS_MESSAGES, step_hit, false},
    [BROWSE_NEXT_MESSAGE] = {NEEDS_MESSAGES, step_message, true},
    [BROWSE_LAST_MESSAGE] = {NEEDS_MESSAGES, step_message, false},
    [BROWSE_FOLD] = {NEEDS_MESSAGES, fold, false},
    [BROWSE_FOLD_ALL] = {NEEDS_MESSAGES, fold, true},
    [BROWSE_ROLE] = {NEEDS_NOTHING, next_role, 0},
    [BROWSE_SCOPE] = {NEEDS_NOTHING, next_scope, 0},
    [BROWSE_LOAD] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_PROMPT] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_COPY] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_PAGER] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_EDITOR] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_EXPORT] = {NEEDS_SESSION, ask_name, 0},
    [BROWSE_FORK] = {NEEDS_MESSAGES, NULL, 0},
    [BROWSE_DELETE] = {NEEDS_SESSION, ask_deletion, 0},
    [BROWSE_HELP] = {NEEDS_NOTHING, help, 0},
    /* The commands without a row are the same as this one. */
    [BROWSE_CANCEL] = {NEEDS_NOTHING, NULL, 0},
};

static bool chooses(const struct browse *b, enum browse_command command, enum browse_focus focus)
{
    return command == BROWSE_ENTER && b->choosing && focus != BROWSE_TEXT;
}

static enum needs needs_of(const struct browse *b, const struct browse_wait *w)
{
    enum needs needs = actions[w->command].needs;

    if (w->focus == BROWSE_TEXT)
        return needs == NEEDS_LINES ? NEEDS_MESSAGES : needs;
    return w->command == BROWSE_ENTER && !b->choosing ? NEEDS_NOTHING : needs;
}

/* Carries out a command, or returns it if the caller has to do it. */
static enum browse_command carry_out(struct browse *b, enum browse_command command)
{
    const struct action *a = &actions[command];

    if (!a->act || chooses(b, command, b->focus))
        return command;
    a->act(b, a->arg);
    return BROWSE_NOTHING;
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

/* Returns true if the panel shows the messages of the chosen line, with the chosen hit among them
 * unless that has disappeared from the file. */
static bool has_messages(const struct browse *b)
{
    size_t history;
    struct str id, hit = chosen_hit(b);

    if (!has_list(b))
        return false;
    if (!browse_chosen(b, &history, &id))
        return true;
    return browse_target_is(&b->shown, history, id) &&
           (hit.n == 0 || browse_pane_find(&b->pane, hit) != SIZE_MAX ||
            (b->shown.end < 0 && str_eq(buf_str(&b->shown.hit), hit)));
}

static bool question_waits(const struct browse *b)
{
    return b->waits.count > 0 && needs_of(b, &b->waits.at[b->waits.count - 1]) == NEEDS_SESSION;
}

/* Returns true if a move ends on a line of the list that has been read. */
static bool has_lines(const struct browse *b, enum browse_command command)
{
    const struct action *a = &actions[command];
    size_t count = browse_list_count(b);
    long lines = a->act == move_halves ? a->arg * (page_of(b) + 1) / 2 : a->arg;

    if (awaits_list(b))
        return false;
    if (is_whole(b) || (command == BROWSE_LAST && b->searching && count >= FOLLOW_MAX))
        return true;
    return command != BROWSE_LAST && (lines <= 0 || browse_list(b)->at + (size_t)lines < count);
}

/* Returns true if a command can be carried out now. */
static bool is_ready(const struct browse *b, const struct browse_wait *w)
{
    switch (needs_of(b, w)) {
    case NEEDS_MESSAGES:
        return has_messages(b) && !b->pane.seek.going;
    case NEEDS_SESSION:
        return has_list(b);
    case NEEDS_LINES:
        return has_lines(b, w->command);
    default:
        return true;
    }
}

/* Has a command wait unless it can be carried out now. Commands that need no data do not wait for
 * those that do. */
static enum browse_command carry_out_or_wait(struct browse *b, enum browse_command command)
{
    struct browse_wait w = {command, b->focus};
    struct browse_waits *all = &b->waits;
    enum needs needs = needs_of(b, &w);

    /* Messages of a session that is left are not wanted any more. */
    while (needs == NEEDS_LINES && all->count > 0 &&
           needs_of(b, &all->at[all->count - 1]) == NEEDS_MESSAGES)
        all->count--;
    if (needs == NEEDS_NOTHING || (all->count == 0 && is_ready(b, &w)))
        return carry_out(b, command);
    all->chosen = all->count == 0 && has_list(b);
    if (all->count < BROWSE_WAITS_MAX)
        all->at[all->count++] = w;
    return BROWSE_NOTHING;
}

enum browse_command browse_go_on(struct browse *b)
{
    struct browse_waits *all = &b->waits;
    enum browse_command command = BROWSE_NOTHING;

    if (b->pane.seek.going && !browse_pane_seek(&b->pane))
        browse_say(b, "no hit in these messages");
    while (command == BROWSE_NOTHING && all->count > 0 && b->mode == BROWSE_NORMAL &&
           !b->back.list && is_ready(b, &all->at[0])) {
        struct browse_wait w = all->at[0];
        enum browse_focus focus = b->focus;

        memmove(all->at, all->at + 1, --all->count * sizeof *all->at);
        /* The focus is where it was when the key was pressed. */
        b->focus = w.focus;
        command = carry_out(b, w.command);
        b->focus = focus;
    }
    if (all->count > 0 && b->searching && !b->hits_done)
        b->wants.more = true;
    return command;
}

static void edit_query(struct browse *b, int32_t key, int64_t now)
{
    if (!browse_edit_key(&b->query, key))
        return;
    b->back.list = b->back.text = false;
    b->waits.count = 0;
    b->search_due = now + BROWSE_DEBOUNCE_MS;
}

void browse_paste(struct browse *b, int32_t key, int64_t now)
{
    cancel_act(b);
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
    cancel_act(b);
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
            b->waits.count--;
        return BROWSE_NOTHING;
    }
    if (command == BROWSE_NOTHING && b->focus == BROWSE_BOX) {
        edit_query(b, key, now);
        return BROWSE_NOTHING;
    }
    return carry_out_or_wait(b, command);
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
        b->focus = BROWSE_BOX;
    } else if (inside(a.list, row, column)) {
        size_t place = browse_list(b)->top + row - a.list.row;

        b->focus = BROWSE_LIST;
        if (awaits_list(b) || place >= browse_list_count(b))
            return BROWSE_NOTHING;
        b->waits.count = 0;
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

    cancel_act(b);
    if (b->mode != BROWSE_NORMAL)
        return;
    if (inside(a.text, row, column))
        browse_pane_scroll(&b->pane, lines);
    else if (inside(a.list, row, column) && !awaits_list(b))
        move_list(b, lines);
}
