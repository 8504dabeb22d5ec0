#include "chathist/chat/aside.h"

#include <errno.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/term.h"

/* How much of a line fits where there is no terminal. */
#define LINE_COLUMNS 200

void aside_start(struct aside *a, enum color_when color)
{
    *a = (struct aside){.terminal = isatty(STDERR_FILENO)};
    a->color = term_wants_color(a->terminal, color);
}

/* One write, so that a style is never left open by another program's output. */
static void put(const struct buf *b)
{
    if (io_write_all(STDERR_FILENO, buf_c(b), b->len) < 0)
        errno = 0; /* there is nobody to tell */
}

void aside_text(struct aside *a, struct str text)
{
    struct buf b = BUF_INIT(8 * BUF_LINE);

    buf_add_c(&b, a->color ? term_style(STYLE_DIM) : "");
    if (a->terminal)
        vis_feed(&a->vis, text, &b);
    else
        buf_add_str(&b, text);
    buf_add_c(&b, a->color ? term_style(STYLE_NONE) : "");
    put(&b);
    a->open = true;
    a->ends_line = text.p[text.n - 1] == '\n';
    buf_release(&b);
}

void aside_end(struct aside *a)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    if (!a->open)
        return;
    vis_end(&a->vis, &b);
    if (!a->ends_line)
        buf_add_byte(&b, '\n');
    put(&b);
    a->open = false;
    buf_release(&b);
}

void aside_line(struct aside *a, bool wanted, struct str text)
{
    size_t columns = a->terminal ? term_columns(STDERR_FILENO) : LINE_COLUMNS;
    struct buf visible = BUF_INIT(8 * BUF_LINE), line = BUF_INIT(8 * BUF_LINE);
    struct str shown;

    if (!a->terminal && !wanted)
        return;
    vis_add_line(&visible, text, true);
    shown = utf8_fit(buf_str(&visible), columns);
    if (shown.n < visible.len)
        shown = utf8_fit(shown, columns - 1);
    buf_add_c(&line, a->color ? term_style(STYLE_DIM) : "");
    buf_add_str(&line, shown);
    buf_add_c(&line, shown.n < visible.len ? "\xe2\x80\xa6" : "");
    buf_add_c(&line, a->color ? term_style(STYLE_NONE) : "");
    buf_add_byte(&line, '\n');
    put(&line);
    buf_release(&visible);
    buf_release(&line);
}
