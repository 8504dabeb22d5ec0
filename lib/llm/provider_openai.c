#include "chathist/llm/provider_openai.h"

#include <string.h>

#include "chathist/base/cjson.h"
#include "chathist/base/json.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/refusals.h"
#include "llm/provider_wire.h"

/* ---- reasoning that goes back to its server ---- */

/* The members that go back in the form in which they came. */
static const struct {
    const char *name;
    enum json_type type;
} members[] = {
    {"reasoning_content", JSON_STRING},        {"reasoning", JSON_STRING},
    {"reasoning_details", JSON_ARRAY},         {"thinking_blocks", JSON_ARRAY},
    {"provider_specific_fields", JSON_OBJECT}, {"extra_content", JSON_OBJECT},
};
#define MEMBERS (sizeof members / sizeof *members)

/* Adds the members that came with the call of that id, or for STR_NONE with the message. */
static void set_own_members(cJSON *to, struct str blocks, struct str id)
{
    for (struct json_iter it = json_iter(blocks); !it.object && json_next(&it);)
        for (size_t i = 0; i < MEMBERS; i++) {
            bool text = members[i].type == JSON_STRING;
            struct str value = json_get(it.value, text ? "text" : members[i].name);

            if (json_has_type(it.value, members[i].name) && json_type(value) == members[i].type &&
                json_equal(json_get(it.value, "id"), id))
                cjson_set_raw(to, members[i].name, value);
        }
}

/* Makes the array of calls: [{"id","type":"function","function":{"name","arguments"}}]. */
static cJSON *calls_tree(struct str calls, struct str blocks, struct call_ids *ids)
{
    cJSON *array = cjson_array();

    for (struct json_iter it = json_iter(calls); json_next(&it);) {
        cJSON *call = cjson_object(), *function = cjson_object();
        struct wire_call c;

        wire_call_init(&c, ids, it.value);
        cjson_set_text(function, "name", buf_str(&c.name));
        cjson_set_text(function, "arguments", buf_str(&c.args));
        cjson_set_text(call, "id", buf_str(&c.id));
        cjson_set_text(call, "type", STR("function"));
        cjson_set(call, "function", function);
        set_own_members(call, blocks, json_get(it.value, "id"));
        wire_call_release(&c);
        cjson_push(array, call);
    }
    return array;
}

/* Makes the part of an image (ChatCompletionContentPartImage), or of a PDF, which needs the name of
 * a file (OpenAI, "File inputs"; OpenRouter, "PDF Inputs"). */
static cJSON *file_part(const struct attachment *a)
{
    bool image = attachment_is_image(a);
    cJSON *part = wire_of_type(image ? "image_url" : "file"), *inner = cjson_object();

    if (!image)
        cjson_set_text(inner, "filename", str_of(a->name));
    wire_set_data_url(inner, image ? "url" : "file_data", a);
    cjson_set(part, image ? "image_url" : "file", inner);
    return part;
}

/* An empty content is "", because llama-cpp-python refuses null. */
static cJSON *message_tree(const struct context_message *m, struct context_server asked,
                           struct call_ids *ids)
{
    struct str blocks = context_blocks(m, asked);
    cJSON *t = cjson_object();

    cjson_set_text(t, "role", str_of(role_name(m->role)));
    if (m->tool_call_id)
        wire_set_result(t, ids, "tool_call_id", NULL);
    if (m->role == ROLE_TOOL)
        cjson_set_text(t, "content", (struct str){m->content, m->n});
    else
        wire_set_content(t, "content", m, "text", file_part);
    if (m->tool_calls) {
        set_own_members(t, blocks, STR_NONE);
        cjson_set(t, "tool_calls", calls_tree(str_of(m->tool_calls), blocks, ids));
    }
    return t;
}

/* The content of a tool message is text (openai-openapi, ChatCompletionRequestToolMessage), so the
 * images of results are in a message of the user. */
