/*
 * template - text with variables in it, and the settings that may stand at its head (chat(1)).
 *
 *     ---
 *     model = ollama:llama3.2
 *     ---
 *     Translate into {{language:English}}:
 *
 *     {{input}}
 *
 * A variable is `{{name}}`, or `{{name:default}}`; blanks round name and default do not count. A
 * name begins with a letter or `_` and goes on with these, digits and `-`. `{{{{` stands for `{{`;
 * any other `{{` is an error, `}}` is nothing special. Values and defaults are not looked through
 * again, so nothing in them is a variable.
 *
 * No files, no output: front/preset has those.
 */
#ifndef CHATHIST_CHAT_TEMPLATE_H
#define CHATHIST_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* A walk over the head. Zero-initialise but for `rest`, the whole text. */
struct template_head {
    struct str rest; /* what was not read yet; at the end the body */
    size_t line;     /* number of the last line read, 0 before the first */
    bool inside;
    struct str key, value; /* of that line */
};
/* The next setting: 1; 0 when the head is over, or there is none; -1 (ERR_USAGE): a line that is no
 * `key = value`, a head without an end. Blank lines and lines that begin with `#` are passed
 * over. */
int template_head_next(struct template_head *h, struct err *e);

struct template_var {
    struct str name, value; /* value.p NULL: it has none, and a default counts */
    bool used;              /* set when the text has it */
    bool missing;           /* set when the text wants its value, and there is none */
};

/* Is this a name? */
bool template_name_valid(struct str name);
/* Adds the text with the variables' values. Of several variables of one name the last counts.
 * `line` is the number of the text's first line, for messages. -1 (ERR_USAGE): a variable without a
 * value, or what is no variable. */
int template_expand(struct str text, size_t line, struct template_var *vars, size_t count,
                    struct buf *out, struct err *e);

#endif
