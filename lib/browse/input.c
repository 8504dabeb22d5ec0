#include "browse/input.h"

#include <string.h>

#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"
#include "chathist/search/query.h"

#define IN_BOX (1U << BROWSE_BOX)
#define IN_LIST (1U << BROWSE_LIST)
#define IN_TEXT (1U << BROWSE_TEXT)
#define PANELS (IN_LIST | IN_TEXT)
#define ANYWHERE (PANELS | IN_BOX)

#define KEYS_COLUMNS 18
#define HINT_GAP 2
#define NOW(bit) BROWSE_IF_##bit

/* The first row that matches applies. */
static const struct {
    unsigned where;
    int32_t keys[3];
    enum browse_command command;
} bindings[] = {
    {ANYWHERE, {BROWSE_KEY_ENTER}, BROWSE_ENTER},
    {ANYWHERE, {BROWSE_KEY_F1}, BROWSE_HELP},
    {PANELS, {'?'}, BROWSE_HELP},
    {IN_TEXT, {'/'}, BROWSE_FIND},
    {PANELS, {'/', 'i'}, BROWSE_TO_BOX},
    {ANYWHERE, {BROWSE_KEY_TAB}, BROWSE_NEXT_PANEL},
    {ANYWHERE, {BROWSE_KEY_BACKTAB}, BROWSE_LAST_PANEL},
    {PANELS, {'h', BROWSE_KEY_LEFT}, BROWSE_TO_LIST},
    {PANELS, {'l', BROWSE_KEY_RIGHT}, BROWSE_TO_TEXT},
    {ANYWHERE, {BROWSE_KEY_UP, BROWSE_CTRL('p')}, BROWSE_UP},
    {ANYWHERE, {BROWSE_KEY_DOWN, BROWSE_CTRL('n')}, BROWSE_DOWN},
    {PANELS, {'k'}, BROWSE_UP},
    {PANELS, {'j'}, BROWSE_DOWN},
    {ANYWHERE, {BROWSE_KEY_PAGE_UP}, BROWSE_PAGE_UP},
    {ANYWHERE, {BROWSE_KEY_PAGE_DOWN}, BROWSE_PAGE_DOWN},
    {IN_LIST, {' '}, BROWSE_MARK},
    {IN_LIST, {'*'}, BROWSE_MARK_ALL},
    {PANELS, {BROWSE_CTRL('b')}, BROWSE_PAGE_UP},
    {PANELS, {BROWSE_CTRL('f'), ' '}, BROWSE_PAGE_DOWN},
    {PANELS, {BROWSE_CTRL('d')}, BROWSE_HALF_DOWN},
    {PANELS, {BROWSE_CTRL('u')}, BROWSE_HALF_UP},
    {PANELS, {'g', BROWSE_KEY_HOME}, BROWSE_FIRST},
    {PANELS, {'G', BROWSE_KEY_END}, BROWSE_LAST},
    {PANELS, {'u'}, BROWSE_UNDO},
    {PANELS, {'n'}, BROWSE_NEXT_HIT},
    {PANELS, {'N'}, BROWSE_LAST_HIT},
    {PANELS, {'J', '}'}, BROWSE_NEXT_MESSAGE},
    {PANELS, {'K', '{'}, BROWSE_LAST_MESSAGE},
    {PANELS, {'z'}, BROWSE_FOLD},
    {PANELS, {'Z'}, BROWSE_FOLD_ALL},
    {ANYWHERE, {BROWSE_CTRL('r')}, BROWSE_ROLE},
    {PANELS, {'r'}, BROWSE_ROLE},
    {ANYWHERE, {BROWSE_CTRL('s')}, BROWSE_SCOPE},
    {PANELS, {'s'}, BROWSE_SCOPE},
    {PANELS, {'o'}, BROWSE_ORDER},
    {ANYWHERE, {BROWSE_CTRL('o')}, BROWSE_LOAD},
    {PANELS, {'L'}, BROWSE_LOAD},
    {PANELS, {'p'}, BROWSE_PROMPT},
    {PANELS, {'y'}, BROWSE_COPY},
    {PANELS, {'Y'}, BROWSE_COPY_PART},
    {PANELS, {'c'}, BROWSE_CHAT},
    {PANELS, {'F'}, BROWSE_FOLLOW},
    {PANELS, {'+', '='}, BROWSE_ZOOM},
    {PANELS, {'v'}, BROWSE_PAGER},
    {PANELS, {'e'}, BROWSE_EDITOR},
    {PANELS, {'x'}, BROWSE_EXPORT},
    {PANELS, {'f'}, BROWSE_FORK},
    {PANELS, {'d', BROWSE_KEY_DELETE}, BROWSE_DELETE},
    {ANYWHERE, {BROWSE_CTRL('l')}, BROWSE_REDRAW},
    {ANYWHERE, {BROWSE_CTRL('z')}, BROWSE_SUSPEND},
    {ANYWHERE, {BROWSE_KEY_ESCAPE}, BROWSE_BACK},
    {PANELS, {'q'}, BROWSE_BACK},
    {PANELS, {'Q'}, BROWSE_CLOSE},
    {ANYWHERE, {BROWSE_CTRL('c')}, BROWSE_CANCEL},
};
#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The rows of the help screen, of which those are shown that apply where the focus is, and now; and
 * the hints at the foot of the screen, as many as fit. */
