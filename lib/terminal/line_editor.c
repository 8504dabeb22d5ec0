#include "chathist/terminal/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "chathist/cli/output.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/wide.h"

#define HISTORY_MAX 1000
#define ESC '\033'
/* What libedit gets for the Escape key of vi; it is bound to the command. libedit cannot take ESC
 * for a key and for the beginning of others. */
#define ESCAPE_KEY 0x80
/* What libedit gets for its commands of the history when a key leaves the lines of the text. */
#define EARLIER_KEY 0x81
#define LATER_KEY 0x82
/* With vi keys, ESC is the Escape key if no byte follows within this time. */
#define ESCAPE_MS 50
/* The maximum length of an escape sequence; a longer one is no known key. */
#define SEQUENCE_MAX 32
/* The end of a paste, and the maximum size of one; the end of a larger one is dropped. */
#define PASTE_END STR("\033[201~")
#define PASTE_MAX ((size_t)32 << 20)
/* The terminal may take this many milliseconds to report its background, and the report has at most
 * this many bytes. */
#define REPORT_MS 300
#define REPORT_MAX 64
/* The bytes of the shortest one, `ESC ]11;rgb:0/0/0 BEL`, and how often it is looked for. */
#define REPORT_BYTES 15
#define REPORT_LOOK_MS 10
/* The number of states that Ctrl-_ can restore, and the maximum length of a text that is kept. */
#define UNDO_MAX 100
#define UNDO_TEXT_MAX 65536
/* Marks escape sequences in the prompt, which libedit does not count as columns. */
#define PROMPT_STYLE L'\001'
/* The minimum width of a column of words. */
#define WORD_COLUMNS_LEAST 20

struct line {
    struct line_setup setup;
    EditLine *el;
    HistoryW *history;
    struct termios found;             /* the terminal's modes before line_open */
    bool dumb;                        /* the terminal knows no escape sequences */
    bool vi;                          /* ~/.editrc chose the keys of vi */
    struct wide begins;               /* the text that the next line begins with */
    struct wide prompt, plain_prompt; /* the prompt with its style, and without */
    size_t prompt_columns;
    FILE *nowhere; /* gets the output of libedit while the text is taller than the terminal */
    bool at_end;   /* the cursor was at the end of the line before the last key */
    int earlier;   /* the number of its entry in the history, from the newest; 0: a new text */
    bool tall;
    size_t top;                    /* the first row of a tall text that is shown */
    wchar_t key[SEQUENCE_MAX + 1]; /* the characters of a key that libedit did not get yet */
    size_t key_at, key_count;
    int64_t asked;              /* when the terminal was asked for its background; 0: never */
    int unread;                 /* a byte that is read again; -1: none */
    struct wide undo[UNDO_MAX]; /* earlier states of the line, and its present state last */
    size_t undo_count;
    int ahead; /* unread bytes that were typed before set_line_modes() */
    enum line_came came;
};

static struct line *line_of_editor(EditLine *el)
{
    struct line *l = NULL;

    el_wget(el, EL_CLIENTDATA, &l);
    return l;
}

static void insert_text(EditLine *el, struct str text)
{
    struct wide w = {0};

    wide_add_text(&w, text);
    if (w.count > 0)
        el_winsertstr(el, w.at);
    wide_release(&w);
}

/* ---- the terminal ---- */

static void write_terminal(struct str text)
{
    if (file_write_all(STDOUT_FILENO, text.p, text.n) < 0)
        errno = 0;
}

static void set_pasting(const struct line *l, bool on)
{
    if (!l->dumb)
        write_terminal(on ? STR("\033[?2004h") : STR("\033[?2004l"));
}

/* Between two lines, typed characters are not echoed; they wait for the next line, Enter as CR and
 * Ctrl-D as a byte. ICANON is off, so libedit does not take these modes for the user's own. */
static void set_quiet(const struct line *l)
{
    struct termios quiet = l->found;

    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    quiet.c_iflag &= ~(tcflag_t)ICRNL;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
}

/* The editor whose modes are restored if the program exits during a line. */
static const struct line *at_exit;

static void restore_at_exit(void)
{
    if (at_exit)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &at_exit->found);
}

/* Sets our modes and counts the bytes that were typed before. */
static void set_line_modes(struct line *l)
{
    set_quiet(l);
    if (ioctl(STDIN_FILENO, FIONREAD, &l->ahead) < 0)
        l->ahead = 0;
}

void line_lend(struct line *l, bool lent)
{
    if (lent)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
    else
        set_line_modes(l);
}

static size_t terminal_columns(const struct line *l)
{
    int columns = 0;

    el_wget(l->el, EL_GETTC, "co", &columns);
    return columns > 0 ? (size_t)columns : 80;
}

static size_t terminal_rows(const struct line *l)
{
    int rows = 0;

    el_wget(l->el, EL_GETTC, "li", &rows);
    return rows > 0 ? (size_t)rows : 24;
}

/* Returns how many rows the line begins above the cursor. */
static size_t rows_above(const struct line *l)
{
    const LineInfoW *info = el_wline(l->el);

    return wide_rows(info->buffer, (size_t)(info->cursor - info->buffer), l->prompt_columns,
                     terminal_columns(l));
}

/* Erases the line that begins `above` rows above the cursor, and puts the cursor there. */
static void erase_rows(size_t above)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    buf_add_byte(&out, '\r');
    if (above > 0)
        buf_addf(&out, "\033[%zuA", above);
    buf_add_c(&out, "\033[J");
    write_terminal(buf_str(&out));
    buf_release(&out);
}

