#include "browse/browse_text.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"
#include "chathist/cli/wide.h"
#include "chathist/chat/markdown.h"

#define TAB_COLUMNS 8
/* The bytes of a cell: more combining marks than fit are left out. */
#define CELL_MAX 24
#define ELLIPSIS "\xe2\x80\xa6"

struct cell {
    size_t at, from; /* in the bytes of the line; in the text */
    unsigned char n, width, styles;
    bool blank;
};

/* A line of the text, before it is wrapped. */
struct laying {
    struct browse_lines *lines;
    const struct browse_layout *how;
    bool one; /* all of the text on one line */
    struct cell *cells;
    size_t count, cap;
    struct buf bytes, scratch;
    size_t column;
    size_t offset; /* of the text, so far */
    size_t hit;    /* the first that does not end before it */
};

void browse_lines_init(struct browse_lines *l)
{
    *l = (struct browse_lines){0};
    buf_init(&l->text, SIZE_MAX);
}

void browse_lines_release(struct browse_lines *l)
{
    buf_release(&l->text);
    free(l->runs);
    free(l->at);
    browse_lines_init(l);
}

/* ---- cells ---- */

static void add_cell(struct laying *l, struct str bytes, size_t width, unsigned styles, bool blank)
{
    l->cells = mem_grow(l->cells, &l->cap, l->count + 1, sizeof *l->cells);
    l->cells[l->count++] = (struct cell){.at = l->bytes.len,
                                         .from = l->offset,
                                         .n = (unsigned char)bytes.n,
                                         .width = (unsigned char)width,
                                         .styles = (unsigned char)styles,
                                         .blank = blank};
    buf_add_str(&l->bytes, bytes);
    l->column += width;
}

static void add_blanks(struct laying *l, size_t n, unsigned styles)
{
    while (n--)
        add_cell(l, STR(" "), 1, styles, true);
}

/* A character that takes no column belongs to the one before it. */
static void add_mark(struct laying *l, struct str bytes, unsigned styles)
{
    if (l->count == 0)
        add_cell(l, STR(" "), 1, styles, false);

    struct cell *last = &l->cells[l->count - 1];

    if (last->n + bytes.n > CELL_MAX)
        return;
    buf_add_str(&l->bytes, bytes);
    last->n = (unsigned char)(last->n + bytes.n);
    last->blank = false;
}

static void add_visible(struct laying *l, struct str bytes, unsigned styles)
{
    buf_clear(&l->scratch);
    vis_add(&l->scratch, bytes);
    for (size_t i = 0; i < l->scratch.len; i++)
        add_cell(l, (struct str){l->scratch.data + i, 1}, 1, styles ^ BROWSE_DIM, false);
}

/* What changes the width of its neighbours on some terminals. */
static bool joins(const struct laying *l, int32_t cp)
{
    if (cp == 0x200d || (cp >= 0xfe00 && cp <= 0xfe0f) || (cp >= 0xe0100 && cp <= 0xe01ef))
        return true;
    return cp >= 0x1f3fb && cp <= 0x1f3ff && l->count > 0 && l->cells[l->count - 1].width == 2;
}

static bool is_space(int32_t cp)
{
    return cp == ' ' || (cp >= '\t' && cp <= '\r');
}

static void add_character(struct laying *l, struct str bytes, int32_t cp, unsigned styles)
{
    int width = cp < 0 ? 0 : utf8_width(cp);

    if (l->one && is_space(cp)) {
        if (l->count > 0 && !l->cells[l->count - 1].blank)
            add_blanks(l, 1, styles);
    } else if (cp == '\t') {
        add_blanks(l, TAB_COLUMNS - l->column % TAB_COLUMNS, styles);
    } else if (cp < 0 || vis_unsafe(cp)) {
        add_visible(l, bytes, styles);
    } else if (joins(l, cp)) {
        return;
    } else if (width == 0) {
        add_mark(l, bytes, styles);
    } else {
        add_cell(l, bytes, (size_t)width, styles, cp == ' ');
    }
}

/* ---- lines ---- */

static void add_run(struct browse_lines *l, struct browse_line *line, size_t n, unsigned styles)
{
    struct browse_run *last = line->run_count ? &l->runs[l->run_count - 1] : NULL;

    if (last && last->styles == styles) {
        last->n += n;
        return;
    }
    l->runs = mem_grow(l->runs, &l->run_cap, l->run_count + 1, sizeof *l->runs);
    l->runs[l->run_count++] = (struct browse_run){n, styles};
    line->run_count++;
}

static void add_cells(struct laying *l, struct browse_line *line, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct cell *c = &l->cells[i];

        buf_add(&l->lines->text, l->bytes.data + c->at, c->n);
        add_run(l->lines, line, c->n, c->styles);
    }
}

static struct browse_line *new_line(struct browse_lines *l, size_t from)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count] = (struct browse_line){.at = l->text.len, .run = l->run_count, .from = from};
    return &l->at[l->count++];
}

