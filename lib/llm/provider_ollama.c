/*
 * provider_ollama - Ollama's own API.
 *
 * Ollama is also compatible with OpenAI's chat completions (llm/provider_openai), but only its own
 * API can set the size of the context, `num_ctx`. The default of that size is small, and Ollama
 * leaves out the beginning of a longer conversation without a word.
 *
 * Sources: docs/api.md and docs/openapi.yaml of github.com/ollama/ollama, and its code, of August
 * 2026: api/types.go (the fields), server/routes.go (which errors come how), server/sched.go (which
 * options make it load a model again).
 */
#include <inttypes.h>
#include <string.h>

#include "chathist/base/cjson.h"
#include "chathist/base/json.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/provider_openai.h"
#include "llm/provider_wire.h"

/* ---- the messages of a request ---- */

/* Sets the calls: [{"id","function":{"index","name","arguments"}}], with the arguments as an
 * object. */
static void set_calls(cJSON *message, struct str calls, struct call_ids *ids)
{
    cJSON *array = cjson_array();
    size_t index = 0;

    for (struct json_iter it = json_iter(calls); json_next(&it);) {
        cJSON *call = cjson_object(), *function = cjson_object();
        struct wire_call c;

        wire_call_init(&c, ids, it.value);
        cjson_set_text(call, "id", buf_str(&c.id));
        cjson_set(function, "index", cJSON_CreateNumber((double)index++));
        cjson_set_text(function, "name", buf_str(&c.name));
        cjson_set_raw(function, "arguments", buf_str(&c.args));
        cjson_set(call, "function", function);
        wire_call_release(&c);
        cjson_push(array, call);
    }
    cjson_set(message, "tool_calls", array);
}

static void set_images(cJSON *message, const struct context_message *m)
{
    struct buf json = BUF_INIT(SIZE_MAX);
    cJSON *array = cjson_array();

    for (size_t i = 0; i < m->attachments_count; i++) {
        buf_clear(&json);
        json_add_string(&json, str_of(m->attachments[i].base64));
        cjson_push(array, cjson_raw(buf_str(&json)));
    }
    cjson_set(message, "images", array);
    buf_release(&json);
}

/* The templates of most models take images from the user alone. */
static void add_images_of_results(cJSON *array, const struct context_message *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cJSON *message;

        if (results[i].attachments_count == 0)
            continue;
        message = wire_message(ROLE_USER, STR("The images of the result of a tool:"));
        set_images(message, &results[i]);
        cjson_push(array, message);
    }
}

static cJSON *ollama_message(const struct context_message *m, struct context_server asked,
                             struct call_ids *ids)
{
    cJSON *message = wire_message(m->role, (struct str){m->content, m->n});
    struct json_iter it;

    if (m->role == ROLE_TOOL) {
        wire_set_result(message, ids, "tool_call_id", "tool_name");
    } else if (m->tool_calls) {
        /* The thinking before a call goes back with it ("Thinking", "Tool calling": the whole
         * message is appended). */
        for (it = json_iter(context_blocks(m, asked)); json_next(&it);)
            if (json_has_type(it.value, "reasoning_content") &&
                json_type(json_get(it.value, "text")) == JSON_STRING)
                cjson_set_raw(message, "thinking", json_get(it.value, "text"));
        set_calls(message, str_of(m->tool_calls), ids);
    } else if (m->attachments_count > 0) {
        set_images(message, m);
    }
    return message;
}

/* ---- the size of the context ---- */

/* A request of no more tokens than this fits into every default of Ollama with an answer: 2,048 in
 * the versions before 2025, 4,096 or more since then (docs/context-length.mdx). */
#define INPUT_ANY 1024
/* The smallest size in a request. Larger ones are twice as large each, because Ollama loads the
 * model again for another size (server/sched.go, needsReload), which takes seconds. */
