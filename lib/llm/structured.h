/*
 * structured - how a request says that the answer must match a JSON Schema.
 *
 * Each service accepts a part of JSON Schema in a field of the request and refuses the rest. If the
 * field cannot carry the schema, the system prompt carries it. The caller checks the answer in any
 * case (llm/schema).
 *
 *   - Chat Completions: `response_format` of type `json_schema` (openai-openapi,
 *     ResponseFormatJsonSchema). `strict` is true if the schema is within the list of OpenAI's
 *     guide "Structured model outputs": the whole is an object; every object requires all of its
 *     properties and allows no others; no other keywords are used. Ollama and llama.cpp read the
 *     schema and ignore `strict`. Servers with an older form of the field (llama-cpp-python,
 *     github.com/abetlen/llama-cpp-python README "JSON Schema Mode"; llama.cpp accepts it, too)
 *     want the type `json_object` with the schema beside it.
 *   - Messages: `output_config.format` of type `json_schema` (platform documentation, "Structured
 *     outputs"; no beta header), for the models and the part of JSON Schema that are listed there:
 *     no recursion, no bounds, no additional properties.
 *
 * The schema is sent without `$schema`, which names the language that it is written in.
 */
#ifndef CHATHIST_LLM_STRUCTURED_H
#define CHATHIST_LLM_STRUCTURED_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/cjson.h"

/* In all functions `schema` is a JSON object that llm/schema accepted. */

/* Sets `response_format`. */
void structured_set_response_format(cJSON *body, struct str schema);
/* Sets `response_format` in the older form. */
void structured_set_json_object(cJSON *body, struct str schema);
/* Sets `output_config`. Returns false, and sets nothing, if the model does not know the field or the
 * service does not accept the schema. */
bool structured_set_output_config(cJSON *body, struct str schema, const char *model);
/* Adds an instruction to a system prompt: answer with JSON that matches the schema. */
void structured_add_instruction(struct buf *system, struct str schema);

#endif
