#include "chathist/llm/provider_anthropic.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/cjson.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/llm/provider_error.h"
#include "llm/provider_wire.h"
#include "llm/request_body.h"

/* ---- the messages of a request ---- */

/* The text of a user message before a conversation that begins with the model. */
#define OPENING "…"

/* The messages of a request, built block by block. */
struct composer {
    struct context_server asked;
    const struct context *context;
    uint64_t before; /* the checksum of everything before the current message */
    cJSON *messages;
    const char *role; /* the role of the current message, or NULL */
    struct str text;  /* the only block so far, a text; it is sent as a string */
    cJSON *blocks;    /* the blocks so far, or NULL */
    struct call_ids ids;
    cJSON *tools;  /* the declarations; may be empty */
    bool no_calls; /* the tools may not be called */
    struct buf system;
};

static void compose_init(struct composer *c, struct context_server asked,
                         const struct context *context)
{
    *c = (struct composer){.asked = asked,
                           .context = context,
                           .messages = cjson_array(),
                           .tools = cjson_array(),
                           .system = BUF_INIT(2 * BUF_LINE)};
    wire_call_ids_init(&c->ids, false);
}

static void compose_release(struct composer *c)
{
    cJSON_Delete(c->messages);
    cJSON_Delete(c->tools);
    wire_call_ids_release(&c->ids);
    buf_release(&c->system);
}

/* Turns the only text into a block, so that other blocks can follow. */
static cJSON *compose_open_blocks(struct composer *c)
{
    if (!c->blocks)
        c->blocks = cjson_array();
    if (c->text.p) {
        cjson_push(c->blocks, wire_text_part("text", c->text));
        c->text = STR_NONE;
    }
    return c->blocks;
}

/* Adds a part of the request to the checksum of everything before the next message. */
static void compose_checksum(struct composer *c, struct str part)
{
    c->before = checksum(part, c->before);
}

static void compose_end_message(struct composer *c)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    cJSON *message;

    if (!c->role)
        return;
    message = cjson_object();
    cjson_set_text(message, "role", str_of(c->role));
    if (c->blocks)
        cjson_set(message, "content", compose_open_blocks(c));
    else
        cjson_set_text(message, "content", c->text);
    cjson_print(message, &text);
    cJSON_Delete(message);
    compose_checksum(c, buf_str(&text));
    cjson_push(c->messages, cjson_raw(buf_str(&text)));
    buf_release(&text);
    c->blocks = NULL;
    c->text = STR_NONE;
}

/* Continues the message of that role, or begins one. */
static void compose_turn(struct composer *c, enum role role)
{
    const char *name = role == ROLE_ASSISTANT ? "assistant" : "user";

    if (c->role && strcmp(c->role, name) == 0)
        return;
    if (!c->role && role == ROLE_ASSISTANT) {
        c->role = "user";
        c->text = STR(OPENING);
    }
    compose_end_message(c);
    c->role = name;
}

static void compose_text(struct composer *c, enum role role, struct str text)
{
    if (str_trim(text).n == 0)
        return;
    compose_turn(c, role);
    if (c->blocks || c->text.p)
        compose_open_blocks(c);
    c->text = text;
    if (c->blocks)
        compose_open_blocks(c);
}

/* Images and PDFs come before the text that is about them ("Vision": image-then-text works best;
 * "PDF support"). */
static cJSON *attachment_block(const struct attachment *a)
{
    cJSON *block = wire_of_type(attachment_is_image(a) ? "image" : "document");
    cJSON *source = wire_of_type("base64");

    cjson_set_text(source, "media_type", str_of(a->type));
    cjson_set_text(source, "data", str_of(a->base64));
    cjson_set(block, "source", source);
    if (!attachment_is_image(a))
        cjson_set_text(block, "title", str_of(a->name));
    return block;
}

/* Declares the tools that are called in the context. They come before the messages in the checksum,
 * as they do for the model. */