static void add_result_images(cJSON *array, const struct context_message *results, size_t count)
{
    cJSON *parts = cjson_array(), *t = cjson_object();
    size_t images = 0;

    cjson_push(parts, wire_text_part("text", STR("The images of the results of the tools:")));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < results[i].attachments_count; k++, images++)
            cjson_push(parts, file_part(&results[i].attachments[k]));
    cjson_set_text(t, "role", STR("user"));
    cjson_set(t, "content", parts);
    if (images > 0)
        cjson_push(array, t);
    else
        cJSON_Delete(t);
}

cJSON *openai_messages(const struct context *c, struct str system, struct context_server asked,
                       bool short_ids)
{
    return wire_messages(c, system, asked, short_ids, message_tree, add_result_images);
}

/* ---- the body of a request ---- */

/* A tool without parameters still has the member `parameters`, because Gemini and Mistral require
 * it. */
cJSON *openai_tools(const struct ask *ask)
{
    cJSON *array = cjson_array();

    for (size_t i = 0; i < ask->tools_count; i++) {
        cJSON *function = cjson_object(), *t = wire_of_type("function");

        wire_set_tool(function, ask->tools[i], "parameters");
        cjson_set(t, "function", function);
        cjson_push(array, t);
    }
    return array;
}

/* Adds a stand-in for the members that messages of the assistant lack: what the provider, or the
 * server at that host, is known to demand, or has demanded. DeepSeek and Kimi want
 * `reasoning_content`, which may be empty (Kimi's platform has the error "thinking is enabled but
 * reasoning_content is missing in assistant tool call message"), Gemini the signature of a call. */
static void add_stand_ins(cJSON *messages, const struct provider *p, const struct ask *ask)
{
    static const struct {
        const char *provider, *host;
        bool signature;
    } known[] = {
        {"deepseek", ".deepseek.com:", false},
        {"", ".moonshot.ai:", false},
        {"", ".moonshot.cn:", false},
        {"gemini", ".googleapis.com:", true},
    };
    bool unwanted = refusals_have(ask->refused, REFUSED_REASONING, NULL);
    bool reasoning = refusals_have(ask->refused, REFUSED_SILENCE, NULL);
    bool signature = refusals_have(ask->refused, REFUSED_UNSIGNED, NULL);
    cJSON *m;

    for (size_t i = 0; !unwanted && i < sizeof known / sizeof *known; i++)
        if (strcmp(p->name, known[i].provider) == 0 ||
            str_find(str_of(ask->address), str_of(known[i].host))) {
            reasoning = reasoning || !known[i].signature;
            signature = signature || known[i].signature;
        }
    cJSON_ArrayForEach(m, messages)
    {
        const cJSON *role = cJSON_GetObjectItemCaseSensitive(m, "role");
        cJSON *calls = cJSON_GetObjectItemCaseSensitive(m, "tool_calls");

        if (reasoning && strcmp(role->valuestring, "\"assistant\"") == 0 && /* stored as JSON */
            !cJSON_HasObjectItem(m, "reasoning_content"))
            cjson_set_text(m, "reasoning_content", STR(""));
        if (signature && calls && !cJSON_HasObjectItem(calls->child, "extra_content"))
            cjson_set_raw(calls->child, "extra_content",
                          STR("{\"google\":{\"thought_signature\":"
                              "\"skip_thought_signature_validator\"}}"));
    }
}

