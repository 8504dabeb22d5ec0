/*
 * provider_wire - the parts that the wires of several providers share.
 */
#ifndef CHATHIST_LLM_PROVIDER_WIRE_H
#define CHATHIST_LLM_PROVIDER_WIRE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/cjson.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/response.h"

/* Providers with a wire of their own. Those of the other wires are in llm/provider_openai.h and
 * llm/provider_anthropic.h. */

/* A model that works offline. */
extern const struct provider provider_echo;
/* Ollama's own API. */
extern const struct provider provider_ollama;
/* `openai` at OpenAI's own base URL: the Responses API. At any other it is provider_openai, which
 * speaks Chat Completions, as nearly all compatible servers do. */
extern const struct provider provider_openai_own;
/* `openai-responses`: the Responses API at any base URL. */
extern const struct provider provider_responses;

/* ---- requests ---- */

/* The request for the list of models, of OpenAI and all that are compatible (provider.models). */
int wire_models(const struct provider *p, const struct ask *ask, struct http_request *r,
                struct err *e);
/* Returns the server that is asked. */
struct context_server wire_asked(const struct provider *p, const struct ask *ask);
/* Returns true if the user gave an option of that name. */
bool wire_has_option(const struct ask *ask, const char *key);
/* Ends a request: adds effort, the limit of tokens and the options of the user to `body`
 * (llm/request_body), leaves out what the server has refused, and prints it as the body of r. Frees
 * `body`. Returns 0, or -1 with *e set. */
int wire_end_body(cJSON *body, const struct provider *p, const struct ask *ask,
                  struct http_request *r, struct err *e);

/* ---- parts of a body; the caller frees them ---- */

/* {"type": type} */
cJSON *wire_of_type(const char *type);
/* {"type": type, "text": text} */
cJSON *wire_text_part(const char *type, struct str text);
/* The parts of a message: its text, if that is not blank, and its attachments, which `part`
 * makes. */
cJSON *wire_parts(const struct context_message *m, const char *text_type,
                  cJSON *(*part)(const struct attachment *a));
/* Sets the member to the text of the message, or to its parts if it has attachments. */
void wire_set_content(cJSON *to, const char *member, const struct context_message *m,
                      const char *text_type, cJSON *(*part)(const struct attachment *a));
/* Sets the member to the attachment as a data URL (RFC 2397). */
void wire_set_data_url(cJSON *to, const char *member, const struct attachment *a);
/* {"role": ROLE, "content": text} */
cJSON *wire_message(enum role role, struct str text);
/* Sets `name`, `description` if there is one, and the schema of the arguments. */
void wire_set_tool(cJSON *to, const struct tool *tool, const char *schema);

/* Returns the schema for the answer without `$schema`, which names the language that it is written
 * in. The caller frees it. */
cJSON *wire_schema(const struct ask *ask);
/* Sets `name`, `schema` and `strict` of a format `json_schema` (openai-openapi,
 * ResponseFormatJsonSchema). Ollama and llama.cpp read the schema and ignore `strict`. */
void wire_set_schema(cJSON *to, const struct ask *ask);
/* Adds an instruction to a system prompt: answer with JSON that matches the schema. */
void wire_add_schema(const struct ask *ask, struct buf *system);

/* ---- ids and names of tool calls ----
 *
 * A history holds calls from many servers. If one of them named a call `functions.f`, or gave it an
 * id of 46 characters, another server refuses it, and with it every later request of the session:
 *
 *  - OpenAI takes names of `[a-zA-Z0-9_-]{1,64}` (platform.openai.com/docs/api-reference/chat) and
 *    ids of at most 40 characters (github.com/BerriAI/litellm/issues/17343).
 *  - Anthropic takes the same characters in both (platform documentation, "Tool use").
 *  - Mistral takes ids of exactly nine letters and digits (mistralai.github.io/mistral-common,
 *    "Tools"; github.com/anomalyco/opencode/issues/1680).
 *
 * An id that a server would refuse, or that an earlier call of the request has, is replaced in the
 * request only. The replacement is computed from the id, so that it is the same in each request.
 */

#define CALL_ID_MAX 40

