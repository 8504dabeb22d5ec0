#include "chathist/terminal/markdown_layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"

/* After more blanks than these, a `|` is part of an indented block. */
#define ROW_INDENT_MAX 3
#define TAB_COLUMNS 8
/* A table is not printed in columns narrower than this, unless their cells are. */
#define COLUMN_MIN ((size_t)6)
/* `| ` before the first column; ` | ` after each. */
#define MARGIN ((size_t)1)
#define BETWEEN ((size_t)3)

#define ZERO_WIDTH_JOINER 0x200d
/* On narrower terminals the lines of an item have no indent. */
#define HANG_WIDTH_MIN 20
/* Longest address that is held back to become a link. */
#define LINK_MAX 2000
/* The place of text that is not in the source. */
#define NOWHERE SIZE_MAX

/* Most text is ASCII. */
static bool is_printable_ascii(int32_t cp)
{
    return cp >= ' ' && cp < 0x7f;
}

static size_t columns_of_char(int32_t cp)
{
    return is_printable_ascii(cp) ? 1 : (size_t)utf8_width(cp);
}

/* ---- text with styles ---- */

static void styled_init(struct markdown_styled *s)
{
    *s = (struct markdown_styled){.bytes = BUF_INIT(SIZE_MAX)};
}

static void styled_release(struct markdown_styled *s)
{
    buf_release(&s->bytes);
    free(s->of);
}

static void hold_text(struct markdown_styled *s, unsigned styles, struct str text, size_t at)
{
    if (s->bytes.len + text.n > s->cap)
        s->of = mem_grow(s->of, &s->cap, s->bytes.len + text.n, sizeof *s->of);
    for (size_t i = 0; i < text.n; i++)
        s->of[s->bytes.len + i] = (struct markdown_origin){styles, at};
    buf_add_str(&s->bytes, text);
}

/* Returns the range of an address that contains a byte. */
static struct str link_around(const struct markdown_styled *s, size_t at)
{
    size_t from = at, end = at;

    while (from > 0 && s->of[from - 1].styles & MARKDOWN_LINK)
        from--;
    while (end < s->bytes.len && s->of[end].styles & MARKDOWN_LINK)
        end++;
    return (struct str){s->bytes.data + from, end - from};
}

/* Prints a range of the bytes in pieces of one style; `styles` are added to all. */
static void print_styled(const struct markdown_layout *l, const struct markdown_styled *s,
                         size_t from, size_t end, unsigned styles)
{
    bool linked = false;

    while (from < end) {
        bool links = l->link && s->of[from].styles & MARKDOWN_LINK;
        size_t n = 1;

        while (from + n < end && s->of[from + n].styles == s->of[from].styles)
            n++;
        if (links != linked)
            l->link(l->arg, links ? link_around(s, from) : STR_NONE);
        linked = links;
        l->fn(l->arg, s->of[from].styles | styles, (struct str){s->bytes.data + from, n},
              s->of[from].at);
        from += n;
    }
    if (linked)
        l->link(l->arg, STR_NONE);
}

static bool ends_address(char c)
{
    return c <= ' ' || c > '~' || strchr("<>\"`|\\^{}", c) != NULL;
}

/* Returns the length of an address at the start of a text, up to a sign that cannot be in one or a
 * bracket without its pair, and without the signs that belong to the sentence; 0 if it is not one. */
static size_t address_length(struct str text)
{
    size_t scheme = str_starts(text, STR("https://"))  ? 8
                    : str_starts(text, STR("http://")) ? 7
                                                       : 0;
    size_t n = scheme, open = 0;

    for (; scheme > 0 && n < text.n && !ends_address(text.p[n]); n++) {
        if (text.p[n] == ')' && open == 0)
            break;
        open += text.p[n] == '(';
        open -= text.p[n] == ')';
    }
    while (n > scheme && strchr(".,;:!?*_~']", text.p[n - 1]))
        n--;
    return n > scheme ? n : 0;
}

