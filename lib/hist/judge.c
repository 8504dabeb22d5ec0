#include "hist/judge.h"

#include <stddef.h>

#include "base/json.h"

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

enum piece_verdict judge_read(void *ctx, struct str line, struct str *content)
{
    struct judge *j = ctx;

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

enum piece_verdict judge_ask(void *ctx, const char *at)
{
    struct judge *j = ctx;
    struct str body = json_body(j->message.field[FIELD_CONTENT]);
    enum piece_verdict verdict;
    size_t place, len;

    if (at && !j->pattern.words && begins_character(body.p, at))
        return PIECE_HIT;

    struct str content = message_content(&j->message, &j->decoded);

    verdict = pattern_find(&j->pattern, content, &place, &len, NULL) > 0 ? PIECE_HIT : PIECE_MISS;
    if (j->decoded.cap > DECODED_KEPT)
        buf_release(&j->decoded);
    return verdict;
}
