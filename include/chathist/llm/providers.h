/*
 * providers - the table of all providers.
 */
#ifndef CHATHIST_LLM_PROVIDERS_H
#define CHATHIST_LLM_PROVIDERS_H

#include "chathist/base/buf.h"
#include "chathist/llm/provider.h"

/* Returns all providers, in the order in which --help lists them, ended by NULL. */
const struct provider *const *provider_all(void);
/* Finds a provider by name. Returns NULL if it is unknown. */
const struct provider *provider_find(struct str name);
/* Splits `provider:model`. If the part before the first colon is not a provider's name, *provider
 * is NULL and *model is the whole name. */
void provider_split(const char *name, const struct provider **provider, const char **model);

#endif