static void mark_links(struct markdown_styled *s, size_t from)
{
    struct str rest = str_skip(buf_str(&s->bytes), from);

    while (rest.n > 0) {
        size_t n = rest.p[0] == 'h' ? address_length(rest) : 0;

        for (size_t i = 0; i < n; i++)
            s->of[(size_t)(rest.p - s->bytes.data) + i].styles |= MARKDOWN_LINK;
        rest = str_skip(rest, n > 0 ? n : 1);
    }
}

/* ---- words ---- */

static void print_blanks(struct markdown_layout *l, size_t n)
{
    l->column += n;
    for (; n > 0; n--)
        l->fn(l->arg, 0, STR(" "), NOWHERE);
}

static size_t hang_columns(const struct markdown_layout *l)
{
    return l->width >= HANG_WIDTH_MIN && l->hang <= l->width / 2 ? l->hang : 0;
}

/* Begins a line below the text of the same item or quote. */
static void break_line(struct markdown_layout *l)
{
    l->fn(l->arg, 0, STR("\n"), NOWHERE);
    l->column = 0;
    print_blanks(l, hang_columns(l));
    l->indent = l->column;
}

static void forget_word(struct markdown_layout *l)
{
    buf_clear(&l->held.bytes);
    l->blanks = l->blank_columns = l->word_columns = 0;
}

/* Prints held text from a byte on, breaking it wherever a line is full. */
static void print_cut(struct markdown_layout *l, size_t from)
{
    struct str rest = str_skip(buf_str(&l->held.bytes), from);
    size_t at = from;

    while (rest.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(rest, &cp), columns = columns_of_char(cp);

        if (l->column + columns > l->width && l->column > l->indent) {
            print_styled(l, &l->held, from, at, 0);
            from = at;
            break_line(l);
        }
        l->column += columns;
        at += n;
        rest = str_skip(rest, n);
    }
    print_styled(l, &l->held, from, at, 0);
}

/* Prints the word that is held, on a new line if it does not fit into this one. */
static void place_word(struct markdown_layout *l)
{
    size_t columns = l->blank_columns + l->word_columns, from = 0;
    bool word = l->held.bytes.len > l->blanks;
    /* A new line would give it more room. */
    bool begun =
        (l->column > l->indent || l->cells) && l->column + l->blank_columns > hang_columns(l);

    mark_links(&l->held, l->blanks);
    if (l->width > 0 && word && !l->long_word && begun && l->column + columns > l->width) {
        break_line(l);
        from = l->blanks;
        columns = l->word_columns;
    }
    if (l->cells) {
        print_cut(l, from);
    } else {
        print_styled(l, &l->held, from, l->held.bytes.len, 0);
        l->column += columns;
        if (l->width > 0 && l->column > l->width)
            l->column = (l->column - 1) % l->width + 1;
    }
    forget_word(l);
}

static bool is_listed(int32_t cp, const int32_t *list)
{
    while (*list && *list != cp)
        list++;
    return *list != 0;
}

/* Returns whether a line may end between two characters of a text without blanks. Chinese and
 * Japanese break between any two characters, but not before a closing mark and not after an opening
 * one (UAX 14). */
static bool may_break(int32_t before, int32_t after)
{
    static const int32_t closing[] = {
        0x3001, 0x3002, 0xff0c, 0xff0e, 0xff1a, 0xff1b, 0xff01, 0xff1f, 0xff09, 0x300d, 0x300f,
        0x3011, 0x300b, 0x3009, 0x30fc, 0x2026, '.',    ',',    ':',    ';',    '!',    '?',
        ')',    ']',    '}',    '*',    '_',    '`',    '"',    '\'',   0};
    static const int32_t opening[] = {0xff08, 0x300c, 0x300e, 0x3010, 0x300a, 0x3008, '(', '[',
                                      '{',    '*',    '_',    '`',    '"',    '\'',   0};
    bool wide = columns_of_char(before) == 2 || columns_of_char(after) == 2;
    bool modifies = columns_of_char(after) == 0 || (after >= 0x1f3fb && after <= 0x1f3ff);

    return wide && !modifies && before != ZERO_WIDTH_JOINER && !is_listed(after, closing) &&
           !is_listed(before, opening);
}

/* Returns the state of the beginning of a line after a character: blanks and `>`, then perhaps the
 * mark of a list item, a sign or a number, and blanks. */