static void declare_called_tools(struct composer *c)
{
    struct buf text = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_SMALL);
    struct hash_map names = {0};

    for (size_t i = 0; i < c->context->count; i++) {
        struct json_iter it = json_iter(str_of(c->context->at[i].tool_calls));

        while (json_next(&it)) {
            cJSON *tool;

            buf_clear(&name);
            wire_add_call_name(&name, json_text(json_get(it.value, "name"), &text));
            if (!hash_map_add(&names, buf_str(&name)))
                continue;
            tool = cjson_object();
            cjson_set_text(tool, "name", buf_str(&name));
            cjson_set_raw(tool, "input_schema", STR("{\"type\":\"object\"}"));
            cjson_push(c->tools, tool);
        }
    }
    hash_map_release(&names);
    buf_release(&text);
    buf_release(&name);
}

/* `own` is the block of this server for the call, or STR_NONE. The call of a program has a `caller`
 * ("Programmatic tool calling"). */
static void compose_call(struct composer *c, struct str call, struct str own)
{
    cJSON *block = wire_of_type("tool_use"), *input;
    struct wire_call w;

    wire_call_init(&w, &c->ids, call);
    input = w.bad.len > 0 ? cjson_object() : cjson_raw(buf_str(&w.args));
    if (w.bad.len > 0)
        cjson_set_text(input, "INVALID_JSON", buf_str(&w.bad));
    cjson_set_text(block, "id", buf_str(&w.id));
    cjson_set_text(block, "name", buf_str(&w.name));
    cjson_set(block, "input", input);
    if (json_type(json_get(own, "caller")) == JSON_OBJECT)
        cjson_set_raw(block, "caller", json_get(own, "caller"));
    cjson_push(compose_open_blocks(c), block);
    wire_call_release(&w);
}

/* Returns the blocks of the message that go back, or STR_NONE. They do if the same server wrote
 * them after the same request as now (platform documentation, "Preserved thinking": a thinking
 * block is refused if the system prompt, the tools or a message before it changed; thinking may be
 * left out from the beginning of a conversation on). Blocks that are not bound were stored by an
 * earlier version; they go back while a loop of calls and results lasts. */
static struct str blocks_to_send(const struct composer *c, size_t at)
{
    const struct context_message *m = &c->context->at[at];
    struct str blocks = context_blocks(m, c->asked);
    bool begins = !c->blocks && !c->text.p; /* nothing of the message is there */
    uint64_t before;

    if (!blocks.p || (m->merged && opaque_has_all(blocks)))
        return STR_NONE;
    if (opaque_bound(blocks, &before))
        return begins && before == c->before ? blocks : STR_NONE;
    return m->tool_calls && context_in_loop(c->context, at) ? blocks : STR_NONE;
}

/* Adds a message of the model. The last block must not be thinking. */
static void compose_answer(struct composer *c, size_t at)
{
    const struct context_message *m = &c->context->at[at];
    struct json_iter calls = json_iter(str_of(m->tool_calls)), it;
    struct str text = {m->content, m->n}, blocks;

    if (!m->tool_calls && str_trim(text).n == 0)
        return;
    compose_turn(c, ROLE_ASSISTANT);
    blocks = blocks_to_send(c, at);
    /* The blocks of a response keep their order, and signed ones their bytes, because the API
     * refuses a thinking block that was moved ("... cannot be modified"). A call is taken from
     * `calls` instead, where its id is the same as in its result. */
    for (it = json_iter(blocks); !it.object && json_next(&it);) {
        if (json_type(it.value) != JSON_OBJECT || json_has_type(it.value, OPAQUE_BOUND) ||
            json_has_type(it.value, OPAQUE_CONTAINER))
            continue;
        if (!json_has_type(it.value, "tool_use"))
            cjson_push(compose_open_blocks(c), cjson_raw(it.value));
        else if (json_next(&calls))
            compose_call(c, calls.value, it.value);
    }
    /* The summaries of a compaction stand for all before them ("Compaction") and are bound to
     * nothing. */
    it = json_iter(blocks.p ? STR_NONE : context_blocks(m, c->asked));
    while (!it.object && json_next(&it))
        if (json_has_type(it.value, "compaction"))
            cjson_push(compose_open_blocks(c), cjson_raw(it.value));
    if (!opaque_has_all(blocks))
        compose_text(c, ROLE_ASSISTANT, text);
    while (json_next(&calls))
        compose_call(c, calls.value, STR_NONE);
}

