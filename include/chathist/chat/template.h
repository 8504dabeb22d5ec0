/*
 * template - templates and personas: files with a prompt or a system prompt, and the settings that
 * go with it (chat(1)).
 *
 *     ---
 *     model = ollama:llama3.2
 *     ---
 *     Translate into {{language:English}}:
 *
 *     {{input}}
 *
 * A variable is `{{name}}`, or `{{name:default}}`; blanks around name and default do not count. A
 * name begins with a letter or `_`, followed by letters, digits, `_` and `-`. `{{{{` stands for
 * `{{`; any other `{{` is an error, and `}}` alone is text. Values and defaults are not expanded
 * again.
 *
 * A NAME is a file in `chathist/templates` or `chathist/personas` beside the user configuration; a
 * name with a slash is a path. Repositories have no templates.
 */
#ifndef CHATHIST_CHAT_TEMPLATE_H
#define CHATHIST_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/chat/chat_args.h"
#include "chathist/cli/output.h"

struct template_var {
    struct str name, value; /* value.p NULL: no value, the default applies */
    bool used;              /* set if the text contains the variable */
    bool missing;           /* set if the text needs the value and it has none */
};

/* Returns whether this is the name of a variable. */
bool template_name_valid(struct str name);
/* Adds the text with its variables expanded. Of several variables of one name the last one counts.
 * `line` is the number of the text's first line, for messages. Returns 0, or -1 with ERR_USAGE for
 * a variable without a value and for a bad variable. */
int template_expand(struct str text, size_t line, struct template_var *vars, size_t count,
                    struct buf *out, struct err *e);

/* ---- files ---- */

/* The maximum size of a file, in bytes. */
#define PRESET_MAX ((size_t)1 << 24)

/* One file. */
struct preset {
    const char *kind; /* "template" or "persona" */
    const char *name; /* borrowed */
    struct buf text;
    struct str body;                    /* the body of the text */
    size_t line;                        /* number of its first line */
    const char *setting[SETTING_COUNT]; /* those that a file can set; of the text; NULL: not set */
    const char *system;                 /* likewise */
    struct ask_option *options;
    size_t options_count, options_cap;
};

#define PRESET_INIT(word)                                                                          \
    {                                                                                              \
        .kind = (word), .text = BUF_INIT(PRESET_MAX)                                               \
    }

/* Reads the file of a template or persona; `kind` is set. `name` is borrowed. Returns 0, or -1 with
 * *e set (ERR_USAGE). The caller calls preset_release in either case. */
int preset_load(struct preset *p, const char *name, struct err *e);
/* Reads the settings at the head of p->text, and sets the body. Returns 0, or -1 with *e set for a
 * line that is not `key = value`, an unknown key, and a head without an end. Blank lines and lines
 * that begin with `#` are skipped. */
int preset_parse(struct preset *p, struct err *e);
/* Adds the body with its variables expanded (template_expand), as valid UTF-8. Returns 0, or -1
 * with *e set (ERR_USAGE). */
int preset_expand(const struct preset *p, struct template_var *vars, size_t count, struct buf *out,
                  struct err *e);
void preset_release(struct preset *p);

struct presets {
    struct preset template, persona;
    struct template_var *vars; /* the first one is the prompt, `input` */
    size_t vars_count;
    struct buf system; /* the persona's text */
};

#define PRESETS_INIT                                                                               \
    {                                                                                              \
        .template = PRESET_INIT("template"), .persona = PRESET_INIT("persona"),                    \
        .system = BUF_INIT(PRESET_MAX)                                                             \
    }

/* Reads the files of -t and --persona and adds their settings to the arguments, after those that
 * were given; they borrow from p. An error ends the program. */
void presets_load(struct presets *p, struct chat_args *a);
/* Expands the template, if there is one, with the prompt. A --var that neither file contains is an
 * error, which ends the program, and so is a blank prompt, unless something is attached. */
void presets_expand(struct presets *p, const struct chat_args *a, struct buf *prompt,
                    bool attached);
void presets_release(struct presets *p);

/* Stores model, provider, effort, max_tokens, options and system prompt of the arguments, and the
 * words as the text (`{{input}}` without words), as the template a->save. Returns 0, or -1 with *e
 * set: a template of that name exists, a value has several lines, or the file cannot be written. */
int preset_save(const struct chat_args *a, struct err *e);

/* Calls fn with each name in `templates` or `personas`, sorted. Returns 0, or -1 with *e set. */
typedef void preset_fn(void *arg, const char *kind, const char *name);
int presets_each(const char *what, preset_fn *fn, void *arg, struct err *e);
/* Prints the names of `templates` or `personas` with the beginning of each text, sorted and
 * separated by a tab. Returns 0, or -1 with *e set if their directory cannot be read or is not
 * trusted; a text that cannot be read is a warning. */
int presets_list(const char *what, struct out *out, struct err *e);

#endif