static enum markdown_lead next_lead(enum markdown_lead lead, int32_t cp)
{
    bool blank = cp == ' ' || cp == '\t', digit = cp >= '0' && cp <= '9';

    if (lead == LEAD_START && (blank || cp == '>'))
        return LEAD_START;
    if (lead == LEAD_START && (cp == '-' || cp == '*' || cp == '+'))
        return LEAD_MARK;
    if ((lead == LEAD_START || lead == LEAD_NUMBER) && digit)
        return LEAD_NUMBER;
    if (lead == LEAD_NUMBER && (cp == '.' || cp == ')'))
        return LEAD_MARK;
    return (lead == LEAD_MARK || lead == LEAD_AFTER) && blank ? LEAD_AFTER : LEAD_END;
}

/* Follows the beginning of a line to find the column of its text. */
static void find_hang(struct markdown_layout *l, int32_t cp)
{
    size_t at = l->column + l->blank_columns + l->word_columns;
    enum markdown_lead before = l->lead;

    l->lead = next_lead(before, cp);
    if (before == LEAD_START || l->lead == LEAD_AFTER)
        l->hang = l->lead == LEAD_START || l->lead == LEAD_AFTER ? at + 1 : at;
}

static void add_blank(struct markdown_layout *l, unsigned styles, struct str c, size_t at)
{
    size_t column = l->column + l->blank_columns, n = 1;

    if (l->held.bytes.len > l->blanks) {
        place_word(l);
        column = l->column;
    }
    l->long_word = false;
    if (c.p[0] == '\t')
        n = TAB_COLUMNS - column % TAB_COLUMNS;
    if (!l->cells) {
        hold_text(&l->held, styles, c, at);
        l->blank_columns += n;
    }
    for (; l->cells && n > 0 && l->column + l->blank_columns < l->width; n--) {
        hold_text(&l->held, styles, STR(" "), at);
        l->blank_columns++;
    }
    l->blanks = l->held.bytes.len;
}

/* Returns whether the held word may be an address, which is printed as a whole. */
static bool may_be_link(const struct markdown_layout *l)
{
    struct str word = str_skip(buf_str(&l->held.bytes), l->blanks);

    return word.n < LINK_MAX && (str_find(word, STR("http://")) || str_find(word, STR("https://")));
}

static void add_to_word(struct markdown_layout *l, unsigned styles, struct str c, int32_t cp,
                        size_t at)
{
    bool begun = l->held.bytes.len > l->blanks;
    size_t columns = columns_of_char(cp);

    if (begun && !l->long_word && may_break(l->last, cp))
        place_word(l);
    /* A mark without a character before it stands on a blank, and has no more room than a cell. */
    if (l->cells && columns == 0 && !begun) {
        hold_text(&l->held, styles, STR(" "), at);
        l->word_columns++;
        l->cell = 1;
    }
    l->cell = columns > 0 ? c.n : l->cell + c.n;
    if (l->cells && l->cell > MARKDOWN_CELL_MAX)
        return;
    if (!l->cells && l->width > 0 && !l->long_word && l->word_columns + columns > l->width &&
        !may_be_link(l)) {
        place_word(l);
        l->long_word = true;
    }
    hold_text(&l->held, styles, c, at);
    l->word_columns += columns;
    l->last = cp;
    if (l->long_word)
        place_word(l);
}

/* The blanks at the end of a line are printed if they do not begin another one. */
static void end_row(struct markdown_layout *l, size_t at)
{
    if (l->held.bytes.len > l->blanks || l->width == 0 ||
        l->column + l->blank_columns <= l->width) {
        place_word(l);
    } else {
        forget_word(l);
    }
    l->fn(l->arg, 0, STR("\n"), at);
    l->column = l->indent = l->hang = 0;
    l->lead = LEAD_START;
    l->long_word = l->measured = false;
}

/* Adds a character that is safe to show. */
static void add_shown(struct markdown_layout *l, unsigned styles, struct str c, int32_t cp,
                      size_t at)
{
    if (!l->measured)
        l->width = l->columns(l->arg);
    l->measured = true;
    /* Lines of code are not wrapped, except on a screen of cells. */
    if (styles & MARKDOWN_BLOCK && !l->cells) {
        hold_text(&l->held, styles, c, at);
        l->column += columns_of_char(cp);
        return;
    }
    if (!l->plain && !(styles & MARKDOWN_BLOCK))
        find_hang(l, cp);
    if (cp == ' ' || cp == '\t')
        add_blank(l, styles, c, at);
    else
        add_to_word(l, styles, c, cp, at);
}

