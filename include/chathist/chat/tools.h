/*
 * tools - the tools of a conversation: which executables the user offers to the model, the
 * environment without keys that they get, and the question whether a call may run.
 */
#ifndef CHATHIST_CHAT_TOOLS_H
#define CHATHIST_CHAT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/chat/tool_exec.h"
#include "chathist/cli/config.h"

/* ---- which tools ---- */

struct toolbox {
    const struct tool **at; /* the array of struct ask; the executables come first */
    size_t count, cap;
    struct tool_exec **execs;
    size_t execs_count, execs_cap;
    char **env;
};

/* Loads the executables that `named` lists (it ends with NULL), or if `named` is NULL those of the
 * user configuration. A name with a slash is a path; any other name is a file in
 * `${XDG_CONFIG_HOME:-~/.config}/chathist/tools`. The secrets are kept out of their
 * environment (clean_env). Ends the program if a tool cannot be used. The caller must not catch
 * signals. */
void toolbox_load(struct toolbox *b, const char *const *named, const struct config *c,
                  const char *const *secrets);
/* Adds a tool of another kind after the executables. It still belongs to its owner. */
void toolbox_put(struct toolbox *b, const struct tool *t);
void toolbox_release(struct toolbox *b);

/* ---- their environment ---- */

/* Returns the environment of this process without the variables that hold keys or say how to get
 * one, and without those whose value contains one of the secrets (server_secrets; NULL: none). A
 * secret of less than 8 characters is not searched, because it would be part of many values. The
 * caller frees the array; the strings still belong to the environment. */
char **clean_env(const char *const *secrets);
/* Removes the variables whose value contains other secrets from such an array. */
void clean_env_more(char **env, const char *const *secrets);

/* ---- the user's consent ---- */

struct consent {
    bool all;            /* every call may run */
    const char *allowed; /* names of tools that may run, separated by blanks; a `*` at the end of a
                          * name stands for any text; NULL: none. Borrowed */
    int cancel_fd;       /* -1: none */
    /* Called with true before the terminal is read, and with false afterwards; may be NULL. */
    void (*lend)(void *arg, bool lent);
    void *lend_arg;
    struct buf always; /* names that were answered with "always", in the form of `allowed`; the
                        * caller clears and releases it */
};

#define CONSENT_INIT                                                                               \
    {                                                                                              \
        .cancel_fd = -1, .always = BUF_INIT(BUF_SMALL)                                             \
    }

enum consent_answer {
    CONSENT_GIVEN, /* the call may run without a question */
    CONSENT_YES,
    CONSENT_NO,
    CONSENT_NOBODY,   /* the process has no terminal to ask on */
    CONSENT_CANCELLED /* cancel_fd became readable */
};

/* Returns whether this call may run. Asks on the controlling terminal, whatever standard input and
 * output are. Invisible characters of the call are shown, and text typed before the question is
 * dropped. `args` is valid JSON. */
enum consent_answer consent_ask(struct consent *c, struct str name, struct str args);

#endif
