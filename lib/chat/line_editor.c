#include "chat/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "chat/line_keys.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/wide.h"

/* The minimum width of a column. */
#define WIDTH_LEAST 20

void line_offer(struct line_words *w, struct str word)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 1, sizeof *w->at);
    w->at[w->count++] = mem_copy(word.p, word.n);
}

void line_words_release(struct line_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->at[i]);
    free(w->at);
}

struct str line_words_common(const struct line_words *w)
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

void line_words_add_table(struct buf *out, const struct line_words *w, size_t columns)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    size_t width = WIDTH_LEAST, at = 0;

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

#define HISTORY_MAX 1000
/* Keys that are not characters are handed to libedit as C1 control characters; these are bound to
 * commands. */
#define FIRST_KEY 0x80
#define PASTE_KEY (FIRST_KEY + LINE_EDITS)
/* With vi keys, ESC is the Escape key if no byte follows within this time. */
#define ESCAPE_MS 50
/* The number of states that Ctrl-_ can restore, and the maximum length of a text that is kept. */
#define UNDO_MAX 100
#define UNDO_TEXT_MAX 65536
/* Marks escape sequences in the prompt, which libedit does not count as columns. */
#define PROMPT_STYLE L'\001'

struct line {
    struct line_setup setup;
    EditLine *el;
    HistoryW *history;
    struct termios found; /* the terminal's modes before line_open */
    bool dumb;            /* the terminal knows no escape sequences */
    bool vi;              /* ~/.editrc chose the keys of vi */
    struct wide prompt;
    size_t prompt_columns;
    struct buf newest; /* the newest text of the history */
    struct line_keys keys;
    struct wide undo[UNDO_MAX]; /* earlier states of the line, and its present state last */
    size_t undo_count;
    int ahead; /* unread bytes that were typed before take_over() */
    enum line_came came;
};

static struct line *line_of(EditLine *el)
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
static void take_over(struct line *l)
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
        take_over(l);
}

static size_t terminal_columns(const struct line *l)
{
    int columns = 0;

    el_wget(l->el, EL_GETTC, "co", &columns);
    return columns > 0 ? (size_t)columns : 80;
}

/* Returns how many rows the line begins above the cursor. */
static size_t rows_above(const struct line *l)
{
    const LineInfoW *info = el_wline(l->el);

    return wide_rows(info->buffer, (size_t)(info->cursor - info->buffer), l->prompt_columns,
                     terminal_columns(l));
}

/* Redraws the line, beginning `above` rows above the cursor. */
static void draw_again(const struct line *l, size_t above)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    buf_add_c(&out, l->dumb ? "\r\n" : "\r");
    if (above > 0 && !l->dumb)
        buf_addf(&out, "\033[%zuA", above);
    if (!l->dumb)
        buf_add_c(&out, "\033[J");
    write_terminal(buf_str(&out));
    el_wset(l->el, EL_REFRESH);
    buf_release(&out);
}

/* Some terminals wrap their rows again for a new width, others do not. Only rows that belong to the
 * line in both cases are overwritten. */
static void resize(const struct line *l)
{
    size_t before = rows_above(l), after;

    el_resize(l->el);
    after = rows_above(l);
    draw_again(l, after < before ? after : before);
}

/* Stops the program as an uncaught SIGTSTP does. */
static void suspend_editor(struct line *l)
{
    set_pasting(l, false);
    el_wset(l->el, EL_PREP_TERM, 0);
    line_signals_stop();
}