/* ---- characters ---- */

/* Gets a character of the source that is safe to show, with all its styles. */
typedef void shown_fn(void *arg, unsigned styles, struct str c, int32_t cp, size_t at);

/* Passes on a character of the source at `at`. One that a terminal would obey, or that is not UTF-8,
 * is made visible. */
static void show_character(struct markdown_layout *l, unsigned styles, struct str c, int32_t cp,
                           size_t at, shown_fn *fn, void *arg)
{
    if (l->also)
        styles |= l->also(l->arg, at);
    if (!is_printable_ascii(cp) && (cp < 0 || vis_unsafe(cp))) {
        struct buf visible = BUF_INIT(BUF_SMALL);

        vis_add(&visible, c);
        for (size_t i = 0; i < visible.len; i++)
            fn(arg, l->cells ? styles ^ MARKDOWN_MARK : styles, (struct str){visible.data + i, 1},
               visible.data[i], at);
        buf_release(&visible);
    } else if (is_printable_ascii(cp) || !l->cells || !utf8_joins(cp, utf8_width(l->last) == 2)) {
        fn(arg, styles, c, cp, at);
    }
}

static void add_to_text(void *arg, unsigned styles, struct str c, int32_t cp, size_t at)
{
    add_shown(arg, styles, c, cp, at);
}

/* Adds the characters of a text, except one at its end that is not complete, or a CR, which may
 * precede a newline. Returns the number of bytes of that one. */
static size_t add_characters(struct markdown_layout *l, unsigned styles, struct str text, bool last)
{
    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);
        bool cr = text.p[0] == '\r';

        if (!last && (n == 0 || (cr && text.n == 1)))
            return text.n;
        n = n > 0 ? n : text.n;
        if (cp == '\n')
            end_row(l, l->offset);
        else if (!cr || text.n == 1 || text.p[1] != '\n')
            show_character(l, styles, (struct str){text.p, n}, cp, l->offset, add_to_text, l);
        else if (!l->cells)
            hold_text(&l->held, styles, STR("\r"), l->offset);
        l->offset += n;
        text = str_skip(text, n);
    }
    return 0;
}

/* Gets the text with its styles. */
static void add_styled(void *arg, unsigned styles, struct str text)
{
    struct markdown_layout *l = arg;
    struct buf whole = BUF_INIT(SIZE_MAX);

    if (l->part.len > 0) {
        buf_add_str(&whole, buf_str(&l->part));
        buf_add_str(&whole, text);
        text = buf_str(&whole);
        buf_clear(&l->part);
    }
    l->part_styles = styles;
    text = str_skip(text, text.n - add_characters(l, styles, text, false));
    buf_add_str(&l->part, text);
    if (styles & MARKDOWN_BLOCK && !l->cells) {
        print_styled(l, &l->held, 0, l->held.bytes.len, 0);
        forget_word(l);
    }
    buf_release(&whole);
}

/* ---- tables ---- */

enum align { ALIGN_LEFT, ALIGN_RIGHT, ALIGN_CENTER };

/* Removes the `|` at the start of a row, and the one at its end. */
static struct str row_inside(struct str line)
{
    size_t n;

    line = str_trim(line);
    if (str_starts(line, STR("|")))
        line = str_skip(line, 1);
    n = line.n;
    while (n > 1 && line.p[n - 2] == '\\')
        n--;
    /* An odd number of backslashes quotes the last `|`. */
    if (str_ends(line, STR("|")) && (line.n - n) % 2 == 0)
        line.n--;
    return line;
}

/* Takes the next cell of a row, up to a `|` without a backslash before it. cell.p is NULL after the
 * last one. */
static struct str next_cell(struct str *row)
{
    struct str cell = *row;
    size_t i = 0;