/* Redraws the line, beginning `above` rows above the cursor. */
static void draw_again(const struct line *l, size_t above)
{
    if (l->dumb)
        write_terminal(STR("\r\n\r"));
    else
        erase_rows(above);
    el_wset(l->el, EL_REFRESH);
}

/* ---- a text that is taller than the terminal ---- */

/* libedit draws all of a text, and moves the cursor as if the terminal had rows for it. So its
 * output is dropped while a text fills the terminal, and a part of the text around the cursor is
 * drawn here. */

static bool is_tall(const struct line *l)
{
    const LineInfoW *info = el_wline(l->el);

    return !l->dumb && wide_rows(info->buffer, (size_t)(info->lastchar - info->buffer),
                                 l->prompt_columns, terminal_columns(l)) +
                               1 >=
                           terminal_rows(l);
}

/* Adds a character as libedit shows it. */
static void add_as_shown(struct buf *out, wchar_t c, size_t width)
{
    if (c == L'\t') {
        for (; width > 0; width--)
            buf_add_byte(out, ' ');
    } else if (c < L' ') {
        buf_addf(out, "^%c", (char)(c + '@'));
    } else {
        wide_encode(out, &c, 1);
    }
}

/* Adds the rows from l->top on. Returns the place of the cursor. */
static struct wide_place add_rows(struct buf *out, const struct line *l, const struct wide *all,
                                  size_t cursor)
{
    size_t columns = terminal_columns(l), last = l->top + terminal_rows(l) - 1, row = l->top;
    struct wide_place at = {0}, found = {0};

    for (size_t i = 0; i <= all->count; i++) {
        struct wide_place before = at;

        if (i == cursor)
            found = at;
        if (i == all->count)
            break;
        wide_advance(&at, all->at[i], columns);
        /* A wide character that does not fit begins the next row. */
        if (at.row > before.row && all->at[i] != L'\n')
            before = (struct wide_place){at.row, 0};
        for (; row < before.row && row < last; row++)
            buf_add_c(out, "\033[K\r\n");
        if (all->at[i] != L'\n' && before.row >= l->top && before.row <= last)
            add_as_shown(out, all->at[i], at.column - before.column);
    }
    for (; row < at.row && row < last; row++)
        buf_add_c(out, "\033[K\r\n");
    if (found.column >= columns)
        found = (struct wide_place){found.row + 1, 0};
    return found;
}

static void add_all(const struct line *l, struct wide *all)
{
    const LineInfoW *info = el_wline(l->el);

    wide_add(all, l->plain_prompt.at, l->plain_prompt.count);
    wide_add(all, info->buffer, (size_t)(info->lastchar - info->buffer));
}

static void draw_window(struct line *l)
{
    const LineInfoW *info = el_wline(l->el);
    size_t rows = terminal_rows(l), cursor;
    struct buf out = BUF_INIT(SIZE_MAX);
    struct wide_place at = {0};
    struct wide all = {0};

    add_all(l, &all);
    cursor = l->plain_prompt.count + (size_t)(info->cursor - info->buffer);
    for (size_t i = 0; i < cursor; i++)
        wide_advance(&at, all.at[i], terminal_columns(l));
    at.row += at.column / terminal_columns(l);
    if (at.row < l->top)
        l->top = at.row;
    if (at.row >= l->top + rows)
        l->top = at.row - rows + 1;
    buf_add_c(&out, "\033[?25l\033[H");
    at = add_rows(&out, l, &all, cursor);
    buf_addf(&out, "\033[J\033[%zu;%zuH\033[?25h", at.row - l->top + 1, at.column + 1);
    write_terminal(buf_str(&out));
    wide_release(&all);
    buf_release(&out);
}

/* Ends the part view, and with `whole` prints all of the text in its place. */
static void leave_window(struct line *l, bool whole)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    struct wide all = {0};

    if (!l->tall)
        return;
    l->tall = false;
    el_set(l->el, EL_SETFP, 1, stdout);
    buf_add_c(&out, "\033[H\033[J");
    add_all(l, &all);
    for (size_t i = 0; whole && i < all.count; i++)
        if (all.at[i] == L'\n')
            buf_add_c(&out, "\r\n");
        else if (all.at[i] == L'\t')
            buf_add_byte(&out, '\t');
        else
            add_as_shown(&out, all.at[i], 1);
    write_terminal(buf_str(&out));
    wide_release(&all);
    buf_release(&out);
}

/* Called before each key. In a line that fills the screen libedit does not move the cursor to a row
 * below the screen, but adds the next character at the end of the line as if it had, and so writes
 * after the rows that it has (libedit 3.1). If the last key moved the cursor to the end of such a
 * line, it is drawn again, because that puts the cursor where the end is. */
static void redraw_at_end(struct line *l)
{
    const LineInfoW *info = el_wline(l->el);
    bool was_at_end = l->at_end;
    size_t above;

    l->at_end = info->cursor == info->lastchar;
    if (!l->at_end || was_at_end)
        return;
    above = rows_above(l);
    if (l->tall)
        el_wset(l->el, EL_REFRESH);
    else if (above + 1 >= terminal_rows(l))
        draw_again(l, above);
}

