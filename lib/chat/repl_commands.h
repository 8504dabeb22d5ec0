/*
 * repl_commands - the commands of the interactive chat (chat(1)): one table for parsing, /help and
 * completion.
 */
#ifndef CHATHIST_CHAT_REPL_COMMANDS_H
#define CHATHIST_CHAT_REPL_COMMANDS_H

#include "chathist/base/buf.h"

/* The argument of a command; completion offers values of this kind. */
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
    const char *args; /* as help shows them; "" for no argument */
    enum repl_takes takes;
    const char *help;
};

const struct repl_command *repl_commands(void);
/* Returns the command with this name, or NULL. */
const struct repl_command *repl_command_find(struct str name);
/* Returns the command that was probably meant, or NULL. */
const struct repl_command *repl_command_nearest(struct str name);

enum repl_input {
    REPL_PROMPT,  /* *rest is the prompt */
    REPL_COMMAND, /* *rest is the argument of *command, without blanks around it */
    REPL_UNKNOWN, /* *rest is the name, without its slash */
};

/* Interprets a typed text: `/word ...` is a command, `//...` the prompt `/...`. A word with another
 * slash in it, such as a path, and a slash alone begin a prompt. `exit`, `quit`, `:q`, `help` and
 * `?` alone are commands, unless a blank precedes them. */
enum repl_input repl_read_input(struct str text, const struct repl_command **command,
                                struct str *rest);

#endif
