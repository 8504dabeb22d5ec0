/*
 * model_cache - the lists of models that servers offered, one file for each, in the user's cache.
 */
#ifndef CHATHIST_CHAT_MODEL_CACHE_H
#define CHATHIST_CHAT_MODEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/llm/models.h"

/* The folder in the user's cache that has these files. */
#define MODEL_CACHE_DIR "chathist/models"
/* Returns the path of the file for the provider's server at base_url in a folder of the user's
 * cache, `FOLDER/provider@host:port%path`, which the caller frees. Returns NULL if `cache` or
 * base_url is NULL, or the URL is invalid. */
char *model_cache_path(const char *cache, const char *folder, const struct provider *p,
                       const char *base_url);
/* Reads the cached list at `path`, which may be NULL. Returns false if it does not exist or is older
 * than max_age microseconds. The caller releases the list in either case. */
bool model_cache_load(const char *path, int64_t max_age, struct model_list *l);
/* Returns true if there is a list at `path`, perhaps an empty one, that is not older than max_age
 * microseconds. */
bool model_cache_is_fresh(const char *path, int64_t max_age);
/* Writes the list into the cache, readable by the user only. Names with control characters are left
 * out. Returns 0, or -1 with *e set. */
int model_cache_store(const char *path, const struct model_list *l, struct err *e);

#endif
