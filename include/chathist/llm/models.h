/*
 * models - what a server offers, and whether one is there at all.
 */
#ifndef CHATHIST_LLM_MODELS_H
#define CHATHIST_LLM_MODELS_H

#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/llm/provider.h"

struct model_list {
    char **at; /* ids, in the server's order */
    size_t count, cap;
};

/* The models of the server that `ask` addresses (base_url, key, limits). -1: as a turn would
 * fail. */
int model_list_load(struct model_list *l, const struct provider *p, const struct ask *ask,
                    struct err *e);
/* Adds an id; an empty one is none. */
void model_list_add(struct model_list *l, struct str id);
void model_list_release(struct model_list *l);

/* Does the provider's server list its models at `base_url` within a few tenths of a second? One
 * GET, sent without a key. */
bool models_probe(const struct provider *p, const char *base_url);

#endif