#define NUM_CTX_LEAST 8192
/* Sizes that are no power of two are multiples of this. */
#define NUM_CTX_UNIT 1024
/* The tokens of an image, about, and of the marks around a message. */
#define IMAGE_TOKENS 2000
#define MESSAGE_TOKENS 16
/* Bytes of 1,000 tokens if nothing is known of the conversation. */
#define TOKEN_BYTES 4000

/* Returns how many tokens the request has, estimated on the high side. */
static int64_t input_tokens(const struct ask *ask)
{
    const struct context *c = ask->context;
    size_t token_bytes = ask->token_bytes > 0 ? ask->token_bytes : TOKEN_BYTES;
    size_t bytes =
        c->system_len + ask_tools_bytes(ask) + ask->schema.n + context_bytes(c, 0, c->count);
    size_t marks = c->count * MESSAGE_TOKENS;

    for (size_t i = 0; i < c->count; i++)
        marks += c->at[i].attachments_count * IMAGE_TOKENS;
    /* A third more than the estimate: code and many languages have more tokens for their bytes. */
    return (int64_t)((double)bytes * 1000 / (double)token_bytes * 4 / 3) + (int64_t)marks;
}

/* Returns whether the input fits into a context of this size, with room for an answer. */
static bool fits(const struct ask *ask, int64_t input, int64_t size)
{
    int64_t room = ask->answer_room < size / 4 ? ask->answer_room : size / 4;

    return input <= size - room;
}

/* Returns the size of the context to ask for, 0 for Ollama's own. The size that the model was
 * loaded with is kept if it is enough. */
static int64_t choose_num_ctx(const struct ask *ask)
{
    int64_t input = input_tokens(ask), size = NUM_CTX_LEAST, full;

    if (ask->window.loaded > 0 && fits(ask, input, ask->window.loaded))
        return ask->window.loaded;
    if (ask->window.loaded == 0 && input <= INPUT_ANY)
        return 0;
    while (!fits(ask, input, size) && size <= INT64_MAX / 2)
        size *= 2;
    full = ask->input_limit + ask->answer_room;
    full += (NUM_CTX_UNIT - full % NUM_CTX_UNIT) % NUM_CTX_UNIT;
    if (ask->input_limit > 0 && fits(ask, input, full) && size > full)
        size = full;
    return ask->window.most > 0 && size > ask->window.most ? ask->window.most : size;
}

/* ---- the request ---- */

/* `think` (docs/capabilities/thinking.mdx): false, true or a level. A model without levels takes
 * each of them for true. Newer versions think unless this is false, older ones only if it is
 * true. */
static void set_think(cJSON *body, const struct ask *ask)
{
    static const char *const levels[][2] = {
        {"none", "false"},    {"minimal", "\"low\""}, {"low", "\"low\""}, {"medium", "\"medium\""},
        {"high", "\"high\""}, {"xhigh", "\"high\""},  {"max", "\"max\""},
    };

    if (!ask->effort && ask->show_reasoning)
        cjson_set_raw(body, "think", STR("true"));
    for (size_t i = 0; ask->effort && i < sizeof levels / sizeof *levels; i++)
        if (strcmp(ask->effort, levels[i][0]) == 0)
            cjson_set_raw(body, "think", str_of(levels[i][1]));
}

/* `truncate` is false so that Ollama reports a conversation that is too long, instead of leaving
 * out its beginning (api/types.go, ChatRequest; versions before the end of 2025 ignore it). */
