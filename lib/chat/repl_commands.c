#include "chat/repl_commands.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "chathist/cli/options.h"

/* A longer word is similar to none of the names. */
#define NAME_MAX_LEN 16

static const struct repl_command commands[] = {
    {REPL_NEW, "new", "[SYSTEM]", REPL_TAKES_TEXT, "start a new session"},
    {REPL_LOAD, "load", "SESSION|N", REPL_TAKES_SESSION,
     "continue a past session, or the Nth of the last list"},
    {REPL_SEARCH, "search", "TEXT", REPL_TAKES_TEXT, "search all messages, the newest first"},
    {REPL_SESSIONS, "sessions", "[N|all]", REPL_TAKES_NOTHING,
     "list the sessions, the last used first"},
    {REPL_REGENERATE, "regenerate", "", REPL_TAKES_NOTHING, "answer the last prompt again"},
    {REPL_EDIT, "edit", "[TEXT]", REPL_TAKES_TEXT,
     "replace the last prompt, without TEXT in the editor"},
    {REPL_MODEL, "model", "[NAME]", REPL_TAKES_MODEL, "ask another model, or list them"},
    {REPL_SYSTEM, "system", "[TEXT]", REPL_TAKES_TEXT,
     "set the system prompt (\"\": none), or show it"},
    {REPL_TOOLS, "tools", "", REPL_TAKES_NOTHING, "list the tools that the model may call"},
    {REPL_FILE, "file", "[FILE|-]", REPL_TAKES_FILE,
     "attach a file to the next prompt (-: none), or list them"},
    {REPL_SAVE, "save", "[-a] FILE", REPL_TAKES_FILE,
     "write the conversation, or (-a) the last answer, to a file"},
    {REPL_HELP, "help", "[COMMAND]", REPL_TAKES_COMMAND, "list the commands"},
    {REPL_QUIT, "quit", "", REPL_TAKES_NOTHING, "leave, as Ctrl-D does"},
    {REPL_QUIT, "exit", "", REPL_TAKES_NOTHING, "leave, as Ctrl-D does"},
    {REPL_QUIT, NULL, "", REPL_TAKES_NOTHING, NULL},
};

const struct repl_command *repl_commands(void)
{
    return commands;
}

const struct repl_command *repl_command_find(struct str name)
{
    for (const struct repl_command *c = commands; c->name; c++)
        if (str_eq_c(name, c->name))
            return c;
    return NULL;
}

const struct repl_command *repl_command_nearest(struct str name)
{
    char typed[NAME_MAX_LEN + 1];
    struct nearest meant = {.typed = typed};

    if (name.n == 0 || name.n > NAME_MAX_LEN)
        return NULL;
    memcpy(typed, name.p, name.n);
    typed[name.n] = '\0';
    for (const struct repl_command *c = commands; c->name; c++) {
        if (str_starts(str_of(c->name), name))
            return c;
        nearest_offer(&meant, c->name);
    }
    return meant.name ? repl_command_find(str_of(meant.name)) : NULL;
}

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '/';
}

/* Finds the command for a word that leaves other interactive programs. A blank before the word
 * makes it a prompt. */
static const struct repl_command *find_bare(struct str text)
{
    static const struct {
        const char *word, *name;
    } words[] = {
        {"exit", "quit"}, {"quit", "quit"}, {":q", "quit"}, {"help", "help"}, {"?", "help"},
    };

    while (text.n > 0 && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq_c(text, words[i].word))
            return repl_command_find(str_of(words[i].name));
    return NULL;
}

enum repl_input repl_read_input(struct str text, const struct repl_command **command,
                                struct str *rest)
{
    size_t n = 1;

    *rest = text;
    *command = find_bare(text);
    if (*command) {
        *rest = STR("");
        return REPL_COMMAND;
    }
    if (text.n == 0 || text.p[0] != '/')
        return REPL_PROMPT;
    if (text.n > 1 && text.p[1] == '/') {
        *rest = (struct str){text.p + 1, text.n - 1};
        return REPL_PROMPT;
    }
    while (n < text.n && !ends_word(text.p[n]))
        n++;
    if (n == 1 || (n < text.n && text.p[n] == '/'))
        return REPL_PROMPT;
    *rest = (struct str){text.p + 1, n - 1};
    *command = repl_command_find(*rest);
    if (!*command)
        return REPL_UNKNOWN;
    *rest = str_trim((struct str){text.p + n, text.n - n});
    return REPL_COMMAND;
}
