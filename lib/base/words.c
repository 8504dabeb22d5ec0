#include "chathist/base/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static void add_word(struct words *w, struct buf *word)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 2, sizeof *w->at);
    w->at[w->count++] = buf_detach(word);
    w->at[w->count] = NULL;
}

/* Behind a backslash: takes the next character in. false: there is none. */
static bool take_escaped(struct str *rest, bool quoted, struct buf *word)
{
    char c;

    if (rest->n == 0)
        return false;
    c = rest->p[0];
    if (quoted && !strchr("\"\\$`\n", c))
        buf_add_byte(word, '\\');
    if (c != '\n')
        buf_add_byte(word, c);
    *rest = (struct str){rest->p + 1, rest->n - 1};
    return true;
}

/* Behind an opening quote: takes in what comes before the closing one. false: there is none. */
static bool take_quoted(struct str *rest, char quote, struct buf *word)
{
    while (rest->n > 0) {
        char c = rest->p[0];

        *rest = (struct str){rest->p + 1, rest->n - 1};
        if (c == quote)
            return true;
        if (c != '\\' || quote == '\'')
            buf_add_byte(word, c);
        else if (!take_escaped(rest, true, word))
            return false;
    }
    return false;
}

/* Takes in one word; the rest begins with no blank. */
static int take_word(struct words *w, struct str *rest, struct err *e)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    int result = 0;

    while (result == 0 && rest->n > 0 && !is_blank(rest->p[0])) {
        char c = rest->p[0];

        *rest = (struct str){rest->p + 1, rest->n - 1};
        if (c == '\\') {
            if (!take_escaped(rest, false, &word))
                result = err_set(e, ERR_USAGE, "a backslash ends it");
        } else if (c == '\'' || c == '"') {
            if (!take_quoted(rest, c, &word))
                result = err_set(e, ERR_USAGE, "a quote is not closed");
        } else {
            buf_add_byte(&word, c);
        }
    }
    if (result == 0 && word.overflow)
        result = err_set(e, ERR_USAGE, "a word is too long");
    if (result == 0)
        add_word(w, &word);
    buf_release(&word);
    return result;
}

static void skip_blanks(struct str *rest)
{
    while (rest->n > 0) {
        if (is_blank(rest->p[0]))
            *rest = (struct str){rest->p + 1, rest->n - 1};
        else if (str_starts(*rest, STR("\\\n")))
            *rest = (struct str){rest->p + 2, rest->n - 2};
        else
            return;
    }
}

int words_split(struct words *w, struct str text, struct err *e)
{
    *w = (struct words){0};
    if (text.n > 0 && memchr(text.p, '\0', text.n))
        return err_set(e, ERR_USAGE, "it holds a NUL byte");
    skip_blanks(&text);
    while (text.n > 0) {
        if (take_word(w, &text, e) < 0)
            return -1;
        skip_blanks(&text);
    }
    return w->count > 0 ? 0 : err_set(e, ERR_USAGE, "it is empty");
}

void words_release(struct words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->at[i]);
    free(w->at);
    *w = (struct words){0};
}
