#include "front/hits.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/vis.h"

/* Code points of a snippet in a pipe; its columns at least on a terminal. */
#define SNIPPET 160
#define SNIPPET_LEAST 20

/* Code points are counted, and on a terminal they take up to two columns, or are shown as several
 * characters: fewer of them, then, until they fit. */
static void make_snippet(struct buf *text, const struct out *o, const struct hit *hit, size_t width,
                         size_t *at, size_t *n)
{
    size_t count = width;

    for (;;) {
        buf_clear(text);
        search_snippet(text, hit->content, hit->at, hit->len, count, o->terminal, at, n);
        if (!o->terminal || count == 1 || utf8_fit(buf_str(text), width).n == text->len)
            return;
        count -= (count + 9) / 10;
    }
}

static void print_snippet(struct out *o, const struct hit *hit, size_t width)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str line;
    size_t at, n;

    make_snippet(&text, o, hit, width, &at, &n);
    line = buf_str(&text);
    out_raw(o, (struct str){line.p, at});
    out_style(o, STYLE_HIT);
    out_raw(o, (struct str){line.p + at, n});
    out_style(o, STYLE_NONE);
    out_raw(o, (struct str){line.p + at + n, line.n - at - n});
    out_byte(o, '\n');
    buf_release(&text);
}

void hits_print(struct out *o, const struct hit *hit)
{
    const struct message *m = hit->message;
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t width = SNIPPET;
    int64_t us;

    vis_add_line(&line, m->session_id, o->terminal);
    if (o->terminal) {
        buf_add_c(&line, "  ");
        if (clock_parse_iso(m->timestamp, &us))
            clock_add_local(&line, us);
        buf_add_c(&line, "  ");
        vis_add_line(&line, m->role_text, true);
        buf_add_c(&line, "  ");
        width = o->columns > line.len + SNIPPET_LEAST ? o->columns - line.len : SNIPPET_LEAST;
    } else {
        const struct str parts[] = {m->id, m->timestamp, m->role_text};

        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            buf_add_byte(&line, '\t');
            vis_add_line(&line, parts[i], false);
        }
        buf_add_byte(&line, '\t');
    }
    out_raw(o, buf_str(&line));
    buf_release(&line);
    print_snippet(o, hit, width);
}

void hits_print_session(struct out *o, struct str id)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    vis_add_line(&line, id, o->terminal);
    buf_add_byte(&line, '\n');
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

void hits_keep(struct hits *h, const struct hit *hit)
{
    h->at = mem_grow(h->at, &h->cap, h->count + 1, sizeof *h->at);
    h->at[h->count++] = (struct hits_place){hit->line.at, hit->line.text.n};
}

int hits_again(const struct hits *h, size_t i, struct search *s, struct buf *line, struct hit *hit,
               struct err *e)
{
    if (scan_again(&s->scan, h->at[i].at, h->at[i].n, line, e) < 0)
        return -1;
    return search_line(s, buf_str(line), hit) ? 0
                                              : err_set(e, ERR_FAILURE, "a line changed meanwhile");
}

void hits_release(struct hits *h)
{
    free(h->at);
}

bool hits_new_session(struct hits_sessions *s, struct str id)
{
    char *copy;

    if (s->seen.size > 0 && keymap_find(&s->seen, id))
        return false;
    copy = mem_copy(id.p, id.n);
    s->ids = mem_grow(s->ids, &s->cap, s->count + 1, sizeof *s->ids);
    s->ids[s->count++] = copy;
    keymap_set(&s->seen, (struct str){copy, id.n}, 1);
    return true;
}

void hits_sessions_release(struct hits_sessions *s)
{
    keymap_release(&s->seen);
    for (size_t i = 0; i < s->count; i++)
        free(s->ids[i]);
    free(s->ids);
}
