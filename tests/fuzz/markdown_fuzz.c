/*
 * markdown: every byte comes out, in its order, with the same styles however the text was cut; a
 * newline has none. The first byte says where to cut.
 */
#include <stdint.h>

#include "chathist/terminal/markdown.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct shown {
    struct buf text, styles;
};

static void show(void *arg, unsigned styles, struct str text)
{
    struct shown *s = arg;

    buf_add_str(&s->text, text);
    for (size_t i = 0; i < text.n; i++) {
        demand(styles == 0 || text.p[i] != '\n');
        buf_add_byte(&s->styles, (char)styles);
    }
}

static void feed(struct str text, size_t first, size_t step, struct shown *s)
{
    struct markdown m = {.fn = show, .arg = s};

    for (size_t n = first; text.n; n = step) {
        if (n > text.n)
            n = text.n;
        markdown_feed(&m, (struct str){text.p, n});
        text.p += n;
        text.n -= n;
    }
    markdown_end(&m);
}

static void release(struct shown *s)
{
    buf_release(&s->text);
    buf_release(&s->styles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shown whole = {BUF_INIT(SIZE_MAX), BUF_INIT(SIZE_MAX)};
    struct shown parts = {BUF_INIT(SIZE_MAX), BUF_INIT(SIZE_MAX)};

    if (!size)
        return 0;

    struct str text = {(const char *)data + 1, size - 1};

    feed(text, size, size, &whole);
    demand(str_eq(text, buf_str(&whole.text)));
    feed(text, data[0] + 1, 1 + data[0] % 4, &parts);
    demand(str_eq(text, buf_str(&parts.text)));
    demand(str_eq(buf_str(&whole.styles), buf_str(&parts.styles)));
    release(&whole);
    release(&parts);
    return 0;
}
