#include "browse/view.h"

/* Makes curses declare its wide-character functions. */
#define NCURSES_WIDECHAR 1

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "chathist/cli/output.h"
#include "chathist/cli/wide.h"
#include "chathist/search/query.h"
#include "chathist/terminal/markdown_out.h"

/* The bytes of a key that begins with ESC arrive within this many milliseconds, those of a sequence
 * that curses does not know within SEQUENCE_MS. */
#define ESCAPE_MS 25
#define SEQUENCE_MS 200
#define WHEEL_LINES 3
/* The type of the terminal if the system does not know the one in TERM. */
#define INSTEAD "xterm-256color"
/* The programs that need no such terminal. */
#define OTHERS PROGRAM_PREFIX "hist-sessions, " PROGRAM_PREFIX "hist-search"
/* The terminal may take this many milliseconds to report its colours. */
#define ANSWER_MS 300
/* Longest answer that is read, in characters. */
#define ANSWER_MAX 64

struct browse_view {
    int fd;
    int screen_file; /* holds the output of one refresh; -1: none */
    FILE *in, *out;
    SCREEN *screen;
    bool color, mouse;
    int64_t asked;             /* when the terminal was asked for its colours; 0: it has answered */
    int sequence_ms;           /* time within which the rest of a sequence arrives */
    bool away;                 /* another program has the terminal */
    bool pasting, pasted, gap; /* inside a paste; some of it has arrived; a blank is due */
};

/* ---- the terminal ---- */

static void ask_for_pastes(const struct browse_view *v, bool on)
{
    struct str sequence = on ? STR("\033[?2004h") : STR("\033[?2004l");

    if (file_write_all(v->fd, sequence.p, sequence.n) < 0)
        errno = 0;
}

/* Defines arrow keys, Home and End in both modes of a terminal. Keys typed before the program has
 * started arrive in the mode that curses does not expect. */
