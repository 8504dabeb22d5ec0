#include "chat/repl_commands.h"

#include <stdbool.h>
#include <stddef.h>

/* A longer word is like none of the names. */
#define NAME_MAX_LEN 16
/* So many letters may be wrong. */
#define WRONG_MAX 2

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

/* How many letters have to be put in, taken out, changed or swapped with their neighbour. */
static size_t distance(struct str a, struct str b)
{
    size_t d[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];

    for (size_t i = 0; i <= a.n; i++) {
        for (size_t j = 0; j <= b.n; j++) {
            size_t least;

            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            least = d[i - 1][j - 1] + (a.p[i - 1] != b.p[j - 1]);
            if (d[i - 1][j] + 1 < least)
                least = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < least)
                least = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] &&
                d[i - 2][j - 2] + 1 < least)
                least = d[i - 2][j - 2] + 1;
            d[i][j] = least;
        }
    }
    return d[a.n][b.n];
}

const struct repl_command *repl_command_nearest(struct str name)
{
    const struct repl_command *nearest = NULL;
    size_t least = WRONG_MAX + 1;

    if (name.n == 0 || name.n > NAME_MAX_LEN)
        return NULL;
    for (const struct repl_command *c = commands; c->name; c++)
        if (str_starts(str_of(c->name), name))
            return c;
    for (const struct repl_command *c = commands; c->name; c++) {
        size_t wrong = distance(name, str_of(c->name));

        if (wrong < least && wrong < name.n) {
            nearest = c;
            least = wrong;
        }
    }
    return nearest;
}

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '/';
}

/* A word alone that other programs with a prompt obey. A blank before it makes it a prompt. */
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
