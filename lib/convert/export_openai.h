/*
 * export_openai - `{"messages":[…]}` on a line for each session: what OpenAI's chat completions
 * would be sent (llm/provider_openai_messages), and the form of its files for fine-tuning.
 * A session in which nothing is said that could be sent has none.
 */
#ifndef CHATHIST_CONVERT_EXPORT_OPENAI_H
#define CHATHIST_CONVERT_EXPORT_OPENAI_H

#include "chathist/convert/export.h"

extern const struct export_format export_openai;

#endif
