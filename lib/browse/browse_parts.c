#include "browse/browse_parts.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"

/* A line of a message that is no longer than this is cheap to decode. */
#define SHORT BROWSE_PART

static void add_part(struct browse_parts *p, size_t message, size_t at, size_t n)
{
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
    p->at[p->count++] = (struct browse_part){.message = message, .at = at, .n = n};
}

/* Where in a text that is longer than a part the first one ends: behind a line, a blank, a
 * character. */
static size_t part_end(struct str text)
{
    size_t n = BROWSE_PART;

    if (text.n <= BROWSE_PART + BROWSE_PART / 2)
        return text.n;
    for (size_t i = n; i > BROWSE_PART / 2; i--)
        if (text.p[i - 1] == '\n')
            return i;
    for (size_t i = n; i > BROWSE_PART / 2; i--)
        if (text.p[i - 1] == ' ')
            return i;
    for (size_t i = n; i > n - 4; i--)
        if (!utf8_inside(text, i))
            return i;
    return n;
}

static void drop(void *arg, unsigned styles, struct str text)
{
    (void)arg;
    (void)styles;
    (void)text;
}

static void cut(struct browse_parts *p, size_t message, struct str text)
{
    struct markdown state = {.fn = drop};
    size_t at = 0;

    while (text.n - at > BROWSE_PART) {
        size_t n = part_end((struct str){text.p + at, text.n - at});

        add_part(p, message, at, n);
        p->at[p->count - 1].state = state;
        markdown_feed(&state, (struct str){text.p + at, n});
        at += n;
    }
    if (at < text.n || at == 0) {
        add_part(p, message, at, text.n - at);
        p->at[p->count - 1].state = state;
    }
}

void browse_parts_make(struct browse_parts *p, const struct thread *t)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    *p = (struct browse_parts){.messages = t->count};
    p->first = mem_zalloc((t->count + 1) * sizeof *p->first);
    p->contents = mem_zalloc(t->count * sizeof *p->contents);
    p->texts = mem_zalloc(t->count * sizeof *p->texts);
    for (size_t i = 0; i < t->count; i++) {
        const struct message *m = &t->at[i];

        p->first[i] = p->count;
        buf_init(&p->texts[i], BUF_LINE);
        if (m->line.n <= SHORT) {
            add_part(p, i, 0, SIZE_MAX);
            continue;
        }
        p->contents[i] = message_content(m, &scratch);
        cut(p, i, p->contents[i]);
        /* What lies as it is in the line is not decoded, and not held twice. */
        if (scratch.len > 0) {
            p->texts[i] = scratch;
            buf_init(&scratch, BUF_LINE);
        }
    }
    p->first[t->count] = p->count;
    buf_release(&scratch);
}

void browse_parts_release(struct browse_parts *p)
{
    for (size_t i = 0; i < p->messages; i++)
        buf_release(&p->texts[i]);
    free(p->texts);
    free(p->contents);
    free(p->first);
    free(p->at);
    *p = (struct browse_parts){0};
}

size_t browse_parts_last(const struct browse_parts *p, size_t message)
{
    return p->first[message + 1] - 1;
}

size_t browse_parts_find(const struct browse_parts *p, size_t message, size_t at)
{
    size_t i = p->first[message];

    while (i < browse_parts_last(p, message) && p->at[i + 1].at <= at)
        i++;
    return i;
}

struct str browse_parts_text(const struct browse_parts *p, const struct thread *t, size_t message,
                             struct buf *scratch)
{
    return p->contents[message].p ? p->contents[message]
                                  : message_content(&t->at[message], scratch);
}
