#include "search/query_expression.h"

#include "chathist/base/utf8.h"

/* The characters of Markdown that may stand beside white space, white space, and both. */
#define MARKUP "*_`~"
#define SPACE "\\t-\\r "
#define GAP "[" MARKUP "]*[" SPACE "][" MARKUP SPACE "]*"
/* A letter without an accent is not found in one with a combining accent (U+0300 to U+036F),
 * because the composed form of that does not hold the letter either. */
#define END "(?![\\x{300}-\\x{36f}])"

static size_t decode(struct str text, size_t at, int32_t *cp)
{
    return utf8_decode(str_skip(text, at), cp);
}

/* Returns the length of a character with the marks that follow it. */
static size_t cluster_at(struct str text, size_t at)
{
    int32_t cp;
    size_t end = at + decode(text, at, &cp);

    while (end < text.n) {
        size_t n = decode(text, end, &cp);

        if (!utf8_is_mark(cp))
            break;
        end += n;
    }
    return end - at;
}

/* Adds characters that stand for themselves. */
static void add_literal(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (str_find(STR("\\^$.*+?()[]{}|/"), (struct str){text.p + i, 1}))
            buf_add_byte(out, '\\');
        buf_add_byte(out, text.p[i]);
    }
}

/* Adds a character, composed, as itself or decomposed. */
static void add_cluster(struct buf *out, struct str cluster)
{
    struct buf decomposed = BUF_INIT(SIZE_MAX);

    utf8_add_decomposed(&decomposed, cluster);
    if (str_eq(cluster, buf_str(&decomposed))) {
        add_literal(out, cluster);
    } else {
        buf_add_c(out, "(?:");
        add_literal(out, cluster);
        buf_add_byte(out, '|');
        add_literal(out, buf_str(&decomposed));
        buf_add_byte(out, ')');
    }
    buf_release(&decomposed);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void query_expression_add(struct buf *out, struct str text)
{
    struct buf composed = BUF_INIT(SIZE_MAX);

    utf8_add_composed(&composed, text);
    text = buf_str(&composed);
    for (size_t i = 0, n; i < text.n; i += n) {
        n = cluster_at(text, i);
        if (is_space(text.p[i])) {
            for (n = 1; i + n < text.n && is_space(text.p[i + n]); n++)
                ;
            buf_add_c(out, GAP);
        } else {
            add_cluster(out, (struct str){text.p + i, n});
        }
    }
    buf_add_c(out, END);
    buf_release(&composed);
}
