#include "terminal/markdown_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"

/* A table is not printed in columns narrower than this, unless their cells are. */
#define COLUMN_MIN ((size_t)6)
/* `| ` before the first column; ` | ` after each. */
#define MARGIN ((size_t)1)
#define BETWEEN ((size_t)3)

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

bool markdown_table_begins(struct str header, struct str delimiter)
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

size_t *markdown_table_widths(struct str lines, size_t columns, size_t *count)
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

void markdown_table_widen(size_t *widths, size_t count, struct str line, size_t columns)
{
    struct str row = row_inside(line);
    size_t sum = MARGIN;

    for (size_t i = 0; i < count; i++)
        sum += widths[i] + BETWEEN;
    for (size_t i = 0; i < count; i++) {
        size_t wanted = cell_columns(next_cell(&row));
        size_t room = columns == 0 ? wanted : columns > sum ? columns - sum : 0;
        size_t more = wanted > widths[i] ? wanted - widths[i] : 0;

        more = more < room ? more : room;
        widths[i] += more;
        sum += more;
    }
}

/* ---- rows ---- */

struct cell {
    struct buf text;   /* visible, on one line */
    struct buf styles; /* the style of each byte */
    size_t at;         /* where the next line of the cell begins */
    enum align align;
};

static void add_styled(void *arg, unsigned styles, struct str text)
{
    struct cell *c = arg;

    buf_add_str(&c->text, text);
    for (size_t i = 0; i < text.n; i++)
        buf_add_byte(&c->styles, (char)styles);
}

/* Only marks within a line count in a cell. */
static void fill_cell(struct cell *c, struct str text)
{
    struct buf visible = BUF_INIT(SIZE_MAX);
    struct markdown m = {.fn = add_styled, .arg = c, .started = true, .begun = true, .before = ' '};

    vis_add_line(&visible, text, true);
    markdown_feed(&m, buf_str(&visible));
    markdown_end(&m);
    buf_release(&visible);
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
    struct str rest = str_skip(buf_str(&c->text), c->at), fits = utf8_fit(rest, width);
    size_t n = fits.n;

    /* A character that is wider than the column is printed all the same. */
    if (n == 0 && rest.n > 0)
        n = utf8_first(rest, 1).n;
    if (n < rest.n && rest.p[n] != ' ') {
        while (n > 0 && rest.p[n - 1] != ' ')
            n--;
        n = n > 0 ? n - 1 : fits.n > 0 ? fits.n : utf8_first(rest, 1).n;
    }
    c->at += n;
    while (c->at < c->text.len && c->text.data[c->at] == ' ')
        c->at++;
    return (struct str){rest.p, n};
}

struct printer {
    markdown_fn *fn;
    void *arg;
    unsigned styles; /* of the row, added to those of its cells */
};

static void print_blanks(const struct printer *p, size_t n)
{
    for (; n > 0; n--)
        p->fn(p->arg, 0, STR(" "));
}

static void print_cell(const struct printer *p, struct cell *c, size_t width)
{
    const char *styles = c->styles.data + c->at;
    struct str text = cell_line(c, width);
    size_t columns = wide_columns(text);
    size_t pad = columns < width ? width - columns : 0;
    size_t before = c->align == ALIGN_LEFT ? 0 : c->align == ALIGN_RIGHT ? pad : pad / 2;

    print_blanks(p, before);
    while (text.n > 0) {
        size_t n = 1;

        while (n < text.n && styles[n] == styles[0])
            n++;
        p->fn(p->arg, (unsigned)styles[0] | p->styles, (struct str){text.p, n});
        text = str_skip(text, n);
        styles += n;
    }
    print_blanks(p, pad - before);
}

static bool has_more(const struct cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].at < cells[i].text.len)
            return true;
    return false;
}

static void print_row(const struct printer *p, struct str line, struct str delimiter,
                      const size_t *widths, size_t count)
{
    struct cell *cells = mem_zalloc((count ? count : 1) * sizeof *cells);
    struct str row = row_inside(line), aligns = row_inside(delimiter);

    for (size_t i = 0; i < count; i++) {
        cells[i].text.max = cells[i].styles.max = SIZE_MAX;
        cells[i].align = align_of(next_cell(&aligns));
        fill_cell(&cells[i], next_cell(&row));
    }
    do {
        p->fn(p->arg, MARKDOWN_MARK, STR("|"));
        for (size_t i = 0; i < count; i++) {
            print_blanks(p, 1);
            print_cell(p, &cells[i], widths[i]);
            print_blanks(p, 1);
            p->fn(p->arg, MARKDOWN_MARK, STR("|"));
        }
        p->fn(p->arg, 0, STR("\n"));
    } while (has_more(cells, count));
    for (size_t i = 0; i < count; i++) {
        buf_release(&cells[i].text);
        buf_release(&cells[i].styles);
    }
    free(cells);
}

static void print_delimiter(const struct printer *p, struct str delimiter, const size_t *widths,
                            size_t count)
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
    p->fn(p->arg, MARKDOWN_MARK, buf_str(&line));
    p->fn(p->arg, 0, STR("\n"));
    buf_release(&line);
}

static void print_as_it_is(const struct printer *p, struct str line)
{
    struct buf visible = BUF_INIT(SIZE_MAX);

    vis_add_line(&visible, line, true);
    p->fn(p->arg, 0, buf_str(&visible));
    p->fn(p->arg, 0, STR("\n"));
    buf_release(&visible);
}

void markdown_table_print(struct str lines, struct str delimiter, bool headed, const size_t *widths,
                          size_t count, markdown_fn *fn, void *arg)
{
    struct printer p = {.fn = fn, .arg = arg};

    for (size_t number = 0; lines.n > 0; number++) {
        struct str line = str_cut(&lines, '\n');

        p.styles = headed && number == 0 ? MARKDOWN_BOLD : 0;
        if (headed && number == 1)
            print_delimiter(&p, line, widths, count);
        else if (count_cells(line) > count)
            print_as_it_is(&p, line);
        else
            print_row(&p, line, delimiter, widths, count);
    }
}
