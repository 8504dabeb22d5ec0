#include "chathist/terminal/markdown_out.h"

/* Prints a piece of Markdown with its styles. */
static void print_piece(void *arg, unsigned styles, struct str text, size_t at)
{
    static const struct {
        unsigned bit;
        enum style style;
    } looks[] = {
        {MARKDOWN_BOLD, STYLE_BOLD},     {MARKDOWN_ITALIC, STYLE_ITALIC},
        {MARKDOWN_STRUCK, STYLE_STRUCK}, {MARKDOWN_CODE, STYLE_CODE},
        {MARKDOWN_MARK, STYLE_DIM},      {MARKDOWN_LINK, STYLE_LINK},
    };
    enum style kind = markdown_kind_style(styles);
    struct out *out = arg;

    (void)at;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (styles & looks[i].bit)
            out_style(out, looks[i].style);
    if (kind != STYLE_NONE)
        out_style(out, kind);
    out_raw(out, text);
    if (styles & ~(unsigned)MARKDOWN_BLOCK)
        out_style(out, STYLE_NONE);
}

static void print_link(void *arg, struct str address)
{
    out_link(arg, address);
}

static size_t measure_columns(void *arg)
{
    struct out *out = arg;

    out_measure(out);
    return out->columns;
}

enum style markdown_kind_style(unsigned styles)
{
    static const enum style kinds[] = {
        [HIGHLIGHT_COMMENT] = STYLE_COMMENT, [HIGHLIGHT_STRING] = STYLE_STRING,
        [HIGHLIGHT_NUMBER] = STYLE_NUMBER,   [HIGHLIGHT_KEYWORD] = STYLE_KEYWORD,
        [HIGHLIGHT_ADDED] = STYLE_ADDED,     [HIGHLIGHT_REMOVED] = STYLE_REMOVED,
    };
    unsigned kind = (styles & MARKDOWN_KINDS) / MARKDOWN_KIND;

    return kind < sizeof kinds / sizeof *kinds ? kinds[kind] : STYLE_NONE;
}

void markdown_out_init(struct markdown_layout *l, struct out *out)
{
    markdown_layout_init(l, print_piece, out, measure_columns);
    l->link = print_link;
}

void markdown_print(struct out *out, struct str text)
{
    struct markdown_layout l;

    markdown_out_init(&l, out);
    markdown_layout_feed(&l, text);
    if (!markdown_layout_end(&l))
        out_byte(out, '\n');
    markdown_layout_release(&l);
}