/* Called before each key and after a paste, which libedit has not drawn yet (`drawn` is false). */
static void update_view(struct line *l, bool drawn)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    bool tall;

    /* While more keys wait, it would be drawn too often. */
    if (!l->nowhere || (drawn && (l->key_at < l->key_count || poll(&fd, 1, 0) > 0)))
        return;
    tall = is_tall(l);
    if (tall && !l->tall) {
        /* The rows on the screen move up, as if libedit had drawn the text. */
        for (size_t i = terminal_rows(l); !drawn && i > 0; i--)
            write_terminal(STR("\r\n"));
        l->tall = true;
        l->top = 0;
        el_set(l->el, EL_SETFP, 1, l->nowhere);
    } else if (!tall && l->tall) {
        leave_window(l, false);
        el_wset(l->el, EL_REFRESH);
    }
    if (l->tall)
        draw_window(l);
}

/* libedit asks its output for the size of the terminal. It keeps the place of the cursor, which can
 * be outside of a smaller terminal, until it draws the line again, and would write the next
 * character there; so a tall text is drawn to nowhere. The callers draw one that is not tall. */
static void renew_size(struct line *l)
{
    if (l->tall)
        el_set(l->el, EL_SETFP, 1, stdout);
    el_resize(l->el);
    if (!l->tall)
        return;
    el_set(l->el, EL_SETFP, 1, l->nowhere);
    el_wset(l->el, EL_REFRESH);
}

/* Some terminals wrap their rows again for a new width, others do not. Only rows that belong to the
 * line in both cases are overwritten. */
static void resize(struct line *l)
{
    size_t before = rows_above(l), after;

    renew_size(l);
    if (l->tall) {
        update_view(l, true);
        return;
    }
    after = rows_above(l);
    draw_again(l, after < before ? after : before);
}

/* Sets the terminal up again after another program had it. */
static void resume_editor(struct line *l)
{
    el_wset(l->el, EL_PREP_TERM, 1);
    renew_size(l);
    set_pasting(l, true);
}

/* Handles the next signal. Returns whether it ends the line. */
static bool handle_signal(struct line *l)
{
    int signo = line_signals_next();

    if (signo == 0)
        return false;
    if (signo == SIGTSTP) {
        /* Stops the program as an uncaught one does. */
        set_pasting(l, false);
        el_wset(l->el, EL_PREP_TERM, 0);
        line_signals_stop();
    }
    if (signo == SIGWINCH)
        resize(l);
    if (signo == SIGTSTP || signo == SIGCONT) {
        resume_editor(l);
        if (l->tall)
            draw_window(l);
        else
            draw_again(l, 0);
    }
    if (signo == SIGWINCH || signo == SIGTSTP || signo == SIGCONT)
        return false;
    l->came = signo == SIGINT ? LINE_CLEARED : LINE_SIGNAL;
    return true;
}

/* ---- the keyboard ---- */

/* Waits for a byte. Returns 1, 0 at the end, or -1 if a signal ended the line. */
static int next_byte(struct line *l, char *c)
{
    struct pollfd fds[2] = {{.fd = line_signals_fd(), .events = POLLIN},
                            {.fd = STDIN_FILENO, .events = POLLIN}};

    if (l->unread >= 0) {
        *c = (char)l->unread;
        l->unread = -1;
        return 1;
    }
    for (;;) {
        ssize_t n;

        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents && handle_signal(l))
            return -1;
        if (!fds[1].revents)
            continue;
        n = read(STDIN_FILENO, c, 1);
        /* The terminal had turned Enter into LF. */
        if (n > 0 && l->ahead > 0 && l->ahead-- > 0 && *c == '\n')
            *c = '\r';
        if (n > 0)
            return 1;
        if (n == 0 || (errno != EINTR && errno != EAGAIN))
            return 0;
    }
}

/* ---- keys ---- */

/* While a line is edited the terminal sends no signals for Ctrl-C and the like, because these bytes
 * may be part of a paste. Returns whether the character is such a key; it may end the line. */
static bool apply_signal_key(struct line *l, int32_t c)
{
    const cc_t *keys = l->found.c_cc;

    if (c <= 0 || !(l->found.c_lflag & ISIG))
        return false;
    if (c == keys[VINTR])
        l->came = LINE_CLEARED;
    else if (c == keys[VQUIT])
        raise(SIGQUIT);
    else if (c == keys[VSUSP])
        raise(SIGTSTP);
    else
        return false;
    return true;
}

/* Adds the octal form of a key, which libedit's command `bind` reads in every locale. */
static void add_key_name(struct buf *out, struct str key)
{
    for (size_t i = 0; i < key.n; i++)
        buf_addf(out, "\\%03o", (unsigned char)key.p[i]);
}

/* Finds out which command libedit has for a sequence, its own, ours or one of ~/.editrc. libedit
 * has no function for that question, so it is asked to print the binding: `"^[[A" ->
 * ed-prev-history`. For an unknown sequence it prints an error without "->". Returns whether it has
 * one, and appends it to `command` (may be NULL). */
static bool find_binding(const struct line *l, struct str key, struct buf *command)
{
    char *said = NULL;
    size_t n = 0;
    FILE *errors = open_memstream(&said, &n);
    struct buf name = BUF_INIT(BUF_SMALL);
    const char *arrow = NULL;

    if (!errors)
        return false;
    add_key_name(&name, key);
    el_set(l->el, EL_SETFP, 1, errors);
    el_set(l->el, EL_SETFP, 2, errors);
    el_set(l->el, EL_BIND, buf_c(&name), NULL);
    el_set(l->el, EL_SETFP, 1, l->tall ? l->nowhere : stdout);
    el_set(l->el, EL_SETFP, 2, stderr);
    fclose(errors);
    arrow = said ? strstr(said, "->") : NULL;
    if (arrow && command)
        buf_add_str(command, str_trim(str_of(arrow + 2)));
    free(said);
    buf_release(&name);
    return arrow != NULL;
}

