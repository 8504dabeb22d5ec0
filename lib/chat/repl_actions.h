/*
 * repl_actions - what the commands of the interactive chat do.
 */
#ifndef CHATHIST_CHAT_REPL_ACTIONS_H
#define CHATHIST_CHAT_REPL_ACTIONS_H

#include <stdbool.h>

#include "chat/line.h"
#include "chathist/cli/term.h"
#include "chat/dialogue.h"
#include "chat/repl_commands.h"
#include "chat/repl_complete.h"

/* An interactive conversation. */
struct repl {
    struct dialogue dialogue;
    struct repl_complete complete;
    struct line *line;
    struct out *out;
    char **listed; /* session ids of the last numbered list */
    size_t listed_count, listed_cap;
    int signal; /* that is to end the program, 0: none */
    bool leave;
};

/* Carries a command out. What goes wrong is told. */
void repl_act(struct repl *r, const struct repl_command *command, struct str rest);
/* One turn, and what follows it on the terminal. */
void repl_ask(struct repl *r, enum turn_kind kind, struct str text);
/* A line about the conversation itself, unless --quiet. */
void repl_say(struct repl *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void repl_forget_list(struct repl *r);

#endif
