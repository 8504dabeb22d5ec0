/*
 * dialogue - a conversation of many turns: its session, and what is meant for the next prompt.
 *
 * With --no-store nothing of it is in the history; it is kept in memory then, so that the model
 * knows it all the same. So it is from the turn on that the history could not take.
 */
#ifndef CHATHIST_CHAT_DIALOGUE_H
#define CHATHIST_CHAT_DIALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/chat/talk.h"

struct dialogue {
    struct talk *talk;
    struct buf system; /* to be the system prompt from the next turn on */
    bool has_system;
    char **files; /* to be attached to the next prompt; NULL at the end, or NULL */
    size_t files_count, files_cap;
    /* Of a conversation that is not stored: JSON lines, and where its last prompt begins. */
    struct buf memory;
    size_t last;
    bool any; /* there is a last prompt */
};

/* Chooses the session as the command line wishes. talk was opened. */
void dialogue_open(struct dialogue *d, struct talk *talk);
void dialogue_close(struct dialogue *d);

/* The session's id. */
struct str dialogue_session(const struct dialogue *d);
/* Begins a new session; NULL: with the system prompt of the command line, if any. */
void dialogue_begin(struct dialogue *d, const char *system);
/* Goes on with a session of the history; what was meant for the next prompt of the other one is
 * dropped, its files excepted. */
int dialogue_continue(struct dialogue *d, struct str id, struct err *e);

void dialogue_set_system(struct dialogue *d, struct str text);
/* The system prompt of the next turn: 1, 0 when there is none, -1. */
int dialogue_system(const struct dialogue *d, struct buf *out, struct err *e);
/* Attaches a file that can be attached. */
int dialogue_attach(struct dialogue *d, const char *file, struct err *e);
void dialogue_detach_files(struct dialogue *d);

/* One turn; TURN_AGAIN needs no text. What goes wrong is told. Gives the exit code that it would
 * have had by itself. */
int dialogue_ask(struct dialogue *d, enum turn_kind kind, struct str text);
/* The text of the last prompt: 1, 0 when there is none, -1. */
int dialogue_last_prompt(const struct dialogue *d, struct buf *out, struct err *e);
/* Hands over the messages as JSON objects with role and content at least. 0, -1. */
int dialogue_each(const struct dialogue *d, void (*fn)(void *arg, struct str json), void *arg,
                  struct err *e);

#endif