/* "Tool use", tool_result: text, or text and image blocks. */
static void compose_result(struct composer *c, const struct context_message *m)
{
    cJSON *block = wire_of_type("tool_result");
    struct str text = {m->content, m->n};

    wire_set_result(block, &c->ids, "tool_use_id", NULL);
    if (m->attachments_count > 0)
        cjson_set(block, "content", wire_parts(m, "text", attachment_block));
    else if (str_trim(text).n > 0)
        cjson_set_text(block, "content", text);
    if (m->failed && block->child && cJSON_GetObjectItem(block, "content"))
        cjson_set(block, "is_error", cJSON_CreateTrue());
    compose_turn(c, ROLE_TOOL);
    cjson_push(compose_open_blocks(c), block);
}

static void compose_messages(struct composer *c)
{
    for (size_t i = 0; i < c->context->count; i++) {
        const struct context_message *m = &c->context->at[i];

        if (m->role == ROLE_TOOL) {
            compose_result(c, m);
        } else if (m->role == ROLE_ASSISTANT) {
            compose_answer(c, i);
        } else {
            if (m->attachments_count > 0)
                compose_turn(c, m->role);
            for (size_t k = 0; k < m->attachments_count; k++)
                cjson_push(compose_open_blocks(c), attachment_block(&m->attachments[k]));
            compose_text(c, m->role, (struct str){m->content, m->n});
        }
    }
    compose_end_message(c);
}

void anthropic_conversation(const struct context *context, const char *provider, cJSON **messages,
                            cJSON **tools)
{
    struct composer c;

    compose_init(&c, (struct context_server){provider, NULL}, context);
    declare_called_tools(&c);
    compose_messages(&c);
    *messages = c.messages;
    *tools = c.tools->child ? c.tools : NULL;
    c.messages = NULL;
    if (*tools)
        c.tools = NULL;
    compose_release(&c);
}

#define API_VERSION "2023-06-01"

/* ---- the request ---- */

/* The default for `max_tokens`, which the API requires: as much as any model writes. A model that
 * writes less refuses it, usually with its own maximum (llm/refusals). */
#define MAX_TOKENS "128000"

/* The types of tools that run at the server carry a date. These are the types of the names without
 * one that every current model takes (platform documentation, "Tool reference"); a newer type is
 * asked for by its whole name. */
static const struct {
    const char *name, *type;
} hosted_types[] = {
    {"web_search", "web_search_20250305"},
    {"web_fetch", "web_fetch_20250910"},
    {"code_execution", "code_execution_20250825"},
};

/* Declares the tools that the model may call. Without any, the tools that were called earlier are
 * declared, because the API refuses a request with calls or results and without `tools`. */
static void declare_tools(struct composer *c, const struct ask *ask)
{
    for (size_t i = 0; i < ask->tools_count; i++) {
        cJSON *t = cjson_object();

        wire_set_tool(t, ask->tools[i], "input_schema");
        cjson_push(c->tools, t);
    }
    for (size_t i = 0; i < ask->hosted_tools_count; i++) {
        struct str name = str_of(ask->hosted_tools[i]), type = name;
        cJSON *t = cjson_object();

        for (size_t k = 0; k < sizeof hosted_types / sizeof *hosted_types; k++)
            if (str_eq_c(name, hosted_types[k].name))
                type = str_of(hosted_types[k].type);
        cjson_set_text(t, "type", type);
        cjson_set_text(t, "name", tool_undated(name));
        cjson_push(c->tools, t);
    }
    if (c->tools->child || wire_has_option(ask, "tools"))
        return;
    declare_called_tools(c);
    c->no_calls = c->tools->child != NULL;
}

