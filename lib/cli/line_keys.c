#include "cli/line_keys.h"

#include <string.h>

#include "base/utf8.h"

#define BEGINS STR("\033[200~")
#define ENDS STR("\033[201~")

static struct str held(const struct line_keys *k)
{
    return (struct str){k->held, k->held_len};
}

bool line_keys_waits(const struct line_keys *k)
{
    return !k->pasting && !k->no_mark && k->held_len > 0 && str_starts(BEGINS, held(k));
}

void line_keys_give_up(struct line_keys *k)
{
    k->no_mark = true;
}

void line_keys_drop(struct line_keys *k)
{
    k->held_len = k->matched = 0;
    k->pasting = k->ready = k->no_mark = false;
    buf_clear(&k->pasted);
}

/* A terminal sends CR, LF or both for a newline. */
static void settle_newlines(struct buf *text)
{
    size_t to = 0;
    bool cr = false;

    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];

        if (c != '\n' || !cr)
            text->data[to++] = c == '\r' ? '\n' : c;
        cr = c == '\r';
    }
    buf_truncate(text, to);
}

static void feed_paste(struct line_keys *k, char c)
{
    k->matched = c == ENDS.p[k->matched] ? k->matched + 1 : c == ENDS.p[0] ? 1 : 0;
    /* What is too much is left out. */
    buf_add_byte(&k->pasted, c);
    if (k->matched < ENDS.n)
        return;
    if (!k->pasted.overflow)
        buf_truncate(&k->pasted, k->pasted.len - ENDS.n);
    settle_newlines(&k->pasted);
    k->matched = 0;
    k->pasting = false;
    k->ready = true;
}

void line_keys_feed(struct line_keys *k, char c)
{
    if (k->pasting)
        feed_paste(k, c);
    else
        k->held[k->held_len++] = c;
}

enum line_key line_keys_next(struct line_keys *k, int32_t *cp)
{
    size_t n;

    if (k->ready) {
        k->ready = false;
        return LINE_KEY_PASTE;
    }
    if (line_keys_waits(k)) {
        if (k->held_len < BEGINS.n)
            return LINE_KEY_NONE;
        k->held_len = 0;
        k->pasting = true;
        buf_clear(&k->pasted);
        return LINE_KEY_NONE;
    }
    n = k->held_len > 0 ? utf8_decode(held(k), cp) : 0;
    if (n == 0)
        return LINE_KEY_NONE;
    k->held_len -= n;
    memmove(k->held, k->held + n, k->held_len);
    k->no_mark = false;
    return LINE_KEY_CHAR;
}
