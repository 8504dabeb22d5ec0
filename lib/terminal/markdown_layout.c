#include "chathist/terminal/markdown_layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "terminal/markdown_table.h"

/* More bytes of a table are not held back: its next rows get the widths of those before. */
#define TABLE_HELD_MAX ((size_t)64 << 10)
/* After more blanks than these, a `|` is part of an indented block. */
#define ROW_INDENT_MAX 3
#define TAB_COLUMNS 8

#define ZERO_WIDTH_JOINER 0x200d

/* ---- words ---- */

/* Prints held bytes from `from` on, in pieces of one style. */
static void print_held(const struct markdown_layout *l, size_t from, size_t end)
{
    while (from < end) {
        size_t n = 1;

        while (from + n < end && l->styles.data[from + n] == l->styles.data[from])
            n++;
        l->fn(l->arg, (unsigned char)l->styles.data[from], (struct str){l->held.data + from, n});
        from += n;
    }
}

static void print_newline(struct markdown_layout *l)
{
    l->fn(l->arg, 0, STR("\n"));
    l->column = 0;
}

/* Prints the word that is held, on a new line if it does not fit into this one. */
static void place_word(struct markdown_layout *l)
{
    size_t columns = l->blank_columns + l->word_columns;

    if (l->width > 0 && l->column > 0 && l->held.len > l->blanks && !l->long_word &&
        l->column + columns > l->width) {
        print_newline(l);
        print_held(l, l->blanks, l->held.len);
        l->column = l->word_columns;
    } else {
        print_held(l, 0, l->held.len);
        l->column += columns;
    }
    if (l->width > 0 && l->column > l->width)
        l->column = (l->column - 1) % l->width + 1;
    buf_clear(&l->held);
    buf_clear(&l->styles);
    l->blanks = l->blank_columns = l->word_columns = 0;
}

static void hold(struct markdown_layout *l, unsigned styles, struct str text)
{
    buf_add_str(&l->held, text);
    for (size_t i = 0; i < text.n; i++)
        buf_add_byte(&l->styles, (char)styles);
}

static bool is_listed(int32_t cp, const int32_t *list)
{
    while (*list && *list != cp)
        list++;
    return *list != 0;
}

/* May a line end between two characters of a text without blanks? Chinese and Japanese break
 * between any two characters, but not before a closing mark and not after an opening one (UAX
 * 14). */
static bool may_break(int32_t before, int32_t after)
{
    static const int32_t closing[] = {
        0x3001, 0x3002, 0xff0c, 0xff0e, 0xff1a, 0xff1b, 0xff01, 0xff1f, 0xff09, 0x300d, 0x300f,
        0x3011, 0x300b, 0x3009, 0x30fc, 0x2026, '.',    ',',    ':',    ';',    '!',    '?',
        ')',    ']',    '}',    '*',    '_',    '`',    '"',    '\'',   0};
    static const int32_t opening[] = {0xff08, 0x300c, 0x300e, 0x3010, 0x300a, 0x3008, '(', '[',
                                      '{',    '*',    '_',    '`',    '"',    '\'',   0};
    bool wide = utf8_width(before) == 2 || utf8_width(after) == 2;
    bool modifies = utf8_width(after) == 0 || (after >= 0x1f3fb && after <= 0x1f3ff);

    return wide && !modifies && before != ZERO_WIDTH_JOINER && !is_listed(after, closing) &&
           !is_listed(before, opening);
}

static void add_blank(struct markdown_layout *l, unsigned styles, struct str c)
{
    size_t at = l->column + l->blank_columns;

    if (l->held.len > l->blanks) {
        place_word(l);
        at = l->column;
    }
    l->long_word = false;
    hold(l, styles, c);
    l->blanks += c.n;
    l->blank_columns += c.p[0] == '\t' ? TAB_COLUMNS - at % TAB_COLUMNS : 1;
}

static void add_to_word(struct markdown_layout *l, unsigned styles, struct str c, int32_t cp)
{
    bool begun = l->held.len > l->blanks;

    if (begun && !l->long_word && may_break(l->last, cp))
        place_word(l);
    hold(l, styles, c);
    l->word_columns += (size_t)utf8_width(cp);
    l->last = cp;
    if (l->long_word) {
        place_word(l);
    } else if (l->width > 0 && l->word_columns > l->width) {
        place_word(l);
        l->long_word = true;
    }
}

/* Lines of code are not wrapped. */
static void add_code(struct markdown_layout *l, unsigned styles, struct str text)
{
    if (l->held.len > 0)
        place_word(l);
    l->fn(l->arg, styles, text);
    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);

        l->column += cp < 0 ? 1 : (size_t)utf8_width(cp);
        text = str_skip(text, n ? n : text.n);
    }
}

/* The blanks at the end of a line are printed if they do not begin another one. */
static void end_line(struct markdown_layout *l)
{
    if (l->held.len > l->blanks || l->width == 0 || l->column + l->blank_columns <= l->width) {
        place_word(l);
    } else {
        buf_clear(&l->held);
        buf_clear(&l->styles);
        l->blanks = l->blank_columns = 0;
    }
    print_newline(l);
    l->long_word = l->measured = false;
}

static void add_visible(struct markdown_layout *l, unsigned styles, struct str text)
{
    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);
        struct str c = {text.p, n ? n : text.n};

        if (!l->measured)
            l->width = l->columns(l->arg);
        l->measured = true;
        if (c.p[0] == '\n') {
            end_line(l);
        } else if (styles & MARKDOWN_BLOCK) {
            const char *newline = memchr(text.p, '\n', text.n);

            c.n = newline ? (size_t)(newline - text.p) : text.n;
            add_code(l, styles, c);
        } else if (c.p[0] == ' ' || c.p[0] == '\t') {
            add_blank(l, styles, c);
        } else {
            add_to_word(l, styles, c, cp);
        }
        text = str_skip(text, c.n);
    }
}

