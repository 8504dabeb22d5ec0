#include "chathist/cli/hits.h"

#include <stdint.h>

#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/wide.h"

/* The code points of a snippet in a pipe, and its fewest columns on a terminal. */
#define SNIPPET 160
#define SNIPPET_LEAST 20

/* A code point can take two columns on a terminal, or be shown as several characters, so the
 * snippet is made again with fewer of them until it fits. */
static void make_snippet(struct buf *text, const struct out *o, const struct hit *hit, size_t width,
                         size_t *at, size_t *n)
{
    size_t count = width;

    for (;;) {
        buf_clear(text);
        search_snippet(text, hit->text, hit->at, hit->len, count, o->terminal, at, n);
        if (!o->terminal || count == 1 || utf8_fit(buf_str(text), width).n == text->len)
            return;
        count -= (count + 9) / 10;
    }
}

/* Prints a line of text with a part of it in colour. */
static void print_marked(struct out *o, struct str line, size_t at, size_t n)
{
    out_raw(o, (struct str){line.p, at});
    if (n > 0)
        out_style(o, STYLE_HIT);
    out_raw(o, (struct str){line.p + at, n});
    if (n > 0)
        out_style(o, STYLE_NONE);
    out_raw(o, (struct str){line.p + at + n, line.n - at - n});
}

/* Prints the fields before the text. Returns the number of columns for the text. */
static size_t print_fields(struct out *o, const struct hit *hit, const struct hits_form *form)
{
    const struct message *m = hit->message;
    const struct str parts[] = {m->id, m->timestamp, m->role_text};
    struct buf line = BUF_INIT(8 * BUF_LINE), id = BUF_INIT(8 * BUF_LINE);
    size_t width = SNIPPET, used;
    int64_t us;

    list_add_id(&id, m->session_id);
    wide_add_fitted(&line, buf_str(&id), o->terminal ? list_id_most(o) : SIZE_MAX);
    if (o->terminal) {
        buf_add_c(&line, "  ");
        if (time_parse_iso(m->timestamp, &us))
            time_add_local(&line, us);
        buf_add_c(&line, "  ");
        vis_add_line(&line, m->role_text, true);
        buf_add_c(&line, "  ");
        if (form->context)
            buf_add_c(&line, hit->found ? ": " : "- ");
        used = wide_columns(buf_str(&line));
        width = o->columns > used + SNIPPET_LEAST ? o->columns - used : SNIPPET_LEAST;
    } else {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            buf_add_byte(&line, '\t');
            vis_add_line(&line, parts[i], false);
        }
        buf_add_byte(&line, '\t');
    }
    out_raw(o, buf_str(&line));
    buf_release(&line);
    buf_release(&id);
    return width;
}

/* Prints the fields after the text, and the end of the line. */
static void print_rest(struct out *o, const struct hit *hit, const struct hits_form *form)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    if (!o->terminal && form->context)
        buf_add_c(&line, hit->found ? "\t:" : "\t-");
    if (!o->terminal && form->history) {
        buf_add_byte(&line, '\t');
        vis_add_line(&line, str_of(form->history), false);
    }
    buf_add_byte(&line, '\n');
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

void hits_print(struct out *o, const struct hit *hit, struct hits_form *form)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t width, at, n;

    list_history(o, form->history, &form->headed);
    if (!hit->found)
        out_style(o, STYLE_DIM);
    width = print_fields(o, hit, form);
    make_snippet(&text, o, hit, width, &at, &n);
    print_marked(o, buf_str(&text), at, n);
    if (!hit->found)
        out_style(o, STYLE_NONE);
    print_rest(o, hit, form);
    buf_release(&text);
}

void hits_print_match(struct out *o, const struct hit *hit, size_t at, size_t n,
                      struct hits_form *form)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    list_history(o, form->history, &form->headed);
    print_fields(o, hit, form);
    vis_add_line(&text, (struct str){hit->text.p + at, n}, o->terminal);
    print_marked(o, buf_str(&text), 0, text.len);
    print_rest(o, hit, form);
    buf_release(&text);
}

void hits_print_folded(struct out *o, size_t count)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    buf_addf(&line, "    +%zu in results of tools\n", count);
    out_style(o, STYLE_DIM);
    out_raw(o, buf_str(&line));
    out_style(o, STYLE_NONE);
    buf_release(&line);
}

void hits_print_session(struct out *o, struct str id, struct hits_form *form)
{
    struct hit nothing = {0};
    struct hits_form plain = {.history = form->history};
    struct buf line = BUF_INIT(8 * BUF_LINE);

    list_history(o, form->history, &form->headed);
    list_add_id(&line, id);
    out_raw(o, buf_str(&line));
    print_rest(o, &nothing, &plain);
    buf_release(&line);
}
