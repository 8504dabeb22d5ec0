/*
 * pattern: a text, a newline, patterns on a line each, a byte of options before it all. What is
 * found lies in the text, at the starts and ends of code points, in order, without overlap; a fixed
 * string is found where it was put; with or without regard to case, whatever one finds the other
 * one finds.
 */
#include <stdint.h>

#include "chathist/base/utf8.h"
#include "chathist/search/pattern.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_boundary(struct str text, size_t at)
{
    return at <= text.n && (at == text.n || ((unsigned char)text.p[at] & 0xc0) != 0x80);
}

/* All matches of the patterns in a text. */
static size_t walk(struct pattern *p, struct str text)
{
    size_t at, len, end = 0, count = 0;
    int more;

    pattern_start(p, text);
    while ((more = pattern_next(p, &at, &len, NULL)) > 0) {
        demand(len > 0 && at >= end && is_boundary(text, at) && is_boundary(text, at + len));
        end = at + len;
        count++;
    }
    /* What was found before a limit was reached is there all the same. */
    int found = pattern_find(p, text, &at, &len, NULL);

    demand(found <= 0 || (is_boundary(text, at) && is_boundary(text, at + len)));
    demand(count == 0 || found != 0);
    return count;
}

static void make(struct pattern *p, unsigned options, struct str patterns)
{
    pattern_init(p);
    p->case_sensitive = options & 1;
    p->words = options & 2;
    p->regex = options & 4;
    while (patterns.p)
        (void)pattern_add(p, str_cut(&patterns, '\n'), NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf repaired = BUF_INIT(SIZE_MAX);
    struct pattern p, other;

    /* A regular expression on a long text may take its time; that is no fault. */
    if (size == 0 || size > 300)
        return 0;

    struct str patterns = {(const char *)data + 1, size - 1};

    utf8_add_repaired(&repaired, str_cut(&patterns, '\n'));
    make(&p, data[0], patterns);

    size_t count = walk(&p, buf_str(&repaired));

    if (!(data[0] & 4)) {
        make(&other, data[0] & ~1U, patterns);
        demand(count == 0 || walk(&other, buf_str(&repaired)) > 0);
        pattern_release(&other);
    }
    pattern_release(&p);

    /* A text is found in itself. */
    size_t at, len;

    make(&p, data[0] & 3, STR_NONE);
    demand(pattern_add(&p, buf_str(&repaired), NULL) == 0);
    demand(pattern_find(&p, buf_str(&repaired), &at, &len, NULL) == 1 && at == 0 &&
           len == repaired.len);
    pattern_release(&p);
    buf_release(&repaired);
    return 0;
}
