#include "llm/provider_openai.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/llm/provider_error.h"
#include "llm/provider_openai_body.h"
#include "llm/provider_wire.h"

/* ---- the request ---- */

static int add_key(const struct ask *ask, struct http_request *r, struct err *e)
{
    struct buf value = BUF_INIT(BUF_SMALL);
    int rc;

    if (!ask->key || !*ask->key)
        return 0;
    buf_add_c(&value, "Bearer ");
    buf_add_str(&value, str_trim(str_of(ask->key)));
    rc = http_add_header(r, "Authorization", buf_str(&value), e);
    buf_release(&value);
    return rc;
}

static int request(const struct provider *p, const struct ask *ask, struct http_request *r,
                   struct err *e)
{
    if (wire_begin_post(r, p, ask, "", "/chat/completions", e) != 0 || add_key(ask, r, e) != 0)
        return -1;
    openai_body_set(p, ask, 0, r);
    return 0;
}

static int models(const struct provider *p, const struct ask *ask, struct http_request *r,
                  struct err *e)
{
    return wire_begin_get(r, p, ask, "", "/models", e) != 0 ? -1 : add_key(ask, r, e);
}

/* ---- the answer: what a stream's chunks and a whole answer have in common ---- */

/* Reasoning: a text, or an array of parts (OpenRouter's reasoning_details, Mistral's thinking). */
static int take_thought(struct response *a, struct str thought, bool *any)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = json_text(thought, &scratch);
    int rc = response_add_reasoning(a, text);

    *any = text.n > 0;
    for (struct json_iter it = json_iter(thought); rc == 0 && !it.object && json_next(&it);) {
        text = json_text(json_get(it.value, "text"), &scratch);
        if (text.n == 0)
            text = json_text(json_get(it.value, "summary"), &scratch);
        *any = *any || text.n > 0;
        rc = response_add_reasoning(a, text);
    }
    buf_release(&scratch);
    return rc;
}

/* The first that holds any of it: the same text can stand in several members. */
static int take_reasoning(struct response *a, const struct str *thoughts, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count && !any; i++)
        if (take_thought(a, thoughts[i], &any) != 0)
            return -1;
    return 0;
}

/* Text, or the text parts of an array of content parts; Mistral's thinking is another one. */
static int take_content(struct response *a, struct str content, struct err *e)
{
    int rc = response_add_text(a, content, e);
    bool any;

    for (struct json_iter it = json_iter(content); rc == 0 && !it.object && json_next(&it);) {
        rc = take_thought(a, json_get(it.value, "thinking"), &any);
        if (rc == 0)
            rc = response_add_text(a, json_get(it.value, "text"), e);
    }
    return rc;
}

/* A refusal is shown like an answer, and its finish says what it is. */
static int take_refusal(struct response *a, struct str refusal, struct err *e)
{
    if (json_type(refusal) != JSON_STRING || refusal.n <= 2)
        return 0;
    a->refused = true;
    return take_content(a, refusal, e);
}

/* A piece of a call. The arguments are a string, or from some servers the object itself. */
static int take_function(struct response *a, int64_t index, struct str id, struct str function,
                         struct err *e)
{
    struct buf id_text = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE);
    int rc;

    json_decode(id, &id_text);
    json_decode(json_get(function, "name"), &name);
    rc = response_add_call(a, index, buf_str(&id_text), buf_str(&name),
                           json_get(function, "arguments"), e);
    buf_release(&id_text);
    buf_release(&name);
    return rc;
}

/* Without an index, the place in the array stands for it. */
static int take_calls(struct response *a, struct str calls, struct err *e)
{
    int64_t place = 0;
    int rc = 0;

    for (struct json_iter it = json_iter(calls); rc == 0 && json_next(&it); place++) {
        int64_t index = place;

        if (json_type(it.value) != JSON_OBJECT)
            continue;
        json_int(json_get(it.value, "index"), &index);
        rc = take_function(a, index, json_get(it.value, "id"), json_get(it.value, "function"), e);
        if (rc == 0)
            rc = response_add_call_extra(a, index, json_get(it.value, "extra_content"), e);
    }
    return rc;
}

static void keep_details(struct response *a, struct str details, bool piece)
{
    for (struct json_iter it = json_iter(details); !it.object && json_next(&it);)
        opaque_add_detail(&a->opaque, it.value, piece);
}

static int take_annotations(struct response *a, struct str annotations)
{
    int rc = 0;

    for (struct json_iter it = json_iter(annotations); rc == 0 && !it.object && json_next(&it);)
        if (json_type(it.value) == JSON_OBJECT)
            rc = response_add_citation(a, it.value);
    return rc;
}