static const struct {
    unsigned where, conditions;
    const char *keys, *text, *hint; /* may be NULL */
} helps[] = {
    {PANELS, 0, NULL, NULL, "? help"},
    {IN_BOX, 0, NULL, NULL, "type to search"},
    {IN_BOX, 0, NULL, NULL, "F1 help"},
    {IN_BOX, 0, "a search", QUERY_HELP_WORDS, NULL},
    {IN_BOX, 0, "", QUERY_HELP_FIELDS, NULL},
    {ANYWHERE, NOW(CHOOSING) | NOW(SESSION), "Enter", "choose with --print: print it, leave",
     "Enter choose"},
    {IN_BOX | IN_LIST, NOW(NOT_CHOOSING), "Enter", "to the messages", "Enter open"},
    {IN_TEXT, NOW(NOT_CHOOSING), "Enter", "load, as L", "Enter load"},
    {IN_LIST, NOW(FOLDS), "z Z", "fold or unfold the results of tools of the session; of all",
     "z unfold"},
    {PANELS, NOW(DELETED), "u", "undo: the sessions of the last d stay", "u undo"},
    {IN_LIST, NOW(MARKED), "d x y p", "delete, export, copy, print the marked sessions",
     "d delete  x export  y copy  p prompt"},
    {ANYWHERE, 0, "Esc  q", "back: from the messages, from the search; then close", NULL},
    {ANYWHERE, 0, "Q  Ctrl-C", "close; opened again, it shows the same view", NULL},
    {PANELS, 0, "?  F1", "this help; in the box ? if it is empty", NULL},
    {IN_LIST, 0, "i  /", "to the search box: typing searches all sessions", "/ search"},
    {IN_TEXT, 0, "i", "to the search box: typing searches all sessions", NULL},
    {IN_TEXT, NOW(MESSAGE), "/", "find in this session", "/ find"},
    {IN_LIST, NOW(SESSION), "Space  *", "mark the session; mark or unmark all that are listed",
     "Space mark"},
    {IN_BOX, 0, "Tab", "complete a field, as `ro` or `tool:`; else to the next part", "Tab panel"},
    {PANELS, 0, "Tab  h l", "to the next part; to the list, to the messages", "Tab panel"},
    {PANELS, NOW(SESSION), "j k  g G", "down, up; first, last. Also arrows, Home End", NULL},
    {IN_LIST, NOW(SESSION), "Ctrl-F Ctrl-B", "a page down, up; Ctrl-D Ctrl-U: half a page", NULL},
    {IN_TEXT, NOW(MESSAGE), "Space  Ctrl-F B", "a page down, down, up; Ctrl-D Ctrl-U: half a page",
     NULL},
    {PANELS, NOW(SEARCH) | NOW(MESSAGE), "n N", "to the next hit in the session, to the one before",
     NULL},
    {PANELS, NOW(MESSAGE), "J K  } {", "to the next message, to the one before", NULL},
    {PANELS, NOW(MESSAGE), "z Z", "fold or unfold calls, results and reasoning; all of them", NULL},
    {PANELS, 0, "+", "zoom: only this panel", NULL},
    {PANELS, NOW(MESSAGE), "F", "follow: stay at the end while the session grows", NULL},
    {ANYWHERE, 0, "r  Ctrl-R", "only messages of the next role", NULL},
    {ANYWHERE, NOW(HISTORIES), "s  Ctrl-S", "this history, or all your histories", NULL},
    {IN_LIST, NOW(SESSION), "o", "order: newest, oldest, longest, by title; hits: newest, most",
     NULL},
    {PANELS, NOW(SESSION), "L  Ctrl-O", "load: make the session current, print its id, leave",
     NULL},
    {IN_LIST, NOW(NOT_CHOOSING) | NOW(SESSION), NULL, NULL, "L load"},
    {IN_BOX, NOW(NOT_CHOOSING) | NOW(SESSION), "Ctrl-O",
     "load: make the session current, print its id, leave", "^O load"},
    {PANELS, NOW(SESSION), "c", "chat: continue the session, then come back", "c chat"},
    {PANELS, NOW(MESSAGE), "p", "to prompt: print the text of the message, leave", NULL},
    {PANELS, NOW(NOT_CHOOSING) | NOW(UNMARKED) | NOW(MESSAGE), NULL, NULL, "p prompt"},
    {PANELS, NOW(MESSAGE), "y  Y", "copy the message; its code, the id, the session", NULL},
    {PANELS, NOW(UNMARKED) | NOW(MESSAGE), NULL, NULL, "y copy"},
    {IN_TEXT, NOW(MARKED) | NOW(MESSAGE), NULL, NULL, "y copy"},
    {PANELS, NOW(SESSION), "v e", "view in $PAGER, open in $EDITOR: the message, or the session",
     NULL},
    {PANELS, NOW(SESSION), "x f d",
     "export the session; fork it at this message; delete it when you leave", NULL},
    {PANELS, NOW(UNMARKED) | NOW(SESSION), NULL, NULL, "x export"},
    {PANELS, NOW(SESSION), NULL, NULL, "f fork"},
    {PANELS, NOW(UNMARKED) | NOW(SESSION), NULL, NULL, "d delete"},
    {IN_BOX, 0, "Alt-B Alt-F", "by words; Ctrl-U K W, Alt-D cut, Ctrl-Y inserts again", NULL},
    {ANYWHERE, 0, "Ctrl-L  Ctrl-Z", "draw the screen anew; stop, `fg` goes on", NULL},
    {ANYWHERE, 0, "mouse", "click selects, twice is Enter; --no-mouse leaves it alone", NULL},
};
#undef NOW

