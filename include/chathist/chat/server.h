/*
 * server - which model at which server is asked, and with which key (chat(1)).
 */
#ifndef CHATHIST_CHAT_SERVER_H
#define CHATHIST_CHAT_SERVER_H

#include "chathist/base/err.h"
#include "chathist/cli/config.h"
#include "chathist/chat/key.h"
#include "chathist/llm/provider.h"

struct server {
    const struct provider *provider;
    char *model;    /* owned */
    char *base_url; /* owned; NULL: none is asked (echo) */
    char *key;      /* owned; NULL: none, or not loaded yet */
    struct key_source key_source;
    bool found; /* by a probe of the loopback ports */
};

/* Chooses provider, base URL and where the key comes from; when nothing is configured a local
 * server that answers a short probe. -1: ERR_USAGE, says what to set. */
int server_choose(struct server *s, const struct config *c, struct err *e);
/* Would a key go over the network in the clear, to a host that is not this one? -1: ERR_USAGE.
 * Names are not looked up: what another machine says about a name proves nothing. */
int server_check_key(const struct server *s, struct err *e);
/* Gets the key, if there is one and it is not loaded: due before a request leaves. It may run the
 * user's command; see key_fetch. */
int server_try_key(struct server *s, struct err *e);
/* The same, but a signal ends the program: for as long as there is nothing to clean up. */
int server_load_key(struct server *s, struct err *e);
/* The model that was named, else the only one that the server offers (or the first, of a server
 * that was found by a probe). */
int server_choose_model(struct server *s, struct err *e);
/* Prints on stderr which server a probe found, with its model, and a warning if the model's name
 * begins with what looks like a mistyped provider (`opneai:gpt-4o`). */
void server_report(const struct server *s);
/* Fills in model, base URL and key, and which certificates are trusted ($CURL_CA_BUNDLE, else
 * $SSL_CERT_DIR and $SSL_CERT_FILE). */
void server_address(const struct server *s, struct ask *ask);
void server_release(struct server *s);

#endif
