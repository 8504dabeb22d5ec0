/*
 * key - the key for a server: where it comes from, and how it is got (chat(1)).
 *
 * In this order: CHAT_API_KEY; the provider's own variable; the command of CHAT_API_KEY_COMMAND;
 * the command of `api_key_command.PROVIDER` in the user configuration; the file
 * `chathist/keys/PROVIDER` beside it; the command of `api_key_command`. Finding out which of them
 * it is reads no file and runs nothing: key_fetch does, when a request is about to leave.
 *
 * Neither a key nor a command, which may hold one, is part of any message.
 */
#ifndef CHATHIST_CHAT_KEY_H
#define CHATHIST_CHAT_KEY_H

#include <stdbool.h>

#include "chathist/base/err.h"
#include "chathist/cli/config.h"

/* The most that a key file holds, or a command prints, in bytes. */
#define KEY_MAX ((size_t)1 << 16)

enum key_kind { KEY_NONE, KEY_VARIABLE, KEY_COMMAND, KEY_FILE };

struct key_source {
    enum key_kind kind;
    char *value; /* owned: the key, the command, or the file's name; NULL: none */
    char *dir;   /* owned: where the command runs (config_command_dir); NULL unless KEY_COMMAND */
    char *name;  /* owned: the variable or key of the configuration that it is set in; NULL: none */
};

/* Whose key it is. */
struct key_owner {
    const char *name;     /* the provider's, as in the configuration */
    const char *variable; /* its own; NULL: none */
    bool any;             /* is a key that is not of a provider's own for it, too? */
};

/* Leaves KEY_NONE when there is none. A file counts as there whatever it holds. */
void key_find(struct key_source *s, const struct config *c, const struct key_owner *o);
void key_source_release(struct key_source *s);

/* Gives the key; the caller ends it with key_wipe. A command is run by sh(1), in the home directory and on the
 * terminal that we are on, and its first line counts. NULL with *e (ERR_USAGE): the command failed or printed no
 * key; the file cannot be read, is not a file of the user's own that nobody else can read, or holds
 * no key. ERR_SIGNAL: SIGINT, SIGTERM, SIGHUP or SIGQUIT came meanwhile (turn/interrupt tells
 * which), or an interrupt ended the command; it has ended. Nothing else may catch signals by
 * turn/interrupt. */
char *key_fetch(const struct key_source *s, struct err *e);
/* Overwrites and frees; NULL is fine. */
void key_wipe(char *key);

/* Is a key, or a way to get one, set up for this provider alone: in the environment, or in the user
 * configuration? */
bool key_in_configuration(const struct config *c, const char *provider);
/* Warns of `api_key_command.NAME` with a name that `known` does not know. */
void key_check_names(const struct config *c, bool (*known)(const char *name));

#endif