/* A delta, or the message of a whole answer. */
static int take_message(struct response *a, struct str message, bool delta, struct err *e)
{
    enum { CONTENT, REFUSAL, CALLS, FUNCTION, NOTES, IMAGES, AUDIO, THOUGHT, COUNT = THOUGHT + 3 };
    static const char *const keys[COUNT] = {
        "content",
        "refusal",
        "tool_calls",
        "function_call", /* the last: before tool_calls, 2023 */
        "annotations",   /* OpenAI, OpenRouter: of a web search */
        "images",
        "audio",             /* OpenRouter, Gemini; OpenAI */
        "reasoning_content", /* llama.cpp, vLLM, DeepSeek */
        "reasoning",         /* Ollama, Groq, OpenRouter */
        "reasoning_details", /* OpenRouter */
    };
    struct str got[COUNT];

    json_pick(message, keys, got, COUNT);
    keep_details(a, got[COUNT - 1], delta);
    if (take_reasoning(a, &got[THOUGHT], COUNT - THOUGHT) != 0 ||
        take_content(a, got[CONTENT], e) != 0 || take_refusal(a, got[REFUSAL], e) != 0 ||
        take_annotations(a, got[NOTES]) != 0 || take_calls(a, got[CALLS], e) != 0)
        return -1;
    if (json_type(json_at(got[IMAGES], 0)) == JSON_OBJECT)
        response_drop_media(a, RESPONSE_IMAGE);
    if (json_type(got[AUDIO]) == JSON_OBJECT)
        response_drop_media(a, RESPONSE_AUDIO);
    /* llama-cpp-python sends both for one call. */
    a->any_tool_calls = a->any_tool_calls || json_type(json_at(got[CALLS], 0)) == JSON_OBJECT;
    if (json_type(got[FUNCTION]) == JSON_OBJECT && !a->any_tool_calls)
        return take_function(a, 0, STR_NONE, got[FUNCTION], e);
    return 0;
}

static const struct wire_name finish_names[] = {
    {"function_call", "tool_calls"},
    {"eos", "stop"},
    {"eos_token", "stop"},
    {"end_turn", "stop"},
    {"stop_sequence", "stop"},
    {"max_tokens", "length"},
    {"model_length", "length"},
    {"tool_use", "tool_calls"},
    {NULL, NULL},
};

/* An empty reason, which some gateways send until the end, is none. */
static void take_finish(struct response *a, struct str finish)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str reason = json_text(finish, &scratch);

    if (reason.n > 0) {
        response_set_finish(a,
                            a->refused ? STR("content_filter") : wire_finish(reason, finish_names));
        a->finished = true;
    }
    buf_release(&scratch);
}

static void take_usage(struct response *a, struct str usage)
{
    static const struct {
        enum usage_kind kind;
        const char *outer, *inner; /* outer NULL: a member of `usage` itself */
    } members[] = {
        {USAGE_INPUT, NULL, "prompt_tokens"},
        {USAGE_OUTPUT, NULL, "completion_tokens"},
        {USAGE_CACHE_READ, NULL, "cached_tokens"},           /* Moonshot */
        {USAGE_CACHE_READ, NULL, "prompt_cache_hit_tokens"}, /* DeepSeek */
        {USAGE_CACHE_READ, "prompt_tokens_details", "cached_tokens"},
        {USAGE_CACHE_WRITE, "prompt_tokens_details", "cache_write_tokens"}, /* OpenRouter */
        {USAGE_REASONING, "completion_tokens_details", "reasoning_tokens"},
        {USAGE_COST, NULL, "cost"},         /* OpenRouter */
        {USAGE_COST, "cost", "total_cost"}, /* Perplexity */
    };

    for (size_t i = 0; json_type(usage) == JSON_OBJECT && i < sizeof members / sizeof *members; i++)
        usage_read(&a->usage, members[i].kind,
                   json_get(members[i].outer ? json_get(usage, members[i].outer) : usage,
                            members[i].inner));
}

/* The members of a choice that are read, in one pass: each token comes through here. */
enum choice_member { DELTA, MESSAGE, FINISH, INDEX, FAULT, FAULT_OBJECT, CHOICE_MEMBERS };

/* The choice of index 0, or the first one that does not tell; STR_NONE when there is none. */
static struct str first_choice(struct str choices, struct str got[CHOICE_MEMBERS])
{
    static const char *const keys[CHOICE_MEMBERS] = {
        [DELTA] = "delta", [MESSAGE] = "message", [FINISH] = "finish_reason",
        [INDEX] = "index", [FAULT] = "error",     [FAULT_OBJECT] = "object",
    };

    for (struct json_iter it = json_iter(choices); json_next(&it);) {
        int64_t index = 0;

        json_pick(it.value, keys, got, CHOICE_MEMBERS);
        json_int(got[INDEX], &index);
        if (index == 0 && json_type(it.value) == JSON_OBJECT)
            return it.value;
    }
    json_pick(STR_NONE, keys, got, CHOICE_MEMBERS);
    return STR_NONE;
}