enum browse_command browse_command(enum browse_focus focus, int32_t key)
{
    for (size_t i = 0; i < COUNT(bindings); i++) {
        if (!(bindings[i].where & (1U << focus)))
            continue;
        for (size_t k = 0; k < 3 && bindings[i].keys[k]; k++)
            if (bindings[i].keys[k] == key)
                return bindings[i].command;
    }
    return BROWSE_NOTHING;
}

void browse_help(struct browse_lines *out, enum browse_focus focus, unsigned conditions,
                 size_t columns)
{
    static const struct {
        unsigned where;
        const char *name;
    } parts[] = {
        {ANYWHERE, "everywhere"},
        {IN_BOX, "in the search box"},
        {IN_BOX | IN_LIST, "in the search box and the list"},
        {IN_LIST, "in the list"},
        {PANELS, "in the list and the messages"},
        {IN_TEXT, "in the messages"},
    };
    bool all = conditions == BROWSE_IF_ALL;
    struct browse_layout how = {.width = columns > 2 ? columns : 2};
    struct buf text = BUF_INIT(BUF_LINE);

    for (size_t k = 0; k < (all ? COUNT(parts) : 1); k++) {
        if (all)
            buf_addf(&text, "%s%s:\n", k > 0 ? "\n" : "", parts[k].name);
        for (size_t i = 0; i < COUNT(helps); i++)
            if (helps[i].text && (helps[i].conditions & ~conditions) == 0 &&
                (all ? helps[i].where == parts[k].where : helps[i].where & (1U << focus)))
                buf_addf(&text, "%-*s%s\n", KEYS_COLUMNS, helps[i].keys, helps[i].text);
    }
    browse_lines_add(out, buf_str(&text), &how);
    buf_release(&text);
}

