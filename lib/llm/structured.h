/*
 * structured - a JSON Schema that the answer is to hold to, as the wires of the providers say it.
 *
 * Servers take a part of JSON Schema each and refuse the rest. What a server cannot be told in its
 * own field is told in the system prompt; whether the answer holds is the caller's to check
 * (base/schema).
 *
 *   - Chat Completions: `response_format` of type `json_schema` (openai-openapi,
 *     ResponseFormatJsonSchema). `strict` is true when the schema keeps to what OpenAI's guide
 *     "Structured model outputs" lists for it: the whole an object; each object with all its
 *     properties required and no others allowed; keywords of that list alone. Ollama and llama.cpp
 *     read the schema there, and not `strict`. Servers that have an older form of the field
 *     (llama-cpp-python, github.com/abetlen/llama-cpp-python README "JSON Schema Mode"; llama.cpp
 *     takes it, too) want type `json_object` with the schema beside it.
 *   - Messages: `output_config.format` of type `json_schema` (platform documentation, "Structured
 *     outputs"; no beta header), for the models and the part of JSON Schema that are listed there:
 *     nothing recursive, no bounds, no other properties allowed.
 *
 * `$schema`, which says in which language the schema is written, is not sent.
 */
#ifndef CHATHIST_LLM_STRUCTURED_H
#define CHATHIST_LLM_STRUCTURED_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/cjson.h"

/* All want a JSON object that base/schema accepted. */

/* Sets `response_format`. */
void structured_set_response_format(cJSON *body, struct str schema);
/* Sets it in the older form. */
void structured_set_json_object(cJSON *body, struct str schema);
/* Sets `output_config`. false: the model, or the service for this schema, cannot be told so. */
bool structured_set_output_config(cJSON *body, struct str schema, const char *model);
/* Adds to a system prompt what to answer with. */
void structured_add_instruction(struct buf *system, struct str schema);

#endif