/* Returns true if the schema can be sent as output_config.format of the type `json_schema`
 * (platform documentation, "Structured outputs"; no beta header). */
static bool takes_format(const struct ask *ask)
{
    return ask->schema.p && (ask->schema_fits & SCHEMA_ANTHROPIC);
}

/* Composes everything that the model sees. */
static void compose_prompt(struct composer *c, const struct provider *p, const struct ask *ask)
{
    static const char *const keys[] = {"model", "system", "tools"};
    struct buf tools = BUF_INIT(SIZE_MAX);

    compose_init(c, wire_asked(p, ask), ask->context);
    declare_tools(c, ask);
    buf_add(&c->system, ask->context->system, ask->context->system_len);
    /* If the schema for the answer has no separate field, or the server may ignore that field
     * because it is not Anthropic's, the system prompt demands it. */
    if (ask->schema.p && (request_is_elsewhere(p, ask) || !takes_format(ask)))
        wire_add_schema(ask, &c->system);
    if (str_trim(buf_str(&c->system)).n == 0)
        buf_clear(&c->system);
    if (c->tools->child)
        cjson_print(c->tools, &tools);
    compose_checksum(c, str_of(ask->model));
    compose_checksum(c, buf_str(&tools));
    compose_checksum(c, buf_str(&c->system));
    /* Options that replace a part of what the model sees. */
    for (size_t i = 0; i < ask->options_count; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strcmp(ask->options[i].key, keys[k]) == 0)
                compose_checksum(c, ask->options[i].value);
    compose_messages(c);
    buf_release(&tools);
}

/* Sets how much the model thinks, and that a summary of it is sent (platform documentation,
 * "Thinking" and "Effort"). Nothing is set unless the user wants it, because models differ. */
static void set_thinking_and_effort(cJSON *body, const struct ask *ask)
{
    const char *effort = ask->effort;
    bool off = effort && strcmp(effort, "none") == 0;

    if (!wire_has_option(ask, "thinking")) {
        if (off)
            cjson_set_raw(body, "thinking", STR("{\"type\":\"disabled\"}"));
        else if (effort || ask->show_reasoning)
            cjson_set_raw(body, "thinking",
                          STR("{\"type\":\"adaptive\",\"display\":\"summarized\"}"));
    }
    if (effort && !off) {
        struct buf value = BUF_INIT(BUF_SMALL);

        json_add_string(&value, str_of(strcmp(effort, "minimal") == 0 ? "low" : effort));
        body_set_field(body, "output_config.effort", buf_str(&value));
        buf_release(&value);
    }
}

/* Names the container in which this server ran code last by its id, or beside members of the user's
 * option in an object, unless it has expired. Its files are there in the next request that names
 * it, and a call by a program has to be answered there ("Code execution tool", "Programmatic tool
 * calling"). */
static void set_container(cJSON *body, const struct composer *c, const struct ask *ask)
{
    struct str container = ask->container.n > 0 ? ask->container : STR_NONE, id;
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t expires = INT64_MAX;

    for (size_t i = c->context->count; i-- > 0 && !container.p;)
        container = opaque_container(context_blocks(&c->context->at[i], c->asked));
    id = json_get(container, "id");
    json_decode(json_get(container, "expires_at"), &text);
    if (text.len > 0 && time_parse_iso(buf_str(&text), &expires) && expires <= time_now())
        id = STR_NONE;
    if (json_type(id) == JSON_STRING)
        body_set_field(body, wire_has_option(ask, "container") ? "container.id" : "container", id);
    buf_release(&text);
}

static int anthropic_request(const struct provider *p, const struct ask *ask,
                             struct http_request *r, struct err *e)
{
    struct buf schema = BUF_INIT(SIZE_MAX);
    struct composer c;
    cJSON *t, *format;