static int ollama_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                          struct err *e)
{
    struct str system = {ask->context->system, ask->context->system_len};
    struct buf options = BUF_INIT(BUF_SMALL);
    int64_t size = choose_num_ctx(ask);
    cJSON *body;

    if (wire_begin(r, p, ask, true, "/api", "/chat", e) != 0)
        return -1;
    body = cjson_object();
    cjson_set_text(body, "model", str_of(ask->model));
    cjson_set(body, "messages",
              wire_messages(ask->context, system, wire_asked(p, ask), false, ollama_message,
                            add_images_of_results));
    if (ask->tools_count > 0)
        cjson_set(body, "tools", openai_tools(ask));
    cjson_set(body, "stream", cJSON_CreateBool(ask->stream));
    cjson_set(body, "truncate", cJSON_CreateBool(false));
    if (ask->schema.p)
        cjson_set(body, "format", wire_schema(ask));
    set_think(body, ask);
    buf_addf(&options, "{\"num_ctx\":%" PRId64 "}", size);
    if (size > 0)
        cjson_set_raw(body, "options", buf_str(&options));
    buf_release(&options);
    return wire_end_body(body, p, ask, r, e);
}

/* ---- models ---- */

static int ollama_models(const struct provider *p, const struct ask *ask, struct http_request *r,
                         struct err *e)
{
    return wire_begin(r, p, ask, false, "/api", "/tags", e);
}

/* GET /api/ps, "List Running Models". */
static int ask_loaded(const struct provider *p, const struct ask *ask, struct http_request *r,
                      struct err *e)
{
    return wire_begin(r, p, ask, false, "/api", "/ps", e);
}

/* A name without a tag means the tag `latest`. */
static void read_loaded(struct str response, const struct ask *ask, struct model_window *w)
{
    struct buf whole = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);

    buf_addf(&whole, "%s:latest", ask->model);
    for (struct json_iter it = json_iter(json_get(response, "models"));
         !it.object && json_next(&it);) {
        struct str name = json_text(json_get(it.value, "name"), &scratch);

        if (str_eq_c(name, ask->model) || str_eq(name, buf_str(&whole)))
            json_int(json_get(it.value, "context_length"), &w->loaded);
    }
    buf_release(&whole);
    buf_release(&scratch);
}

/* POST /api/show, "Show Model Information". */
static int ask_shown(const struct provider *p, const struct ask *ask, struct http_request *r,
                     struct err *e)
{
    cJSON *body;

    if (wire_begin(r, p, ask, true, "/api", "/show", e) != 0)
        return -1;
    body = cjson_object();
    cjson_set_text(body, "model", str_of(ask->model));
    cjson_print(body, &r->body);
    cJSON_Delete(body);
    return 0;
}

/* The author of the Modelfile has chosen `num_ctx` for the model, in its parameters, lines of name
 * and value. Otherwise the model has its own limit, `ARCHITECTURE.context_length`. */
static void read_shown(struct str response, const struct ask *ask, struct model_window *w)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest = json_text(json_get(response, "parameters"), &text);
    int64_t n = 0;

    (void)ask;
    while (rest.p && n == 0) {
        struct str value = str_trim(str_cut(&rest, '\n')), name = str_cut(&value, ' ');

        if (str_eq_c(name, "num_ctx") && value.p)
            json_int(str_trim(value), &n);
    }
    for (struct json_iter it = json_iter(json_get(response, "model_info"));
         n <= 0 && it.object && json_next(&it);)
        if (str_ends(it.key, STR(".context_length")))
            json_int(it.value, &n);
    if (n > 0)
        w->most = n;
    buf_release(&text);
}

/* ---- the response ---- */

/* Each call comes whole. */
static int ollama_read_message(struct response *a, struct str message, struct err *e)
{
    enum { CONTENT, THINKING, CALLS, IMAGES, COUNT };
    static const char *const keys[COUNT] = {"content", "thinking", "tool_calls", "images"};
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str got[COUNT];

    json_pick(message, keys, got, COUNT);
    opaque_add_reasoning(&a->opaque, "reasoning_content", json_text(got[THINKING], &scratch));
    buf_release(&scratch);
    if (wire_add_reasoning(a, got[THINKING]) != 0 || response_add_text(a, got[CONTENT], e) != 0)
        return -1;
    for (struct json_iter it = json_iter(got[CALLS]); !it.object && json_next(&it);) {
        struct str function = json_get(it.value, "function");

        if (json_type(function) == JSON_OBJECT &&
            wire_add_call(a, (int64_t)a->calls_count, json_get(it.value, "id"),
                          json_get(function, "name"), json_get(function, "arguments"), e) != 0)
            return -1;
    }
    for (struct json_iter it = json_iter(got[IMAGES]); !it.object && json_next(&it);)
        response_add_image(a, it.value);
    return 0;
}