void browse_help_foot(struct buf *out, size_t top, size_t rows, size_t count, bool all)
{
    size_t last = top + rows < count ? top + rows : count;

    if (count > rows)
        buf_addf(out, "%zu to %zu of %zu: j k Space scroll  ", top + 1, last, count);
    if (!all)
        buf_add_c(out, "?: all keys  ");
    buf_add_c(out, "Esc or any other key closes this");
}

void browse_hints(struct buf *out, enum browse_focus focus, unsigned conditions, bool back,
                  size_t columns)
{
    const char *last = back ? "Esc back" : "Esc close";
    size_t used = 0;

    for (size_t i = 0; i < COUNT(helps); i++) {
        const char *hint = helps[i].hint;

        if (!hint || !(helps[i].where & (1U << focus)) ||
            (helps[i].conditions & ~conditions) != 0 ||
            used + strlen(hint) + HINT_GAP + strlen(last) > columns)
            continue;
        buf_addf(out, "%s%*s", hint, HINT_GAP, "");
        used += strlen(hint) + HINT_GAP;
    }
    if (used + strlen(last) <= columns)
        buf_add_c(out, last);
}

/* Maximum size of a text that is typed, in bytes. */
#define TEXT_MAX ((size_t)4096)

void browse_edit_init(struct browse_edit *e)
{
    *e = (struct browse_edit){0};
    buf_init(&e->text, TEXT_MAX);
    buf_init(&e->cut, TEXT_MAX);
}

void browse_edit_release(struct browse_edit *e)
{
    buf_release(&e->text);
    buf_release(&e->cut);
    e->at = 0;
}

void browse_edit_set(struct browse_edit *e, struct str text)
{
    struct buf line = BUF_INIT(8 * BUF_LINE), repaired = BUF_INIT(8 * BUF_LINE);

    buf_clear(&e->text);
    e->chosen = false;
    utf8_add_repaired(&repaired, text);
    vis_add_line(&line, buf_str(&repaired), true);
    buf_add_str(&e->text, utf8_first(buf_str(&line), TEXT_MAX / 4));
    e->at = e->text.len;
    buf_release(&line);
    buf_release(&repaired);
}

/* Returns the start of the character before `at`, including its combining marks. */
static size_t before(const struct browse_edit *e, size_t at)
{
    struct str text = buf_str(&e->text);
    int32_t cp = 0;

    while (at > 0) {
        do
            at--;
        while (utf8_inside(text, at));
        (void)utf8_decode(str_skip(text, at), &cp);
        if (utf8_width(cp) > 0)
            break;
    }
    return at;
}

static size_t behind(const struct browse_edit *e, size_t at)
{
    struct str text = buf_str(&e->text);
    bool passed = false;

    while (at < text.n) {
        int32_t cp;
        size_t n = utf8_decode(str_skip(text, at), &cp);

        if (passed && utf8_width(cp) > 0)
            break;
        passed = true;
        at += n > 0 ? n : text.n - at;
    }
    return at;
}

static bool is_blank_at(const struct browse_edit *e, size_t at)
{
    return e->text.data[at] == ' ';
}