/* A chunk or a whole answer. OpenRouter reports errors in a choice too. *any: it has a choice. */
static int take_object(struct response *a, struct str object, bool *any, struct err *e)
{
    enum { ERROR, OBJECT, CHOICES, MODEL, USAGE, COUNT };
    static const char *const keys[COUNT] = {"error", "object", "choices", "model", "usage"};
    struct str outer[COUNT], inner[CHOICE_MEMBERS], choice;
    bool delta;

    json_pick(object, keys, outer, COUNT);
    if (provider_error_in(outer[ERROR], outer[OBJECT]))
        return provider_error_set_reported(e, object);
    choice = first_choice(outer[CHOICES], inner);
    *any = choice.n > 0;
    wire_take_model(a, outer[MODEL]);
    take_usage(a, outer[USAGE]);
    delta = json_type(inner[DELTA]) == JSON_OBJECT;
    if (take_message(a, inner[delta ? DELTA : MESSAGE], delta, e) != 0)
        return -1;
    if (provider_error_in(inner[FAULT], inner[FAULT_OBJECT]))
        return provider_error_set_reported(e, choice);
    take_finish(a, inner[FINISH]);
    return 0;
}

static int take_event(struct response *a, struct str event, struct str data, struct err *e)
{
    struct str value;
    bool any;

    if (str_starts(data, STR("[DONE]"))) {
        a->finished = true;
        return 1;
    }
    if (str_trim(data).n == 0)
        return 0;
    if (wire_parse_event(data, &value, e) != 0)
        return -1;
    if (str_eq_c(event, "error"))
        return provider_error_set_reported(e, value);
    return take_object(a, value, &any, e);
}

static int take_whole(struct response *a, struct str body, struct err *e)
{
    struct str value;
    bool any = false;

    if (wire_parse_whole(body, &value, e) != 0)
        return -1;
    if (json_type(value) == JSON_ARRAY)
        value = json_at(value, 0);
    if (take_object(a, value, &any, e) != 0)
        return -1;
    if (!any)
        return wire_unusable(e, ERR_BUSY, "the server's answer is none", str_trim(body));
    a->finished = true;
    return 0;
}

/* ---- the servers ---- */

/* They differ in their place and their key alone. Of those with a key, the base URL and the
 * variable are what the service documents (November 2026):
 *
 *     openai      platform.openai.com/docs/api-reference
 *     openrouter  openrouter.ai/docs/quickstart
 *     groq        console.groq.com/docs/openai
 *     mistral     docs.mistral.ai/api; the variable is that of its client
 *     deepseek    api-docs.deepseek.com
 *     gemini      ai.google.dev/gemini-api/docs/openai and …/docs/api-key
 */
#define COMPATIBLE                                                                                 \
    .request = request, .drop_unsupported = openai_body_drop_unsupported, .models = models,        \
    .event = take_event, .whole = take_whole

const struct provider provider_openai = {
    .name = "openai",
    .base_url = "https://api.openai.com/v1",
    .needs_key = true,
    .key_variable = "OPENAI_API_KEY",
    .base_variable = "OPENAI_BASE_URL",
    COMPATIBLE,
};

const struct provider provider_openrouter = {
    .name = "openrouter",
    .base_url = "https://openrouter.ai/api/v1",
    .needs_key = true,
    .key_variable = "OPENROUTER_API_KEY",
    .keep_details = true,
    COMPATIBLE,
};

const struct provider provider_groq = {
    .name = "groq",
    .base_url = "https://api.groq.com/openai/v1",
    .needs_key = true,
    .key_variable = "GROQ_API_KEY",
    COMPATIBLE,
};

const struct provider provider_mistral = {
    .name = "mistral",
    .base_url = "https://api.mistral.ai/v1",
    .needs_key = true,
    .key_variable = "MISTRAL_API_KEY",
    .usage_unasked = true, /* HTTP 422 "Extra inputs are not permitted" otherwise */
    .short_call_ids = true, /* HTTP 400 "Tool call id was … but must be a-z, A-Z, 0-9, with a length
                             * of 9" otherwise */
    COMPATIBLE,
};

const struct provider provider_deepseek = {
    .name = "deepseek",
    .base_url = "https://api.deepseek.com",
    .needs_key = true,
    .key_variable = "DEEPSEEK_API_KEY",
    .keep_reasoning = true,
    COMPATIBLE,
};

const struct provider provider_gemini = {
    .name = "gemini",
    .base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
    .needs_key = true,
    .key_variable = "GEMINI_API_KEY",
    COMPATIBLE,
};

const struct provider provider_ollama = {
    .name = "ollama",
    .base_url = "http://127.0.0.1:11434/v1",
    .base_variable = "OLLAMA_HOST",
    .probe = {"/api/tags", "models"},
    COMPATIBLE,
};

const struct provider provider_llamacpp = {
    .name = "llamacpp",
    .base_url = "http://127.0.0.1:8080/v1",
    .probe = {"/v1/models", "data"},
    COMPATIBLE,
};