static int openai_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                          struct err *e)
{
    bool usage = ask->stream && !wire_has_option(ask, "stream") && !p->usage_unasked;
    struct str system = {ask->context->system, ask->context->system_len};
    cJSON *t, *messages;

    if (wire_begin(r, p, ask, true, "", "/chat/completions", e) != 0)
        return -1;
    t = cjson_object();
    cjson_set_text(t, "model", str_of(ask->model));
    messages = openai_messages(ask->context, system, wire_asked(p, ask), p->short_call_ids);
    add_stand_ins(messages, p, ask);
    cjson_set(t, "messages", messages);
    if (ask->tools_count > 0)
        cjson_set(t, "tools", openai_tools(ask));
    cjson_set(t, "stream", cJSON_CreateBool(ask->stream));
    if (usage)
        cjson_set_raw(t, "stream_options", STR("{\"include_usage\":true}"));
    if (ask->schema.p) {
        /* The older form has the schema beside the type (llama-cpp-python, README "JSON Schema
         * Mode" at github.com/abetlen/llama-cpp-python; llama.cpp accepts it, too). */
        cJSON *format = wire_of_type(ask->schema_beside ? "json_object" : "json_schema");
        cJSON *inner = ask->schema_beside ? wire_schema(ask) : cjson_object();

        if (!ask->schema_beside)
            wire_set_schema(inner, ask);
        cjson_set(format, ask->schema_beside ? "schema" : "json_schema", inner);
        cjson_set(t, "response_format", format);
    }
    return wire_end_body(t, p, ask, r, e);
}

/* ---- the request ---- */

/* Adds the base URL without `end`. Returns whether it ends so. */
static bool base_without(const struct provider *p, const struct ask *ask, const char *end,
                         struct buf *root)
{
    struct str base = str_of(ask->base_url ? ask->base_url : p->base_url);
    bool ends;

    while (str_ends(base, STR("/")))
        base.n--;
    ends = str_ends(base, str_of(end));
    buf_add(root, base.p, base.n - (ends ? strlen(end) : 0));
    return ends;
}

/* The compatible list says nothing about the models' limits, Gemini's own does
 * (ai.google.dev/api/models, `inputTokenLimit`). Other servers have only the compatible one. */
static int gemini_models(const struct provider *p, const struct ask *ask, struct http_request *r,
                         struct err *e)
{
    struct buf root = BUF_INIT(BUF_LINE);
    struct provider own_api = *p;
    struct ask own = *ask;
    int rc;

    if (!base_without(p, ask, "/v1beta/openai", &root)) {
        rc = wire_models(p, ask, r, e);
    } else {
        own.base_url = buf_c(&root);
        own_api.key_header = "x-goog-api-key";
        rc = wire_begin(r, &own_api, &own, false, "/v1beta", "/models?pageSize=1000", e);
    }
    buf_release(&root);
    return rc;
}

/* llama.cpp, tools/server/README.md, "GET /props": n_ctx is the context of a slot, so of one
 * conversation. The path has no /v1 before it. */
static int llamacpp_window(const struct provider *p, const struct ask *ask, struct http_request *r,
                           struct err *e)
{
    struct buf root = BUF_INIT(BUF_LINE);
    struct ask at_root = *ask;
    int rc;

    base_without(p, ask, "/v1", &root);
    at_root.base_url = buf_c(&root);
    rc = wire_begin(r, p, &at_root, false, "", "/props", e);
    buf_release(&root);
    return rc;
}

static void llamacpp_read_window(struct str response, const struct ask *ask, struct model_window *w)
{
    (void)ask;
    json_int(json_get(json_get(response, "default_generation_settings"), "n_ctx"), &w->most);
}

/* ---- the response: chunks of a stream, and whole responses ---- */

/* Reads reasoning: a text, or an array of parts (OpenRouter's reasoning_details, Mistral's
 * thinking). *any is set if it holds text. */
static int openai_read_thought(struct response *a, struct str thought, bool *any)
{
    int rc = wire_add_reasoning(a, thought);

    *any = json_body(thought).n > 0;
    for (struct json_iter it = json_iter(thought); rc == 0 && !it.object && json_next(&it);) {
        struct str text = json_get(it.value, "text");

        if (json_body(text).n == 0)
            text = json_get(it.value, "summary");
        *any = *any || json_body(text).n > 0;
        rc = wire_add_reasoning(a, text);
    }
    return rc;
}

/* Reads the first member that holds reasoning, because the same text can be in several members.
 * They are in the order of `members`. */
