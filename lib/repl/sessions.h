/*
 * sessions - the commands of the interactive chat about sessions, and /browse.
 */
#ifndef REPL_SESSIONS_H
#define REPL_SESSIONS_H

#include "repl/conversation.h"

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
