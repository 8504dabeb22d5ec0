/*
 * provider_openai - OpenAI's Chat Completions and every server compatible with it (PROTOCOLS
 * section 2; openai-openapi, openai-python `_streaming.py`).
 *
 * Ollama and llama.cpp speak it too; they are providers of their own because they need no key and
 * have usual places on loopback. So are some services, each with its place and its key.
 */
#ifndef CHATHIST_LLM_PROVIDER_OPENAI_H
#define CHATHIST_LLM_PROVIDER_OPENAI_H

#include "chathist/llm/provider.h"

extern const struct provider provider_openai;
extern const struct provider provider_openrouter;
extern const struct provider provider_groq;
extern const struct provider provider_mistral;
extern const struct provider provider_deepseek;
extern const struct provider provider_gemini;
extern const struct provider provider_ollama;
extern const struct provider provider_llamacpp;

#endif
