/*
 * conversation - a conversation of many turns: its session, and the files and system prompt of the
 * next turn. If nothing is stored (--no-store, or the history could not be written), the messages
 * are kept in memory, so that the model still gets them.
 */
#ifndef CHATHIST_CHAT_CONVERSATION_H
#define CHATHIST_CHAT_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/chat/chat_session.h"

struct conversation {
    struct chat_session *chat;
    struct buf system; /* becomes the system prompt with the next turn */
    bool has_system;
    char **files; /* attached to the next prompt; ends with NULL, or is NULL */
    size_t files_count, files_cap;
    /* Messages that are not stored, as JSON lines, and where the last prompt begins. */
    struct buf memory;
    size_t last;
    bool any; /* there is a last prompt */
};

/* Chooses the session as the command line says. The chat session is open. */
void conversation_open(struct conversation *d, struct chat_session *chat);
void conversation_close(struct conversation *d);

/* Returns the id of the session. */
struct str conversation_session(const struct conversation *d);
/* Begins a new session with a system prompt; NULL: the one of the command line, if any. */
void conversation_begin(struct conversation *d, const char *system);
/* Continues a session of the history. The system prompt for the next turn is dropped, attached
 * files are kept. Returns 0, or -1 with *e set. */
int conversation_continue(struct conversation *d, struct str id, struct err *e);

void conversation_set_system(struct conversation *d, struct str text);
/* Adds the system prompt of the next turn. Returns 1, 0 without one, or -1 with *e set. */
int conversation_system(const struct conversation *d, struct buf *out, struct err *e);
/* Attaches a file to the next prompt. Returns 0, or -1 with *e set if it cannot be attached. */
int conversation_attach(struct conversation *d, const char *file, struct err *e);
void conversation_detach_files(struct conversation *d);

/* Runs one turn; TURN_AGAIN needs no text. Errors are reported. Returns the exit code of the
 * turn. */
int conversation_ask(struct conversation *d, enum turn_kind kind, struct str text);
/* Adds the text of the last prompt. Returns 1, 0 without one, or -1 with *e set. */
int conversation_last_prompt(const struct conversation *d, struct buf *out, struct err *e);

/* Adds the conversation as Markdown with a heading for each message, or only the text of the last
 * answer. Returns 1, 0 if there is nothing yet, or -1 with *e set. */
int conversation_format(const struct conversation *d, bool answer, struct buf *out, struct err *e);
/* Writes a new file (mode 0600). With `over` an existing file is replaced, and kept if that fails.
 * Returns 1, 0 if the file exists and must not be replaced, or -1 with *e set. */
int conversation_write_file(const char *path, struct str text, bool over, struct err *e);

#endif
