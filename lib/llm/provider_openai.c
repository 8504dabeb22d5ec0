#include "llm/provider_openai.h"

#include <string.h>

#include "base/json.h"
#include "base/json_tree.h"
#include "llm/provider_fault.h"
#include "llm/provider_wire.h"

/* ---- the request ---- */

/* Calls in OpenAI's form: {"id","type":"function","function":{"name","arguments"}}, the arguments
 * being JSON in a string; what the model once wrote as invalid JSON goes back as it was. */
static struct json_tree *calls_tree(struct str calls)
{
    struct json_tree *array = json_tree_array();
    struct buf args = BUF_INIT(BUF_LINE);

    for (struct json_iter it = json_iter(calls); json_next(&it);) {
        struct json_tree *call = json_tree_object();
        struct json_tree *function = json_tree_object();
        struct str raw = json_get(it.value, "args");

        buf_clear(&args);
        if (!json_decode(raw, &args))
            buf_add_str(&args, raw);
        json_tree_set_raw(function, "name", json_get(it.value, "name"));
        json_tree_set_text(function, "arguments", buf_str(&args));
        json_tree_set_raw(call, "id", json_get(it.value, "id"));
        json_tree_set_text(call, "type", STR("function"));
        json_tree_set(call, "function", function);
        json_tree_push(array, call);
    }
    buf_release(&args);
    return array;
}

static struct json_tree *message_tree(const struct context_message *m)
{
    struct json_tree *t = json_tree_object();

    json_tree_set_text(t, "role", str_of(role_name(m->role)));
    if (m->tool_call_id)
        json_tree_set_text(t, "tool_call_id", str_of(m->tool_call_id));
    if (m->tool_calls && m->n == 0)
        json_tree_set_raw(t, "content", STR("null"));
    else
        json_tree_set_text(t, "content", (struct str){m->content, m->n});
    if (m->tool_calls)
        json_tree_set(t, "tool_calls", calls_tree(str_of(m->tool_calls)));
    return t;
}

static struct json_tree *messages_tree(const struct context *c)
{
    struct json_tree *array = json_tree_array();

    if (c->system) {
        struct json_tree *t = json_tree_object();

        json_tree_set_text(t, "role", STR("system"));
        json_tree_set_text(t, "content", (struct str){c->system, c->system_len});
        json_tree_push(array, t);
    }
    for (size_t i = 0; i < c->count; i++)
        json_tree_push(array, message_tree(&c->at[i]));
    return array;
}

static struct json_tree *body_tree(const struct ask *ask)
{
    struct json_tree *t = json_tree_object();

    json_tree_set_text(t, "model", str_of(ask->model));
    json_tree_set(t, "messages", messages_tree(ask->context));
    json_tree_set_raw(t, "stream", ask->stream ? STR("true") : STR("false"));
    if (ask->stream)
        json_tree_set_raw(t, "stream_options", STR("{\"include_usage\":true}"));
    wire_set_options(t, ask);
    return t;
}

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
    struct json_tree *body;

    wire_add_url(r, p, ask, "", "/chat/completions");
    if (wire_add_headers(ask, r, e) != 0 || add_key(ask, r, e) != 0)
        return -1;
    body = body_tree(ask);
    json_tree_print(body, false, &r->body);
    json_tree_free(body);
    return 0;
}

static int models(const struct provider *p, const struct ask *ask, struct http_request *r,
                  struct err *e)
{
    wire_add_url(r, p, ask, "", "/models");
    if (http_add_header(r, "Accept", STR("application/json"), e) != 0)
        return -1;
    return add_key(ask, r, e);
}

/* ---- the answer: what a stream's chunks and a whole answer have in common ---- */

/* Text, or the text parts of an array of content parts. */
static int take_content(struct answer *a, struct str content, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    int rc = answer_add_text(a, json_text(content, &scratch), e);

    if (json_type(content) == JSON_ARRAY)
        for (struct json_iter it = json_iter(content); rc == 0 && json_next(&it);)
            rc = answer_add_text(a, json_text(json_get(it.value, "text"), &scratch), e);
    buf_release(&scratch);
    return rc;
}

/* A refusal is shown like an answer, and its finish says what it is. */
static int take_refusal(struct answer *a, struct str refusal, struct err *e)
{
    if (json_type(refusal) != JSON_STRING || refusal.n <= 2)
        return 0;
    a->refused = true;
    return take_content(a, refusal, e);
}

/* A piece of a call. The arguments are a string, or from some servers the object itself. */
static int take_function(struct answer *a, int64_t index, struct str id, struct str function,
                         struct err *e)
{
    struct buf id_text = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct str arguments = json_get(function, "arguments");
    int rc;

    json_decode(id, &id_text);
    json_decode(json_get(function, "name"), &name);
    if (json_type(arguments) == JSON_OBJECT)
        json_add_compact(&args, arguments);
    else
        json_decode(arguments, &args);
    rc = answer_add_call(a, index, buf_str(&id_text), buf_str(&name), buf_str(&args), e);
    buf_release(&id_text);
    buf_release(&name);
    buf_release(&args);
    return rc;
}

