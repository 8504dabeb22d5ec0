/*
 * commands - the commands of the interactive chat. Each is a function in one of these files:
 *
 *     repl.c         reads typed texts, sends them or runs commands; the session in memory
 *     sessions.c     commands about sessions, and /browse
 *     commands.c     all other commands, the table, /help, completion
 */
#ifndef CHATHIST_REPL_COMMANDS_H
#define CHATHIST_REPL_COMMANDS_H

#include <stdbool.h>

#include "chathist/terminal/line_editor.h"
#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/chat/chat_session.h"
#include "chathist/history/thread.h"
#include "chathist/llm/models.h"

/* An interactive conversation. If nothing is stored (--no-store, or the history could not be
 * written), chat->store.memory has the lines of its session, so that the model still gets them. */
struct repl {
    struct chat_session *chat;
    struct line *line;
    struct out *out;
    struct buf system; /* becomes the system prompt with the next turn */
    bool has_system;
    struct words files;       /* attached to the next prompt */
    struct words listed;      /* session ids of the last numbered list */
    struct model_list models; /* of that provider's server, once they were requested */
    const struct provider *models_of;
    int signal; /* the signal that ends the program; 0: none */
    bool leave;
};

/* ---- commands ---- */

struct repl_command {
    const char *name; /* without its slash; NULL ends the table */
    const char *args; /* as help shows them; "" for no argument */
    const char *help;
    /* `rest` is the argument without blanks around it. NULL: the row is the title of the group of
     * commands that follows. */
    void (*run)(struct repl *r, struct str rest);
    /* Offers words for what is typed after the command. NULL: there are none to offer. */
    void (*offer)(struct repl *r, struct line_words *words, struct str typed);
};

/* Returns the command of this name, or NULL. */
const struct repl_command *repl_find_command(struct str name);
/* Warns that a command is unknown, and says which one was probably meant. */
void repl_report_unknown(struct str name);
/* Offers commands, and what they take, for the text before the cursor. `arg` is a struct repl. */
void repl_complete(void *arg, struct str before, struct line_words *words);

/* ---- turns ---- */

/* Prints an error and releases it. */
void repl_report(struct err *e);
/* Prints a dim line. `text` must be safe to show. */
void repl_print_dim(struct repl *r, struct str text);
/* The same for a message, unless --quiet was given. Its control characters are made visible. */
__attribute__((format(printf, 2, 3))) void repl_say(struct repl *r, const char *fmt, ...);

/* Loads the thread of the session. The caller releases it. Returns 0, or -1 with *e set. */
int repl_load_thread(const struct repl *r, struct thread *t, struct err *e);
/* Copies the lines of the session from the history. Returns 0, or -1 with *e set. */
int repl_copy_to_memory(struct chat_session *chat, struct err *e);
/* The next turn sets this system prompt. */
void repl_set_system(struct repl *r, struct str text);
void repl_forget_system(struct repl *r);
/* Attaches a file to the next prompt. Returns 0, or -1 with *e set. */
int repl_attach(struct repl *r, const char *file, struct err *e);
/* Ctrl-C ends only the turn, another signal ends the conversation. */
void repl_set_interrupt(struct repl *r, int signo);
/* Runs one turn; TURN_AGAIN needs no text. */
void repl_ask(struct repl *r, enum turn_kind kind, struct str text);
void repl_regenerate(struct repl *r, struct str rest);
void repl_edit(struct repl *r, struct str text);

/* ---- sessions ---- */

void repl_new(struct repl *r, struct str system);
void repl_load(struct repl *r, struct str name);
void repl_browse(struct repl *r, struct str query);
void repl_search(struct repl *r, struct str text);
void repl_title(struct repl *r, struct str text);
void repl_info(struct repl *r, struct str rest);
/* Prints the last prompt and its answer, dim and shortened, if the session has messages. */
void repl_show_last(struct repl *r);
void repl_sessions(struct repl *r, struct str text);

#endif