/* Handles the next signal. Returns true if it ends the line. */
static bool take_signal(struct line *l)
{
    int signo = line_signals_next();

    if (signo == 0)
        return false;
    if (signo == SIGTSTP)
        suspend_editor(l);
    if (signo == SIGWINCH)
        resize(l);
    if (signo == SIGTSTP || signo == SIGCONT) {
        el_wset(l->el, EL_PREP_TERM, 1);
        el_resize(l->el);
        set_pasting(l, true);
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

    for (;;) {
        ssize_t n;

        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents && take_signal(l))
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
 * may be part of a paste. Returns true if the character is such a key; it may end the line. */
static bool take_signal_key(struct line *l, int32_t c)
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

/* Has libedit a command for the sequence, its own or one of ~/.editrc? libedit has no function for
 * that question, so it is asked to print the binding. For an unknown sequence it prints an error
 * without "->". */
static bool is_bound(const struct line *l)
{
    char *said = NULL;
    size_t n = 0;
    FILE *errors = open_memstream(&said, &n);
    struct buf key = BUF_INIT(BUF_SMALL);
    struct wide wide = {0};

    if (!errors)
        return false;
    for (size_t i = 0; i < l->keys.sequence_len; i++)
        buf_addf(&key, "\\%03o", (unsigned char)l->keys.sequence[i]);
    wide_add_text(&wide, buf_str(&key));
    el_wset(l->el, EL_SETFP, 1, errors);
    el_wset(l->el, EL_SETFP, 2, errors);
    el_wset(l->el, EL_BIND, wide.at, NULL);
    el_wset(l->el, EL_SETFP, 1, stdout);
    el_wset(l->el, EL_SETFP, 2, stderr);
    fclose(errors);
    n = said && strstr(said, "->") ? 1 : 0;
    free(said);
    wide_release(&wide);
    buf_release(&key);
    return n > 0;
}

/* Returns the character that libedit gets for a key, or 0 if it gets the bytes of the key or
 * nothing. */
static wchar_t translate(struct line *l, enum line_key key, int32_t cp)
{
    if (key == LINE_KEY_PASTE)
        return PASTE_KEY;
    if (key == LINE_KEY_CHAR && (cp < FIRST_KEY || cp > PASTE_KEY))
        return cp < 0 ? L'\xfffd' : (wchar_t)cp;
    if (key == LINE_KEY_CHAR)
        return 0;
    /* With vi keys, libedit takes the ESC of an arrow key for the Escape key. */
    if ((!l->vi || l->keys.means == LINE_IGNORE) && is_bound(l)) {
        line_keys_put_back(&l->keys);
        return 0;
    }
    return l->keys.means == LINE_IGNORE ? 0 : (wchar_t)(FIRST_KEY + l->keys.means);
}

/* ---- undo ---- */

static bool is_blank(wchar_t c)
{
    return c == L' ' || c == L'\t' || c == L'\n';
}

static bool begins_with(const struct wide *text, const struct wide *start)
{
    return text->count >= start->count &&
           (start->count == 0 || wmemcmp(text->at, start->at, start->count) == 0);
}

/* Is `now` the former state with one more character of the same word? */
static bool extends_word(const struct wide *former, const struct wide *now)
{
    return former->count > 0 && now->count == former->count + 1 && begins_with(now, former) &&
           !is_blank(former->at[former->count - 1]);
}

static void forget_states(struct line *l)
{
    while (l->undo_count > 0)
        wide_release(&l->undo[--l->undo_count]);
}

/* While libedit searches its history, the text of the search is part of the line. */
static bool is_search(const struct wide *text)
{
    return wcsstr(text->at, L"\nbck") || wcsstr(text->at, L"\nfwd");
}

/* Called before each key: keeps the present state of the line if the last key changed it.
 * Characters of one word are one change. (libedit records changes only for vi keys.) */
static void keep_state(struct line *l)
{
    const LineInfoW *info = el_wline(l->el);
    struct wide now = {0}, *last = l->undo_count > 0 ? &l->undo[l->undo_count - 1] : NULL;

    if (info->lastchar - info->buffer > UNDO_TEXT_MAX)
        return;
    wide_add(&now, info->buffer, (size_t)(info->lastchar - info->buffer));
    if ((last && last->count == now.count && begins_with(&now, last)) || is_search(&now)) {
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

static unsigned char undo_change(EditLine *el, int c)
{
    struct line *l = line_of(el);
    const struct wide *former;

    (void)c;
    if (l->undo_count < 2)
        return CC_ERROR;
    wide_release(&l->undo[--l->undo_count]);
    former = &l->undo[l->undo_count - 1];
    el_cursor(el, UNDO_TEXT_MAX);
    el_deletestr(el, el_cursor(el, 0));
    if (former->count > 0)
        el_winsertstr(el, former->at);
    return CC_REFRESH;
}

/* Replaces libedit's reader, which decodes characters as the locale says. */
static int next_char(EditLine *el, wchar_t *out)
{
    struct line *l = line_of(el);
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    int32_t cp = 0;

    keep_state(l);
    for (;;) {
        enum line_key key = line_keys_next(&l->keys, &cp);
        bool signals = key == LINE_KEY_CHAR && take_signal_key(l, cp);
        char c;
        int came;

        *out = key == LINE_KEY_NONE || signals ? L'\0' : translate(l, key, cp);
        if (*out || (key == LINE_KEY_CHAR && cp == 0))
            return 1;
        if (l->came != LINE_TEXT)
            return -1;
        if (key != LINE_KEY_NONE)
            continue;
        if (l->vi && line_keys_holds_escape(&l->keys) && poll(&fd, 1, ESCAPE_MS) == 0) {
            line_keys_give_up(&l->keys);
            continue;
        }
        came = next_byte(l, &c);
        if (came <= 0) {
            line_keys_drop(&l->keys);
            return came;
        }
        line_keys_feed(&l->keys, c);
    }
}

/* ---- what keys do ---- */

static unsigned char insert_pasted(EditLine *el, int c)
{
    struct line *l = line_of(el);

    (void)c;
    insert_text(el, buf_str(&l->keys.pasted));
    buf_clear(&l->keys.pasted);
    return CC_REFRESH;
}

static unsigned char put_newline(EditLine *el, int c)
{
    (void)c;
    return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

/* Prints the words below the line, in columns. */
static void print_words(const struct line *l, const struct line_words *words)
{
    struct buf out = BUF_INIT(BUF_LINE);

    buf_add_c(&out, "\r\n");
    line_words_add_table(&out, words, terminal_columns(l));
    write_terminal(buf_str(&out));
    buf_release(&out);
}

/* Inserts the common beginning of the words, or prints them if that adds nothing. */
static unsigned char insert_or_print_words(struct line *l, struct str before,
                                           const struct line_words *words)
{
    struct str typed = {before.p + words->from, before.n - words->from};
    struct str all;

    if (words->count == 0)
        return CC_ERROR;
    all = line_words_common(words);
    if (words->count > 1 && all.n <= typed.n) {
        print_words(l, words);
        return CC_REDISPLAY;
    }
    el_deletestr(l->el, (int)utf8_count(typed));
    insert_text(l->el, all);
    if (words->count == 1 && !str_ends(all, STR("/")))
        insert_text(l->el, STR(" "));
    return CC_REFRESH;
}

static unsigned char complete_word(EditLine *el, int c)
{
    const LineInfoW *info = el_wline(el);
    struct buf text = BUF_INIT(BUF_SMALL);
    struct line_words words = {0};
    struct line *l = line_of(el);
    unsigned char result;

    (void)c;
    wide_encode(&text, info->buffer, (size_t)(info->cursor - info->buffer));
    l->setup.complete(l->setup.arg, buf_str(&text), &words);
    result = insert_or_print_words(l, buf_str(&text), &words);
    line_words_release(&words);
    buf_release(&text);
    return result;
}

/* ---- beginning and end ---- */

static wchar_t *prompt_of(EditLine *el)
{
    struct line *l = line_of(el);

    return l->prompt.at;
}

static void bind_key(EditLine *el, wchar_t key, const wchar_t *command)
{
    const wchar_t keys[] = {key, L'\0'};

    el_wset(el, EL_BIND, keys, command, NULL);
    el_wset(el, EL_BIND, L"-a", keys, command, NULL);
}

/* ~/.editrc may choose vi keys, which removes all earlier bindings. */
static void set_keys(struct line *l)
{
    static const wchar_t *const commands[LINE_EDITS] = {
        [LINE_LEFT] = L"ed-prev-char",          [LINE_RIGHT] = L"ed-next-char",
        [LINE_UP] = L"ed-prev-history",         [LINE_DOWN] = L"ed-next-history",
        [LINE_HOME] = L"ed-move-to-beg",        [LINE_END_OF_LINE] = L"ed-move-to-end",
        [LINE_DELETE] = L"ed-delete-next-char", [LINE_WORD_LEFT] = L"ed-prev-word",
        [LINE_WORD_RIGHT] = L"em-next-word",    [LINE_DELETE_WORD] = L"em-delete-next-word",
        [LINE_ENTER] = L"ed-newline",           [LINE_NEWLINE] = L"chat-newline",
    };
    EditLine *el = l->el;
    const wchar_t *editor;

    el_wset(el, EL_EDITOR, L"emacs");
    el_wset(el, EL_BIND, L"^R", L"em-inc-search-prev", NULL);
    el_wset(el, EL_BIND, L"^W", L"ed-delete-prev-word", NULL);
    el_wset(el, EL_ADDFN, L"chat-newline", L"puts in a newline", put_newline);
    el_wset(el, EL_ADDFN, L"chat-paste", L"puts in what is pasted", insert_pasted);
    el_wset(el, EL_ADDFN, L"chat-undo", L"takes back a change", undo_change);
    el_wset(el, EL_BIND, L"^_", L"chat-undo", NULL);
    el_wset(el, EL_ADDFN, L"chat-complete", L"completes a word", complete_word);
    el_source(el, NULL);
    for (int i = 0; i < LINE_EDITS; i++)
        if (commands[i])
            bind_key(el, FIRST_KEY + i, commands[i]);
    bind_key(el, PASTE_KEY, L"chat-paste");
    l->vi = el_wget(el, EL_EDITOR, &editor) == 0 && wcscmp(editor, L"emacs") != 0;
    /* With vi keys, ESC is a key. */
    if (!l->vi)
        el_wset(el, EL_BIND, L"\\e\\r", L"chat-newline", NULL);
    el_wset(el, EL_BIND, L"^J", L"chat-newline", NULL);
    el_wset(el, EL_BIND, L"^I", L"chat-complete", NULL);
    el_wset(el, EL_SETTY, L"-d", L"-icrnl", L"-inlcr", L"-igncr", L"-isig", NULL);
}

int line_open(struct line **out, const struct line_setup *setup, struct err *e)
{
    struct line *l = mem_zalloc(sizeof *l);
    const char *term = config_env("TERM");
    HistEventW event;

    l->setup = *setup;
    l->dumb = !term || strcmp(term, "dumb") == 0;
    buf_init(&l->newest, BUF_LINE);
    l->keys = (struct line_keys)LINE_KEYS_INIT;
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
    el_wset(l->el, EL_CLIENTDATA, l);
    el_wset(l->el, EL_HIST, history_w, l->history);
    el_wset(l->el, EL_GETCFN, next_char);
    el_wset(l->el, EL_PROMPT_ESC, prompt_of, PROMPT_STYLE);
    set_keys(l);
    take_over(l);
    return 0;
}

void line_close(struct line *l)
{
    if (!l)
        return;
    at_exit = NULL;
    if (l->el)
        el_end(l->el);
    if (l->history)
        history_wend(l->history);
    if (line_signals_fd() >= 0) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
        line_signals_end();
    }
    forget_states(l);
    wide_release(&l->prompt);
    buf_release(&l->newest);
    buf_release(&l->keys.pasted);
    free(l);
}

/* ---- a line ---- */

bool line_remember(struct line *l, struct str text)
{
    struct wide w = {0};
    HistEventW event;

    if (text.n == 0 || str_eq(text, buf_str(&l->newest)))
        return false;
    buf_clear(&l->newest);
    buf_add_str(&l->newest, text);
    wide_add_text(&w, text);
    if (w.count > 0)
        history_w(l->history, &event, H_ENTER, w.at);
    wide_release(&w);
    return true;
}

static void set_prompt(struct line *l, struct str text)
{
    bool bold = l->setup.color && !l->dumb;

    l->prompt.count = 0;
    l->prompt_columns = wide_columns(text);
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
    set_prompt(l, prompt);
    line_signals_edit(true);
    el_resize(l->el);
    set_pasting(l, true);
    got = el_wgets(l->el, &count);
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