    if (wire_begin(r, p, ask, true, "/v1", "/messages", e) != 0)
        return -1;
    compose_prompt(&c, p, ask);
    if (!c.role || strcmp(c.role, "user") != 0) {
        compose_release(&c);
        return err_set(e, ERR_USAGE, "the conversation does not end with a prompt");
    }
    r->prompt = c.before;
    t = cjson_object();
    cjson_set_text(t, "model", str_of(ask->model));
    if (ask->max_tokens == 0)
        cjson_set_raw(t, "max_tokens", STR(MAX_TOKENS));
    set_thinking_and_effort(t, ask);
    if (takes_format(ask)) {
        format = wire_of_type("json_schema");
        cjson_set(format, "schema", wire_schema(ask));
        cjson_print(format, &schema);
        body_set_field(t, "output_config.format", buf_str(&schema));
        cJSON_Delete(format);
        buf_release(&schema);
    }
    /* If another request may begin with this one, the server should keep it in its prompt cache
     * (platform documentation, "Prompt caching": the field at the top level marks the last block).
     * Writing to the cache costs a quarter more than not to use it. */
    if ((!ask->once || ask->tools_count + ask->hosted_tools_count > 0) &&
        !wire_has_option(ask, "cache_control"))
        cjson_set_raw(t, "cache_control", STR("{\"type\":\"ephemeral\"}"));
    if (c.system.len > 0)
        cjson_set_text(t, "system", buf_str(&c.system));
    /* The paused response is the last message, and the model continues it. */
    if (ask->paused.n > 0) {
        cJSON *paused = cjson_object();

        cjson_set_text(paused, "role", STR("assistant"));
        cjson_set_raw(paused, "content", ask->paused);
        cjson_push(c.messages, paused);
    }
    cjson_set(t, "messages", c.messages);
    c.messages = NULL;
    if (c.tools->child) {
        cjson_set(t, "tools", c.tools);
        c.tools = NULL;
    }
    set_container(t, &c, ask);
    if (c.no_calls)
        cjson_set_raw(t, "tool_choice", STR("{\"type\":\"none\"}"));
    cjson_set(t, "stream", cJSON_CreateBool(ask->stream));
    compose_release(&c);
    return wire_end_body(t, p, ask, r, e);
}

/* A page has 20 models by default. */
static int anthropic_models(const struct provider *p, const struct ask *ask, struct http_request *r,
                            struct err *e)
{
    return wire_begin(r, p, ask, false, "/v1", "/models?limit=1000", e);
}

/* ---- the response ---- */

/* Reads the start of a block, or a whole block. Only calls of the user's own tools are carried out
 * here. Blocks of other types are only kept, in case the response is paused. */
static int anthropic_read_block(struct response *a, int64_t index, struct str block, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str type = json_get(block, "type");
    int rc = 0;

    if (json_type(block) == JSON_OBJECT)
        opaque_begin(&a->opaque, index, block);
    if (json_is_text(type, "text")) {
        rc = response_add_text(a, json_get(block, "text"), e);
        if (rc == 0)
            rc = response_add_citations(a, json_get(block, "citations"));
    } else if (json_is_text(type, "tool_use")) {
        struct str input = json_get(block, "input");
        struct json_iter it = json_iter(input);

        /* The empty object at the start of a streamed call is not a piece of its arguments. */
        rc = wire_add_call(a, index, json_get(block, "id"), json_get(block, "name"),
                           json_next(&it) ? input : STR_NONE, e);
    } else if (json_is_text(type, "thinking") || json_is_text(type, "redacted_thinking")) {
        rc = wire_add_reasoning(a, json_get(block, "thinking"));
    } else {
        response_set_other(a, json_text(type, &text));
    }
    buf_release(&text);
    return rc;
}