static int openai_read_reasoning(struct response *a, const struct str *thoughts, size_t count)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool any = false;
    int rc = 0;

    for (size_t i = 0; i < count && !any && rc == 0; i++) {
        rc = openai_read_thought(a, thoughts[i], &any);
        if (any && json_type(thoughts[i]) == JSON_STRING)
            opaque_add_reasoning(&a->opaque, members[i].name, json_text(thoughts[i], &scratch));
    }
    buf_release(&scratch);
    return rc;
}

/* Reads text, or an array of content parts. Mistral's thinking is such a part. */
static int openai_read_content(struct response *a, struct str content, struct err *e)
{
    int rc = response_add_text(a, content, e);
    bool any;

    for (struct json_iter it = json_iter(content); rc == 0 && !it.object && json_next(&it);) {
        rc = openai_read_thought(a, json_get(it.value, "thinking"), &any);
        if (rc == 0)
            rc = response_add_text(a, json_get(it.value, "text"), e);
    }
    return rc;
}

/* If a call has no index, its place in the array is used. Its arguments are a string; some servers
 * send the object itself. A call of a custom tool, whose input is a text (openai-openapi,
 * ChatCompletionMessageCustomToolCall), has no function. */
static int openai_read_calls(struct response *a, struct str calls, struct err *e)
{
    int64_t place = 0;
    int rc = 0;

    for (struct json_iter it = json_iter(calls); rc == 0 && json_next(&it); place++) {
        struct str function = json_get(it.value, "function");
        int64_t index = place;

        if (json_type(it.value) != JSON_OBJECT)
            continue;
        if (json_type(json_get(it.value, "custom")) == JSON_OBJECT) {
            response_ask_client(a, STR("custom"), STR_NONE);
            continue;
        }
        json_int(json_get(it.value, "index"), &index);
        rc = wire_add_call(a, index, json_get(it.value, "id"), json_get(function, "name"),
                           json_get(function, "arguments"), e);
        for (size_t i = 0; i < MEMBERS && rc == 0; i++)
            if (members[i].type == JSON_OBJECT)
                rc = response_add_extra(a, response_call_at(a, index), members[i].name,
                                        json_get(it.value, members[i].name), e);
    }
    return rc;
}

static void openai_add_details(struct response *a, const char *member, struct str details,
                               bool piece)
{
    for (struct json_iter it = json_iter(details); !it.object && json_next(&it);)
        opaque_add_detail(&a->opaque, member, it.value, piece);
}

/* Reads a delta, or the message of a whole response. */
static int openai_read_message(struct response *a, struct str message, bool delta, struct err *e)
{
    enum {
        CONTENT,
        REFUSAL,
        CALLS,
        FUNCTION,
        NOTES,
        IMAGES,
        AUDIO,
        BLOCKS,
        FIELDS,
        THOUGHT,
        DETAILS = THOUGHT + 2,
        COUNT
    };
    static const char *const keys[COUNT] = {
        "content",
        "refusal",
        "tool_calls",
        "function_call", /* the predecessor of tool_calls, until 2023 */
        "annotations",   /* OpenAI, OpenRouter: from a web search */
        "images",
        "audio",           /* OpenRouter, Gemini; OpenAI */
        "thinking_blocks", /* LiteLLM, and the next one */
        "provider_specific_fields",
        "reasoning_content", /* llama.cpp, vLLM, DeepSeek */
        "reasoning",         /* Ollama, Groq, OpenRouter */
        "reasoning_details", /* OpenRouter */
    };
    struct str got[COUNT];

    json_pick(message, keys, got, COUNT);
    openai_add_details(a, keys[DETAILS], got[DETAILS], delta);
    openai_add_details(a, keys[BLOCKS], got[BLOCKS], delta);
    if (response_add_extra(a, NULL, keys[FIELDS], got[FIELDS], e) != 0 ||
        openai_read_reasoning(a, &got[THOUGHT], 1 + DETAILS - THOUGHT) != 0 ||
        openai_read_content(a, got[CONTENT], e) != 0)
        return -1;
    /* A refusal is shown like an answer. Its finish reason becomes `content_filter`. */
    if (json_body(got[REFUSAL]).n > 0) {
        a->refused = true;
        if (openai_read_content(a, got[REFUSAL], e) != 0)
            return -1;
    }
    if (response_add_citations(a, got[NOTES]) != 0 || openai_read_calls(a, got[CALLS], e) != 0)
        return -1;
    for (struct json_iter it = json_iter(got[IMAGES]); !it.object && json_next(&it);)
        response_add_image(a, json_get(json_get(it.value, "image_url"), "url"));
    if (json_type(got[AUDIO]) == JSON_OBJECT) {
        response_drop_media(a, RESPONSE_AUDIO);
        /* The text of an answer that is spoken is only here (OpenAI, "Audio and speech"). */
        if (openai_read_content(a, json_get(got[AUDIO], "transcript"), e) != 0)
            return -1;
    }
    /* llama-cpp-python sends both members for one call. */
    a->any_tool_calls = a->any_tool_calls || json_type(json_at(got[CALLS], 0)) == JSON_OBJECT;
    if (json_type(got[FUNCTION]) == JSON_OBJECT && !a->any_tool_calls)
        return wire_add_call(a, 0, STR_NONE, json_get(got[FUNCTION], "name"),
                             json_get(got[FUNCTION], "arguments"), e);
    return 0;
}