static void push_key(struct line *l, wchar_t c)
{
    l->key[l->key_count++] = c;
}

/* While libedit searches its history, the text of the search is part of the line. */
static bool is_searching(const struct line *l)
{
    const LineInfoW *info = el_wline(l->el);
    struct wide text = {0};
    bool is;

    wide_add(&text, info->buffer, (size_t)(info->lastchar - info->buffer));
    is = text.at && (wcsstr(text.at, L"\nbck") || wcsstr(text.at, L"\nfwd"));
    wide_release(&text);
    return is;
}

/* Reads a character that begins with this byte. Bytes that are not UTF-8 become U+FFFD; C1 control
 * characters are dropped. Returns as next_byte. */
static int read_character(struct line *l, char first)
{
    char held[4] = {first};
    size_t n = 1, used;
    int32_t cp = 0;

    while ((used = utf8_decode((struct str){held, n}, &cp)) == 0) {
        int came = next_byte(l, &held[n++]);

        if (came <= 0)
            return came;
    }
    if (used < n)
        l->unread = (unsigned char)held[n - 1];
    if (apply_signal_key(l, cp))
        return l->came == LINE_TEXT ? 1 : -1;
    if (cp < 0x80 || cp > 0x9f)
        push_key(l, cp < 0 ? L'\xfffd' : (wchar_t)cp);
    return 1;
}

/* Reads the rest of an escape sequence whose first *n bytes are in `key`: after parameters and
 * intermediate bytes comes a final byte (ECMA-48, section 5.4). rxvt ends a key with Shift by `$`,
 * and F1 to F5 of the Linux console have one more byte: ESC [ [ A. Returns as next_byte; *n is 0 if
 * the sequence is cut off by a byte that belongs to none. The end of a long one is dropped. */
static int read_sequence(struct line *l, char *key, size_t *n)
{
    size_t begin = *n;
    char c = '\0', last;

    do {
        int came;

        last = c;
        came = next_byte(l, &c);
        if (came <= 0)
            return came;
        if (c < ' ' || c > '~') {
            l->unread = (unsigned char)c;
            *n = 0;
            return 1;
        }
        if (*n < SEQUENCE_MAX)
            key[(*n)++] = c;
    } while ((c < '@' && (c != '$' || !ascii_is_digit(last))) || (c == '[' && *n == begin + 1));
    return 1;
}

/* Reads the report of the background after ESC ]: to BEL or ESC \\, as long as its bytes arrive. */
static void read_report(struct line *l)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    struct buf text = BUF_INIT(REPORT_MAX);
    enum background b;
    char c = '\0';

    while (c != '\a' && c != '\\' && text.len < REPORT_MAX && poll(&fd, 1, REPORT_MS) > 0 &&
           read(STDIN_FILENO, &c, 1) == 1)
        if (c != ESC && c != '\a' && c != '\\')
            buf_add_byte(&text, c);
    b = palette_reported(buf_str(&text));
    if (b != BACKGROUND_UNKNOWN)
        term_set_background(b);
    l->asked = 0;
    buf_release(&text);
}

/* Reads a key that begins with ESC. A sequence is always read whole and dropped if it is not bound,
 * because libedit would insert the rest of it as text. Returns as next_byte. */
static int read_escape(struct line *l)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    char key[SEQUENCE_MAX] = {ESC}, c = '\0';
    size_t n = 1;
    int came = 1;

    if (!l->vi || poll(&fd, 1, ESCAPE_MS) != 0)
        came = next_byte(l, &c);
    /* rxvt and the Linux console send ESC before the sequence for Alt. */
    if (came > 0 && c == ESC) {
        key[n++] = c;
        came = next_byte(l, &c);
    }
    if (came <= 0)
        return came;
    if (c == ']' && n == 1 && l->asked != 0) {
        read_report(l);
        return 1;
    }
    if (c != '[' && c != 'O') {
        for (size_t i = 0; i < n; i++)
            push_key(l, l->vi ? ESCAPE_KEY : ESC);
        l->unread = c ? (unsigned char)c : -1;
        return 1;
    }
    key[n++] = c;
    came = read_sequence(l, key, &n);
    if (came <= 0 || n == 0 || !find_binding(l, (struct str){key, n}, NULL))
        return came;
    /* It ends a search, which would take its ESC for this. */
    if (is_searching(l))
        push_key(l, ESC);
    for (size_t i = 0; i < n; i++)
        push_key(l, key[i]);
    return 1;
}

/* ---- undo ---- */

static bool begins_with(const struct wide *text, const struct wide *start)
{
    return text->count >= start->count &&
           (start->count == 0 || wmemcmp(text->at, start->at, start->count) == 0);
}

/* Returns whether `now` is the former state with one more character of the same word. */
static bool extends_word(const struct wide *former, const struct wide *now)
{
    return former->count > 0 && now->count == former->count + 1 && begins_with(now, former) &&
           !wcschr(L" \t\n", former->at[former->count - 1]);
}

static void forget_states(struct line *l)
{
    while (l->undo_count > 0)
        wide_release(&l->undo[--l->undo_count]);
}

/* Called before each key: adds the present state of the line if the last key changed it.
 * Characters of one word are one change. (libedit records changes only for vi keys.) */
