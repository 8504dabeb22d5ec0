/*
 * conversation - the state of the interactive chat, and its turns.
 *
 *     repl.c         reads typed texts: prompts, or commands
 *     commands.c     the table of commands, /help, completion, and most commands
 *     sessions.c     commands about sessions, and /browse
 *     conversation.c what they all use
 */
#ifndef REPL_CONVERSATION_H
#define REPL_CONVERSATION_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/chat/chat_session.h"
#include "chathist/history/thread.h"
#include "chathist/llm/models.h"
#include "chathist/terminal/line_editor.h"

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
    struct model_list models; /* the models of that provider's server, once they were requested */
    const struct provider *models_of;
    int signal; /* the signal that ends the program; 0: none */
    bool leave;
};

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

#endif
