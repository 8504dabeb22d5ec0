/*
 * server - the model server that is used, the model, and the key (chat(1)).
 *
 * The key is the first that is set of: CHAT_API_KEY; the provider's own variable; the command in
 * CHAT_API_KEY_COMMAND; the command in `api_key_command.PROVIDER` of the user configuration; the
 * file `keys/PROVIDER` beside the configuration; the command in `api_key_command`. server_choose
 * only finds out which one it is; it reads no file and runs no command. No message contains a key,
 * or a command, which may contain one.
 */
#ifndef CHATHIST_CHAT_SERVER_H
#define CHATHIST_CHAT_SERVER_H

#include <stdbool.h>

#include "chathist/base/error.h"
#include "chathist/chat/server_headers.h"
#include "chathist/cli/config.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/refusals.h"

enum key_kind { KEY_NONE, KEY_VARIABLE, KEY_COMMAND, KEY_FILE };

/* Where the key comes from. All strings are owned. */
struct key_source {
    enum key_kind kind;
    char *value; /* the key, the command, or the name of the file; NULL for KEY_NONE */
    char *name;  /* the variable, or the key of the configuration; NULL for KEY_NONE */
};

struct server {
    const struct providers *known; /* borrowed */
    const struct provider *provider;
    char *model;    /* owned; NULL: not chosen yet */
    char *base_url; /* owned; NULL: the provider has no server (echo) */
    char *address;  /* owned; its host and port; NULL: the provider's own, but not of a service */
    char *key;      /* owned; NULL: no key, or not loaded yet */
    struct key_source key_source;
    bool found; /* a probe of the loopback ports found it */
    struct server_headers headers;
    char *command_dir; /* the directory in which commands of keys and headers run; owned */
    const char **secrets;
    struct refusals refused; /* refused by the model at this server */
};

/* Returns the path of the file that may hold the provider's key, whether it exists or not. The
 * caller frees it; NULL without a home directory. */
char *server_key_path(const struct config *c, const struct provider *p);
/* Returns where the provider's key would come from, and sets *name to the variable if it is one. */
enum key_kind server_key_kind(const struct config *c, const struct provider *p, struct buf *name);
/* Returns whether the provider, which has a probe, runs on this machine. Takes a few tenths of a
 * second at most. */
bool server_answers(const struct provider *p);
/* Adds the services of the configuration. Returns 0, or -1 with ERR_USAGE if one has no base URL or
 * cannot be used. The caller calls providers_release in either case. */
int server_providers(struct providers *known, const struct config *c, struct err *e);
/* Chooses the provider, the base URL and the source of the key. The headers are those of flags,
 * borrowed; those of the configuration are added. One that holds a key takes the place of a key. If
 * nothing is configured, looks for a local server with one short probe. Returns 0, or -1 with
 * ERR_USAGE, which says what to set. */
int server_choose(struct server *s, const struct providers *known, const struct config *c,
                  const struct ask_header *headers, size_t headers_count, struct err *e);
/* Returns -1 with ERR_USAGE, which says how to set one, if the server needs a key and has no source
 * of one. server_choose accepts that, because a dry run needs no key. */
int server_need_key(const struct server *s, const struct config *c, struct err *e);
/* Returns whether a model whose name begins like that of another provider (`mistral:7b`) is one of
 * this server. It is at a provider on this machine; at another one the list of its models in the
 * cache decides. */
bool server_has_whole_name(const struct server *s, const struct config *c, const char *model);
/* Returns -1 with ERR_USAGE if a key or a header of the user would be sent unencrypted to another
 * machine. The name of the host is not resolved, because the answer of a name server proves
 * nothing. */
int server_check_key(const struct server *s, struct err *e);
/* Returns -1 with ERR_USAGE, as server_try_key does, if the key is in a file that cannot be used.
 * Runs no command. */
int server_check_key_file(const struct server *s, struct err *e);
/* Loads the key and the headers before the first request, if they are not loaded. A command runs in
 * the home directory on the terminal of the program, and its first line is the key. Returns 0, or
 * -1: ERR_USAGE if the command fails or prints no key, or the file is unreadable, not the user's or
 * accessible to others; ERR_SIGNAL if a signal arrived. Signals must not be caught by the caller
 * (cli/signals) at the same time. */
int server_try_key(struct server *s, struct err *e);
/* Like server_try_key, but a signal ends the program. */
int server_load_key(struct server *s, struct err *e);
/* Chooses the model: the one that was named, else the only one that the server offers, or the first
 * if the server was found by a probe. Returns 0, or -1 with *e set. */
int server_choose_model(struct server *s, struct err *e);
/* Prints on stderr which server a probe found, with its model, and a warning if the model's name
 * begins with what looks like a mistyped provider (`opneai:gpt-4o`). */
void server_report(const struct server *s);
/* Fills in model, base URL, key, and the trusted certificates ($CURL_CA_BUNDLE, else $SSL_CERT_DIR
 * and $SSL_CERT_FILE). */
void server_address(const struct server *s, struct ask *ask);
/* Returns the loaded key and the secrets in loaded headers; NULL follows the last. The array is
 * valid until the next call. */
const char *const *server_secrets(struct server *s);
void server_release(struct server *s);

/* Sets the trusted certificates of the limits, from the variables that curl(1) reads and libcurl
 * does not. The texts belong to the environment. */
void server_trust(struct http_limits *limits);

#endif
