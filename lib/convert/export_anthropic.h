/*
 * export_anthropic - `{"system":…,"messages":[…]}` on a line for each session: what Anthropic's
 * messages would be sent (llm/provider_anthropic_messages); with `tools` when some were called, for
 * without a declaration the calls are refused. A session in which nothing is said that could be
 * sent has no line.
 */
#ifndef CHATHIST_CONVERT_EXPORT_ANTHROPIC_H
#define CHATHIST_CONVERT_EXPORT_ANTHROPIC_H

#include "chathist/convert/export.h"

extern const struct export_format export_anthropic;

#endif
