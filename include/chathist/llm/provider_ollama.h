/*
 * provider_ollama - Ollama's own API.
 *
 * Ollama is also compatible with OpenAI's chat completions (llm/provider_openai), but only its own API
 * can set the size of the context, `num_ctx`. The default of that size is small, and Ollama leaves out
 * the beginning of a longer conversation without a word.
 *
 * Sources: docs/api.md and docs/openapi.yaml of github.com/ollama/ollama, and its code, of August 2026:
 * api/types.go (the fields), server/routes.go (which errors come how), server/sched.go (which options
 * make it load a model again).
 */
#ifndef CHATHIST_LLM_PROVIDER_OLLAMA_H
#define CHATHIST_LLM_PROVIDER_OLLAMA_H

#include "chathist/llm/provider.h"

extern const struct provider provider_ollama;

#endif
