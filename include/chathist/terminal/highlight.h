/*
 * highlight - finds comments, strings, numbers and keywords in code, by a table of languages
 * (lib/terminal/languages.def), and the lines of a diff that were added and removed.
 *
 * It is a push parser whose output does not depend on how the text is split. It holds back a word,
 * or the beginning of a comment or a string, until it is complete.
 */
#ifndef CHATHIST_TERMINAL_HIGHLIGHT_H
#define CHATHIST_TERMINAL_HIGHLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"

enum highlight_kind {
    HIGHLIGHT_NONE,
    HIGHLIGHT_COMMENT,
    HIGHLIGHT_STRING,
    HIGHLIGHT_NUMBER,
    HIGHLIGHT_KEYWORD,
    HIGHLIGHT_ADDED,
    HIGHLIGHT_REMOVED,
};

/* Gets each piece of the code with its kind. */
typedef void highlight_fn(void *arg, enum highlight_kind kind, struct str text);

struct language;

/* Returns the language of a code block by the first word after its fence, or NULL. */
const struct language *language_find(struct str name);

/* At least as long as the longest keyword. */
#define HIGHLIGHT_HELD 32

/* The state within code; zero at its start, with the language set. */
struct highlight {
    const struct language *language; /* NULL: the code is passed on unchanged */
    /* private */
    char held[HIGHLIGHT_HELD];
    size_t n;
    enum { LEX_CODE, LEX_WORD, LEX_NUMBER, LEX_LINE, LEX_COMMENT, LEX_STRING } state;
    enum highlight_kind line; /* the kind of the rest of the line (LEX_LINE) */
    struct str end;           /* ends the comment or the string */
    bool escaped, begun;      /* begun: the line has a byte */
    char before;              /* the last byte of the line */
};

/* The text has no newline. */
void highlight_feed(struct highlight *h, struct str text, highlight_fn *fn, void *arg);
/* The line has ended: passes on the part that was held back. Comments and long strings go on. */
void highlight_end_line(struct highlight *h, highlight_fn *fn, void *arg);

#endif