static void define_keys(void)
{
    static const struct {
        const char *sequence;
        int key;
    } keys[] = {
        {"\033[A", KEY_UP},
        {"\033[B", KEY_DOWN},
        {"\033[C", KEY_RIGHT},
        {"\033[D", KEY_LEFT},
        {"\033[H", KEY_HOME},
        {"\033[F", KEY_END},
        {"\033[1~", KEY_HOME},
        {"\033[4~", KEY_END},
        {"\033OA", KEY_UP},
        {"\033OB", KEY_DOWN},
        {"\033OC", KEY_RIGHT},
        {"\033OD", KEY_LEFT},
        {"\033OH", KEY_HOME},
        {"\033OF", KEY_END},
        /* By words: Ctrl-Left and Alt-Left, Ctrl-Right and Alt-Right. */
        {"\033[1;5D", KEY_SLEFT},
        {"\033[1;5C", KEY_SRIGHT},
        {"\033[1;3D", KEY_SLEFT},
        {"\033[1;3C", KEY_SRIGHT},
        {"\033[5D", KEY_SLEFT},
        {"\033[5C", KEY_SRIGHT},
        {"\033Od", KEY_SLEFT},
        {"\033Oc", KEY_SRIGHT},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        define_key(keys[i].sequence, keys[i].key);
}

/* Makes the pair of each role: its number is that of its style. */
static void choose_colors(void)
{
    int colors = COLORS >= 256 ? 256 : 8;

    for (enum style s = STYLE_FIRST_ROLE; s < STYLE_COUNT; s++) {
        short color = (short)palette_color(s, term_background(), colors);

        if (s != STYLE_HIT)
            init_pair((short)s, color, -1);
        else
            init_pair((short)s, colors < 256 ? PALETTE_BLACK : PALETTE_BLACK_256, color);
    }
}

/* Unless COLORFGBG names the background, asks the terminal for it (OSC 11), and then for its type
 * (DA1). Every terminal answers the second question, in order, so that no answer to the first is
 * awaited any more. The answers come among the keys (read_answer). Sources: xterm's ctlseqs,
 * "Operating System Commands" and "Send Device Attributes". */
static void find_background(struct browse_view *v)
{
    const char *term = config_env("TERM");
    struct str questions = STR("\033]11;?\033\\\033[c");

    if (term_background() == BACKGROUND_UNKNOWN && term && strcmp(term, "linux") != 0 &&
        file_write_all(v->fd, questions.p, questions.n) == 0)
        v->asked = time_ticks();
}

static void set_up(struct browse_view *v)
{
    define_keys();
    ask_for_pastes(v, true);
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    /* Otherwise curses has read the variable. */
    if (!config_env("ESCDELAY"))
        set_escdelay(ESCAPE_MS);
    v->sequence_ms = get_escdelay() > SEQUENCE_MS ? get_escdelay() : SEQUENCE_MS;
    if (v->mouse)
        mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    mouseinterval(0);
    if (!v->color || start_color() == ERR || !has_colors()) {
        v->color = false;
        return;
    }
    use_default_colors();
    find_background(v);
    choose_colors();
}

/* Makes a file in memory for the output of a refresh. Returns its descriptor, or -1 if the system
 * has none that can be written to. */
static int open_screen_file(void)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int fd;

    buf_addf(&name, "/hist-browse.%ld", (long)getpid());
    fd = shm_open(buf_c(&name), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        shm_unlink(buf_c(&name));
    buf_release(&name);
    if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || write(fd, "", 1) != 1 ||
                    lseek(fd, 0, SEEK_SET) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void free_view(struct browse_view *v)
{
    file_close(v->screen_file);
    if (v->in)
        fclose(v->in);
    if (v->out)
        fclose(v->out);
    file_close(v->fd);
    free(v);
}

static void await_terminal(struct browse_view *v);

struct browse_view *browse_view_open(bool color, bool mouse, struct err *e)
{
    struct browse_view *v = mem_zalloc(sizeof *v);
    const char *term = config_env("TERM"), *can_move;
    int out;

    v->color = color;
    v->mouse = mouse;
    v->screen_file = open_screen_file();
    (void)wide_locale();
    v->fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    out = v->fd < 0 ? -1 : fcntl(v->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    v->out = out < 0 ? NULL : fdopen(out, "w");
    out = v->fd < 0 ? -1 : fcntl(v->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    v->in = out < 0 ? NULL : fdopen(out, "r");
    if (!v->in || !v->out) {
        err_set(e, ERR_USAGE, "there is no terminal to browse on: see " OTHERS);
        free_view(v);
        return NULL;
    }
    if (!term_is_dumb())
        v->screen = newterm(term, v->out, v->in);
    /* A newer terminal than this machine knows, such as xterm-kitty after a login from
     * elsewhere. */
    if (!v->screen && !term_is_dumb())
        v->screen = newterm(INSTEAD, v->out, v->in);
    can_move = v->screen ? tigetstr("cup") : NULL;
    if (!can_move || (intptr_t)can_move == -1) {
        if (v->screen) {
            endwin();
            delscreen(v->screen);
        }
        if (term)
            err_set(e, ERR_USAGE, "cannot browse on a terminal of the type '%s': see " OTHERS,
                    term);
        else
            err_set(e, ERR_USAGE, "TERM, the type of the terminal, is not set: see " OTHERS);
        free_view(v);
        return NULL;
    }
    set_up(v);
    return v;
}

void browse_view_close(struct browse_view *v)
{
    await_terminal(v);
    ask_for_pastes(v, false);
    if (!v->away)
        endwin();
    delscreen(v->screen);
    free_view(v);
}

void browse_view_leave(struct browse_view *v)
{
    await_terminal(v);
    def_prog_mode();
    ask_for_pastes(v, false);
    endwin();
    v->away = true;
}

void browse_view_return(struct browse_view *v)
{
    v->away = false;
    reset_prog_mode();
    ask_for_pastes(v, true);
    clearok(curscr, TRUE);
    refresh();
}

int browse_view_fd(const struct browse_view *v)
{
    return v->fd;
}

void browse_view_measure(struct browse_view *v, size_t *rows, size_t *columns)
{
    struct winsize size;

    if (ioctl(v->fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
        (size.ws_row != LINES || size.ws_col != COLS))
        resizeterm(size.ws_row, size.ws_col);
    *rows = (size_t)LINES;
    *columns = (size_t)COLS;
}

void browse_view_spoilt(void)
{
    clearok(curscr, TRUE);
}

/* ---- keys ---- */

/* A character or a key with a code, as get_wch returns it, or a letter with Alt. */
enum key_kind { KIND_CHARACTER = OK, KIND_CODE = KEY_CODE_YES, KIND_ALT };

/* Returns the meaning of a key: a character is itself unless the table has it, another key without
 * a meaning is -1. */
static int32_t key_of(int kind, wint_t key)
{
    static const struct {
        int kind;
        wint_t from;
        int32_t to;
    } keys[] = {
        {KIND_CODE, KEY_UP, BROWSE_KEY_UP},
        {KIND_CODE, KEY_DOWN, BROWSE_KEY_DOWN},
        {KIND_CODE, KEY_LEFT, BROWSE_KEY_LEFT},
        {KIND_CODE, KEY_RIGHT, BROWSE_KEY_RIGHT},
        {KIND_CODE, KEY_PPAGE, BROWSE_KEY_PAGE_UP},
        {KIND_CODE, KEY_NPAGE, BROWSE_KEY_PAGE_DOWN},
        {KIND_CODE, KEY_HOME, BROWSE_KEY_HOME},
        {KIND_CODE, KEY_END, BROWSE_KEY_END},
        {KIND_CODE, KEY_DC, BROWSE_KEY_DELETE},
        {KIND_CODE, KEY_BACKSPACE, BROWSE_KEY_BACKSPACE},
        {KIND_CODE, KEY_ENTER, BROWSE_KEY_ENTER},
        {KIND_CODE, KEY_BTAB, BROWSE_KEY_BACKTAB},
        {KIND_CODE, KEY_F(1), BROWSE_KEY_F1},
        {KIND_CODE, KEY_SLEFT, BROWSE_KEY_WORD_LEFT},
        {KIND_CODE, KEY_SRIGHT, BROWSE_KEY_WORD_RIGHT},
        {KIND_CHARACTER, '\r', BROWSE_KEY_ENTER},
        {KIND_CHARACTER, '\n', BROWSE_KEY_ENTER},
        {KIND_CHARACTER, '\t', BROWSE_KEY_TAB},
        {KIND_CHARACTER, 0x7f, BROWSE_KEY_BACKSPACE},
        {KIND_CHARACTER, '\b', BROWSE_KEY_BACKSPACE},
        {KIND_ALT, 'b', BROWSE_KEY_WORD_LEFT},
        {KIND_ALT, 'f', BROWSE_KEY_WORD_RIGHT},
        {KIND_ALT, 'd', BROWSE_KEY_CUT_WORD},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].kind == kind && keys[i].from == key)
            return keys[i].to;
    return kind == KIND_CHARACTER ? (int32_t)key : -1;
}

static bool read_mouse(struct browse_input *input)
{
    MEVENT event;

    if (getmouse(&event) != OK || event.y < 0 || event.x < 0)
        return false;
    input->row = (size_t)event.y;
    input->column = (size_t)event.x;
    input->kind = event.bstate & BUTTON1_PRESSED ? BROWSE_CLICK : BROWSE_WHEEL;
    input->lines = event.bstate & BUTTON4_PRESSED ? -WHEEL_LINES : WHEEL_LINES;
    return true;
}

/* Reads the answer of the terminal to its end (BEL or ESC \\), and chooses the colours for the
 * background that it reports. Returns 0: no key. */
static int32_t read_answer(struct browse_view *v)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    enum background b;
    wint_t key;

    timeout(v->sequence_ms);
    while (get_wch(&key) == OK && key != '\a' && key != 033 && text.len < ANSWER_MAX)
        buf_add_byte(&text, key < 0x7f ? (char)key : '?');
    if (key == 033)
        (void)get_wch(&key);
    nodelay(stdscr, TRUE);
    b = palette_reported(buf_str(&text));
    if (b != BACKGROUND_UNKNOWN) {
        term_set_background(b);
        choose_colors();
    }
    buf_release(&text);
    return 0;
}

/* Reads on after ESC: it was the Escape key, pressed once or twice, a letter with Alt, or a
 * sequence that curses does not know and that is read to its end. Returns the key, -1 if it has no
 * meaning, 0 for the mark of a paste. */
static int32_t escape(struct browse_view *v)
{
    unsigned number = 0;
    wint_t key;
    int kind;

    if (v->pasting)
        timeout(v->sequence_ms); /* a sequence, not the Escape key */
    do
        kind = get_wch(&key);
    while (v->pasting && kind == OK && key == 033); /* the last one may begin the mark */
    nodelay(stdscr, TRUE);
    if (kind == ERR || key == 033)
        return BROWSE_KEY_ESCAPE;
    if (kind == OK && key < ' ' && !v->pasting) {
        unget_wch((wchar_t)key); /* no key has Alt with Ctrl: it was pressed right after Escape */
        return BROWSE_KEY_ESCAPE;
    }
    if (key == ']' && !v->pasting)
        return read_answer(v);
    if (key != '[' && key != 'O')
        return v->pasting ? -1 : key_of(KIND_ALT, key);
    timeout(v->sequence_ms);
    for (key = 0; get_wch(&key) == OK && (key < '@' || key > '~') && key >= ' ';)
        number = key >= '0' && key <= '9' ? number % 1000 * 10 + (unsigned)key - '0' : 1000;
    nodelay(stdscr, TRUE);
    if (key == 'c')
        v->asked = 0;
    if (v->pasting && key == 033)
        unget_wch((wchar_t)key); /* it cuts the sequence off and begins another one */
    if (key != '~' || (number != 200 && number != 201))
        return -1;
    v->pasting = number == 200;
    v->pasted = v->gap = false;
    return 0;
}

/* Waits for the answer of the terminal, so that it does not become input of the next program. */
static void await_terminal(struct browse_view *v)
{
    struct pollfd answer = {.fd = v->fd, .events = POLLIN};
    wint_t key;

    while (v->asked != 0) {
        int64_t left = v->asked + ANSWER_MS - time_ticks();

        if (left <= 0 || poll(&answer, 1, (int)left) <= 0 || get_wch(&key) == ERR)
            return;
        if (key == 033)
            (void)escape(v);
    }
}

/* Processes a character of a paste. Newlines and tabs between words become one blank, those at the
 * ends are dropped. Returns false for a character that is dropped. */
static bool paste(struct browse_view *v, struct browse_input *input, wint_t key)
{
    if (key == '\r' || key == '\n' || key == '\t') {
        v->gap = v->pasted;
        return false;
    }
    if (key < ' ' || key == 0x7f)
        return false;
    input->kind = BROWSE_PASTED;
    input->key = v->gap ? ' ' : (int32_t)key;
    if (v->gap)
        unget_wch((wchar_t)key);
    v->pasted = true;
    v->gap = false;
    return true;
}

bool browse_view_input(struct browse_view *v, struct browse_input *input)
{
    wint_t key;
    int kind;

    while ((kind = get_wch(&key)) != ERR) {
        *input = (struct browse_input){.kind = BROWSE_KEY};
        if (kind == KEY_CODE_YES && key == KEY_MOUSE) {
            if (read_mouse(input))
                return true;
        } else if (v->pasting && key == 033 && kind == OK) {
            (void)escape(v);
        } else if (v->pasting) {
            if (kind == OK && paste(v, input, key))
                return true;
        } else {
            input->key = kind == OK && key == 033 ? escape(v) : key_of(kind, key);
            if (input->key > 0)
                return true;
        }
    }
    return false;
}

/* ---- drawing ---- */

static enum style pair_style(unsigned styles)
{
    static const struct {
        unsigned bits;
        enum style style;
    } looks[] = {
        {BROWSE_DIM | MARKDOWN_STRUCK, STYLE_DIM},
        {BROWSE_USER, STYLE_USER},
        {BROWSE_HEAD, STYLE_ASSISTANT},
        {BROWSE_TOOL, STYLE_TOOL},
        {MARKDOWN_LINK, STYLE_LINK},
        {BROWSE_CODE, STYLE_CODE},
    };

    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (styles & looks[i].bits)
            return looks[i].style;
    return markdown_kind_style(styles);
}

/* Returns the attributes of a text; `also` are those of its row. */
static attr_t attributes(const struct browse_view *v, unsigned styles, attr_t also, short *pair)
{
    attr_t a = (styles & BROWSE_BOLD ? A_BOLD : 0) | (styles & BROWSE_ITALIC ? A_ITALIC : 0) |
               (styles & MARKDOWN_LINK ? A_UNDERLINE : 0);
    bool marked = styles & BROWSE_HIT;

    *pair = 0;
    if (marked && styles & BROWSE_HERE)
        return A_REVERSE | A_BOLD;
    /* Not bold: some terminals show bold black as grey. */
    if (marked && v->color) {
        *pair = STYLE_HIT;
        return also & ~(A_REVERSE | A_BOLD);
    }
    if (marked)
        return (also ^ A_REVERSE) | A_UNDERLINE | A_BOLD;
    if (styles & BROWSE_HEAD && !(styles & BROWSE_DIM))
        a |= A_BOLD;
    if (styles & (BROWSE_DIM | MARKDOWN_STRUCK) && !(v->color && COLORS >= 256))
        a |= A_DIM;
    /* In a reversed row the colours would become backgrounds. */
    if (v->color && !(also & A_REVERSE))
        *pair = (short)pair_style(styles);
    return a | also;
}

/* Maximum number of wide characters in a cell, with the terminating zero. */
#define CELL 6

/* Removes the next cell from *text (not empty): a character with its combining marks,
 * converted for curses. Returns its width. If the C library and utf8_width disagree about the width
 * of a character, it becomes U+FFFD, because it would move everything after it. */
static size_t next_screen_cell(struct str *text, wchar_t cell[CELL])
{
    size_t width = 0, count = 0;

    while (text->n > 0) {
        int32_t cp;
        size_t n = utf8_decode(*text, &cp);
        size_t columns = cp < 0 ? 1 : (size_t)utf8_width(cp);

        if (count > 0 && columns > 0)
            break;
        n = n > 0 ? n : text->n;
        *text = str_skip(*text, n);
        if (count == 0) {
            width = columns;
            cell[count++] = cp < 0 ? L'\xfffd' : (wchar_t)cp;
        } else if (count + 1 < CELL && wcwidth((wchar_t)cp) == 0) {
            cell[count++] = (wchar_t)cp;
        }
    }
    if (wcwidth(cell[0]) != (int)width && !(wcwidth(cell[0]) == 1 && width == 2))
        cell[0] = L'\xfffd';
    cell[count] = L'\0';
    return width;
}

struct pen {
    const struct browse_view *view;
    size_t row, column, end; /* drawing stops before column `end` */
    attr_t also;             /* added to every attribute */
};

static void draw_text(struct pen *p, struct str text, unsigned styles)
{
    wchar_t cell[CELL];
    short pair;
    attr_t a = attributes(p->view, styles, p->also, &pair);

    while (text.n > 0) {
        size_t ascii = 0, width;
        cchar_t c;

        while (ascii < text.n && text.p[ascii] >= ' ' && text.p[ascii] <= '~')
            ascii++;
        /* The last one may carry a combining mark. */
        if (ascii < text.n && ascii > 0)
            ascii--;
        /* Most text: drawn at once, which takes a third of the time. */
        if (ascii > 0) {
            ascii = p->column + ascii > p->end ? p->end - p->column : ascii;
            attr_set(a, pair, NULL);
            mvaddnstr((int)p->row, (int)p->column, text.p, (int)ascii);
            p->column += ascii;
            text = str_skip(text, ascii);
            if (p->column >= p->end)
                return;
            continue;
        }
        width = next_screen_cell(&text, cell);
        if (p->column + width > p->end)
            return;
        if (setcchar(&c, cell, a, pair, NULL) == OK)
            mvadd_wch((int)p->row, (int)p->column, &c);
        p->column += width;
    }
}

static void fill(struct pen *p, struct str with, unsigned styles)
{
    while (p->column < p->end)
        draw_text(p, with, styles);
}

static void draw_line(struct pen *p, const struct browse_lines *l, size_t i)
{
    size_t at = l->at[i].at, end = at + l->at[i].n, n;

    for (; at < end; at += n) {
        for (n = 1; at + n < end && l->styles[at + n] == l->styles[at]; n++)
            continue;
        draw_text(p, (struct str){l->text.data + at, n}, l->styles[at]);
    }
}

static struct pen pen_at(const struct browse_view *v, struct browse_rect r, size_t row)
{
    return (struct pen){
        .view = v, .row = r.row + row, .column = r.column, .end = r.column + r.columns};
}

/* Draws the lines of a text in place of an empty list or panel. */
static void draw_advice(const struct browse_view *v, struct str text, struct browse_rect r)
{
    for (size_t i = 0; i < r.rows && text.p && text.n > 0; i++) {
        struct pen p = pen_at(v, r, i);

        draw_text(&p, str_cut(&text, '\n'), 0);
    }
}

/* Adds the line of a row of the list of hits; `below`: the row above is drawn, too. */
static void add_hit_row(const struct browse *b, size_t row, bool below,
                        const struct browse_rows *how, struct browse_lines *lines)
{
    const struct browse_hit_row *r = &b->hits.rows[row];
    const struct browse_hit *hit = &b->hits.at[r->hit];

    if (r->folded > 0)
        browse_row_folded(lines, hit, r->folded, how);
    else
        browse_row_hit(lines, hit, below && hit->group == hit[-1].group, how);
}

static void draw_list(const struct browse_view *v, const struct browse *b, struct browse_rect r)
{
    const struct browse_list *l = browse_list(b);
    struct browse_rows how = {.columns = r.columns,
                              .now = time_now(),
                              .places = b->all ? b->places : NULL,
                              .places_count = b->histories,
                              .marks = &b->marks};
    struct browse_lines lines = {0};
    struct buf advice = BUF_INIT(BUF_LINE);

    browse_advice_list(&advice, b);
    draw_advice(v, buf_str(&advice), r);
    buf_release(&advice);
    for (size_t i = 0; i < r.rows && l->top + i < browse_list_count(b); i++) {
        size_t place = l->top + i;
        struct pen p = pen_at(v, r, i);

        if (b->searching)
            add_hit_row(b, place, i > 0, &how, &lines);
        else
            browse_row_session(&lines, &b->sessions.at[place], &how);
        if (place == l->at)
            p.also = b->focus == BROWSE_TEXT ? A_BOLD | A_UNDERLINE : A_REVERSE;
        draw_line(&p, &lines, lines.count - 1);
        if (place == l->at)
            fill(&p, STR(" "), 0);
    }
    browse_lines_release(&lines);
}

static void draw_messages(const struct browse_view *v, struct browse *b, struct browse_rect r)
{
    const struct browse_lines *lines;
    struct buf advice = BUF_INIT(BUF_SMALL);
    size_t line;
    bool current;

    browse_advice_text(&advice, b);
    draw_advice(v, buf_str(&advice), r);
    buf_release(&advice);
    for (size_t i = 0; i < r.rows; i++) {
        struct pen p = pen_at(v, r, i);

        if (!browse_pane_line(&b->pane, i, &lines, &line, &current))
            break;
        if (current && line == 0)
            p.also = b->focus == BROWSE_TEXT ? A_REVERSE : A_UNDERLINE;
        draw_line(&p, lines, line);
    }
}

static void draw_rule(const struct browse_view *v, size_t row, struct str left, struct str right,
                      const struct browse *b, const struct browse_areas *a)
{
    struct browse_rect all = {row, 0, 1, b->columns};
    struct pen p = pen_at(v, all, 0);

    fill(&p, STR("\xe2\x94\x80"), BROWSE_DIM);
    p = pen_at(v, all, 0);
    p.column = 1;
    p.end = a->stacked ? b->columns : a->rule;
    draw_text(&p, left, 0);
    if (right.n == 0)
        return;
    p.column = a->stacked ? 1 : a->text.column;
    p.end = b->columns;
    draw_text(&p, right, 0);
}

static void draw_frame(const struct browse_view *v, struct browse *b, const struct browse_areas *a)
{
    struct buf list = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);

    browse_title_list(&list, b);
    browse_title_text(&text, b);
    if (b->zoomed) {
        draw_rule(v, 1, buf_str(a->text.rows > 0 ? &text : &list), STR_NONE, b, a);
    } else if (a->stacked) {
        draw_rule(v, 1, buf_str(&list), STR_NONE, b, a);
        if (a->text.rows > 0)
            draw_rule(v, a->rule, buf_str(&text), STR_NONE, b, a);
    } else {
        draw_rule(v, 1, buf_str(&list), buf_str(&text), b, a);
        for (size_t i = 0; i < a->list.rows; i++) {
            struct pen p = {
                .view = v, .row = a->list.row + i, .column = a->rule, .end = a->rule + 1};

            draw_text(&p, STR("\xe2\x94\x82"), BROWSE_DIM);
        }
    }
    buf_release(&list);
    buf_release(&text);
}

/* Draws a prompt and the text typed after it, and leaves the cursor there. */
static void draw_edit(struct pen p, struct str prompt, const struct browse_edit *e, bool focused)
{
    size_t column, from;
    struct str shown;

    draw_text(&p, prompt, focused ? BROWSE_BOLD : BROWSE_DIM);
    from = p.column;
    shown = browse_edit_window(e, p.end > p.column ? p.end - p.column : 1, &column);
    draw_text(&p, shown, focused && e->chosen ? BROWSE_HERE | BROWSE_HIT : 0);
    curs_set(focused);
    if (focused)
        move((int)p.row, (int)(from + column));
}

/* Draws what a person might type into an empty search box, if that fits. */
static void draw_example(struct pen p, const struct browse *b)
{
    p.column += 2;
    if (b->query.text.len == 0 && p.column + strlen(QUERY_EXAMPLE) <= p.end)
        draw_text(&p, STR(QUERY_EXAMPLE), BROWSE_DIM);
}

static void draw_help(const struct browse_view *v, const struct browse *b)
{
    struct browse_rect all = {0, 0, b->rows, b->columns};
    struct browse_lines lines = {0};
    struct buf foot = BUF_INIT(BUF_SMALL);
    struct pen p = pen_at(v, all, 0);

    draw_text(&p, STR(PROGRAM_PREFIX "hist-browse: keys"), BROWSE_HEAD);
    browse_help(&lines, b->focus, b->help_all ? BROWSE_IF_ALL : browse_conditions(b), b->columns);
    for (size_t i = 0; i + 2 < b->rows && b->help_top + i < lines.count; i++) {
        p = pen_at(v, all, i + 1);
        draw_line(&p, &lines, b->help_top + i);
    }
    browse_help_foot(&foot, b->help_top, b->rows > 2 ? b->rows - 2 : 1, lines.count, b->help_all);
    p = pen_at(v, all, b->rows - 1);
    draw_text(&p, buf_str(&foot), BROWSE_DIM);
    browse_lines_release(&lines);
    buf_release(&foot);
    curs_set(0);
}

static void draw_foot(const struct browse_view *v, const struct browse *b,
                      const struct browse_areas *a)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct pen p = pen_at(v, a->foot, 0);

    if (b->mode == BROWSE_NAMING || b->mode == BROWSE_FINDING) {
        bool naming = b->mode == BROWSE_NAMING;

        draw_edit(p, naming ? STR("export to: ") : STR("find: "), naming ? &b->name : &b->find,
                  true);
        return;
    }
    browse_foot(&text, b);
    draw_text(&p, buf_str(&text),
              b->status.len > 0 || b->mode != BROWSE_NORMAL ? BROWSE_BOLD : BROWSE_DIM);
    buf_release(&text);
}

/* Copies what a refresh has written to the terminal. Returns false if that fails. */
static bool copy_to_terminal(const struct browse_view *v)
{
    off_t size = lseek(v->screen_file, 0, SEEK_CUR);
    struct buf bytes = BUF_INIT(SIZE_MAX);
    bool copied = size >= 0;

    if (size > 0) {
        char *room = buf_room(&bytes, (size_t)size);

        copied = pread(v->screen_file, room, (size_t)size, 0) == (ssize_t)size &&
                 file_write_all(v->fd, room, (size_t)size) == 0;
    }
    if (lseek(v->screen_file, 0, SEEK_SET) < 0 || ftruncate(v->screen_file, 0) < 0)
        copied = false;
    buf_release(&bytes);
    return copied;
}

/* Writes the changes to the terminal. ncurses 6.4 and later flush their output after each row; the
 * terminal would take the processor that often before the last row is there. So a file takes the
 * place of the terminal meanwhile, and all is written at once. */
static void refresh_at_once(struct browse_view *v)
{
    int out = fileno(v->out);

    if (v->screen_file >= 0 && dup2(v->screen_file, out) >= 0) {
        refresh();
        if (dup2(v->fd, out) >= 0 && copy_to_terminal(v)) {
            (void)fcntl(out, F_SETFD, FD_CLOEXEC);
            return;
        }
        clearok(curscr, TRUE);
    }
    refresh();
}

void browse_view_draw(struct browse_view *v, struct browse *b)
{
    struct browse_areas a = browse_areas(b);
    struct buf state = BUF_INIT(BUF_SMALL);
    struct pen p = pen_at(v, a.box, 0);
    size_t columns;

    erase();
    if (b->mode == BROWSE_HELPING) {
        draw_help(v, b);
        refresh_at_once(v);
        return;
    }
    draw_list(v, b, a.list);
    draw_messages(v, b, a.text);
    draw_frame(v, b, &a);
    browse_title_box(&state, b);
    columns = wide_columns(buf_str(&state));
    if (columns + 20 < b->columns) {
        p.column = b->columns - columns;
        draw_text(&p, buf_str(&state), BROWSE_DIM);
        p = pen_at(v, a.box, 0);
        p.end = b->columns - columns - 1;
    }
    draw_example(p, b);
    if (b->mode == BROWSE_NAMING || b->mode == BROWSE_FINDING) {
        draw_edit(p, STR("> "), &b->query, false);
        draw_foot(v, b, &a);
    } else {
        draw_foot(v, b, &a);
        draw_edit(p, STR("> "), &b->query, b->focus == BROWSE_BOX && b->mode == BROWSE_NORMAL);
    }
    refresh_at_once(v);
    buf_release(&state);
}