/* Returns where a key moves the cursor, or the other end of what it cuts; SIZE_MAX for another
 * key. */
static size_t target_of(const struct browse_edit *e, int32_t key)
{
    size_t at = e->at;

    switch (key) {
    case BROWSE_KEY_LEFT:
    case BROWSE_CTRL('b'):
    case BROWSE_KEY_BACKSPACE:
        return before(e, at);
    case BROWSE_KEY_RIGHT:
    case BROWSE_CTRL('f'):
    case BROWSE_KEY_DELETE:
    case BROWSE_CTRL('d'):
        return behind(e, at);
    case BROWSE_KEY_HOME:
    case BROWSE_CTRL('a'):
    case BROWSE_CTRL('u'):
        return 0;
    case BROWSE_KEY_END:
    case BROWSE_CTRL('e'):
    case BROWSE_CTRL('k'):
        return e->text.len;
    case BROWSE_KEY_WORD_LEFT:
    case BROWSE_CTRL('w'):
        while (at > 0 && is_blank_at(e, at - 1))
            at--;
        while (at > 0 && !is_blank_at(e, at - 1))
            at--;
        return at;
    case BROWSE_KEY_WORD_RIGHT:
    case BROWSE_KEY_CUT_WORD:
        while (at < e->text.len && is_blank_at(e, at))
            at++;
        while (at < e->text.len && !is_blank_at(e, at))
            at++;
        return at;
    default:
        return SIZE_MAX;
    }
}

static bool cut_range(struct browse_edit *e, size_t from, size_t to)
{
    if (from == to)
        return false;
    memmove(e->text.data + from, e->text.data + to, e->text.len - to);
    buf_truncate(&e->text, e->text.len - (to - from));
    e->at = from;
    return true;
}

static bool insert_typed(struct browse_edit *e, struct str text)
{
    if (text.n == 0)
        return false;
    if (e->chosen)
        cut_range(e, 0, e->text.len);
    if (e->text.len + text.n > TEXT_MAX)
        return false;
    buf_add_str(&e->text, text);
    memmove(e->text.data + e->at + text.n, e->text.data + e->at, e->text.len - text.n - e->at);
    memcpy(e->text.data + e->at, text.p, text.n);
    e->at += text.n;
    return true;
}

bool browse_edit_key(struct browse_edit *e, int32_t key)
{
    size_t to = target_of(e, key), from = to < e->at ? to : e->at, end = to < e->at ? e->at : to;
    bool for_yank = key == BROWSE_CTRL('u') || key == BROWSE_CTRL('k') || key == BROWSE_CTRL('w') ||
                    key == BROWSE_KEY_CUT_WORD;
    bool changed = false;
    char bytes[4];

    if (for_yank && from < end)
        buf_set(&e->cut, (struct str){e->text.data + from, end - from});
    if (for_yank || key == BROWSE_KEY_BACKSPACE || key == BROWSE_KEY_DELETE ||
        key == BROWSE_CTRL('d'))
        changed = cut_range(e, from, end);
    else if (to != SIZE_MAX)
        e->at = to;
    else if (key == BROWSE_CTRL('y'))
        changed = insert_typed(e, buf_str(&e->cut));
    else if (key >= ' ' && key < BROWSE_KEY_UP && !vis_unsafe(key))
        changed = insert_typed(e, (struct str){bytes, utf8_encode(key, bytes)});
    e->chosen = false;
    return changed;
}

static size_t columns_between(const struct browse_edit *e, size_t from, size_t to)
{
    return wide_columns((struct str){buf_c(&e->text) + from, to - from});
}

struct str browse_edit_window(const struct browse_edit *e, size_t columns, size_t *column)
{
    size_t from = 0;

    /* The cursor needs one column. */
    while (from < e->at && columns_between(e, from, e->at) + 1 > columns)
        from = behind(e, from);
    *column = columns_between(e, from, e->at);
    return utf8_fit((struct str){buf_c(&e->text) + from, e->text.len - from}, columns);
}