/* Where a line that begins with cell `from` ends; *next is the first cell of the line behind it. */
static size_t wrap(const struct laying *l, size_t from, size_t *next)
{
    size_t column = 0, blank = 0, i = from;
    bool word = false;

    while (i < l->count && column + l->cells[i].width <= l->how->width) {
        if (l->cells[i].blank && word)
            blank = i;
        word = word || !l->cells[i].blank;
        column += l->cells[i++].width;
    }
    /* A cell that is wider than the panel is put there all the same. */
    if (i == from)
        i++;
    *next = i;
    if (i == l->count)
        return i;
    if (l->cells[i].blank) {
        *next = i + 1;
        return i;
    }
    if (blank == 0)
        return i;
    *next = blank + 1;
    return blank;
}

static void end_line(struct laying *l)
{
    size_t from = 0, next;

    if (l->count == 0)
        new_line(l->lines, l->offset);
    while (from < l->count) {
        size_t to = wrap(l, from, &next);

        add_cells(l, new_line(l->lines, l->cells[from].from), from, to);
        from = next;
    }
    l->count = l->column = 0;
    buf_clear(&l->bytes);
}

static unsigned hit_here(struct laying *l)
{
    const struct browse_layout *how = l->how;

    while (l->hit < how->hit_count && how->hits[l->hit].at + how->hits[l->hit].n <= l->offset)
        l->hit++;
    if (l->hit == how->hit_count || how->hits[l->hit].at > l->offset)
        return 0;
    return how->has_here && how->hits[l->hit].at == how->here ? BROWSE_HIT | BROWSE_HERE
                                                              : BROWSE_HIT;
}

static unsigned styles_of(unsigned markdown)
{
    return (markdown & MARKDOWN_BOLD ? BROWSE_BOLD : 0U) |
           (markdown & MARKDOWN_ITALIC ? BROWSE_ITALIC : 0U) |
           (markdown & MARKDOWN_CODE ? BROWSE_CODE : 0U) |
           (markdown & MARKDOWN_MARK ? BROWSE_DIM : 0U);
}

static void feed(void *arg, unsigned markdown, struct str text)
{
    struct laying *l = arg;
    unsigned styles = l->how->styles | styles_of(markdown);

    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);
        bool line_end = cp == '\r' && text.n > 1 && text.p[1] == '\n';

        n = n > 0 ? n : text.n;
        if (cp == '\n' && !l->one)
            end_line(l);
        else if (!line_end)
            add_character(l, (struct str){text.p, n}, cp, styles | hit_here(l));
        l->offset += n;
        text = (struct str){text.p + n, text.n - n};
    }
}

static void start(struct laying *l, struct browse_lines *lines, const struct browse_layout *how)
{
    *l = (struct laying){.lines = lines, .how = how};
    buf_init(&l->bytes, SIZE_MAX);
    buf_init(&l->scratch, SIZE_MAX);
}

static void finish(struct laying *l)
{
    buf_release(&l->bytes);
    buf_release(&l->scratch);
    free(l->cells);
}

void browse_lines_add(struct browse_lines *lines, struct str text, const struct browse_layout *how)
{
    struct laying l;

    start(&l, lines, how);
    if (how->markdown) {
        struct markdown m = how->state ? *how->state : (struct markdown){0};

        m.fn = feed;
        m.arg = &l;
        markdown_feed(&m, text);
        markdown_end(&m);
    } else {
        feed(&l, 0, text);
    }
    if (l.count > 0)
        end_line(&l);
    finish(&l);
}

/* ---- one line ---- */

/* So much of a text is looked at for a line of that width: enough, were each character of four
 * bytes and had two marks. */
static struct str first_of(struct str text, size_t width)
{
    size_t most = width * 12 + 64;

    return text.n > most ? (struct str){text.p, most} : text;
}

void browse_lines_append(struct browse_lines *lines, struct str text,
                         const struct browse_layout *how)
{
    struct browse_line *line = &lines->at[lines->count - 1];
    size_t used = browse_line_columns(lines, lines->count - 1), column = used, end = 0;
    struct str part = first_of(text, how->width);
    struct laying l;
    bool fits;

    if (used >= how->width)
        return;
    start(&l, lines, how);
    l.one = true;
    feed(&l, 0, part);
    fits = used + l.column <= how->width && part.n == text.n;
    while (end < l.count && column + l.cells[end].width <= how->width - (fits ? 0 : 1))
        column += l.cells[end++].width;
    add_cells(&l, line, 0, end);
    if (!fits) {
        buf_add_c(&lines->text, ELLIPSIS);
        add_run(lines, line, sizeof ELLIPSIS - 1, how->styles);
    }
    finish(&l);
}

void browse_lines_styled(struct browse_lines *l, size_t n, unsigned styles)
{
    add_run(l, &l->at[l->count - 1], n, styles);
}

void browse_lines_add_one(struct browse_lines *lines, struct str text,
                          const struct browse_layout *how)
{
    new_line(lines, 0);
    browse_lines_append(lines, text, how);
}

size_t browse_line_columns(const struct browse_lines *l, size_t i)
{
    size_t begin = l->at[i].at, end = i + 1 < l->count ? l->at[i + 1].at : l->text.len;

    return wide_columns((struct str){buf_c(&l->text) + begin, end - begin});
}
