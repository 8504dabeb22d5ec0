/*
 * repl_commands - the commands of the interactive chat (chat(1)): one table that feeds reading what
 * was typed, /help and completion.
 */
#ifndef CHATHIST_CHAT_REPL_COMMANDS_H
#define CHATHIST_CHAT_REPL_COMMANDS_H

#include "chathist/base/buf.h"

/* What stands behind a command's name: tells the completion what to offer. */
enum repl_takes {
    REPL_TAKES_NOTHING,
    REPL_TAKES_TEXT,
    REPL_TAKES_SESSION,
    REPL_TAKES_MODEL,
    REPL_TAKES_FILE,
    REPL_TAKES_COMMAND,
};

enum repl_does {
    REPL_NEW,
    REPL_LOAD,
    REPL_SEARCH,
    REPL_SESSIONS,
    REPL_REGENERATE,
    REPL_EDIT,
    REPL_MODEL,
    REPL_SYSTEM,
    REPL_TOOLS,
    REPL_FILE,
    REPL_SAVE,
    REPL_HELP,
    REPL_QUIT,
};

struct repl_command {
    enum repl_does does;
    const char *name; /* without its slash; NULL ends the table */
    const char *args; /* as help shows them, "" for none */
    enum repl_takes takes;
    const char *help;
};

const struct repl_command *repl_commands(void);
/* NULL: there is none of that name. */
const struct repl_command *repl_command_find(struct str name);
/* The one that was probably meant; NULL when none is like it. */
const struct repl_command *repl_command_nearest(struct str name);

enum repl_input {
    REPL_PROMPT,  /* *rest is to be said */
    REPL_COMMAND, /* *command with *rest behind it, without blanks round it */
    REPL_UNKNOWN, /* *rest is the name, without its slash */
};

/* What was typed: `/word …` is a command, `//…` the prompt `/…`. A word with another slash in it,
 * such as a path, and a slash alone begin a prompt, too. `exit`, `quit`, `:q`, `help` and `?` alone
 * are commands, too, unless a blank is before them. */
enum repl_input repl_read_input(struct str text, const struct repl_command **command,
                                struct str *rest);

#endif
