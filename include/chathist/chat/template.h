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
#include "chathist/chat/chat_args.h"
#include "chathist/cli/output.h"

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

/* ---- preset ---- */

/*
 * preset - templates and roles: files in which the user keeps a prompt, or a system prompt, and the
 * settings that go with it (chat(1)).
 *
 * A NAME is the file of that name in `chathist/templates` or `chathist/roles` beside the user
 * configuration; with a slash in it, it is a path. Nothing else is looked at: a repository has
 * none.
 *
 * All of it ends the program when something is wrong.
 */
/* The most that a file may hold, in bytes. */
#define PRESET_MAX ((size_t)1 << 24)

struct preset_option {
    char *key;
    struct str value;
};

/* One file. */
struct preset {
    const char *kind; /* "template" or "role" */
    const char *name; /* borrowed */
    struct buf text;
    struct str body; /* of the text */
    size_t line;     /* number of its first line */
    char *model, *provider, *system;
    struct preset_option *options;
    size_t options_count, options_cap;
};

struct presets {
    struct preset template, role;
    struct template_var *vars; /* the first is the prompt, `input` */
    size_t vars_count;
    struct buf system; /* the role's text */
};

#define PRESETS_INIT                                                                               \
    {                                                                                              \
        .template = {.kind = "template", .text = BUF_INIT(PRESET_MAX)},                            \
        .role = {.kind = "role", .text = BUF_INIT(PRESET_MAX)}, .system = BUF_INIT(PRESET_MAX)     \
    }

/* Reads what -t and --role name and puts its settings into the arguments, behind what was given
 * there; they borrow from p. */
void presets_load(struct presets *p, struct chat_args *a);
/* Puts the prompt into the template, if there is one. A variable that neither of the files has is
 * an error. */
void presets_expand(struct presets *p, const struct chat_args *a, struct buf *prompt);
void presets_release(struct presets *p);

/* chat --templates, --roles: `NAME TAB beginning`, sorted. */
void presets_list(const char *what, struct out *out);

#endif
