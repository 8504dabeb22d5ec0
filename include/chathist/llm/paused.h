/*
 * paused - an exchange that the server may pause: asked on until the answer is whole.
 *
 * A server that runs tools of its own ends a long answer with the reason `pause_turn`; sent back as
 * it came, it is gone on with (llm/provider_anthropic).
 */
#ifndef CHATHIST_LLM_PAUSED_H
#define CHATHIST_LLM_PAUSED_H

#include "chathist/base/err.h"
#include "chathist/llm/answer.h"
#include "chathist/llm/provider.h"

/* As stream_ask; the parts of the answer become one. Each time that it is asked on is counted in
 * *rounds, up to max_rounds; an answer that is still paused then, or whose blocks could not be
 * kept, ends as paused as it is. What fails after text came is ERR_INCOMPLETE, signals excepted. */
int paused_ask(const struct provider *p, const struct ask *ask, struct answer *a,
               unsigned max_rounds, unsigned *rounds, struct err *e);

#endif
