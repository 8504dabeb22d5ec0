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
#ifndef CHATHIST_CHAT_PRESET_H
#define CHATHIST_CHAT_PRESET_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/cli/term.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/template.h"

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