static void openai_read_usage(struct response *a, struct str usage)
{
    static const struct wire_usage counts[] = {
        {USAGE_INPUT, NULL, "prompt_tokens"},
        {USAGE_OUTPUT, NULL, "completion_tokens"},
        {USAGE_CACHE_READ, NULL, "cached_tokens"},           /* Moonshot */
        {USAGE_CACHE_READ, NULL, "prompt_cache_hit_tokens"}, /* DeepSeek */
        {USAGE_CACHE_READ, "prompt_tokens_details", "cached_tokens"},
        {USAGE_CACHE_WRITE, "prompt_tokens_details", "cache_write_tokens"}, /* OpenRouter */
        {USAGE_REASONING, "completion_tokens_details", "reasoning_tokens"},
        {.inner = NULL},
    };
    struct usage all, *u = &a->usage;
    int64_t rest;

    /* This runs for every token, mostly without an object. */
    if (json_type(usage) != JSON_OBJECT)
        return;
    wire_read_usage(a, u, usage, counts);
    /* The tokens of reasoning are added to the output if the server counts them beside it. Only the
     * total shows it: that of OpenAI is the sum of input and output; that of xAI and of Gemini's
     * endpoint is larger by the reasoning, which Gemini does not even report. */
    usage_init(&all);
    usage_read(&all, USAGE_INPUT, json_get(usage, "total_tokens"));
    rest = all.at[USAGE_INPUT] - u->at[USAGE_INPUT];
    if (u->at[USAGE_INPUT] >= 0 && u->at[USAGE_OUTPUT] >= 0 && rest > u->at[USAGE_OUTPUT] &&
        (u->at[USAGE_REASONING] < 0 || u->at[USAGE_REASONING] == rest - u->at[USAGE_OUTPUT]))
        u->at[USAGE_OUTPUT] = rest;
}

/* The members of a choice. One pass reads them all, because this runs for every token. */
enum choice_member { DELTA, MESSAGE, FINISH, INDEX, FAULT, FAULT_OBJECT, SPENT, CHOICE_MEMBERS };