static void record_state(struct line *l)
{
    const LineInfoW *info = el_wline(l->el);
    struct wide now = {0}, *last = l->undo_count > 0 ? &l->undo[l->undo_count - 1] : NULL;

    if (info->lastchar - info->buffer > UNDO_TEXT_MAX)
        return;
    wide_add(&now, info->buffer, (size_t)(info->lastchar - info->buffer));
    /* A search may end anywhere in the history. */
    if (is_searching(l))
        l->earlier = l->earlier > 0 ? l->earlier : 1;
    if ((last && last->count == now.count && begins_with(&now, last)) || is_searching(l)) {
        wide_release(&now);
        return;
    }
    if (last && extends_word(last, &now)) {
        wide_release(last);
        l->undo_count--;
    } else if (l->undo_count == UNDO_MAX) {
        wide_release(&l->undo[0]);
        memmove(l->undo, l->undo + 1, (UNDO_MAX - 1) * sizeof *l->undo);
        l->undo_count--;
    }
    l->undo[l->undo_count++] = now;
}

/* Replaces all of the text; NULL is an empty one. */
static void replace_text(EditLine *el, const wchar_t *text)
{
    const LineInfoW *info = el_wline(el);

    el_cursor(el, (int)(info->lastchar - info->cursor));
    el_deletestr(el, el_cursor(el, 0));
    if (text && *text)
        el_winsertstr(el, text);
}

static unsigned char undo_change(EditLine *el, int c)
{
    struct line *l = line_of_editor(el);
    const struct wide *former;

    (void)c;
    if (l->undo_count < 2)
        return CC_ERROR;
    wide_release(&l->undo[--l->undo_count]);
    former = &l->undo[l->undo_count - 1];
    replace_text(el, former->at);
    return CC_REFRESH;
}

/* Replaces libedit's reader, which decodes characters as the locale says. */
static int next_char(EditLine *el, wchar_t *out)
{
    struct line *l = line_of_editor(el);

    if (l->begins.count > 0) {
        size_t above = rows_above(l);

        el_winsertstr(el, l->begins.at);
        wide_release(&l->begins);
        update_view(l, false);
        draw_again(l, above);
    }
    record_state(l);
    redraw_at_end(l);
    update_view(l, true);
    while (l->key_at == l->key_count) {
        char c;
        int came = next_byte(l, &c);

        l->key_at = l->key_count = 0;
        if (came > 0)
            came = c == ESC ? read_escape(l) : read_character(l, c);
        if (came <= 0)
            return came;
    }
    *out = l->key[l->key_at++];
    return 1;
}

/* ---- what keys do ---- */

/* Reads pasted text up to its mark, and inserts it; no byte in it is a key. */
static unsigned char insert_pasted(EditLine *el, int key)
{
    struct line *l = line_of_editor(el);
    struct buf text = BUF_INIT(PASTE_MAX);
    size_t matched = 0;
    bool cr = false;
    int came = 1;
    char c;

    (void)key;
    while (matched < PASTE_END.n && (came = next_byte(l, &c)) > 0) {
        matched = c == PASTE_END.p[matched] ? matched + 1 : c == ESC;
        /* A terminal sends CR, LF or both for a newline. */
        if (c != '\n' || !cr)
            buf_add_byte(&text, c == '\r' ? '\n' : c);
        cr = c == '\r';
    }
    if (!text.overflow && came > 0)
        buf_truncate(&text, text.len - PASTE_END.n);
    insert_text(el, buf_str(&text));
    buf_release(&text);
    update_view(l, false);
    return came > 0 ? CC_REFRESH : CC_EOF;
}