struct call_ids {
    bool nine;             /* ids are nine letters and digits */
    struct hash_map taken; /* the ids in the request so far */
    struct hash_map given; /* the ids in the history so far, numbered */
    uint64_t *next;        /* for each of these, of what its next replacement is made */
    struct buf waiting;    /* the calls whose results come next: lines of an id, a blank, a name */
};

/* A call of the history in a form that every server takes. */
struct wire_call {
    struct buf id, name;
    struct buf args; /* the text of an object */
    struct buf bad;  /* what the model wrote if that was no object; args is then `{}` */
};

/* `nine`: every id has the form that Mistral takes. */
void wire_call_ids_init(struct call_ids *ids, bool nine);
void wire_call_ids_release(struct call_ids *ids);
/* Makes the next call of the request from one of the history, {"id","name","args"}. Unsuitable
 * characters of a name become `_`, and an empty name becomes `unnamed`. If the arguments are no
 * object, the result of the call explains the error; some servers (llama.cpp, vLLM before its PR
 * 48922) answer HTTP 500 to any other text, in every later request of the session. */
void wire_call_init(struct wire_call *c, struct call_ids *ids, struct str call);
void wire_call_release(struct wire_call *c);
/* Sets the member `key` of a result to the id of its call, and the member `name_key`, unless that
 * is NULL, to the call's name. Results follow their calls, in the same order (context_finish). */
void wire_set_result(cJSON *result, struct call_ids *ids, const char *key, const char *name_key);
/* Adds a tool's name as in wire_call_init. */
void wire_add_call_name(struct buf *out, struct str name);

/* Makes the messages of a settled context: the system prompt, unless it is blank, and what
 * `message` makes of each. After the last of some results `add_images` adds their images, in a
 * message of the user. A stand-in is sent where one is missing: chat templates (Gemma, Mistral,
 * Llama 2) raise an exception unless the user begins and user and model alternate. `nine` as above.
 * The caller frees the array. */
typedef cJSON *wire_message_of(const struct context_message *m, struct context_server asked,
                               struct call_ids *ids);
typedef void wire_add_images(cJSON *array, const struct context_message *results, size_t count);
cJSON *wire_messages(const struct context *c, struct str system, struct context_server asked,
                     bool nine, wire_message_of *message, wire_add_images *add_images);

/* Adds the messages of c to `to`. Calls become text of the assistant, results text of the user;
 * neighbouring texts of one role are merged, so that user and assistant alternate. For a server
 * whose chat template has no role for tools. */
void wire_calls_to_text(const struct context *c, struct context *to);

/* ---- responses ---- */

/* Sets the model of the response, a JSON string, unless it is set. */
void wire_set_model(struct response *a, struct str model);
/* Call response_add_reasoning and response_add_call with JSON strings. */
int wire_add_reasoning(struct response *a, struct str string);
int wire_add_call(struct response *a, int64_t index, struct str id, struct str name,
                  struct str args, struct err *e);
/* Keeps a `usage` object, and reads its counts into `to`, by a list that ends with inner NULL. A
 * later row of the same kind replaces an earlier one. */
struct wire_usage {
    enum usage_kind kind;
    const char *outer, *inner; /* if outer is NULL, a member of `usage` itself */
};
void wire_read_usage(struct response *a, struct usage *to, struct str usage,
                     const struct wire_usage *members);
/* Sets the error of an event or response that cannot be used: `what: 'its beginning'`. Returns
 * -1. */
int wire_unusable(struct err *e, enum err_kind kind, const char *what, struct str data);
/* Reads an event whose data is an object with a member `type`; if it has none, the name of the
 * event is the type. Returns what `known` does, 0 for an event without data, or -1 with *e set if
 * the event reports an error or cannot be used. */
typedef int wire_typed_event(struct response *a, struct str type, struct str object, struct err *e);
int wire_read_typed_event(struct response *a, struct str event, struct str data,
                          wire_typed_event *known, struct err *e);
/* Parse the data of an event, or a whole response. Return 0, or -1 with *e set if it is not JSON or
 * is nested too deeply. In an event, NaN and Infinity are accepted and count as missing; its value
 * is valid until the next event. */
int wire_parse_event(struct response *a, struct str data, struct str *value, struct err *e);
int wire_parse_whole(struct str body, struct str *value, struct err *e);

#endif
