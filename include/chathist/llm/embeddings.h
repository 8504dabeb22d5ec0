/*
 * embeddings - vectors of texts: `POST /v1/embeddings` with {"model","input":[TEXT,...]}, answered by
 * {"data":[{"index":N,"embedding":[NUMBER,...]},...]} (OpenAI, API reference, "Create embeddings").
 * Ollama, llama.cpp, LM Studio, vLLM and other compatible servers have it, too.
 */
#ifndef CHATHIST_LLM_EMBEDDINGS_H
#define CHATHIST_LLM_EMBEDDINGS_H

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/provider.h"

/* The largest response that is read. */
#define EMBEDDINGS_MAX ((size_t)256 << 20)

/* Asks the server that `ask` addresses for the vector of each text by ask->model. `texts` has a JSON
 * string on each line. Adds a JSON array to `out` for each, on a line, in the order of the texts.
 * Returns 0, or -1 with *e set as a turn would fail. */
int embeddings_load(const struct provider *p, const struct ask *ask, struct str texts,
                    struct buf *out, struct err *e);

#endif
