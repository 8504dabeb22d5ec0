/*
 * server_headers - the headers that the user wants in each request to a server.
 *
 * For the model server these are those of --header, and in the user configuration `header.NAME =
 * VALUE` and `header_command.NAME = COMMAND`, of which the command prints the value.
 * `header.PROVIDER.NAME` is for one provider.
 *
 * Of headers with the same name, one for the provider replaces one for all, and --header replaces
 * both. --header itself can repeat a name.
 */
#ifndef CHATHIST_CHAT_SERVER_HEADERS_H
#define CHATHIST_CHAT_SERVER_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/error.h"
#include "chathist/cli/config.h"
#include "chathist/llm/provider.h"

/* A header of the user. */
struct server_header {
    struct ask_header header; /* the value is NULL until the command has run that prints it */
    struct config_named from; /* the key of the configuration with the value or the command; its
                               * texts are borrowed */
    char *secret;             /* what the command printed, owned */
};

struct server_headers {
    struct server_header *at;
    size_t count, cap;
    struct ask_header *ready; /* those with a value */
    size_t ready_count;
};

/* Chooses the headers for a provider. `named`: the user named the server in some way, so that it
 * also gets the headers for all providers. Runs no command. Returns 0, or -1 with ERR_USAGE for a
 * name or value that cannot be sent. */
int server_headers_choose(struct server_headers *h, const struct providers *known,
                          const struct config *c, const struct provider *p, bool named,
                          const struct ask_header *given, size_t given_count, struct err *e);
/* Adds a header that a key of the configuration defines, in place of one with the same name. The
 * value of the key is the header's, or with `command` a command that prints it. The name is
 * borrowed. Returns 0, or -1 with ERR_USAGE for a name or value that cannot be sent. */
int server_headers_add(struct server_headers *h, const struct config_named *from, const char *name,
                       bool command, struct err *e);
/* Returns whether one of them holds a key, so that the server needs no other. */
bool server_headers_hold_key(const struct server_headers *h);
/* Runs the commands that have not run, in `dir`, and makes h->ready complete. Returns 0, or -1 with
 * *e set as server_try_key. */
int server_headers_load(struct server_headers *h, const char *dir, struct err *e);
void server_headers_release(struct server_headers *h);

#endif
