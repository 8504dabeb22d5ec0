/*
 * model_cache - lists of models that servers gave before: for a shell that completes a name and
 * must not wait.
 *
 * A file for each provider and server (host and port) in a directory that is only for this, a model
 * a line; how old the list is, its file tells. It can be removed at any time.
 */
#ifndef CHATHIST_LLM_MODEL_CACHE_H
#define CHATHIST_LLM_MODEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/llm/models.h"

/* The list of the provider's server at base_url, if there is one no older than max_age
 * microseconds. The caller releases it whatever comes of it. */
bool model_cache_load(const char *dir, const struct provider *p, const char *base_url,
                      int64_t max_age, struct model_list *l);
/* Keeps the list, for nobody but the user to read; names with control characters are left out.
 * 0, or -1. */
int model_cache_store(const char *dir, const struct provider *p, const char *base_url,
                      const struct model_list *l, struct err *e);

#endif
