#include "chathist/terminal/line_words.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"

/* The minimum width of a column. */
#define WIDTH_LEAST 20

void line_offer(struct line_words *w, struct str word)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 2, sizeof *w->at);
    w->at[w->count++] = mem_copy(word.p, word.n);
    w->at[w->count] = NULL;
}

void line_offer_if(struct line_words *w, struct str typed, struct str word)
{
    if (str_starts(word, typed))
        line_offer(w, word);
}

void line_words_release(struct line_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->at[i]);
    free(w->at);
    *w = (struct line_words){0};
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