static int anthropic_read_delta(struct response *a, int64_t index, struct str delta, struct err *e)
{
    struct str type = json_get(delta, "type"), citation = json_get(delta, "citation");

    if (json_is_text(type, "text_delta")) {
        opaque_grow(&a->opaque, index, OPAQUE_TEXT, json_get(delta, "text"));
        return response_add_text(a, json_get(delta, "text"), e);
    }
    if (json_is_text(type, "input_json_delta")) {
        opaque_grow(&a->opaque, index, OPAQUE_INPUT, json_get(delta, "partial_json"));
        /* Pieces for tools that the server runs itself are ignored. */
        return response_call_at(a, index) ? response_add_call(a, index, STR_NONE, STR_NONE,
                                                              json_get(delta, "partial_json"), e)
                                          : 0;
    }
    if (json_is_text(type, "thinking_delta") || json_is_text(type, "signature_delta")) {
        opaque_grow(&a->opaque, index, OPAQUE_THINKING, json_get(delta, "thinking"));
        opaque_grow(&a->opaque, index, OPAQUE_SIGNATURE, json_get(delta, "signature"));
        return wire_add_reasoning(a, json_get(delta, "thinking"));
    }
    if (json_is_text(type, "compaction_delta")) {
        opaque_grow(&a->opaque, index, OPAQUE_CONTENT, json_get(delta, "content"));
        opaque_grow(&a->opaque, index, OPAQUE_ENCRYPTED, json_get(delta, "encrypted_content"));
        opaque_grow(&a->opaque, index, OPAQUE_SIGNATURE, json_get(delta, "signature"));
    }
    if (json_is_text(type, "citations_delta") && json_type(citation) == JSON_OBJECT) {
        opaque_grow(&a->opaque, index, OPAQUE_CITATIONS, citation);
        return response_add_citation(a, citation);
    }
    return 0;
}

/* Reads the counts. They are running totals, each of which may be missing. The tokens of the cache
 * are sent beside those of the input, but are included in the input here. Some servers send 0 for
 * all input at the end; this does not replace earlier counts. */
static void anthropic_read_usage(struct response *a, struct str usage)
{
    static const struct wire_usage input[] = {
        {USAGE_INPUT, NULL, "input_tokens"},
        {USAGE_CACHE_READ, NULL, "cache_read_input_tokens"},
        {USAGE_CACHE_WRITE, NULL, "cache_creation_input_tokens"},
        {.inner = NULL},
    };
    static const struct wire_usage output[] = {
        {USAGE_OUTPUT, NULL, "output_tokens"},
        {USAGE_REASONING, "output_tokens_details", "thinking_tokens"},
        {.inner = NULL},
    };
    struct usage counts, *all = &a->usage;

    usage_init(&counts);
    wire_read_usage(a, &counts, usage, input);
    if (all->at[USAGE_INPUT] > 0 && counts.at[USAGE_INPUT] <= 0 && usage_cached(&counts) == 0)
        usage_init(&counts);
    wire_read_usage(a, &counts, usage, output);
    if (all->at[USAGE_INPUT] >= 0)
        all->at[USAGE_INPUT] -= usage_cached(all);
    usage_replace(all, &counts);
    if (all->at[USAGE_INPUT] >= 0)
        all->at[USAGE_INPUT] += usage_cached(all);
}

/* `stop` is the object with the stop reason. */
static void anthropic_read_stop(struct response *a, struct str stop)
{
    struct buf scratch = BUF_INIT(BUF_LINE), category = BUF_INIT(BUF_LINE);
    struct buf explanation = BUF_INIT(BUF_LINE);
    struct str reason = json_text(json_get(stop, "stop_reason"), &scratch);
    struct str details = json_get(stop, "stop_details");

    if (reason.n > 0) {
        json_decode(json_get(details, "category"), &category);
        json_decode(json_get(details, "explanation"), &explanation);
        if (str_eq_c(reason, "refusal"))
            response_set_refusal(a, buf_str(&category), buf_str(&explanation));
        a->refused = a->refused || str_eq_c(reason, "refusal");
        response_set_finish(a, reason);
        a->finished = true;
    }
    buf_release(&scratch);
    buf_release(&category);
    buf_release(&explanation);
}

