/*
 * repl - the interactive chat (chat(1)): prompts and commands are read on the terminal, one after
 * the other, until the user leaves.
 */
#ifndef CHATHIST_CHAT_REPL_H
#define CHATHIST_CHAT_REPL_H

#include "chathist/chat/talk.h"

/* Holds the conversation; talk was opened. Gives the exit code: 0, 128 + N when signal N ended it,
 * or that of ERR_UNSAVED when the history could not take it. A turn that fails is told, and does
 * not end it. */
int repl_run(struct talk *talk);

#endif
