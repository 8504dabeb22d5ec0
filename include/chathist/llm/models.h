/*
 * models - the models that a server offers, and whether a server is there at all.
 *
 * Lists are also kept in a cache, because a shell that completes a model name must not wait for a
 * server. The cache directory has a file for each provider and server (host, port and path), with a
 * model on each line, and after a TAB how many tokens its context can hold, if the server says so.
 * The file's time is the age of the list. A file can be deleted at any time.
 *
 * The lists of these services contain the size of the context, in a member of each model (November
 * 2026):
 *
 *     context_length       OpenRouter, openrouter.ai/docs/api-reference/list-available-models
 *     max_model_len        vLLM, docs.vllm.ai, ModelCard
 *     context_window       Groq, console.groq.com/docs/models
 *     max_context_length   Mistral, docs.mistral.ai/api; LM Studio's /api/v0/models has
 *                          loaded_context_length for what the loaded model was given
 *     max_input_tokens     Anthropic, platform documentation, "List Models"
 *     inputTokenLimit      Gemini's own list, ai.google.dev/api/models
 */
#ifndef CHATHIST_LLM_MODELS_H
#define CHATHIST_LLM_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/llm/provider.h"

struct model_list {
    char **at;        /* ids, in the server's order */
    int64_t *windows; /* the tokens that each model's context can hold; 0: unknown */
    size_t count, cap, windows_cap;
};

/* Gets the models of the server that `ask` addresses (base_url, key, limits). Returns 0, or -1 with
 * *e set as a turn would fail. */
int model_list_load(struct model_list *l, const struct provider *p, const struct ask *ask,
                    struct err *e);
/* Adds an id, and how many tokens the model's context can hold (0: unknown). An empty id, or one
 * with a line break, is ignored. */
void model_list_add(struct model_list *l, struct str id, int64_t window);
void model_list_release(struct model_list *l);
/* Returns how many tokens the context of the model can hold, or 0 if that is unknown. */
int64_t model_list_window(const struct model_list *l, const char *model);
/* Asks the server that `ask` addresses how many tokens the context of ask->model can hold, by the
 * requests of the provider (p->window), the second of them only if `whole`. If the user has chosen
 * the size with an option, that is the size, and nothing is asked. This takes a few tenths of a
 * second at most. */
void model_window_load(const struct provider *p, const struct ask *ask, bool whole,
                       struct model_window *w);

/* A server that is looked for. */
struct model_probe {
    const struct provider *provider;
    const char *base_url; /* borrowed */
    bool there;           /* it lists its models */
};
/* Looks for all of the servers at the same time, for a few tenths of a second. One that comes after
 * a server that is there may be missed. The GET for each carries no key. */
void models_probe(struct model_probe *probes, size_t count);

#endif