static unsigned char put_newline(EditLine *el, int c)
{
    (void)c;
    return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

/* Goes through the history. Without a later entry libedit would replace the text by an old
 * one. */
static unsigned char recall_entry(struct line *l, bool up)
{
    HistEventW event;
    int size = history_w(l->history, &event, H_GETSIZE) < 0 ? 0 : event.num;

    if (up ? l->earlier == size : l->earlier == 0)
        return CC_ERROR;
    l->earlier += up ? 1 : -1;
    l->key_at = l->key_count = 0;
    push_key(l, up ? EARLIER_KEY : LATER_KEY);
    return CC_NORM;
}

/* Moves the cursor to the same column of the line above (`up`) or below. On the first or last line
 * the key recalls an entry of the history. */
static unsigned char move_by_line(EditLine *el, bool up)
{
    const LineInfoW *info = el_wline(el);
    const wchar_t *start = info->cursor, *to, *end = info->cursor;
    struct line *l = line_of_editor(el);
    size_t column;

    while (start > info->buffer && start[-1] != L'\n')
        start--;
    while (end < info->lastchar && *end != L'\n')
        end++;
    if (up ? start == info->buffer : end == info->lastchar)
        return recall_entry(l, up);
    column = (size_t)(info->cursor - start);
    to = up ? start - 1 : end + 1;
    while (up && to > info->buffer && to[-1] != L'\n')
        to--;
    while (column > 0 && to < info->lastchar && *to != L'\n') {
        to++;
        column--;
    }
    el_cursor(el, (int)(to - info->cursor));
    return CC_REFRESH;
}

static unsigned char move_up(EditLine *el, int c)
{
    (void)c;
    return move_by_line(el, true);
}

static unsigned char move_down(EditLine *el, int c)
{
    (void)c;
    return move_by_line(el, false);
}

/* Opens the text in the user's editor. */
static unsigned char edit_text(EditLine *el, int c)
{
    struct line *l = line_of_editor(el);
    const LineInfoW *info = el_wline(el);
    struct buf text = BUF_INIT(SIZE_MAX);
    struct wide edited = {0};
    size_t above = rows_above(l);
    bool changed;

    (void)c;
    wide_encode(&text, info->buffer, (size_t)(info->lastchar - info->buffer));
    if (l->tall)
        leave_window(l, false);
    else if (!l->dumb)
        erase_rows(above);
    set_pasting(l, false);
    el_wset(el, EL_PREP_TERM, 0);
    line_signals_edit(false);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
    changed = l->setup.edit(l->setup.arg, &text);
    set_quiet(l);
    line_signals_edit(true);
    resume_editor(l);
    if (changed) {
        wide_add_text(&edited, buf_str(&text));
        replace_text(el, edited.at);
    }
    draw_again(l, 0);
    wide_release(&edited);
    buf_release(&text);
    return CC_REFRESH;
}

/* ---- completion ---- */

void line_offer(struct line_words *w, struct str typed, struct str word)
{
    if (str_starts(word, typed))
        words_add(&w->all, word);
}

/* Returns the longest common beginning of the words in whole code points, borrowed from them. There
 * is at least one word. */
static struct str common_beginning(const struct words *w)
{
    struct str all = str_of(w->at[0]);

    for (size_t i = 1; i < w->count; i++) {
        size_t n = 0;

        while (n < all.n && w->at[i][n] == all.p[n])
            n++;
        all.n = n;
    }
    all.n = utf8_valid(all);
    return all;
}

/* Adds the words as a table: made visible, in lines of at most `columns` columns unless a word is
 * longer, each line ended by CR LF. */
static void add_table(struct buf *out, const struct words *w, size_t columns)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    size_t width = WORD_COLUMNS_LEAST, at = 0;

    for (size_t i = 0; i < w->count; i++) {
        size_t needed = wide_columns(str_of(w->at[i])) + 2;

        width = needed > width ? needed : width;
    }
    for (size_t i = 0; i < w->count; i++) {
        buf_clear(&word);
        vis_add_line(&word, str_of(w->at[i]), true);
        if (at > 0 && at + width > columns) {
            buf_add_c(out, "\r\n");
            at = 0;
        }
        buf_add_str(out, buf_str(&word));
        at += width;
        if (i + 1 == w->count || at + width > columns)
            continue;
        for (size_t n = wide_columns(buf_str(&word)); n < width; n++)
            buf_add_byte(out, ' ');
    }
    buf_add_c(out, "\r\n");
    buf_release(&word);
}

/* Inserts the common beginning of the words, or prints them if that adds nothing. */
static unsigned char insert_or_print_words(struct line *l, struct str before,
                                           const struct line_words *words)
{
    struct str typed = {before.p + words->from, before.n - words->from};
    struct buf table = BUF_INIT(BUF_LINE);
    struct str all;

    if (words->all.count == 0)
        return CC_ERROR;
    all = common_beginning(&words->all);
    if (words->all.count > 1 && all.n <= typed.n) {
        buf_add_c(&table, "\r\n");
        add_table(&table, &words->all, terminal_columns(l));
        write_terminal(buf_str(&table));
        buf_release(&table);
        return CC_REDISPLAY;
    }
    el_deletestr(l->el, (int)utf8_count(typed));
    insert_text(l->el, all);
    if (words->all.count == 1 && !str_ends(all, STR("/")) && !str_ends(all, STR(":")) &&
        !str_ends(all, STR("option.")))
        insert_text(l->el, STR(" "));
    return CC_REFRESH;
}

static unsigned char complete_word(EditLine *el, int c)
{
    const LineInfoW *info = el_wline(el);
    struct buf text = BUF_INIT(BUF_SMALL);
    struct line_words words = {0};
    struct line *l = line_of_editor(el);
    unsigned char result;

    (void)c;
    wide_encode(&text, info->buffer, (size_t)(info->cursor - info->buffer));
    l->setup.complete(l->setup.arg, buf_str(&text), &words);
    result = insert_or_print_words(l, buf_str(&text), &words);
    words_release(&words.all);
    buf_release(&text);
    return result;
}

/* ---- beginning and end ---- */

static wchar_t *prompt_of(EditLine *el)
{
    struct line *l = line_of_editor(el);

    return l->prompt.at;
}

/* Returns whether our command may take the place of the one that the key has. libedit binds the
 * arrow keys to its own commands. */
static bool is_free(const struct line *l, struct str key, const char *command)
{
    struct buf present = BUF_INIT(BUF_SMALL);
    bool is = !find_binding(l, key, &present) ||
              (strcmp(command, "chat-up") == 0 && str_eq_c(buf_str(&present), "ed-prev-history")) ||
              (strcmp(command, "chat-down") == 0 && str_eq_c(buf_str(&present), "ed-next-history"));

    buf_release(&present);
    return is;
}

/* Binds a key in the map of libedit, and in the one for the command mode of vi. */
static void bind_in_both(const struct line *l, const char *key, const char *command)
{
    el_set(l->el, EL_BIND, key, command, NULL);
    el_set(l->el, EL_BIND, "-a", key, command, NULL);
}

/* Binds a key to a command of libedit or ours (NULL: none), unless ~/.editrc has bound it. */
__attribute__((format(printf, 3, 4))) static void
bind_key(const struct line *l, const char *command, const char *fmt, ...)
{
    struct buf key = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&key, fmt, ap);
    va_end(ap);
    if (command && is_free(l, buf_str(&key), command)) {
        add_key_name(&name, buf_str(&key));
        bind_in_both(l, buf_c(&name), command);
    }
    buf_release(&key);
    buf_release(&name);
}