/* Returns the choice of index 0, or the first one without an index, or STR_NONE. */
static struct str first_choice(struct str choices, struct str got[CHOICE_MEMBERS])
{
    static const char *const keys[CHOICE_MEMBERS] = {
        [DELTA] = "delta", [MESSAGE] = "message",     [FINISH] = "finish_reason", [INDEX] = "index",
        [FAULT] = "error", [FAULT_OBJECT] = "object", [SPENT] = "usage", /* Moonshot */
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

/* Reads a chunk or a whole response. *any is set if it has a choice. OpenRouter also reports errors
 * inside a choice. */
static int openai_read_object(struct response *a, struct str object, bool *any, struct err *e)
{
    enum { ERROR, OBJECT, CHOICES, MODEL, USAGE, GROQ, TIER, HIDDEN, COUNT };
    static const char *const keys[COUNT] = {"error", "object", "choices",      "model",
                                            "usage", "x_groq", "service_tier", "_hidden_params"};
    struct str outer[COUNT], inner[CHOICE_MEMBERS], choice, reason;
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool delta;

    json_pick(object, keys, outer, COUNT);
    if (provider_error_in(outer[ERROR], outer[OBJECT]))
        return provider_error_set_reported(e, object);
    choice = first_choice(outer[CHOICES], inner);
    *any = choice.n > 0;
    if (!*any && provider_error_reported(object))
        return provider_error_set_reported(e, object);
    wire_set_model(a, outer[MODEL]);
    openai_read_usage(a, inner[SPENT]);
    openai_read_usage(a, json_get(outer[GROQ], "usage"));
    openai_read_usage(a, outer[USAGE]);
    response_add_usage_member(a, "service_tier", outer[TIER]);
    /* LiteLLM */
    response_add_usage_member(a, "response_cost", json_get(outer[HIDDEN], "response_cost"));
    delta = json_type(inner[DELTA]) == JSON_OBJECT;
    if (openai_read_message(a, inner[delta ? DELTA : MESSAGE], delta, e) != 0)
        return -1;
    if (provider_error_in(inner[FAULT], inner[FAULT_OBJECT]))
        return provider_error_set_reported(e, choice);
    /* Some gateways send an empty reason until the end; it is ignored. */
    reason = json_text(inner[FINISH], &scratch);
    if (reason.n > 0) {
        response_set_finish(a, a->refused ? STR("content_filter") : reason);
        a->finished = true;
    }
    buf_release(&scratch);
    return 0;
}

static int openai_read_event(struct response *a, struct str event, struct str data, struct err *e)
{
    struct str value;
    bool any;

    if (str_starts(data, STR("[DONE]"))) {
        a->finished = true;
        return 1;
    }
    /* Some gateways send the comments that keep a connection open as data. */
    if (str_trim(data).n == 0 || str_starts(data, STR(":")))
        return 0;
    if (wire_parse_event(a, data, &value, e) != 0)
        return -1;
    if (str_eq_c(event, "error"))
        return provider_error_set_reported(e, value);
    return openai_read_object(a, value, &any, e);
}

static int openai_read_whole(struct response *a, struct str body, struct err *e)
{
    struct str value;
    bool any = false;

    if (wire_parse_whole(body, &value, e) != 0)
        return -1;
    if (json_type(value) == JSON_ARRAY)
        value = json_at(value, 0);
    if (openai_read_object(a, value, &any, e) != 0)
        return -1;
    if (!any)
        return wire_unusable(e, ERR_BUSY, "the server's answer has no choices", str_trim(body));
    a->finished = true;
    return 0;
}

/* ---- the servers ---- */

/* These servers differ only in address and key, and in the flags set here. The base URL and the
 * variable of each service are documented there (November 2026):
 *
 *     openai      platform.openai.com/docs/api-reference
 *     openrouter  openrouter.ai/docs/quickstart
 *     groq        console.groq.com/docs/openai
 *     mistral     docs.mistral.ai/api; the variable is that of its client
 *     deepseek    api-docs.deepseek.com
 *     gemini      ai.google.dev/gemini-api/docs/openai and .../docs/api-key */
#define COMPATIBLE_BUT_MODELS                                                                      \
    .effort_field = "reasoning_effort", .schema_field = "response_format",                         \
    .request = openai_request, .event = openai_read_event, .whole = openai_read_whole
#define COMPATIBLE COMPATIBLE_BUT_MODELS, .models = wire_models

/* A server that does not know the newer field for the limit may ignore it without a word. OpenAI's
 * refuse the older one for models that reason. */
#define OPENAI_CHAT                                                                                \
    .base_url = "https://api.openai.com/v1", .needs_key = true, .key_variable = "OPENAI_API_KEY",  \
    .base_variable = "OPENAI_BASE_URL", .key_name = "openai", .documents = true,                   \
    .limit_field = "max_completion_tokens", .limit_elsewhere = "max_tokens", COMPATIBLE

const struct provider provider_openai = {
    .name = "openai",
    OPENAI_CHAT,
};

const struct provider provider_openai_chat = {
    .name = "openai-chat",
    OPENAI_CHAT,
};

const struct provider provider_openrouter = {
    .name = "openrouter",
    .documents = true,
    .base_url = "https://openrouter.ai/api/v1",
    .needs_key = true,
    .key_variable = "OPENROUTER_API_KEY",
    .limit_field = "max_tokens",
    COMPATIBLE,
};

const struct provider provider_groq = {
    .name = "groq",
    .base_url = "https://api.groq.com/openai/v1",
    .needs_key = true,
    .key_variable = "GROQ_API_KEY",
    .limit_field = "max_completion_tokens",
    .limit_elsewhere = "max_tokens",
    COMPATIBLE,
};

const struct provider provider_mistral = {
    .name = "mistral",
    .base_url = "https://api.mistral.ai/v1",
    .needs_key = true,
    .key_variable = "MISTRAL_API_KEY",
    .usage_unasked = true, /* otherwise HTTP 422 "Extra inputs are not permitted" */
    /* Otherwise HTTP 400 "Tool call id was ... but must be a-z, A-Z, 0-9, with a length of 9". */
    .short_call_ids = true,
    .limit_field = "max_tokens",
    COMPATIBLE,
};

const struct provider provider_deepseek = {
    .name = "deepseek",
    .base_url = "https://api.deepseek.com",
    .needs_key = true,
    .key_variable = "DEEPSEEK_API_KEY",
    .limit_field = "max_tokens",
    COMPATIBLE,
};

const struct provider provider_gemini = {
    .name = "gemini",
    .base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
    .needs_key = true,
    .key_variable = "GEMINI_API_KEY",
    .shared_key_variable = "GOOGLE_API_KEY",
    .limit_field = "max_tokens",
    .models = gemini_models,
    COMPATIBLE_BUT_MODELS,
};

/* docs/api/openai-compatibility.mdx of Ollama. */
const struct provider provider_ollama_chat = {
    .name = "ollama",
    .base_url = "http://127.0.0.1:11434/v1",
    .key_variable = "OLLAMA_API_KEY",
    .limit_field = "max_tokens",
    COMPATIBLE,
};

const struct provider provider_llamacpp = {
    .name = "llamacpp",
    .base_url = "http://127.0.0.1:8080/v1",
    .probe = {"/v1/models", "data"},
    .window = {{llamacpp_window, llamacpp_read_window}},
    .limit_field = "max_tokens",
    COMPATIBLE,
};

/* LM Studio, lmstudio.ai/docs/developer/openai-compat. */
const struct provider provider_lmstudio = {
    .name = "lmstudio",
    .base_url = "http://127.0.0.1:1234/v1",
    .probe = {"/v1/models", "data"},
    .limit_field = "max_tokens",
    COMPATIBLE,
};

/* docs.vllm.ai, "OpenAI-Compatible Server". */
const struct provider provider_vllm = {
    .name = "vllm",
    .base_url = "http://127.0.0.1:8000/v1",
    .probe = {"/v1/models", "data"},
    .limit_field = "max_tokens",
    COMPATIBLE,
};

/* Docker Model Runner, docs.docker.com/ai/model-runner/api-reference. */
const struct provider provider_docker = {
    .name = "docker",
    .base_url = "http://127.0.0.1:12434/engines/v1",
    .probe = {"/engines/v1/models", "data"},
    .limit_field = "max_tokens",
    COMPATIBLE,
};
