/*
 * embed - chat --embed, which hist-search runs: prints the vectors of texts.
 *
 * Standard input has a text on each line, as a JSON string; standard output gets a JSON array of
 * numbers for each, in the same order, or `null` for a text that the server refuses while it takes
 * others. Of a text that is too long for the model, a shorter beginning is sent. The exit status is that of a
 * turn.
 *
 * They are made by `POST /v1/embeddings` with {"model","input":[TEXT,...]}, answered by
 * {"data":[{"index":N,"embedding":[NUMBER,...]},...]} (OpenAI, API reference, "Create embeddings").
 * Ollama, llama.cpp, LM Studio, vLLM and other compatible servers have it, too.
 */
#ifndef CHATHIST_CHAT_EMBED_H
#define CHATHIST_CHAT_EMBED_H

#include "chathist/chat/chat_session.h"

/* Reads all texts before it prints anything. An error ends the program. Returns 0. */
int embed_run(struct chat_session *t);

#endif