/* Modifiers as terminals send them, minus 1; with one of these an arrow key moves by words. */
enum { ALT = 2, CTRL = 4, META = 8, MODIFIERS_END = 17 };

/* Binds the sequences of a key: ESC [ `end`, and with modifiers ESC [ `number` ; modifiers
 * `end`. */
static void bind_sequences(const struct line *l, int number, char end, const char *plain,
                           const char *word)
{
    for (int m = 2; m < MODIFIERS_END; m++)
        bind_key(l, (m - 1) & (ALT | CTRL | META) ? word : plain, "\033[%d;%d%c", number, m, end);
    if (end == '~') {
        bind_key(l, plain, "\033[%d~", number);
        bind_key(l, word, "\033\033[%d~", number);
        /* rxvt, with Shift and Ctrl */
        bind_key(l, plain, "\033[%d$", number);
        bind_key(l, word, "\033[%d^", number);
    } else {
        bind_key(l, plain, "\033[%c", end);
        bind_key(l, plain, "\033O%c", end);
        bind_key(l, word, "\033\033[%c", end);
        bind_key(l, word, "\033\033O%c", end);
        /* rxvt, with Shift and Ctrl */
        bind_key(l, plain, "\033[%c", end - 'A' + 'a');
        bind_key(l, word, "\033O%c", end - 'A' + 'a');
    }
}

/* Binds the keys of xterm, and those that terminfo has for screen, tmux, linux and rxvt:
 * https://invisible-island.net/xterm/ctlseqs/ctlseqs.html
 * https://sw.kovidgoyal.net/kitty/keyboard-protocol/ */
static void bind_terminal_keys(const struct line *l)
{
    static const struct {
        int number;
        char end;
        const char *plain, *word;
    } keys[] = {
        {1, 'A', "chat-up", NULL},
        {1, 'B', "chat-down", NULL},
        {1, 'C', "ed-next-char", "em-next-word"},
        {1, 'D', "ed-prev-char", "ed-prev-word"},
        {1, 'H', "ed-move-to-beg", "ed-move-to-beg"},
        {1, 'F', "ed-move-to-end", "ed-move-to-end"},
        {1, '~', "ed-move-to-beg", "ed-move-to-beg"},
        {7, '~', "ed-move-to-beg", "ed-move-to-beg"},
        {4, '~', "ed-move-to-end", "ed-move-to-end"},
        {8, '~', "ed-move-to-end", "ed-move-to-end"},
        {3, '~', "ed-delete-next-char", "em-delete-next-word"},
    };

    bind_key(l, "ed-newline", "\033OM");
    bind_key(l, "ed-newline", "\033[13u");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        bind_sequences(l, keys[i].number, keys[i].end, keys[i].plain, keys[i].word);
    /* Enter with modifiers, in kitty's protocol and with modifyOtherKeys */
    for (int m = 2; m < MODIFIERS_END; m++) {
        bind_key(l, "chat-newline", "\033[13;%du", m);
        bind_key(l, "chat-newline", "\033[27;%d;13~", m);
    }
    bind_key(l, "chat-up", "\020");
    bind_key(l, "chat-down", "\016");
    bind_key(l, "chat-paste", "\033[200~");
    /* The Escape key before a paste is ignored. */
    bind_key(l, "chat-paste", "\033\033[200~");
}

/* ~/.editrc may choose vi keys, which removes all earlier bindings. */
static void set_keys(struct line *l)
{
    EditLine *el = l->el;
    const char *editor;

    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(el, EL_BIND, "^W", "ed-delete-prev-word", NULL);
    /* With el_set, libedit loses copies of the names. */
    el_wset(el, EL_ADDFN, L"chat-newline", L"inserts a newline", put_newline);
    el_wset(el, EL_ADDFN, L"chat-paste", L"inserts pasted text", insert_pasted);
    el_wset(el, EL_ADDFN, L"chat-undo", L"undoes the last change", undo_change);
    el_wset(el, EL_ADDFN, L"chat-complete", L"completes a word", complete_word);
    el_wset(el, EL_ADDFN, L"chat-up", L"moves up a line", move_up);
    el_wset(el, EL_ADDFN, L"chat-down", L"moves down a line", move_down);
    el_wset(el, EL_ADDFN, L"chat-editor", L"opens the text in the editor", edit_text);
    el_set(el, EL_BIND, "^_", "chat-undo", NULL);
    el_set(el, EL_BIND, "^X^E", "chat-editor", NULL);
    el_source(el, NULL);
    l->vi = el_get(el, EL_EDITOR, &editor) == 0 && strcmp(editor, "emacs") != 0;
    bind_terminal_keys(l);
    bind_in_both(l, "\\201", "ed-prev-history");
    bind_in_both(l, "\\202", "ed-next-history");
    if (l->vi)
        el_set(el, EL_BIND, "\\200", "vi-command-mode", NULL);
    else
        el_set(el, EL_BIND, "\\e\\r", "chat-newline", NULL);
    el_set(el, EL_BIND, "^J", "chat-newline", NULL);
    el_set(el, EL_BIND, "^I", "chat-complete", NULL);
    el_set(el, EL_SETTY, "-d", "-icrnl", "-inlcr", "-igncr", "-isig", NULL);
}

/* Asks the terminal for its background (OSC 11; xterm's ctlseqs, "Operating System Commands"). The
 * report comes among the keys, or never. */
