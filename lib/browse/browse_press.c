#include "browse/browse_press.h"

#include <string.h>

#include "chathist/history/message.h"
#include "browse/browse_pane.h"
#include "browse/browse_words.h"

/* ---- moving ---- */

/* Of the list that is waited for: it will be of new hits, or is that of the sessions as it was. */
static bool begins_at_first(const struct browse *b)
{
    return !b->back.list && (b->query.text.len > 0 || b->session_list.at == 0);
}

/* Is a move to wait for the list, or for those that wait already? What is seen is moved in at
 * once. */
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

/* Where the list is found again, or was left, is no matter then. */
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

/* Enter, when it is no choice. */
static void go_on(struct browse *b)
{
    if (b->focus == BROWSE_BOX)
        b->focus = BROWSE_LIST;
    else if (b->focus == BROWSE_LIST)
        b->focus = BROWSE_TEXT;
    else
        browse_pane_fold(&b->pane);
}

/* What is asked from here on is about the chosen session. false: there is none. */
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

/* Moves: has it been one? */
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

/* The rest: what it leaves to the caller. */
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

/* ---- what is not there yet ---- */

static void push_ahead(struct browse_ahead_text *a, enum browse_command command)
{
    if (a->count < BROWSE_AHEAD_MAX)
        a->at[a->count++] = command;
}

/* Takes the first command out; there is one. */
static enum browse_command pop_ahead(struct browse_ahead_text *a)
{
    enum browse_command command = a->at[0];

    memmove(a->at, a->at + 1, --a->count * sizeof *a->at);
    return command;
}

/* Is the list there, and keys that were ahead of it are done? */
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

/* Are the messages in the panel those of what is chosen, the chosen hit among them? One that is
 * gone by now is not waited for. */
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

/* Can a command be done now? One for the messages, or the session, waits for them. */
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
    /* What is pressed behind a question that waits is the answer to it, and no command. */
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
        /* By the time that it is done the focus can be elsewhere, and Enter would choose. */
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

        /* As when it was pressed. */
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
