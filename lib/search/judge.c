#include "search/judge.h"

#include <stddef.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/history/own_line.h"

/* So much of what a long content needed is kept for the next one. */
#define DECODED_KEPT ((size_t)1 << 20)

void judge_init(struct judge *j, const struct scan *scan, const struct filter *filter,
                const struct pattern *pattern)
{
    *j = (struct judge){.scan = scan, .filter = filter, .message = MESSAGE_INIT};
    buf_init(&j->decoded, BUF_LINE);
    pattern_copy(&j->pattern, pattern);
}

void judge_release(struct judge *j)
{
    message_release(&j->message);
    buf_release(&j->decoded);
    pattern_release(&j->pattern);
}

/* Does a character begin at `at`, in the raw body of a string, or is that inside an escape? */
static bool begins_character(const char *body, const char *at)
{
    for (ptrdiff_t k = 1; k <= 5 && at - body >= k; k++) {
        const char *escape = at - k, *p = escape;

        if (*escape != '\\' || (k > 1 && escape[1] != 'u'))
            continue;
        while (p > body && p[-1] == '\\')
            p--;
        if ((escape - p) % 2 == 0)
            return false;
    }
    return true;
}

/* Does a string, of which this is the beginning of what is behind its quote, reach up to `at`? */
static bool reaches(const char *body, const char *at)
{
    const char *p = body, *quote;

    while (p < at && (quote = memchr(p, '"', (size_t)(at - p)))) {
        const char *back = quote;

        while (back > body && back[-1] == '\\')
            back--;
        if ((quote - back) % 2 == 0)
            return false;
        p = quote + 1;
    }
    return true;
}

enum piece_verdict judge_read(void *ctx, struct str line, bool proven, struct str *content)
{
    struct judge *j = ctx;

    j->unparsed = STR_NONE;
    j->line = line;
    j->open = proven;
    if (!j->filter && !j->pattern.words &&
        (proven ? own_line_content(line, content) : own_line_check(line, content))) {
        j->unparsed = *content;
        return PIECE_ON;
    }
    if (!scan_may_give(j->scan, line) || str_trim(line).n == 0)
        return PIECE_MISS;
    if (!message_parse(&j->message, line))
        return PIECE_BAD;
    if (json_is_null(j->message.field[FIELD_CONTENT]) ||
        (j->filter && !filter_match(j->filter, &j->message)))
        return PIECE_MISS;
    *content = json_body(j->message.field[FIELD_CONTENT]);
    return PIECE_ON;
}

/* Asks the content itself. */
static enum piece_verdict ask_decoded(struct judge *j)
{
    struct str content = message_content(&j->message, &j->decoded);
    size_t place, len;
    bool found = pattern_find(&j->pattern, content, &place, &len, NULL) > 0;

    if (j->decoded.cap > DECODED_KEPT)
        buf_release(&j->decoded);
    return found ? PIECE_HIT : PIECE_MISS;
}

enum piece_verdict judge_ask(void *ctx, const char *at)
{
    struct judge *j = ctx;
    const char *body = j->unparsed.p;

    if (body && j->open && at && !reaches(body, at))
        return PIECE_MISS;
    if (!body)
        body = json_body(j->message.field[FIELD_CONTENT]).p;
    if (at && !j->pattern.words && begins_character(body, at))
        return PIECE_HIT;
    if (j->unparsed.p && !message_parse(&j->message, j->line))
        return PIECE_BAD;
    return ask_decoded(j);
}