static void ask_background(struct line *l)
{
    const char *term = config_env("TERM");

    if (!l->setup.color || l->dumb || term_background() != BACKGROUND_UNKNOWN ||
        strcmp(term, "linux") == 0)
        return;
    write_terminal(STR("\033]11;?\033\\"));
    l->asked = time_ticks();
}

/* Takes a report that may still come, so that it does not become input of the next program. A
 * report comes as one; fewer bytes were typed, and stay for that program. */
static void await_report(struct line *l)
{
    int64_t until = l->asked == 0 ? 0 : l->asked + REPORT_MS;
    int waiting = 0;
    char c;

    while (waiting < REPORT_BYTES && time_ticks() < until) {
        if (ioctl(STDIN_FILENO, FIONREAD, &waiting) < 0)
            return;
        if (waiting < REPORT_BYTES)
            file_wait(-1, REPORT_LOOK_MS);
    }
    if (waiting >= REPORT_BYTES && read(STDIN_FILENO, &c, 1) == 1 && c == ESC)
        read_report(l);
}

int line_open(struct line **out, const struct line_setup *setup, struct err *e)
{
    struct line *l = mem_zalloc(sizeof *l);
    HistEventW event;

    l->setup = *setup;
    l->dumb = term_is_dumb();
    l->unread = -1;
    *out = l;
    if (tcgetattr(STDIN_FILENO, &l->found) < 0)
        return err_sys(e, errno, "cannot set up the terminal");
    if (line_signals_begin(e) < 0)
        return -1;
    wide_locale();
    if (!at_exit)
        atexit(restore_at_exit);
    at_exit = l;
    l->el = el_init("chat", stdin, stdout, stderr);
    l->history = history_winit();
    if (!l->el || !l->history)
        return err_set(e, ERR_FAILURE, "cannot set up the terminal");
    history_w(l->history, &event, H_SETSIZE, HISTORY_MAX);
    history_w(l->history, &event, H_SETUNIQUE, 1);
    el_wset(l->el, EL_CLIENTDATA, l);
    el_wset(l->el, EL_HIST, history_w, l->history);
    el_wset(l->el, EL_GETCFN, next_char);
    el_wset(l->el, EL_PROMPT_ESC, prompt_of, PROMPT_STYLE);
    set_keys(l);
    set_line_modes(l);
    ask_background(l);
    /* Without it, libedit draws tall texts. */
    l->nowhere = fopen("/dev/null", "we");
    return 0;
}

void line_close(struct line *l)
{
    if (!l)
        return;
    at_exit = NULL;
    await_report(l);
    /* Otherwise libedit drops bytes that were typed for the next program. */
    if (l->el) {
        el_wset(l->el, EL_EDITMODE, 0);
        el_end(l->el);
    }
    if (l->nowhere)
        fclose(l->nowhere);
    if (l->history)
        history_wend(l->history);
    if (line_signals_fd() >= 0) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
        line_signals_end();
    }
    forget_states(l);
    wide_release(&l->prompt);
    wide_release(&l->plain_prompt);
    wide_release(&l->begins);
    free(l);
}

/* ---- a line ---- */

bool line_remember(struct line *l, struct str text)
{
    struct wide w = {0};
    HistEventW event;
    bool added;

    wide_add_text(&w, text);
    added = w.count > 0 && history_w(l->history, &event, H_ENTER, w.at) > 0;
    wide_release(&w);
    return added;
}

void line_begin_with(struct line *l, struct str text)
{
    wide_release(&l->begins);
    wide_add_text(&l->begins, text);
}

static void set_prompt(struct line *l, struct str text)
{
    bool bold = l->setup.color && !l->dumb;

    l->prompt.count = l->plain_prompt.count = 0;
    l->prompt_columns = wide_columns(text);
    wide_add_text(&l->plain_prompt, text);
    if (bold)
        wide_add_text(&l->prompt, STR("\001\033[1m\001"));
    wide_add_text(&l->prompt, text);
    if (bold)
        wide_add_text(&l->prompt, STR("\001\033[0m\001"));
}

enum line_came line_read(struct line *l, struct str prompt, struct buf *text)
{
    const wchar_t *got;
    int count = 0;

    buf_clear(text);
    line_signals_forget();
    if (line_signals_fatal())
        return LINE_SIGNAL;
    l->came = LINE_TEXT;
    forget_states(l);
    l->earlier = 0;
    l->at_end = true;
    set_prompt(l, prompt);
    line_signals_edit(true);
    el_resize(l->el);
    set_pasting(l, true);
    got = el_wgets(l->el, &count);
    leave_window(l, true);
    /* libedit does not print the end of the prompt's style if nothing follows it. */
    if (l->setup.color && !l->dumb)
        write_terminal(STR("\033[0m"));
    set_pasting(l, false);
    line_signals_edit(false);
    if (l->came == LINE_TEXT && (!got || count <= 0)) {
        /* A terminal that is closed also sends SIGHUP. */
        l->came = line_signals_fatal() ? LINE_SIGNAL : LINE_END;
        write_terminal(STR("\r\n"));
    }
    if (l->came == LINE_CLEARED) {
        const LineInfoW *info = el_wline(l->el);

        write_terminal(l->dumb ? STR("^C\r\n") : STR("^C\r\n\033[J"));
        wide_encode(text, info->buffer, (size_t)(info->lastchar - info->buffer));
    } else if (l->came == LINE_TEXT) {
        wide_encode(text, got, (size_t)count);
        if (str_ends(buf_str(text), STR("\n")))
            buf_truncate(text, text->len - 1);
    }
    set_quiet(l);
    return l->came;
}