static int anthropic_read_object(struct response *a, struct str type, struct str object,
                                 struct err *e)
{
    int64_t index = 0;

    a->begun =
        a->begun || str_eq_c(type, "message_start") || str_starts(type, STR("content_block_"));
    json_int(json_get(object, "index"), &index);
    if (str_eq_c(type, "content_block_delta"))
        return anthropic_read_delta(a, index, json_get(object, "delta"), e);
    if (str_eq_c(type, "content_block_start"))
        return anthropic_read_block(a, index, json_get(object, "content_block"), e);
    if (str_eq_c(type, "content_block_stop"))
        opaque_end(&a->opaque, index);
    if (str_eq_c(type, "message_start")) {
        opaque_set_container(&a->opaque, json_get(json_get(object, "message"), "container"));
        wire_set_model(a, json_get(json_get(object, "message"), "model"));
        anthropic_read_usage(a, json_get(json_get(object, "message"), "usage"));
    }
    if (str_eq_c(type, "message_delta")) {
        anthropic_read_usage(a, json_get(object, "usage"));
        opaque_set_container(&a->opaque, json_get(json_get(object, "delta"), "container"));
        anthropic_read_stop(a, json_get(object, "delta"));
    }
    if (!str_eq_c(type, "message_stop"))
        return 0;
    a->finished = true;
    return 1;
}

static int anthropic_read_event(struct response *a, struct str event, struct str data,
                                struct err *e)
{
    /* Gateways send it at the end, but so do servers that speak OpenAI's API. */
    if (str_starts(data, STR("[DONE]")) && !a->begun)
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: the server does not speak Anthropic's protocol");
    if (str_starts(data, STR("[DONE]"))) {
        a->finished = true;
        return 1;
    }
    return wire_read_typed_event(a, event, data, anthropic_read_object, e);
}

static int anthropic_read_whole(struct response *a, struct str body, struct err *e)
{
    struct str value, content;
    int64_t index = 0;

    if (wire_parse_whole(body, &value, e) != 0)
        return -1;
    if (provider_error_reported(value))
        return provider_error_set_reported(e, value);
    content = json_get(value, "content");
    if (json_type(content) != JSON_ARRAY && json_type(content) != JSON_STRING)
        return wire_unusable(e, ERR_BUSY, "the server's answer has no content", str_trim(body));
    wire_set_model(a, json_get(value, "model"));
    opaque_set_container(&a->opaque, json_get(value, "container"));
    anthropic_read_usage(a, json_get(value, "usage"));
    if (response_add_text(a, content, e) != 0)
        return -1;
    for (struct json_iter it = json_iter(content); json_next(&it); index++) {
        if (anthropic_read_block(a, index, it.value, e) != 0)
            return -1;
        opaque_end(&a->opaque, index);
    }
    anthropic_read_stop(a, value);
    a->finished = true;
    return 0;
}

const struct provider provider_anthropic = {
    .name = "anthropic",
    .documents = true,
    .base_url = "https://api.anthropic.com",
    .needs_key = true,
    .key_variable = "ANTHROPIC_API_KEY",
    .token_variable = "ANTHROPIC_AUTH_TOKEN",
    .key_header = "x-api-key",
    .version_header = "anthropic-version",
    .version = API_VERSION,
    .retry_after_max = 60000,
    .base_variable = "ANTHROPIC_BASE_URL",
    .hosted_tools = true,
    .client_tools =
        (const char *const[]){"bash", "computer", "memory", "str_replace_based_edit_tool",
                              "str_replace_editor", "text_editor", NULL},
    .effort_field = "output_config.effort",
    .own_effort = true,
    .limit_field = "max_tokens",
    .needs_limit = true,
    .schema_field = "output_config.format",
    .request = anthropic_request,
    .models = anthropic_models,
    .event = anthropic_read_event,
    .whole = anthropic_read_whole,
};
