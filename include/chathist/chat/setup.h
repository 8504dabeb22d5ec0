/*
 * setup - the first settings: the keys of providers, and the dialogue of `chathist setup`.
 *
 * Nothing is read from the accounts of other programs.
 */
#ifndef CHATHIST_CHAT_SETUP_H
#define CHATHIST_CHAT_SETUP_H

#include "chathist/cli/config.h"

/* Stores a key in the file `keys/PROVIDER` beside the user configuration, in the place of an older
 * one: the first line of standard input, or if that is a terminal, a line that is typed there and
 * not shown. Says on stderr where it is. Ends the program if the provider has no key, or if the key
 * cannot be stored (ERR_USAGE, ERR_FAILURE). */
void setup_store_key(const struct config *c, const char *provider);

/* Asks on the terminal for the provider, its key and the model, stores them, and offers to import
 * the conversations of other programs. Each answer is stored at once, and an empty one leaves the
 * setting as it is. `self` is the path of the running program. Ends the program without a terminal
 * or if something cannot be stored. */
void setup_run(const struct config *c, const char *self);

#endif
