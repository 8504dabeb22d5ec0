/* The commands of the browser: what keys and the mouse do to the state. */
#include <string.h>

#include "browse/model.h"

void browse_ask(struct browse *b, enum browse_command command)
{
    b->asked = command;
    b->mode = BROWSE_ASKING;
}

/* ---- commands that wait ---- */

/* The data that a command needs. */
enum needs {
    NEEDS_NOTHING,
    NEEDS_SESSION,  /* the chosen session */
    NEEDS_LINES,    /* the lines to move over, of the list or the messages */
    NEEDS_MESSAGES, /* the messages */
    NEEDS_HITS,     /* the messages, and the number of hits in each */
};

static enum needs needs_of(const struct browse *b, const struct browse_wait *w);

/* Returns true for a command that leaves the browser or acts on a message: the next key cancels
 * it. */
static bool is_act(const struct browse *b, const struct browse_wait *w)
{
    return needs_of(b, w) == NEEDS_MESSAGES &&
           (w->command >= BROWSE_LOAD || w->command == BROWSE_ENTER);
}

bool browse_act_waits(const struct browse *b)
{
    return b->waits.count > 0 && is_act(b, &b->waits.at[b->waits.count - 1]);
}

static void cancel_act(struct browse *b)
{
    if (browse_act_waits(b))
        b->waits.count--;
}

/* Returns true if the list has been read and the position of the last visit was restored in it. */
static bool has_list(const struct browse *b)
{
    return !browse_awaits_list(b) && !b->back.list;
}