static int read_object(struct response *a, struct str object, struct err *e)
{
    enum { ERROR, MODEL, MESSAGE, DONE, REASON, INPUT, OUTPUT, COUNT };
    static const char *const keys[COUNT] = {
        "error", "model", "message", "done", "done_reason", "prompt_eval_count", "eval_count"};
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str got[COUNT];

    json_pick(object, keys, got, COUNT);
    if (provider_error_in(got[ERROR], STR_NONE) ||
        (json_type(got[MESSAGE]) != JSON_OBJECT && provider_error_reported(object)))
        return provider_error_set_reported(e, object);
    wire_set_model(a, got[MODEL]);
    if (ollama_read_message(a, got[MESSAGE], e) != 0)
        return -1;
    usage_read(&a->usage, USAGE_INPUT, got[INPUT]);
    usage_read(&a->usage, USAGE_OUTPUT, got[OUTPUT]);
    if (!str_eq_c(got[DONE], "true"))
        return 0;
    /* `stop`, `length`, or `` for a connection to the model that was lost (llm/server.go,
     * DoneReason). */
    response_set_finish(a, json_text(got[REASON], &scratch));
    a->finished = true;
    buf_release(&scratch);
    return 1;
}

static int ollama_event(struct response *a, struct str event, struct str data, struct err *e)
{
    struct str value;

    (void)event;
    return wire_parse_event(a, data, &value, e) != 0 ? -1 : read_object(a, value, e);
}

/* Reads a whole response. Some gateways send the lines of a stream as one document of another
 * type. */
static int ollama_whole(struct response *a, struct str body, struct err *e)
{
    struct str rest = body, value;
    int rc = 0;

    if (json_check(body, &value, NULL)) {
        rc = read_object(a, value, e);
    } else if (!str_find(str_trim(body), STR("\n"))) {
        rc = wire_parse_whole(body, &value, e);
    } else {
        while (rc == 0 && rest.p) {
            struct str line = str_trim(str_cut(&rest, '\n'));

            if (line.n > 0)
                rc = ollama_event(a, STR_NONE, line, e);
        }
    }
    if (rc == 0)
        return wire_unusable(e, ERR_BUSY, "the server's answer is not complete", str_trim(body));
    return rc < 0 ? -1 : 0;
}

/* Which options are fields of the request. All others are those of the model, in `options`
 * (api/types.go, ChatRequest and Options). */
static const char *const ollama_fields[] = {
    "model",
    "messages",
    "stream",
    "format",
    "keep_alive",
    "tools",
    "options",
    "think",
    "truncate",
    "shift",
    "logprobs",
    "top_logprobs",
    "_debug_render_only",
    NULL,
};

const struct provider provider_ollama = {
    .name = "ollama",
    .base_url = "http://127.0.0.1:11434",
    .key_variable = "OLLAMA_API_KEY",
    .base_variable = "OLLAMA_HOST",
    .at_v1 = &provider_ollama_chat,
    .missing = "'ollama pull' gets a model",
    .probe = {"/api/tags", "models"},
    .lines = true,
    .cuts_silently = true,
    .effort_field = "think",
    .own_effort = true,
    .limit_field = "options.num_predict",
    .schema_field = "format",
    .options_field = "options",
    .body_fields = ollama_fields,
    .window_field = "num_ctx",
    .window = {{ask_loaded, read_loaded}, {ask_shown, read_shown}},
    .request = ollama_request,
    .models = ollama_models,
    .event = ollama_event,
    .whole = ollama_whole,
};
