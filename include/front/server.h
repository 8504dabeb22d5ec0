/*
 * server - which model at which server is asked, and with which key (chat(1)).
 */
#ifndef CHATHIST_FRONT_SERVER_H
#define CHATHIST_FRONT_SERVER_H

#include "base/err.h"
#include "cli/config.h"
#include "llm/provider.h"

struct server {
    const struct provider *provider;
    char *model;     /* owned */
    char *base_url;  /* owned; NULL: none is asked (echo) */
    const char *key; /* borrowed from the environment; NULL: none */
    bool found;      /* by a probe of the loopback ports */
};

/* Chooses provider, base URL and key from the configuration; when nothing is configured a local
 * server that answers a short probe. -1: ERR_USAGE, says what to set. */
int server_choose(struct server *s, const struct config *c, struct err *e);
/* The model that was named, else the only one that the server offers (or the first, of a server
 * that was found by a probe). */
int server_choose_model(struct server *s, struct err *e);
/* Names a server that was found by a probe, and its model, on stderr. */
void server_tell_found(const struct server *s);
/* Fills in provider, model, base URL and key. */
void server_address(const struct server *s, struct ask *ask);
void server_release(struct server *s);

#endif