    if (!row->p)
        return STR_NONE;
    while (i < row->n && row->p[i] != '|')
        i += row->p[i] == '\\' && i + 1 < row->n ? 2 : 1;
    cell.n = i;
    *row = i < row->n ? str_skip(*row, i + 1) : STR_NONE;
    return str_trim(cell);
}

static size_t count_cells(struct str line)
{
    struct str row = row_inside(line);
    size_t count = 0;

    while (next_cell(&row).p)
        count++;
    return count;
}

static bool is_delimiter(struct str cell)
{
    if (str_starts(cell, STR(":")))
        cell = str_skip(cell, 1);
    if (str_ends(cell, STR(":")))
        cell.n--;
    for (size_t i = 0; i < cell.n; i++)
        if (cell.p[i] != '-')
            return false;
    return cell.n > 0;
}

/* Returns whether the second line is the delimiter row of a table whose header is the first one. */
static bool begins_table(struct str header, struct str delimiter)
{
    struct str row = row_inside(delimiter), cell;

    while ((cell = next_cell(&row)).p)
        if (!is_delimiter(cell))
            return false;
    return count_cells(header) == count_cells(delimiter);
}

/* ---- widths ---- */

static size_t cell_columns(struct str cell)
{
    struct buf visible = BUF_INIT(SIZE_MAX);
    size_t columns;

    vis_add_line(&visible, cell, true);
    columns = wide_columns(buf_str(&visible));
    buf_release(&visible);
    return columns;
}

/* Finds the widest cell of each column. */
static size_t *natural_widths(struct str lines, size_t *count)
{
    size_t *widths = NULL, cap = 0;

    *count = 0;
    for (size_t number = 0; lines.n > 0; number++) {
        struct str line = str_cut(&lines, '\n'), row = row_inside(line), cell;

        for (size_t i = 0; (cell = next_cell(&row)).p; i++) {
            size_t columns = number == 1 ? 1 : cell_columns(cell);

            if (i == *count) {
                widths = mem_grow(widths, &cap, *count + 1, sizeof *widths);
                widths[(*count)++] = 1;
            }
            if (columns > widths[i])
                widths[i] = columns;
        }
    }
    return widths;
}

/* Reduces the widest columns until all fit into `room`. */
static void reduce(size_t *widths, size_t count, size_t room)
{
    size_t limit = room / count, sum, free_columns;

    /* Room that narrow columns do not need is for the others. */
    do {
        size_t wide = 0;

        sum = 0;
        for (size_t i = 0; i < count; i++) {
            wide += widths[i] > limit;
            sum += widths[i] > limit ? limit : widths[i];
        }
        free_columns = wide > 0 ? (room - sum) / wide : 0;
        limit += free_columns;
    } while (free_columns > 0);
    for (size_t i = 0; i < count; i++)
        if (widths[i] > limit)
            widths[i] = limit;
}

/* Chooses the widths of the columns for lines of a table, so that it fits into `columns`. Returns
 * an array for the caller to free, with *count columns; or NULL without room for it. */
static size_t *table_widths(struct str lines, size_t columns, size_t *count)
{
    size_t *widths = natural_widths(lines, count);
    size_t sum = MARGIN, least = MARGIN;

    for (size_t i = 0; i < *count; i++) {
        sum += widths[i] + BETWEEN;
        least += (widths[i] < COLUMN_MIN ? widths[i] : COLUMN_MIN) + BETWEEN;
    }
    if (columns == 0 || sum <= columns)
        return widths;
    if (least > columns) {
        free(widths);
        return NULL;
    }
    reduce(widths, *count, columns - MARGIN - BETWEEN * *count);
    return widths;
}

/* ---- rows ---- */

struct cell {
    struct markdown_layout *layout;
    struct markdown_styled text; /* visible, on one line */
    size_t source;               /* the offset of the next byte of its source */
    size_t at;                   /* the next line of the cell begins here */
    enum align align;
};

static void hold_in_cell(void *arg, unsigned styles, struct str c, int32_t cp, size_t at)
{
    hold_text(arg, styles, cp == '\t' ? STR(" ") : c, at);
}

