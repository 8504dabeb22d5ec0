#include "hist/search.h"

#include <stdint.h>

#include "base/utf8.h"
#include "base/vis.h"

int search_open(struct search *s, const char *history_path, struct pattern *pattern,
                const struct filter *filter, enum scan_way way, struct err *e)
{
    *s = (struct search){.message = MESSAGE_INIT, .pattern = pattern, .filter = filter};
    if (scan_open(&s->scan, history_path, way, e) < 0)
        return -1;
    buf_init(&s->decoded, BUF_LINE);
    /* Of one session alone the lines are found fast. */
    if (filter && filter->sessions.count == 1)
        scan_only(&s->scan, filter->sessions.at[0]);
    return 0;
}

void search_close(struct search *s)
{
    scan_close(&s->scan);
    buf_release(&s->decoded);
    message_release(&s->message);
}

/* Looks at the message that was read: 1, or SEARCH_FAILED. */
static int match(struct search *s, struct hit *h, struct err *e)
{
    int found;

    h->message = &s->message;
    h->content = message_content(&s->message, &s->decoded);
    h->at = h->len = 0;
    h->found = false;
    h->asked = !s->filter || filter_match(s->filter, &s->message);
    if (!h->asked)
        return 1;
    found = pattern_find(s->pattern, h->content, &h->at, &h->len, e);
    h->found = found == (s->invert ? 0 : 1);
    return found < 0 ? SEARCH_FAILED : 1;
}

int search_each(struct search *s, struct hit *h, struct err *e)
{
    int result = scan_message(&s->scan, &s->message, &h->line, e);

    return result > 0 ? match(s, h, e) : result;
}

int search_next(struct search *s, struct hit *h, struct err *e)
{
    int result;

    do
        result = search_each(s, h, e);
    while (result == 1 && !h->found);
    return result;
}

int search_again(struct search *s, struct str line, struct hit *h, struct err *e)
{
    if (!message_parse(&s->message, line))
        return err_set(e, ERR_FAILURE, "a line changed meanwhile");
    /* One that could not be matched may be there as context. */
    match(s, h, NULL);
    return 0;
}

/* ---- snippets ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The offset of up to `count` code points before `at`. Continuation bytes that continue nothing are
 * passed together with what stands before them. */
static size_t step_back(struct str s, size_t at, size_t count)
{
    while (count-- && at) {
        at--;
        while (at && is_continuation(s.p[at]))
            at--;
    }
    return at;
}

static size_t step_on(struct str s, size_t at, size_t count)
{
    return at + utf8_first((struct str){s.p + at, s.n - at}, count).n;
}

#define ELLIPSIS "\xe2\x80\xa6"

void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len)
{
    /* A match that is wider than the snippet fills it. */
    struct str match = utf8_first((struct str){content.p + at, len}, width);
    size_t left = width - utf8_count(match);
    size_t begin = step_back(content, at, left / 2);
    size_t before = utf8_count((struct str){content.p + begin, at - begin});
    size_t end = step_on(content, at + match.n, left - before);

    /* What is not used behind the match goes before it. */
    size_t behind = utf8_count((struct str){content.p + at + match.n, end - at - match.n});

    begin = step_back(content, begin, left - before - behind);

    struct buf line = BUF_INIT(SIZE_MAX);
    size_t from, to;

    if (begin > 0)
        buf_add_c(out, ELLIPSIS);
    from = out->len;

    /* The line is made three times, each with one more part, to see where in it the match is. White
     * space that ends a part is one blank when something follows. */
    vis_add_line(&line, (struct str){content.p + begin, at - begin}, safe);
    from += line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, at + match.n - begin}, safe);
    to = out->len + line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, end - begin}, safe);
    buf_add_str(out, buf_str(&line));
    if (from < to && out->data[from] == ' ')
        from++;
    if (end < content.n)
        buf_add_c(out, ELLIPSIS);
    if (mark)
        *mark = from;
    if (mark_len)
        *mark_len = to - from;
    buf_release(&line);
}
