/*
 * toolbox - the tools that the model is told of: those of -T, else those of the user configuration.
 */
#ifndef CHATHIST_CHAT_TOOLBOX_H
#define CHATHIST_CHAT_TOOLBOX_H

#include <stddef.h>

#include "chathist/cli/config.h"
#include "chathist/llm/tool.h"
#include "chathist/llm/tool_exec.h"

struct toolbox {
    const struct tool **at; /* for struct ask */
    size_t count, cap;
    /* private */
    struct tool_exec **execs;
    size_t execs_count, execs_cap;
    char **env;
};

/* Loads the executables that are named: a path when there is a slash in it, else a file of
 * `${XDG_CONFIG_HOME:-~/.config}/chathist/tools`. `named` NULL: those of the configuration. `key`
 * (NULL: none) is kept from them. Ends the program when one cannot be used. Nothing of the caller's
 * may catch signals. */
void toolbox_load(struct toolbox *b, const char *const *named, const struct config *c,
                  const char *key);
/* Adds tools from elsewhere, which stay their owner's, in the place of those that were added
 * before.
 * -1: there is one of that name (ERR_USAGE). */
int toolbox_add_all(struct toolbox *b, const struct tool *const *tools, size_t count,
                    struct err *e);
void toolbox_release(struct toolbox *b);

#endif