static void add_to_cell(void *arg, unsigned styles, struct str text)
{
    struct cell *c = arg;

    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);

        n = n > 0 ? n : text.n;
        show_character(c->layout, styles, (struct str){text.p, n}, cp, c->source, hold_in_cell,
                       &c->text);
        c->source += n;
        text = str_skip(text, n);
    }
}

/* Returns the offset in the source of a byte of the table that is held back. */
static size_t place_in_table(const struct markdown_layout *l, const char *p)
{
    return l->offset + (size_t)(p - l->table.data);
}

/* Only marks within a line count in a cell. */
static void fill_cell(struct cell *c, struct str text)
{
    struct markdown m = {
        .fn = add_to_cell, .arg = c, .started = true, .begun = true, .before = ' '};

    if (text.n == 0)
        return;
    c->source = place_in_table(c->layout, text.p);
    markdown_feed(&m, text);
    markdown_end(&m);
    mark_links(&c->text, 0);
}

static enum align align_of(struct str cell)
{
    if (!str_ends(cell, STR(":")))
        return ALIGN_LEFT;
    return str_starts(cell, STR(":")) ? ALIGN_CENTER : ALIGN_RIGHT;
}

/* Takes as many words of a cell as fit into a line of it. */
static struct str cell_line(struct cell *c, size_t width)
{
    struct str rest = str_skip(buf_str(&c->text.bytes), c->at), fits = utf8_fit(rest, width);
    size_t n;

    /* A character that is wider than the column is printed all the same. */
    if (fits.n == 0)
        fits = utf8_first(rest, 1);
    n = fits.n;
    if (n < rest.n && rest.p[n] != ' ') {
        while (n > 0 && rest.p[n - 1] != ' ')
            n--;
        n = n > 0 ? n - 1 : fits.n;
    }
    c->at += n;
    while (c->at < c->text.bytes.len && c->text.bytes.data[c->at] == ' ')
        c->at++;
    return (struct str){rest.p, n};
}

/* Prints a line of a cell; `styles` are those of its row. */
static void print_cell(struct markdown_layout *l, struct cell *c, size_t width, unsigned styles)
{
    size_t from = c->at;
    struct str text = cell_line(c, width);
    size_t columns = wide_columns(text);
    size_t pad = columns < width ? width - columns : 0;
    size_t before = c->align == ALIGN_LEFT ? 0 : c->align == ALIGN_RIGHT ? pad : pad / 2;

    print_blanks(l, before);
    print_styled(l, &c->text, from, from + text.n, styles);
    print_blanks(l, pad - before);
}

static bool has_more(const struct cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].at < cells[i].text.bytes.len)
            return true;
    return false;
}

static void print_row(struct markdown_layout *l, struct str line, struct str delimiter,
                      const size_t *widths, size_t count, unsigned styles)
{
    struct cell *cells = mem_zalloc((count ? count : 1) * sizeof *cells);
    struct str row = row_inside(line), aligns = row_inside(delimiter);
    size_t at = place_in_table(l, line.p);

    for (size_t i = 0; i < count; i++) {
        cells[i].layout = l;
        styled_init(&cells[i].text);
        cells[i].align = align_of(next_cell(&aligns));
        fill_cell(&cells[i], next_cell(&row));
    }
    do {
        l->fn(l->arg, MARKDOWN_MARK, STR("|"), at);
        at = NOWHERE;
        for (size_t i = 0; i < count; i++) {
            print_blanks(l, 1);
            print_cell(l, &cells[i], widths[i], styles);
            print_blanks(l, 1);
            l->fn(l->arg, MARKDOWN_MARK, STR("|"), NOWHERE);
        }
        l->fn(l->arg, 0, STR("\n"), NOWHERE);
    } while (has_more(cells, count));
    for (size_t i = 0; i < count; i++)
        styled_release(&cells[i].text);
    free(cells);
}

