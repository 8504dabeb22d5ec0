/*
 * provider_openai_body - the body of a request on OpenAI's wire (PROTOCOLS section 2), and what of
 * it a server that refuses it is no longer asked for.
 */
#ifndef CHATHIST_LLM_PROVIDER_OPENAI_BODY_H
#define CHATHIST_LLM_PROVIDER_OPENAI_BODY_H

#include <stdbool.h>

#include "chathist/llm/provider.h"

/* Sets r->body; `less` is what is left out, 0: nothing. */
void openai_body_set(const struct provider *p, const struct ask *ask, unsigned less,
                     struct http_request *r);
/* As provider->drop_unsupported: the usage of a stream, then the schema of the answer in its present form, in
 * its older one, each when the error names it. A schema that the server cannot hold the answer to
 * is told to the model. */
bool openai_body_drop_unsupported(const struct provider *p, const struct ask *ask, int status,
                                  struct str body, unsigned *less, struct http_request *r);

#endif
