/*
 * repl - the interactive chat (chat(1)): reads prompts and commands on the terminal, one after the
 * other, until the user leaves.
 */
#ifndef CHATHIST_REPL_REPL_H
#define CHATHIST_REPL_REPL_H

#include "chathist/chat/chat_session.h"

/* Holds the conversation in a chat session that is open. Returns the exit code: 0, 128 + N if
 * signal N ended it, or the code of ERR_UNSAVED if the history could not be written. A turn that
 * fails is reported and does not end the conversation. */
int repl_run(struct chat_session *chat);

#endif