static void print_delimiter(const struct markdown_layout *l, struct str delimiter,
                            const size_t *widths, size_t count)
{
    struct str row = row_inside(delimiter);
    struct buf line = BUF_INIT(SIZE_MAX);

    buf_add_byte(&line, '|');
    for (size_t i = 0; i < count; i++) {
        struct str cell = next_cell(&row);
        bool left = str_starts(cell, STR(":")), right = str_ends(cell, STR(":"));

        for (size_t n = 0; n < widths[i] + 2; n++)
            buf_add_byte(&line, (n == 0 && left) || (n == widths[i] + 1 && right) ? ':' : '-');
        buf_add_byte(&line, '|');
    }
    l->fn(l->arg, MARKDOWN_MARK, buf_str(&line), place_in_table(l, delimiter.p));
    l->fn(l->arg, 0, STR("\n"), NOWHERE);
    buf_release(&line);
}

/* Prints the table that is held back; rows without columns are text. */
static void end_table(struct markdown_layout *l)
{
    struct str lines = buf_str(&l->table), rest = lines, header = str_cut(&rest, '\n');
    struct str delimiter = str_cut(&rest, '\n');
    size_t count = 0, *widths = NULL;

    if (l->rows >= 2)
        widths = table_widths(lines, l->columns(l->arg), &count);
    if (widths) {
        print_row(l, header, delimiter, widths, count, MARKDOWN_BOLD);
        print_delimiter(l, delimiter, widths, count);
        while (rest.n > 0)
            print_row(l, str_cut(&rest, '\n'), delimiter, widths, count, 0);
        l->offset += lines.n;
        l->column = 0;
    } else {
        markdown_feed(&l->markdown, lines);
    }
    free(widths);
    buf_clear(&l->table);
    l->rows = 0;
}

/* Takes a complete line that begins with `|`. */
static void hold_row(struct markdown_layout *l)
{
    struct str line = buf_str(&l->line), header = buf_str(&l->table);

    if (l->rows == 1 && !begins_table(header, line))
        end_table(l);
    buf_add_str(&l->table, line);
    l->rows++;
    buf_clear(&l->line);
}

/* Takes a byte of the beginning of a line: blanks are held until it is known what begins. Returns
 * the number of bytes taken, 0 or 1. */
static size_t hold_blanks(struct markdown_layout *l, char c)
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
static size_t add_part_of_line(struct markdown_layout *l, struct str piece)
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
            hold_row(l);
    }
    return part.n;
}

/* ---- the text ---- */

void markdown_layout_init(struct markdown_layout *l, markdown_layout_fn *fn, void *arg,
                          size_t (*columns)(void *arg))
{
    *l = (struct markdown_layout){.fn = fn, .arg = arg, .columns = columns};
    l->markdown = (struct markdown){.fn = add_styled, .arg = l};
    styled_init(&l->held);
    l->line.max = l->table.max = l->part.max = SIZE_MAX;
}

void markdown_layout_release(struct markdown_layout *l)
{
    styled_release(&l->held);
    buf_release(&l->line);
    buf_release(&l->table);
    buf_release(&l->part);
}

void markdown_layout_resume(struct markdown_layout *l, const struct markdown *state)
{
    l->markdown = *state;
    l->markdown.fn = add_styled;
    l->markdown.arg = l;
}

void markdown_layout_feed(struct markdown_layout *l, struct str piece)
{
    if (l->plain)
        add_styled(l, 0, piece);
    while (!l->plain && piece.n > 0) {
        size_t n =
            l->state == LAYOUT_START ? hold_blanks(l, piece.p[0]) : add_part_of_line(l, piece);

        piece = str_skip(piece, n);
    }
}

bool markdown_layout_pause(struct markdown_layout *l)
{
    bool at_start;

    place_word(l);
    at_start = l->column == 0;
    l->column = l->indent = l->hang = 0;
    l->lead = LEAD_START;
    l->measured = false;
    return at_start;
}

bool markdown_layout_end(struct markdown_layout *l)
{
    bool at_start;

    if (l->state == LAYOUT_ROW)
        hold_row(l);
    end_table(l);
    markdown_feed(&l->markdown, buf_str(&l->line));
    buf_clear(&l->line);
    markdown_end(&l->markdown);
    (void)add_characters(l, l->part_styles, buf_str(&l->part), true);
    buf_clear(&l->part);
    at_start = markdown_layout_pause(l);
    l->state = LAYOUT_START;
    l->long_word = false;
    return at_start;
}

bool markdown_layout_holds_table(const struct markdown_layout *l)
{
    return l->rows > 0 && l->column == 0;
}