static bool is_whole(const struct browse *b)
{
    return !b->searching || b->hits_done;
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

/* Returns the place of the last row of the session below the chosen one in the list of hits, or of
 * the first row of the session above; SIZE_MAX if there is none. */
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
 * oldest one is first. Returns false if there is none. */
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

static void follow(struct browse *b, long unused)
{
    (void)unused;
    b->following = !b->following;
    browse_say(b, b->following ? "following the end of the session" : "no longer following");
    if (b->following)
        browse_pane_last(&b->pane);
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
    browse_set_focus(b, (enum browse_focus)(((long)b->focus + by + 3) % 3));
}

static void set_focus(struct browse *b, long focus)
{
    browse_set_focus(b, (enum browse_focus)focus);
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
        browse_set_found(b, false);
    else if (b->focus == BROWSE_TEXT)
        b->focus = BROWSE_LIST;
    else if (b->query.text.len > 0)
        browse_end_search(b);
    else
        browse_set_role(b, NULL);
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

static void next_order(struct browse *b, long unused)
{
    (void)unused;
    if (b->searching) {
        browse_set_most_hits(b, !b->most_hits);
        browse_say(b, b->most_hits ? "the session with the most hits first"
                                   : "the session with the newest hit first");
    } else {
        browse_set_order(b, (b->order + 1) % BROWSE_ORDERS);
        browse_say(b, browse_order_name(b->order));
    }
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
    buf_set(&b->subject.id, id);
    return true;
}

static void ask_name(struct browse *b, long unused)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    (void)unused;
    if (!take_subject(b)) {
        browse_say(b, "there is no session to export");
        return;
    }
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
    else
        browse_say(b, "there is no session to delete");
}

static void ask_part(struct browse *b, long unused)
{
    (void)unused;
    if (take_subject(b))
        b->mode = BROWSE_COPYING;
    else
        browse_say(b, "there is nothing to copy");
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
    [BROWSE_FOLLOW] = {NEEDS_MESSAGES, follow, 0},
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
    [BROWSE_HELP] = {NEEDS_NOTHING, help, 0},
    /* The commands without a row are the same as this one. */
    [BROWSE_CANCEL] = {NEEDS_NOTHING, NULL, 0},
};

static enum needs needs_of(const struct browse *b, const struct browse_wait *w)
{
    enum needs needs = actions[w->command].needs;

    if (w->focus == BROWSE_TEXT)
        return needs == NEEDS_LINES ? NEEDS_MESSAGES : needs;
    return w->command == BROWSE_ENTER && !b->choosing ? NEEDS_NOTHING : needs;
}

/* Returns true for a command that moves up in the messages. */
static bool moves_up(enum browse_command command)
{
    return command == BROWSE_UP || command == BROWSE_PAGE_UP || command == BROWSE_HALF_UP ||
           command == BROWSE_FIRST || command == BROWSE_LAST_MESSAGE ||
           command == BROWSE_NEXT_HIT || command == BROWSE_LAST_HIT;
}

/* Returns what Enter does: it chooses with --print; else it goes to the messages, and there it
 * loads. */
static enum browse_command enter(const struct browse *b)
{
    if (b->choosing)
        return b->for_chat && b->focus == BROWSE_TEXT ? BROWSE_PROMPT : BROWSE_ENTER;
    return b->focus == BROWSE_TEXT ? BROWSE_LOAD : BROWSE_TO_TEXT;
}

/* Carries out a command, or returns it if the caller has to do it. */
static enum browse_command carry_out(struct browse *b, enum browse_command command)
{
    const struct action *a;

    if (command == BROWSE_BACK && !browse_can_go_back(b))
        return BROWSE_CLOSE;
    if (command == BROWSE_ENTER)
        command = enter(b);
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

static enum browse_command carry_out_or_wait(struct browse *b, enum browse_command command);

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

static enum browse_command press_answer(struct browse *b, int32_t key)
{
    b->mode = BROWSE_NORMAL;
    return key == 'y' || key == 'Y' ? b->asked : BROWSE_NOTHING;
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
    browse_set_found(b, b->find.text.len > 0);
    return b->found ? carry_out_or_wait(b, BROWSE_NEXT_HIT) : BROWSE_NOTHING;
}

static enum browse_command press_name(struct browse *b, int32_t key)
{
    return press_line(b, &b->name, key) && b->name.text.len > 0 ? BROWSE_EXPORT : BROWSE_NOTHING;
}

/* ---- waiting for data ---- */

/* Returns true if the panel shows the messages of the chosen line, with the chosen hit among them
 * unless that has disappeared from the file. */
static bool has_messages(const struct browse *b)
{
    size_t history;
    struct str id, hit = browse_chosen_hit(b);

    if (!has_list(b))
        return false;
    if (!browse_chosen(b, &history, &id))
        return true;
    return browse_target_is(&b->shown, history, id) &&
           (hit.n == 0 || browse_pane_find(&b->pane, hit) != SIZE_MAX ||
            str_eq(buf_str(&b->shown.hit), hit));
}

bool browse_is_looking(const struct browse *b)
{
    return b->waits.count > 0 && needs_of(b, &b->waits.at[0]) == NEEDS_HITS && has_messages(b);
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

    if (browse_awaits_list(b))
        return false;
    if (is_whole(b) || (command == BROWSE_LAST && b->searching && count >= BROWSE_HITS_MAX))
        return true;
    return command != BROWSE_LAST && (lines <= 0 || browse_list(b)->at + (size_t)lines < count);
}

/* Returns true if a command can be carried out now. */
static bool is_ready(const struct browse *b, const struct browse_wait *w)
{
    switch (needs_of(b, w)) {
    case NEEDS_MESSAGES:
        return has_messages(b);
    case NEEDS_HITS:
        return has_messages(b) && !browse_pane_is_counting(&b->pane);
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
           needs_of(b, &all->at[all->count - 1]) >= NEEDS_MESSAGES)
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

    browse_pane_count(&b->pane);
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
        b->wants.hits = all->at[0].command == BROWSE_LAST ? BROWSE_HITS_MAX : 2 * b->hits.count;
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
    } else if (b->mode == BROWSE_FINDING) {
        browse_edit_key(&b->find, key);
    } else if (b->mode == BROWSE_NORMAL && !question_waits(b)) {
        buf_clear(&b->status);
        browse_set_focus(b, BROWSE_BOX);
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
    if (b->mode == BROWSE_ASKING)
        return press_answer(b, key);
    if (b->mode == BROWSE_NAMING)
        return press_name(b, key);
    if (b->mode == BROWSE_FINDING)
        return press_find(b, key);
    if (b->mode == BROWSE_COPYING)
        return press_part(b, key);
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
        browse_set_focus(b, BROWSE_BOX);
    } else if (inside(a.list, row, column)) {
        size_t place = browse_list(b)->top + row - a.list.row;

        b->focus = BROWSE_LIST;
        if (browse_awaits_list(b) || place >= browse_list_count(b))
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
    if (twice && b->focus == BROWSE_TEXT)
        browse_pane_fold(&b->pane);
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
        move_list(b, lines);
}
