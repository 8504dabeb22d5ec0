#include "browse/model.h"

#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/search/query.h"

#define NAME_MAX_BYTES ((size_t)100)

/* ---- the screen ---- */

/* From this many columns on, the list and the messages stand side by side. */
#define BESIDE 80
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
        wide = wide < BROWSE_LIST_MIN ? BROWSE_LIST_MIN : wide > LIST_MAX ? LIST_MAX : wide;
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
    buf_init(&b->instead, SIZE_MAX);
    buf_init(&b->said, SIZE_MAX);
    buf_init(&b->wrong, BUF_LINE);
    buf_init(&b->shown.id, BUF_LINE);
    buf_init(&b->subject.id, BUF_LINE);
    buf_init(&b->back.session, BUF_LINE);
    buf_init(&b->back.message, BUF_LINE);
    buf_init(&b->back.top, BUF_LINE);
    buf_init(&b->back.at, BUF_LINE);
    b->sessions.lists = mem_zalloc(histories * sizeof *b->sessions.lists);
    b->wants.sessions = true;
}

void browse_release(struct browse *b)
{
    browse_edit_release(&b->query);
    browse_edit_release(&b->name);
    browse_edit_release(&b->find);
    session_rows_release(&b->sessions, b->histories);
    browse_hits_release(&b->hits);
    browse_pane_release(&b->pane);
    browse_marks_release(&b->marks);
    buf_release(&b->status);
    buf_release(&b->searched);
    buf_release(&b->instead);
    buf_release(&b->said);
    buf_release(&b->wrong);
    buf_release(&b->shown.id);
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

uint64_t browse_deleted_messages(const struct browse *b, const struct row **one)
{
    uint64_t messages = 0;

    if (one)
        *one = NULL;
    for (size_t i = 0; i < b->sessions.count; i++) {
        const struct row *r = &b->sessions.at[i];
        const struct browse_mark *mark = browse_marks_find(&b->marks, r->history, r->session->id);

        if (!mark || mark->deletion == 0)
            continue;
        messages += r->session->count;
        if (one)
            *one = r;
    }
    return messages;
}

void browse_ask(struct browse *b, enum browse_command command)
{
    b->asked = command;
    b->promised = browse_deleted_messages(b, NULL);
    b->mode = BROWSE_ASKING;
}

bool browse_subject(const struct browse *b, size_t number, size_t *history, struct str *id)
{
    if (!b->subject.marked) {
        *history = b->subject.history;
        *id = buf_str(&b->subject.id);
        return number == 0;
    }
    for (size_t i = 0; i < b->marks.count; i++) {
        const struct browse_mark *one = &b->marks.at[i];

        if (!one->marked || number-- > 0)
            continue;
        *history = one->history;
        *id = one->id;
        return true;
    }
    return false;
}

void browse_add_file_name(struct buf *out, const struct browse *b)
{
    struct str id = b->subject.marked ? STR("sessions") : buf_str(&b->subject.id);

    for (size_t i = 0; i < id.n && i < NAME_MAX_BYTES; i++)
        buf_add_byte(out, id.p[i] == '/' ? '_' : id.p[i]);
    buf_add_c(out, ".md");
}

/* ---- the list ---- */

size_t browse_list_count(const struct browse *b)
{
    return b->searching ? b->hits.row_count : b->sessions.count;
}

static const struct browse_hit *hit_of_row(const struct browse *b, size_t row)
{
    return &b->hits.at[b->hits.rows[row].hit];
}

bool browse_awaits_list(const struct browse *b)
{
    if (b->search_due != 0 || browse_is_searching(b))
        return true;
    if (b->searching)
        return !b->hits_done &&
               (b->hits.count == 0 || (b->most_hits && b->hits.count < BROWSE_HITS_MAX));
    return b->wants.sessions;
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
        want_hits(b, b->most_hits ? BROWSE_HITS_MAX : 2 * b->hits.count);
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

static void set_focus(struct browse *b, enum browse_focus focus)
{
    b->focus = focus;
    if (b->zoomed)
        browse_resize(b, b->rows, b->columns);
}

/* Gets the session of a line of the list. Returns false below the last one. */
static bool session_of_line(const struct browse *b, size_t at, size_t *history, struct str *id)
{
    if (at >= browse_list_count(b))
        return false;
    if (b->searching) {
        *history = hit_of_row(b, at)->history;
        *id = hit_of_row(b, at)->session;
    } else {
        *history = b->sessions.at[at].history;
        *id = b->sessions.at[at].session->id;
    }
    return true;
}

bool browse_chosen(const struct browse *b, size_t *history, struct str *id)
{
    return session_of_line(b, browse_list(b)->at, history, id);
}

/* ---- the messages ---- */

void browse_changed(struct browse *b, size_t history)
{
    b->wants.messages = b->wants.messages || (b->shown.id.len > 0 && b->shown.history == history);
}

struct str browse_chosen_hit(const struct browse *b)
{
    return b->searching && b->hit_list.at < b->hits.row_count
               ? hit_of_row(b, b->hit_list.at)->message
               : STR("");
}

static bool lacks_message(const struct browse *b, struct str hit)
{
    return hit.n > 0 && browse_find_message(&b->pane.thread, hit) == SIZE_MAX;
}

static void show_hit(struct browse *b)
{
    if (browse_chosen_hit(b).n > 0)
        (void)browse_pane_show(&b->pane, browse_chosen_hit(b), hit_of_row(b, b->hit_list.at)->at);
}

bool browse_shows(const struct browse *b, size_t history, struct str id)
{
    return !b->another && b->shown.history == history && str_eq(buf_str(&b->shown.id), id);
}

/* Shows the chosen session in the panel, or requests its messages. `other`: another line was
 * chosen, so that its hit is to be seen; else the text keeps its place. */
static void show_chosen(struct browse *b, bool other)
{
    struct str id = STR("");
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
    if (other && (b->every || lacks_message(b, browse_chosen_hit(b))))
        b->wants.messages = true;
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
    struct str asked = buf_str(b->instead.len > 0 ? &b->instead : &b->searched);

    b->found = on;
    browse_pane_search(&b->pane, on ? buf_str(&b->find.text) : asked, !on);
}

void browse_set_instead(struct browse *b, struct str query, struct str said)
{
    buf_set(&b->instead, query);
    buf_set(&b->said, said);
    if (!b->found)
        set_found(b, false);
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
    } else if (l->at < b->sessions.count) {
        of = b->sessions.at[l->at].history;
        buf_set(&id, b->sessions.at[l->at].session->id);
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
    b->wants.sessions = false;
    if (b->back.list && !b->searching) {
        b->back.list = false;
        show_chosen(b, true);
    }
}

void browse_set_messages(struct browse *b, struct thread *t, struct browse_parts *parts, bool every)
{
    bool other = every != b->every || lacks_message(b, browse_chosen_hit(b));
    bool same = !b->another;

    browse_pane_set(&b->pane, t, parts, same);
    b->every = every;
    b->another = b->wants.messages = false;
    if (b->back.text && str_eq(buf_str(&b->shown.id), buf_str(&b->back.session))) {
        show_hit(b);
        browse_pane_return(&b->pane, &(struct browse_position){.top = buf_str(&b->back.top),
                                                               .part = b->back.top_part,
                                                               .line = b->back.top_line,
                                                               .at = buf_str(&b->back.at)});
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

bool browse_asks_meaning(const struct browse *b)
{
    return b->searched.len > 1 && b->searched.data[0] == '~';
}

void browse_search(struct browse *b, bool again)
{
    struct str text = buf_str(&b->query.text);
    struct str words = str_starts(text, STR("~")) ? STR("") : text;
    struct err e = ERR_INIT;
    struct query q;

    b->search_due = 0;
    buf_clear(&b->wrong);
    if (query_parse(&q, words, time_now(), &e) < 0) {
        buf_add_c(&b->wrong, err_text(&e));
        err_release(&e);
        b->searching = b->searching && b->searched.len > 0;
        return;
    }
    /* Blanks alone are an empty text. */
    if (query_is_empty(&q) && words.n == text.n)
        text = STR("");
    query_release(&q);
    /* Old hits are kept while the same search runs again, but only if it had given hits. */
    b->repeating = again && b->searching && (b->repeating || b->answered);
    b->answered = false;
    b->hits_wanted = BROWSE_HITS_FIRST + (b->repeating ? b->hits.count : 0);
    buf_set(&b->searched, text);
    if (!again) {
        buf_clear(&b->instead);
        buf_clear(&b->said);
        set_found(b, false);
    }
    b->wants.like = browse_asks_meaning(b);
    b->wants.search = true;
    if (text.n == 0 || b->wants.like) {
        /* A search by meaning takes long: the hits of the one before it do not stay until then. */
        browse_hits_release(&b->hits);
        b->searching = b->searching && text.n > 0;
        b->hits_done = text.n == 0;
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

static void set_role(struct browse *b, const char *role)
{
    b->role = role;
    browse_pane_set_role(&b->pane, role);
    if (b->query.text.len > 0)
        browse_search(b, false);
}

void browse_tick(struct browse *b, int64_t now)
{
    if (b->search_due != 0 && now >= b->search_due)
        browse_search(b, false);
}

/* Chooses the hit of the last visit, or has the search go on for it. If the browser was closed
 * before the first hit came, it had none. */
static void restore_hit(struct browse *b)
{
    size_t place = browse_hits_find(&b->hits, BROWSE_ANY_HISTORY, buf_str(&b->back.session),
                                    buf_str(&b->back.message));

    if (place != SIZE_MAX)
        choose_in_row(b, place, b->back.row);
    b->back.list = place == SIZE_MAX && !b->hits_done && b->back.message.len > 0;
    if (b->back.list)
        want_hits(b, 2 * b->hits.count);
}

/* Says what the hits have of the query, unless each message has all words in this form. */
static void say_what_matches(struct browse *b, enum browse_fit fit)
{
    static const char *const fits[] = {
        [BROWSE_FIT_MESSAGE] = "",
        [BROWSE_FIT_SESSION] = "no message has all words; these sessions have them",
        [BROWSE_FIT_NEARLY] = "no session has all words; these have all but one",
        [BROWSE_FIT_LIKE] = "",
    };
    struct buf text = BUF_INIT(SIZE_MAX);

    buf_add_str(&text, buf_str(&b->said));
    if (text.len > 0 && *fits[fit])
        buf_add_c(&text, "; ");
    buf_add_c(&text, fits[fit]);
    if (text.len > 0)
        browse_say(b, buf_c(&text));
    buf_release(&text);
}

/* The first hits of a search replace those of the one before. If it was repeated, the chosen hit
 * stays on its row, as it does when hits are added before it; but at the top of the order by the
 * number of hits the top stays chosen, unless its messages are being read. */
void browse_add_hits(struct browse *b, struct browse_hits *h, enum browse_fit fit, bool done)
{
    struct browse_list *l = &b->hit_list;
    struct browse_hit chosen =
        l->at < b->hits.row_count ? *hit_of_row(b, l->at) : (struct browse_hit){0};
    struct browse_hits old = {0};
    bool first = !b->answered, again = first && b->repeating, none = b->hits.count == 0;
    bool top = !first && b->most_hits && l->at == 0 && b->focus != BROWSE_TEXT;
    bool other = b->back.list || none;
    size_t row = less(l->at, l->top), place = SIZE_MAX;

    if (h->count > 0 || first)
        b->fit = fit;
    if (h->count > 0 && (first || none) && !again)
        say_what_matches(b, fit);
    if (first) {
        old = browse_hits_restart(&b->hits);
        if (!again)
            browse_hits_release(&b->hits);
        b->hits_total = 0;
        b->searching = b->answered = true;
        b->repeating = false;
    }
    b->hits_done = done;
    browse_hits_move(&b->hits, h, b->most_hits);
    if (chosen.own && !top && (again || !first))
        place = browse_hits_find(&b->hits, chosen.history, chosen.session, chosen.message);
    if (again)
        choose_in_row(b, place != SIZE_MAX ? place : l->at, row);
    else if (first)
        *l = (struct browse_list){0, 0};
    else if (place != SIZE_MAX && place != l->at)
        choose_in_row(b, place, l->top == 0 ? place : row);
    if (first ? place == SIZE_MAX : top && chosen.own && b->hits.at[0].own != chosen.own)
        other = true;
    browse_hits_release(&old);
    if (b->back.list)
        restore_hit(b);
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b, other);
}

/* ---- moving ---- */

/* Returns by how many lines a command moves in an area of `rows` rows. A page is two halves; the
 * greater half of an odd number of lines. */
static long lines_of(enum browse_command command, size_t rows)
{
    long page = rows > 2 ? (long)rows - 1 : 1, half = (page + 1) / 2;

    switch (command) {
    case BROWSE_UP:
        return -1;
    case BROWSE_DOWN:
        return 1;
    case BROWSE_PAGE_UP:
        return -page;
    case BROWSE_PAGE_DOWN:
        return page;
    case BROWSE_HALF_UP:
        return -half;
    case BROWSE_HALF_DOWN:
        return half;
    default:
        return command == BROWSE_FIRST ? -INT32_MAX : INT32_MAX;
    }
}

/* Returns the line of the list that is `lines` below the chosen one. */
static size_t line_below(const struct browse *b, long lines)
{
    size_t at = browse_list(b)->at;

    return lines < 0 ? less(at, (size_t)-lines) : at + (size_t)lines;
}

static void move_list(struct browse *b, long lines)
{
    size_t to = line_below(b, lines), last = less(browse_list_count(b), 1);

    if (to > last)
        to = last;
    if (to != browse_list(b)->at || lines == -INT32_MAX)
        browse_choose(b, to);
}

static void move(struct browse *b, enum browse_command command)
{
    struct browse_areas a = browse_areas(b);

    if (b->focus != BROWSE_TEXT)
        move_list(b, lines_of(command, a.list.rows));
    else if (command == BROWSE_FIRST)
        browse_pane_first(&b->pane);
    else if (command == BROWSE_LAST)
        browse_pane_last(&b->pane);
    else
        browse_pane_scroll(&b->pane, lines_of(command, a.text.rows));
}

/* ---- from hit to hit ---- */

/* Returns the place of the last row of the session below the chosen one in the list of hits, or of
 * the first row of the session above; SIZE_MAX without one. */
static size_t next_session(const struct browse *b, bool on)
{
    size_t chosen = b->hit_list.at, step = on ? 1 : SIZE_MAX, place = SIZE_MAX;

    /* Below 0 is above the count. */
    for (size_t at = chosen + step; at < b->hits.row_count; at += step) {
        size_t group = hit_of_row(b, at)->group;

        if (group == hit_of_row(b, chosen)->group)
            continue;
        if (place != SIZE_MAX && group != hit_of_row(b, place)->group)
            break;
        if (b->hits.rows[at].folded == 0)
            place = at;
    }
    return place;
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

static void step_hit(struct browse *b, bool on)
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

/* ---- commands ---- */

static void zoom(struct browse *b)
{
    if (b->focus == BROWSE_BOX)
        b->focus = BROWSE_LIST;
    b->zoomed = !b->zoomed;
    browse_resize(b, b->rows, b->columns);
}

bool browse_can_go_back(const struct browse *b)
{
    return b->zoomed || b->found || b->focus == BROWSE_TEXT || b->query.text.len > 0 || b->role;
}

/* Goes one step back. */
static void go_back(struct browse *b)
{
    if (b->zoomed)
        zoom(b);
    else if (b->found)
        set_found(b, false);
    else if (b->focus == BROWSE_TEXT)
        b->focus = BROWSE_LIST;
    else if (b->query.text.len > 0)
        end_search(b);
    else
        set_role(b, NULL);
}

static void next_role(struct browse *b)
{
    static const char *const next[] = {[ROLE_USER] = "assistant",
                                       [ROLE_ASSISTANT] = "system",
                                       [ROLE_SYSTEM] = "tool",
                                       [ROLE_TOOL] = NULL,
                                       [ROLE_OTHER] = NULL};

    set_role(b, b->role ? next[role_of(str_of(b->role))] : "user");
}

static void next_scope(struct browse *b)
{
    if (b->histories < 2) {
        browse_say(b, "there is no other history");
        return;
    }
    b->all = !b->all;
    b->wants.sessions = true;
    browse_set_sessions(b, 0, NULL);
    if (b->query.text.len > 0)
        browse_search(b, false);
}

/* Changes the order of the sessions, or of the hits, and chooses the first line. */
static void next_order(struct browse *b)
{
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

/* Makes the sessions on which a command acts the subject: in the list the marked ones, if any are;
 * else the chosen one. Returns false without one. */
static bool set_subject(struct browse *b)
{
    struct str id = STR("");
    bool is = browse_chosen(b, &b->subject.history, &id);

    b->subject.marked = b->focus != BROWSE_TEXT && b->marks.marked > 0;
    buf_set(&b->subject.id, id);
    return is || b->subject.marked;
}

/* Asks for the name of a file for an export, or what to copy. */
static void ask_of_session(struct browse *b, enum browse_command command)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    if (!set_subject(b)) {
        browse_say(b, command == BROWSE_EXPORT ? "there is no session to export"
                                               : "there is nothing to copy");
        return;
    }
    b->mode = command == BROWSE_EXPORT ? BROWSE_NAMING : BROWSE_COPYING;
    browse_add_file_name(&name, b);
    browse_edit_set(&b->name, buf_str(&name));
    b->name.chosen = true;
    buf_release(&name);
}

/* ---- marks ---- */

/* Returns the title of a session that is listed, else its id. */
static struct str label_of(const struct browse *b, size_t history, struct str id)
{
    size_t place = browse_sessions_find(&b->sessions, history, id);

    return place == SIZE_MAX ? id : session_label(b->sessions.at[place].session);
}

/* Says that a session, or several, will be deleted or stay. */
static void say_of_sessions(struct browse *b, size_t count, size_t history, struct str id,
                            const char *one, const char *several)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct str label = label_of(b, history, id);

    if (count == 1)
        buf_addf(&text, "'%.*s' %s", (int)label.n, label.p, one);
    else
        buf_addf(&text, "%zu sessions %s", count, several);
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

/* Chooses the first line of the next session. */
static void choose_next_session(struct browse *b)
{
    size_t at = browse_list(b)->at;

    do
        at++;
    while (b->searching && at < b->hits.row_count &&
           hit_of_row(b, at)->group == hit_of_row(b, at - 1)->group);
    if (at < browse_list_count(b))
        browse_choose(b, at);
}

static void mark_chosen(struct browse *b)
{
    const struct browse_mark *mark;
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id))
        return;
    mark = browse_marks_find(&b->marks, history, id);
    browse_marks_set(&b->marks, history, id, !mark || !mark->marked);
    choose_next_session(b);
}

/* Marks the sessions of all lines; if all are marked, unmarks them. */
static void mark_all(struct browse *b)
{
    bool mark = false;
    size_t history;
    struct str id;

    for (size_t i = 0; !mark && session_of_line(b, i, &history, &id); i++) {
        const struct browse_mark *one = browse_marks_find(&b->marks, history, id);

        mark = !one || !one->marked;
    }
    for (size_t i = 0; session_of_line(b, i, &history, &id); i++)
        browse_marks_set(&b->marks, history, id, mark);
}

/* Has the sessions deleted when the browser is left; the chosen one alone stays if it was to be
 * deleted. */
static void delete_sessions(struct browse *b)
{
    struct browse_marks *m = &b->marks;
    size_t count = 1, history = 0;
    const struct browse_mark *one;
    struct str id = STR("");

    if (!set_subject(b)) {
        browse_say(b, "there is no session to delete");
        return;
    }
    (void)browse_subject(b, 0, &history, &id);
    one = browse_marks_find(m, history, id);
    if (b->subject.marked) {
        count = m->marked;
        browse_marks_delete_marked(m);
    } else if (one && one->deletion > 0) {
        browse_marks_delete(m, history, id, 0);
        say_of_sessions(b, 1, history, id, "stays", "");
        return;
    } else {
        browse_marks_delete(m, history, id, ++m->deletions);
    }
    say_of_sessions(b, count, history, id, "is deleted when you leave; u: undo",
                    "are deleted when you leave; u: undo");
    if (!b->subject.marked && b->focus != BROWSE_TEXT)
        choose_next_session(b);
}

static void undo_deletion(struct browse *b)
{
    size_t before = b->marks.deleted, place;
    const struct browse_mark *kept = browse_marks_undo(&b->marks);

    if (!kept) {
        browse_say(b, "there is nothing to undo");
        return;
    }
    say_of_sessions(b, before - b->marks.deleted, kept->history, kept->id, "stays", "stay");
    place = b->searching || b->focus == BROWSE_TEXT
                ? SIZE_MAX
                : browse_sessions_find(&b->sessions, kept->history, kept->id);
    if (place != SIZE_MAX)
        browse_choose(b, place);
}

/* Returns a command that leaves the browser or continues a session, for the caller: at once, or
 * after the question about the deletions. */
static enum browse_command leave_or_ask(struct browse *b, enum browse_command command)
{
    bool leaves = command == BROWSE_CLOSE || command == BROWSE_LOAD || command == BROWSE_PROMPT ||
                  command == BROWSE_ENTER;
    bool uses = command == BROWSE_LOAD || command == BROWSE_CHAT || command == BROWSE_ENTER;
    const struct browse_mark *chosen = NULL;
    size_t history;
    struct str id;

    b->subject.marked = false;
    if ((command == BROWSE_ENTER && !b->for_chat) || command == BROWSE_PROMPT ||
        command == BROWSE_COPY)
        (void)set_subject(b);
    if (browse_chosen(b, &history, &id))
        chosen = browse_marks_find(&b->marks, history, id);
    if (uses && !b->subject.marked && chosen && chosen->deletion > 0) {
        browse_say(b, "this session is to be deleted; d keeps it");
        return BROWSE_NOTHING;
    }
    if (!leaves || b->marks.deleted == 0)
        return command;
    b->leaving = command;
    browse_ask(b, BROWSE_DELETE);
    return BROWSE_NOTHING;
}

/* The data that a command needs. */
enum needs {
    NEEDS_NOTHING,
    NEEDS_LINES,    /* in the list as many as it moves, in the messages these */
    NEEDS_SESSION,  /* the chosen session */
    NEEDS_MESSAGES, /* the messages */
    NEEDS_HITS,     /* the messages, and the number of hits in each */
};

unsigned browse_conditions(const struct browse *b)
{
    return (b->choosing ? BROWSE_IF_CHOOSING : BROWSE_IF_NOT_CHOOSING) |
           (b->marks.marked > 0 ? BROWSE_IF_MARKED : BROWSE_IF_UNMARKED) |
           (browse_list_count(b) > 0 ? BROWSE_IF_SESSION : 0) |
           (browse_message(b) ? BROWSE_IF_MESSAGE : 0) |
           (b->found || b->searched.len > 0 ? BROWSE_IF_SEARCH : 0) |
           (b->histories > 1 ? BROWSE_IF_HISTORIES : 0) |
           (b->marks.deleted > 0 ? BROWSE_IF_DELETED : 0) |
           (b->searching && browse_hits_folds(&b->hits, b->hit_list.at) ? BROWSE_IF_FOLDS : 0);
}

/* Returns whether a command to delete waits, so that one that leaves has to ask after it. */
static bool awaits_deletion(const struct browse *b)
{
    for (size_t i = 0; i < b->ahead_count; i++)
        if (b->ahead[i].command == BROWSE_DELETE)
            return true;
    return false;
}

static enum needs needs_of(const struct browse *b, struct browse_ahead a)
{
    enum browse_command command = a.command;

    if (command >= BROWSE_UP && command <= BROWSE_LAST)
        return a.focus == BROWSE_TEXT ? NEEDS_MESSAGES : NEEDS_LINES;
    switch (command) {
    case BROWSE_ENTER:
        return a.focus == BROWSE_TEXT || b->choosing ? NEEDS_MESSAGES : NEEDS_NOTHING;
    case BROWSE_MARK:
    case BROWSE_MARK_ALL:
    case BROWSE_DELETE:
        return NEEDS_LINES;
    case BROWSE_CLOSE:
        return awaits_deletion(b) ? NEEDS_LINES : NEEDS_NOTHING;
    case BROWSE_EXPORT:
        return NEEDS_SESSION;
    case BROWSE_NEXT_HIT:
    case BROWSE_LAST_HIT:
        return NEEDS_HITS;
    case BROWSE_NEXT_MESSAGE:
    case BROWSE_LAST_MESSAGE:
    case BROWSE_FOLD:
    case BROWSE_FOLD_ALL:
    case BROWSE_FOLLOW:
        return NEEDS_MESSAGES;
    default:
        return command >= BROWSE_LOAD && command < BROWSE_HELP ? NEEDS_MESSAGES : NEEDS_NOTHING;
    }
}

/* Returns whether the list has the line to which a command moves. Else the search goes on. */
static bool has_target(struct browse *b, enum browse_command command)
{
    size_t count = browse_list_count(b), rows = browse_areas(b).list.rows;
    bool one = command == BROWSE_MARK || command == BROWSE_DELETE || command == BROWSE_CLOSE;
    size_t to = line_below(b, one ? 0 : lines_of(command, rows));

    if (!b->searching || b->hits_done || to < count || b->hits.count >= BROWSE_HITS_MAX)
        return true;
    want_hits(b, command == BROWSE_LAST || command == BROWSE_MARK_ALL ? BROWSE_HITS_MAX
                                                                      : 2 * b->hits.count);
    return false;
}

/* Returns whether a command can be carried out now: the list has been read and the position of the
 * last visit was restored in it, and so on. */
static bool is_ready(struct browse *b, struct browse_ahead a)
{
    enum needs needs = needs_of(b, a);

    if (needs == NEEDS_NOTHING)
        return true;
    if (browse_awaits_list(b) || b->back.list ||
        (needs == NEEDS_LINES && !has_target(b, a.command)))
        return false;
    return needs < NEEDS_MESSAGES ||
           (!b->wants.messages && (needs < NEEDS_HITS || !browse_pane_is_counting(&b->pane)));
}

/* Returns whether the chosen line is that of folded results. */
static bool chooses_folded(const struct browse *b)
{
    return b->searching && b->hit_list.at < b->hits.row_count &&
           b->hits.rows[b->hit_list.at].folded > 0;
}

/* In the list folds or unfolds results of tools, if the chosen line is one of them; else a call or
 * result in the messages. */
static void fold(struct browse *b, bool all)
{
    if (b->focus != BROWSE_TEXT && b->searching && browse_hits_folds(&b->hits, b->hit_list.at))
        choose_in_row(b, browse_hits_fold(&b->hits, b->hit_list.at, all),
                      less(b->hit_list.at, b->hit_list.top));
    else
        browse_pane_fold(&b->pane, all);
}

/* Returns the command that a key means here. Enter chooses with --print; else it goes to the
 * messages, and there it loads. */
static enum browse_command meaning_of(const struct browse *b, enum browse_command command)
{
    if (command == BROWSE_BACK && !browse_can_go_back(b))
        return BROWSE_CLOSE;
    if (command == BROWSE_CHAT && b->for_chat)
        return BROWSE_LOAD;
    if (command != BROWSE_ENTER)
        return command;
    if (b->focus != BROWSE_TEXT && chooses_folded(b))
        return BROWSE_FOLD;
    if (b->focus == BROWSE_TEXT && (!b->choosing || b->for_chat))
        return b->choosing ? BROWSE_PROMPT : BROWSE_LOAD;
    return b->choosing ? BROWSE_ENTER : BROWSE_TO_TEXT;
}

/* Carries out a command, or returns it if the caller has to do it. */
static enum browse_command carry_out(struct browse *b, enum browse_command key_command)
{
    enum browse_command command = meaning_of(b, key_command);
    bool up = command == BROWSE_UP || command == BROWSE_PAGE_UP || command == BROWSE_HALF_UP ||
              command == BROWSE_FIRST || command == BROWSE_LAST_MESSAGE;

    if (b->focus == BROWSE_TEXT && (up || command == BROWSE_NEXT_HIT || command == BROWSE_LAST_HIT))
        b->following = false;
    if (command >= BROWSE_UP && command <= BROWSE_LAST) {
        move(b, command);
        return BROWSE_NOTHING;
    }
    switch (command) {
    case BROWSE_NEXT_PANEL:
    case BROWSE_LAST_PANEL:
        set_focus(b, (b->focus + (command == BROWSE_NEXT_PANEL ? 1 : 2)) % 3);
        break;
    case BROWSE_TO_BOX:
        set_focus(b, BROWSE_BOX);
        break;
    case BROWSE_TO_LIST:
        set_focus(b, BROWSE_LIST);
        break;
    case BROWSE_TO_TEXT:
        set_focus(b, BROWSE_TEXT);
        break;
    case BROWSE_NEXT_HIT:
    case BROWSE_LAST_HIT:
        step_hit(b, command == BROWSE_NEXT_HIT);
        break;
    case BROWSE_NEXT_MESSAGE:
    case BROWSE_LAST_MESSAGE:
        browse_pane_step(&b->pane, command == BROWSE_NEXT_MESSAGE);
        break;
    case BROWSE_FOLD:
    case BROWSE_FOLD_ALL:
        fold(b, command == BROWSE_FOLD_ALL);
        break;
    case BROWSE_ROLE:
        next_role(b);
        break;
    case BROWSE_SCOPE:
        next_scope(b);
        break;
    case BROWSE_ORDER:
        next_order(b);
        break;
    case BROWSE_FIND:
        b->mode = BROWSE_FINDING;
        b->find.chosen = b->find.text.len > 0;
        break;
    case BROWSE_ZOOM:
        zoom(b);
        break;
    case BROWSE_FOLLOW:
        b->following = !b->following;
        browse_say(b, b->following ? "following the end of the session" : "no longer following");
        if (b->following)
            browse_pane_last(&b->pane);
        break;
    case BROWSE_BACK:
        go_back(b);
        break;
    case BROWSE_EXPORT:
    case BROWSE_COPY_PART:
        ask_of_session(b, command);
        break;
    case BROWSE_MARK:
        mark_chosen(b);
        break;
    case BROWSE_MARK_ALL:
        mark_all(b);
        break;
    case BROWSE_DELETE:
        delete_sessions(b);
        break;
    case BROWSE_UNDO:
        undo_deletion(b);
        break;
    case BROWSE_HELP:
        b->mode = BROWSE_HELPING;
        b->help_top = 0;
        b->help_all = false;
        break;
    default:
        return leave_or_ask(b, command);
    }
    return BROWSE_NOTHING;
}

/* Carries out a command when its data is there and none waits that needs data, too. */
static enum browse_command carry_out_in_turn(struct browse *b, enum browse_command command)
{
    struct browse_ahead a = {command, b->focus};

    if (needs_of(b, a) == NEEDS_NOTHING || (b->ahead_count == 0 && is_ready(b, a)))
        return carry_out(b, command);
    if (b->ahead_count < BROWSE_AHEAD_MAX)
        b->ahead[b->ahead_count++] = a;
    return BROWSE_NOTHING;
}

enum browse_command browse_go_on(struct browse *b)
{
    enum browse_command command = BROWSE_NOTHING;
    enum browse_focus focus = b->focus;

    while (command == BROWSE_NOTHING && b->ahead_count > 0 && b->mode == BROWSE_NORMAL &&
           is_ready(b, b->ahead[0])) {
        struct browse_ahead first = b->ahead[0];

        memmove(b->ahead, b->ahead + 1, --b->ahead_count * sizeof *b->ahead);
        b->focus = first.focus;
        command = carry_out(b, first.command);
        b->focus = focus;
    }
    return command;
}

bool browse_is_looking(const struct browse *b)
{
    return b->ahead_count > 0 && !b->wants.messages && needs_of(b, b->ahead[0]) == NEEDS_HITS;
}

/* ---- modes ---- */

static enum browse_command press_help(struct browse *b, int32_t key)
{
    enum browse_command command = browse_command(BROWSE_TEXT, key);
    size_t rows = b->rows > 2 ? b->rows - 2 : 1, last;
    struct browse_lines lines = {0};

    if (key == '?' && !b->help_all) {
        b->help_all = true;
        b->help_top = 0;
        return BROWSE_NOTHING;
    }
    browse_help(&lines, b->focus, b->help_all ? BROWSE_IF_ALL : browse_conditions(b), b->columns);
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

/* ---- keys ---- */

/* Returns what the last command that waits needs. */
static enum needs last_needs(const struct browse *b)
{
    return b->ahead_count > 0 ? needs_of(b, b->ahead[b->ahead_count - 1]) : NEEDS_NOTHING;
}

/* Drops the commands that wait and that a new one makes void. One that leaves the browser or acts
 * on a message is cancelled by any other key. Another list has other lines, and the moves before
 * one to an end of the list make no difference. */
static void drop_ahead(struct browse *b, enum browse_command command)
{
    bool to_end = b->focus != BROWSE_TEXT && (command == BROWSE_FIRST || command == BROWSE_LAST);
    bool edits = command == BROWSE_NOTHING && b->focus == BROWSE_BOX;

    if (last_needs(b) == NEEDS_MESSAGES) {
        enum browse_command last = b->ahead[b->ahead_count - 1].command;

        b->ahead_count -= last >= BROWSE_LOAD || last == BROWSE_ENTER;
    }
    if (edits || command == BROWSE_BACK || command == BROWSE_ROLE || command == BROWSE_SCOPE ||
        command == BROWSE_ORDER)
        b->ahead_count = 0;
    while (to_end && last_needs(b) == NEEDS_LINES &&
           b->ahead[b->ahead_count - 1].command <= BROWSE_LAST)
        b->ahead_count--;
}

static void set_search_due(struct browse *b, int64_t now)
{
    b->back.list = b->back.text = false;
    b->search_due =
        now + (str_starts(buf_str(&b->query.text), STR("~")) ? BROWSE_LIKE_MS : BROWSE_DEBOUNCE_MS);
}

static void edit_query(struct browse *b, int32_t key, int64_t now)
{
    if (browse_edit_key(&b->query, key))
        set_search_due(b, now);
}

void browse_complete(struct browse *b, struct str text, int64_t now)
{
    b->ahead_count = 0;
    browse_edit_set(&b->query, text);
    set_search_due(b, now);
}

void browse_paste(struct browse *b, int32_t key, int64_t now)
{
    if (b->mode == BROWSE_NAMING) {
        browse_edit_key(&b->name, key);
    } else if (b->mode == BROWSE_FINDING) {
        browse_edit_key(&b->find, key);
    } else if (b->mode == BROWSE_NORMAL && last_needs(b) != NEEDS_SESSION) {
        b->ahead_count = 0;
        buf_clear(&b->status);
        set_focus(b, BROWSE_BOX);
        edit_query(b, key, now);
    }
}

/* Returns the command after a key that answers the question. A question about deletions comes when
 * the browser is left. */
static enum browse_command press_answer(struct browse *b, int32_t key)
{
    bool yes = key == 'y' || key == 'Y', no = key == 'n' || key == 'N';

    if (b->asked != BROWSE_DELETE)
        return yes ? b->asked : BROWSE_NOTHING;
    b->deletes = yes;
    if (no)
        browse_marks_keep(&b->marks);
    return yes || no ? b->leaving : BROWSE_NOTHING;
}

/* Applies a key in a mode other than BROWSE_NORMAL. */
static enum browse_command press_in_mode(struct browse *b, int32_t key)
{
    bool asks;

    if (b->mode == BROWSE_HELPING)
        return press_help(b, key);
    if (key == BROWSE_CTRL('c'))
        return BROWSE_CANCEL;
    if (b->mode == BROWSE_NAMING)
        return press_line(b, &b->name, key) && b->name.text.len > 0 ? BROWSE_EXPORT
                                                                    : BROWSE_NOTHING;
    if (b->mode == BROWSE_FINDING) {
        if (!press_line(b, &b->find, key))
            return BROWSE_NOTHING;
        set_found(b, b->find.text.len > 0);
        return b->found ? carry_out_in_turn(b, BROWSE_NEXT_HIT) : BROWSE_NOTHING;
    }
    asks = b->mode == BROWSE_ASKING;
    b->mode = BROWSE_NORMAL;
    b->deletes = false;
    if (asks)
        return press_answer(b, key);
    return key == 'm'   ? BROWSE_COPY
           : key == 'c' ? BROWSE_COPY_CODE
           : key == 'i' ? BROWSE_COPY_ID
           : key == 's' ? BROWSE_COPY_SESSION
                        : BROWSE_NOTHING;
}

enum browse_command browse_press(struct browse *b, int32_t key, int64_t now)
{
    enum browse_command command = browse_command(b->focus, key);

    /* A search seldom begins with it. */
    if (key == '?' && b->focus == BROWSE_BOX && (b->query.text.len == 0 || b->query.chosen))
        command = BROWSE_HELP;
    buf_clear(&b->status);
    if (b->mode != BROWSE_NORMAL)
        return press_in_mode(b, key);
    if (command == BROWSE_CANCEL || command == BROWSE_SUSPEND || command == BROWSE_REDRAW)
        return command;
    /* Keys after a question that is not shown yet are its answer, not commands. */
    if (last_needs(b) == NEEDS_SESSION) {
        b->ahead_count -= key == BROWSE_KEY_ESCAPE;
        return BROWSE_NOTHING;
    }
    drop_ahead(b, command);
    if (command != BROWSE_NOTHING || b->focus != BROWSE_BOX)
        return carry_out_in_turn(b, command);
    edit_query(b, key, now);
    return BROWSE_NOTHING;
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
    b->ahead_count = 0;
    if (inside(a.box, row, column)) {
        set_focus(b, BROWSE_BOX);
    } else if (inside(a.list, row, column)) {
        size_t place = browse_list(b)->top + row - a.list.row;

        b->focus = BROWSE_LIST;
        if (browse_awaits_list(b) || place >= browse_list_count(b))
            return BROWSE_NOTHING;
        browse_choose(b, place);
    } else if (inside(a.text, row, column)) {
        b->focus = BROWSE_TEXT;
        if (browse_awaits_list(b) || b->wants.messages)
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

    if (b->mode != BROWSE_NORMAL)
        return;
    b->ahead_count = 0;
    b->following = b->following && lines > 0;
    if (inside(a.text, row, column))
        browse_pane_scroll(&b->pane, lines);
    else if (inside(a.list, row, column) && !browse_awaits_list(b))
        move_list(b, lines);
}