/* Without an index, the place in the array stands for it. */
static int take_calls(struct answer *a, struct str calls, struct err *e)
{
    int64_t place = 0;
    int rc = 0;

    for (struct json_iter it = json_iter(calls); rc == 0 && json_next(&it); place++) {
        int64_t index = place;

        if (json_type(it.value) != JSON_OBJECT)
            continue;
        json_int(json_get(it.value, "index"), &index);
        rc = take_function(a, index, json_get(it.value, "id"), json_get(it.value, "function"), e);
    }
    return rc;
}

/* A delta, or the message of a whole answer. `reasoning_content` (llama.cpp, vLLM, DeepSeek) and
 * `reasoning` (Ollama, OpenRouter) are no part of the answer. */
static int take_message(struct answer *a, struct str message, struct err *e)
{
    struct str function = json_get(message, "function_call"); /* before tool_calls, in 2023 */

    if (take_content(a, json_get(message, "content"), e) != 0 ||
        take_refusal(a, json_get(message, "refusal"), e) != 0 ||
        take_calls(a, json_get(message, "tool_calls"), e) != 0)
        return -1;
    if (json_type(function) == JSON_OBJECT)
        return take_function(a, 0, STR_NONE, function, e);
    return 0;
}

/* Names of finish reasons that mean one of chathist(5)'s; all others stay as they are. */
static struct str finish_name(struct str reason)
{
    static const char *const names[][2] = {
        {"function_call", "tool_calls"}, {"eos", "stop"},
        {"eos_token", "stop"},           {"end_turn", "stop"},
        {"stop_sequence", "stop"},       {"max_tokens", "length"},
        {"model_length", "length"},      {"tool_use", "tool_calls"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq_c(reason, names[i][0]))
            return str_of(names[i][1]);
    return reason;
}

/* An empty reason, which some gateways send until the end, is none. */
static void take_finish(struct answer *a, struct str finish)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str reason = json_text(finish, &scratch);

    if (reason.n > 0) {
        answer_set_finish(a, a->refused ? STR("content_filter") : finish_name(reason));
        a->finished = true;
    }
    buf_release(&scratch);
}

static void take_usage(struct answer *a, struct str usage)
{
    int64_t input = -1, output = -1;

    json_int(json_get(usage, "prompt_tokens"), &input);
    json_int(json_get(usage, "completion_tokens"), &output);
    answer_set_usage(a, input, output);
}

/* The choice of index 0, or the first one that does not tell; STR_NONE when there is none. */
static struct str first_choice(struct str choices)
{
    for (struct json_iter it = json_iter(choices); json_next(&it);) {
        int64_t index = 0;

        json_int(json_get(it.value, "index"), &index);
        if (index == 0 && json_type(it.value) == JSON_OBJECT)
            return it.value;
    }
    return STR_NONE;
}

/* A chunk or a whole answer. OpenRouter reports errors in a choice too. */
static int take_object(struct answer *a, struct str object, struct err *e)
{
    struct str choice, delta;

    if (fault_reported(object))
        return fault_set_reported(e, object);
    choice = first_choice(json_get(object, "choices"));
    wire_take_model(a, json_get(object, "model"));
    take_usage(a, json_get(object, "usage"));
    delta = json_get(choice, "delta");
    if (json_type(delta) != JSON_OBJECT)
        delta = json_get(choice, "message");
    if (take_message(a, delta, e) != 0)
        return -1;
    if (fault_reported(choice))
        return fault_set_reported(e, choice);
    take_finish(a, json_get(choice, "finish_reason"));
    return 0;
}

static int take_event(struct answer *a, struct str event, struct str data, struct err *e)
{
    struct str value;

    if (str_starts(data, STR("[DONE]"))) {
        a->finished = true;
        return 1;
    }
    if (str_trim(data).n == 0)
        return 0;
    if (wire_parse_event(data, &value, e) != 0)
        return -1;
    if (str_eq_c(event, "error"))
        return fault_set_reported(e, value);
    return take_object(a, value, e);
}

static int take_whole(struct answer *a, struct str body, struct err *e)
{
    struct str value;

    if (wire_parse_whole(body, &value, e) != 0)
        return -1;
    if (json_type(value) == JSON_ARRAY)
        value = json_at(value, 0);
    if (take_object(a, value, e) != 0)
        return -1;
    if (first_choice(json_get(value, "choices")).n == 0)
        return wire_unusable(e, ERR_BUSY, "the server's answer is none", str_trim(body));
    a->finished = true;
    return 0;
}

static int failure(int status, struct str body, struct err *e)
{
    return fault_set_answer(e, status, body);
}

/* ---- the servers ---- */

/* They differ in their place and their key alone. */
#define COMPATIBLE                                                                                 \
    .request = request, .models = models, .event = take_event, .whole = take_whole,                \
    .failure = failure

const struct provider provider_openai = {
    .name = "openai",
    .base_url = "https://api.openai.com/v1",
    .needs_key = true,
    .key_variable = "OPENAI_API_KEY",
    .base_variable = "OPENAI_BASE_URL",
    COMPATIBLE,
};

const struct provider provider_ollama = {
    .name = "ollama",
    .base_url = "http://127.0.0.1:11434/v1",
    .base_variable = "OLLAMA_HOST",
    .probe_path = "/api/tags",
    COMPATIBLE,
};

const struct provider provider_llamacpp = {
    .name = "llamacpp",
    .base_url = "http://127.0.0.1:8080/v1",
    .probe_path = "/health",
    COMPATIBLE,
};