/* Gets the text with its styles. */
static void add_styled(void *arg, unsigned styles, struct str text)
{
    struct markdown_layout *l = arg;
    struct buf visible = BUF_INIT(SIZE_MAX);

    vis_feed(&l->vis, text, &visible);
    add_visible(l, styles, buf_str(&visible));
    buf_release(&visible);
}

/* ---- tables ---- */

static void forget_table(struct markdown_layout *l)
{
    buf_clear(&l->table);
    l->rows = 0;
    free(l->widths);
    l->widths = NULL;
}

/* Prints the rows that are held, and keeps the delimiter row if more rows follow. */
static void print_rows(struct markdown_layout *l, bool more)
{
    struct str lines = buf_str(&l->table), rest = lines, delimiter;
    bool headed = !l->widths;
    size_t columns = l->columns(l->arg);

    if (headed)
        l->widths = markdown_table_widths(lines, columns, &l->widths_count);
    if (headed)
        str_cut(&rest, '\n');
    delimiter = str_cut(&rest, '\n');
    if (!headed)
        markdown_table_widen(l->widths, l->widths_count, rest, columns);
    if (l->widths)
        markdown_table_print(headed ? lines : rest, delimiter, headed, l->widths, l->widths_count,
                             l->fn, l->arg);
    else
        markdown_feed(&l->markdown, lines);
    if (more && l->widths) {
        struct buf kept = BUF_INIT(SIZE_MAX);

        buf_add_str(&kept, delimiter);
        buf_add_byte(&kept, '\n');
        buf_release(&l->table);
        l->table = kept;
    } else {
        forget_table(l);
    }
}

/* Ends a table, or prints the only row that looked like one. */
static void end_table(struct markdown_layout *l)
{
    if (l->rows >= 2) {
        print_rows(l, false);
    } else if (l->rows == 1) {
        markdown_feed(&l->markdown, buf_str(&l->table));
        forget_table(l);
    }
}

/* Takes a complete line that begins with `|`. */
static void take_row(struct markdown_layout *l)
{
    struct str line = buf_str(&l->line), header = buf_str(&l->table);

    if (l->rows == 1 && !markdown_table_begins(header, line))
        end_table(l);
    buf_add_str(&l->table, line);
    l->rows++;
    buf_clear(&l->line);
    if (l->rows > 2 && (l->widths || l->table.len > TABLE_HELD_MAX))
        print_rows(l, true);
}

/* Takes a byte of the beginning of a line: blanks are held until it is known what begins. Returns
 * the number of bytes taken, 0 or 1. */
static size_t begin_line(struct markdown_layout *l, char c)
{
    bool is_row = c == '|' && l->markdown.fence == 0;

    if (is_row || (c == ' ' && l->line.len < ROW_INDENT_MAX)) {
        buf_add_byte(&l->line, c);
        l->state = is_row ? LAYOUT_ROW : LAYOUT_START;
        return 1;
    }
    end_table(l);
    markdown_feed(&l->markdown, buf_str(&l->line));
    buf_clear(&l->line);
    l->state = LAYOUT_TEXT;
    return 0;
}

/* Takes a part of a line that has begun. Returns the number of bytes taken. */
static size_t take_part(struct markdown_layout *l, struct str piece)
{
    const char *newline = memchr(piece.p, '\n', piece.n);
    struct str part = {piece.p, newline ? (size_t)(newline - piece.p) + 1 : piece.n};
    bool is_row = l->state == LAYOUT_ROW;

    if (is_row)
        buf_add_str(&l->line, part);
    else
        markdown_feed(&l->markdown, part);
    if (newline) {
        l->state = LAYOUT_START;
        if (is_row)
            take_row(l);
    }
    return part.n;
}

/* ---- the text ---- */

void markdown_layout_init(struct markdown_layout *l, markdown_fn *fn, void *arg,
                          size_t (*columns)(void *arg))
{
    *l = (struct markdown_layout){.fn = fn, .arg = arg, .columns = columns};
    l->markdown = (struct markdown){.fn = add_styled, .arg = l};
    l->held.max = l->styles.max = l->line.max = l->table.max = SIZE_MAX;
}

void markdown_layout_release(struct markdown_layout *l)
{
    buf_release(&l->held);
    buf_release(&l->styles);
    buf_release(&l->line);
    buf_release(&l->table);
    free(l->widths);
    l->widths = NULL;
}

void markdown_layout_feed(struct markdown_layout *l, struct str piece)
{
    while (piece.n > 0) {
        size_t n = l->state == LAYOUT_START ? begin_line(l, piece.p[0]) : take_part(l, piece);

        piece = str_skip(piece, n);
    }
}

bool markdown_layout_pause(struct markdown_layout *l)
{
    bool at_start;

    place_word(l);
    at_start = l->column == 0;
    l->column = 0;
    l->measured = false;
    return at_start;
}

bool markdown_layout_end(struct markdown_layout *l)
{
    struct buf visible = BUF_INIT(BUF_SMALL);
    bool at_start;

    if (l->state == LAYOUT_ROW)
        take_row(l);
    end_table(l);
    markdown_feed(&l->markdown, buf_str(&l->line));
    buf_clear(&l->line);
    markdown_end(&l->markdown);
    vis_end(&l->vis, &visible);
    add_visible(l, 0, buf_str(&visible));
    buf_release(&visible);
    at_start = markdown_layout_pause(l);
    l->state = LAYOUT_START;
    l->long_word = false;
    return at_start;
}

bool markdown_layout_holds_table(const struct markdown_layout *l)
{
    return l->rows > 0 && l->column == 0;
}
