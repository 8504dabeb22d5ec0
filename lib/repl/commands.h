/*
 * commands - the commands of the interactive chat, by name.
 */
#ifndef REPL_COMMANDS_H
#define REPL_COMMANDS_H

#include "repl/conversation.h"

struct repl_command {
    const char *name; /* the name without its slash; NULL ends the table */
    const char *args; /* the arguments as help shows them; "": none */
    const char *help;
    /* `rest` is the argument without blanks around it. NULL: the row is the title of the group of
     * commands that follows. */
    void (*run)(struct repl *r, struct str rest);
    /* Offers words to type after the command. NULL: the command has no words. */
    void (*offer)(struct repl *r, struct line_words *words, struct str typed);
};

/* Returns the command of this name, or NULL. */
const struct repl_command *repl_find_command(struct str name);
/* Warns that a command is unknown, and says which one was probably meant. */
void repl_report_unknown(struct str name);
/* Offers commands, and what they take, for the text before the cursor. `arg` is a struct repl. */
void repl_complete(void *arg, struct str before, struct line_words *words);

#endif
