/*
 * provider_responses - OpenAI's Responses API, and the servers that are compatible with it.
 *
 * Sources: the schema (github.com/openai/openai-openapi, CreateResponse and ResponseStreamEvent),
 * openai-python (types/responses), and the guides "Reasoning models", "Conversation state" and
 * "Function calling" at developers.openai.com/api/docs. Where compatible servers are stricter than
 * the schema, their source is named beside the code.
 *
 * A conversation is sent whole with each request, and the server is asked to store nothing
 * (`store`). The items of a response go back to the provider that sent them, byte for byte and in
 * their order, because reasoning is encrypted and its server refuses it without the item that
 * follows it. They go back inside a loop of calls and results, and in later turns, too: the server
 * decides which of them the model sees (`reasoning.context`).
 */
#include <inttypes.h>
#include <string.h>

#include "chathist/base/cjson.h"
#include "chathist/base/json.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/provider_openai.h"
#include "llm/provider_wire.h"

/* ---- the input of a request ---- */

/* The items of a request's input. */
struct input {
    cJSON *items;
    struct call_ids ids;
    size_t answers;     /* how many messages of the model have been written */
    struct buf callers; /* the callers of the calls whose results come next: lines of JSON */
    size_t callers_read;
};

/* Makes the part of an image (InputImageContent) or of a PDF (InputFileContent). */
static cJSON *input_part(const struct attachment *a)
{
    bool image = attachment_is_image(a);
    cJSON *part = wire_of_type(image ? "input_image" : "input_file");

    if (!image)
        cjson_set_text(part, "filename", str_of(a->name));
    wire_set_data_url(part, image ? "image_url" : "file_data", a);
    if (image)
        cjson_set_text(part, "detail", STR("auto"));
    return part;
}

/* Adds text of the model in the form in which servers send it, with all members that the schema
 * requires: vLLM wants `id` and `status`, and llama.cpp the array of parts. The id is invented;
 * OpenAI wants it to begin with `msg`. */
static void input_add_answer(struct input *in, struct str text)
{
    cJSON *item, *part, *parts;
    struct buf id = BUF_INIT(BUF_SMALL);

    if (str_trim(text).n == 0)
        return;
    item = wire_of_type("message");
    part = wire_text_part("output_text", text);
    parts = cjson_array();
    buf_addf(&id, "msg_%zu", ++in->answers);
    cjson_set_text(item, "id", buf_str(&id));
    cjson_set_text(item, "role", STR("assistant"));
    cjson_set_text(item, "status", STR("completed"));
    cjson_set(part, "annotations", cjson_array());
    cjson_set(part, "logprobs", cjson_array());
    cjson_push(parts, part);
    cjson_set(item, "content", parts);
    cjson_push(in->items, item);
    buf_release(&id);
}

/* Adds a call of the history, {"id","name","args"}. If `own` is the item of this server for it, the
 * item goes back unchanged, unless its id, name or arguments would be refused. */
static void input_add_call(struct input *in, struct str call, struct str own)
{
    struct wire_call c;
    cJSON *item;

    wire_call_init(&c, &in->ids, call);
    if (json_is_text(json_get(own, "call_id"), buf_c(&c.id)) &&
        json_is_text(json_get(own, "name"), buf_c(&c.name)) &&
        json_type(json_get(call, "args")) == JSON_OBJECT) {
        item = cjson_raw(own);
        json_add_compact(&in->callers, json_get(own, "caller"));
    } else {
        item = wire_of_type("function_call");
        cjson_set_text(item, "call_id", buf_str(&c.id));
        cjson_set_text(item, "name", buf_str(&c.name));
        cjson_set_text(item, "arguments", buf_str(&c.args));
    }
    buf_add_byte(&in->callers, '\n');
    cjson_push(in->items, item);
    wire_call_release(&c);
}

/* The output is a text, or an array of parts if it has images (FunctionCallOutputItemParam). It has
 * the `caller` of its call, which a program of the server may be. */
static void input_add_result(struct input *in, const struct context_message *m)
{
    cJSON *item = wire_of_type("function_call_output");
    struct str rest = str_skip(buf_str(&in->callers), in->callers_read);
    struct str caller = str_cut(&rest, '\n');

    in->callers_read += caller.n + 1;
    wire_set_result(item, &in->ids, "call_id", NULL);
    if (caller.n > 0)
        cjson_set_raw(item, "caller", caller);
    wire_set_content(item, "output", m, "input_text", input_part);
    cjson_push(in->items, item);
}

/* ---- items of earlier responses ---- */

/* Returns whether these are the same texts but for white space. The text of an answer has a blank
 * line between those of its items. */
static bool same_words(struct str a, struct str b)
{
    static const struct str blanks = STR(" \t\r\n");
    size_t i = 0, k = 0;

    for (;; i++, k++) {
        while (i < a.n && memchr(blanks.p, a.p[i], blanks.n))
            i++;
        while (k < b.n && memchr(blanks.p, b.p[k], blanks.n))
            k++;
        if (i == a.n || k == b.n)
            return i == a.n && k == b.n;
        if (a.p[i] != b.p[k])
            return false;
    }
}

/* Returns whether the items have the text of the message. A user may have edited the history. */
static bool items_have_text(struct str items, const struct context_message *m)
{
    static const char *const members[] = {"text", "refusal"};
    struct buf text = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(SIZE_MAX);
    bool same;

    for (struct json_iter it = json_iter(items); json_next(&it);)
        for (struct json_iter part = json_iter(json_get(it.value, "content"));
             json_has_type(it.value, "message") && !part.object && json_next(&part);)
            for (size_t i = 0; i < sizeof members / sizeof *members; i++)
                buf_add_str(&text, json_text(json_get(part.value, members[i]), &scratch));
    same = same_words(buf_str(&text), (struct str){m->content, m->n});
    buf_release(&text);
    buf_release(&scratch);
    return same;
}

/* Returns the stored items of the message if they can go back: this server wrote them, they have
 * its text, each call of the message has its item, and no other text was merged into it. Otherwise
 * returns STR_NONE. `openai` at another base URL stores objects of other types. */
static struct str own_items(const struct context_message *m, struct context_server asked)
{
    struct str items = m->merged ? STR_NONE : context_blocks(m, asked);
    struct json_iter calls = json_iter(str_of(m->tool_calls));
    size_t messages = 0, count = 0;

    for (struct json_iter it = json_iter(items); !it.object && json_next(&it);) {
        messages += json_has_type(it.value, "message");
        if (json_has_type(it.value, "function_call")) {
            count++;
            if (!json_next(&calls))
                return STR_NONE;
        }
    }
    if (messages + count == 0 || json_next(&calls) || !items_have_text(items, m))
        return STR_NONE;
    return items;
}

/* Adds a message of the model: its own items in their order, or the text and the calls. Reasoning
 * at the end is not sent, because a server refuses it without the item that follows it ("Item
 * 'rs_...' of type 'reasoning' was provided without its required following item",
 * github.com/vercel/ai/issues/7099). */
static void input_add_response(struct input *in, const struct context_message *m,
                               struct context_server asked)
{
    struct str items = own_items(m, asked);
    struct json_iter calls = json_iter(str_of(m->tool_calls));
    size_t end = 0, i = 0;

    for (struct json_iter it = json_iter(items); json_next(&it);) {
        i++;
        if (!json_has_type(it.value, "reasoning"))
            end = i;
    }
    i = 0;
    for (struct json_iter it = json_iter(items); i < end && json_next(&it); i++)
        if (json_has_type(it.value, "function_call") && json_next(&calls))
            input_add_call(in, calls.value, it.value);
        else
            cjson_push(in->items, cjson_raw(it.value));
    if (items.p)
        return;
    input_add_answer(in, (struct str){m->content, m->n});
    while (json_next(&calls))
        input_add_call(in, calls.value, STR_NONE);
}

static cJSON *responses_input(const struct provider *p, const struct ask *ask)
{
    struct input in = {.items = cjson_array(), .callers = BUF_INIT(SIZE_MAX)};
    struct context_server asked = wire_asked(p, ask);

    wire_call_ids_init(&in.ids, false);
    for (size_t i = 0; i < ask->context->count; i++) {
        const struct context_message *m = &ask->context->at[i];
        cJSON *item;

        if (m->role == ROLE_TOOL) {
            input_add_result(&in, m);
        } else if (m->role == ROLE_ASSISTANT) {
            input_add_response(&in, m, asked);
        } else {
            /* Every item has a type, because llama.cpp refuses those without. */
            item = wire_of_type("message");
            cjson_set_text(item, "role", STR("user"));
            wire_set_content(item, "content", m, "input_text", input_part);
            cjson_push(in.items, item);
        }
    }
    wire_call_ids_release(&in.ids);
    buf_release(&in.callers);
    return in.items;
}

/* ---- the body of a request ---- */

/* `strict` is false, because the schemas of tools are not written for the strict subset, and a
 * server that misses the member takes it for true. */
static cJSON *responses_tools(const struct ask *ask)
{
    cJSON *tools = cjson_array();

    for (size_t i = 0; i < ask->hosted_tools_count; i++)
        cjson_push(tools, wire_of_type(ask->hosted_tools[i]));
    for (size_t i = 0; i < ask->tools_count; i++) {
        cJSON *t = wire_of_type("function");

        wire_set_tool(t, ask->tools[i], "parameters");
        cjson_set(t, "strict", cJSON_CreateFalse());
        cjson_push(tools, t);
    }
    return tools;
}

static int responses_request(const struct provider *p, const struct ask *ask,
                             struct http_request *r, struct err *e)
{
    struct str system = {ask->context->system, ask->context->system_len};
    struct buf key = BUF_INIT(BUF_SMALL);
    cJSON *t, *text, *format;

    if (wire_begin(r, p, ask, true, "", "/responses", e) != 0)
        return -1;
    t = cjson_object();
    cjson_set_text(t, "model", str_of(ask->model));
    if (str_trim(system).n > 0)
        cjson_set_text(t, "instructions", system);
    cjson_set(t, "input", responses_input(p, ask));
    if (ask->tools_count + ask->hosted_tools_count > 0)
        cjson_set(t, "tools", responses_tools(ask));
    cjson_set(t, "stream", cJSON_CreateBool(ask->stream));
    cjson_set(t, "store", cJSON_CreateFalse());
    cjson_set_raw(t, "include", STR("[\"reasoning.encrypted_content\"]"));
    /* Requests with the same beginning and the same key reach the same machine, whose cache has the
     * beginning (OpenAI, "Prompt caching"). The key says nothing about the user. */
    buf_addf(&key, "%016" PRIx64, ask->conversation);
    if (p->cache_key && ask->conversation != 0 && !ask->once)
        cjson_set_text(t, "prompt_cache_key", buf_str(&key));
    buf_release(&key);
    if (ask->show_reasoning)
        cjson_set_raw(t, "reasoning", STR("{\"summary\":\"auto\"}"));
    if (ask->schema.p) {
        text = cjson_object();
        format = wire_of_type("json_schema"); /* TextResponseFormatJsonSchema */
        wire_set_schema(format, ask);
        cjson_set(text, "format", format);
        cjson_set(t, "text", text);
    }
    return wire_end_body(t, p, ask, r, e);
}

/* ---- the response: its items ---- */

static const struct str blank_line = STR("\"\\n\\n\"");

/* Adds a piece of the current item's text. The texts of two messages of a response, such as a
 * remark before a search and the answer after it, have a blank line between them. */
static int responses_add_text(struct response *a, struct str text, struct err *e)
{
    if (json_type(text) == JSON_STRING && text.n > 2 && a->item_start > 0 &&
        a->text.len == a->item_start && response_add_text(a, blank_line, e) != 0)
        return -1;
    return response_add_text(a, text, e);
}

static int responses_add_refusal(struct response *a, struct str refusal, struct err *e)
{
    a->refused = true;
    return responses_add_text(a, refusal, e);
}

/* Parts of a summary are paragraphs. */
static int responses_part_reasoning(struct response *a)
{
    return a->reasoned ? response_add_reasoning(a, STR("\n\n")) : 0;
}

/* Reads a whole message. Parts that came in deltas are not read again. */
static int read_message_item(struct response *a, struct str item, struct err *e)
{
    bool text_came = a->text.len > a->item_start, cited = a->item_cited;
    int rc = 0;

    for (struct json_iter it = json_iter(json_get(item, "content"));
         rc == 0 && !it.object && json_next(&it);) {
        if (json_has_type(it.value, "output_text") && !text_came)
            rc = responses_add_text(a, json_get(it.value, "text"), e);
        else if (json_has_type(it.value, "refusal") && !text_came)
            rc = responses_add_refusal(a, json_get(it.value, "refusal"), e);
        if (rc == 0 && !cited)
            rc = response_add_citations(a, json_get(it.value, "annotations"));
    }
    return rc;
}

/* Reads a whole item of reasoning: its summary, or else, for an open model, its text. */
static int read_reasoning_item(struct response *a, struct str item)
{
    static const char *const lists[] = {"summary", "content"};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < 2 && !a->item_reasoned; i++)
        for (struct json_iter it = json_iter(json_get(item, lists[i]));
             rc == 0 && !it.object && json_next(&it);) {
            rc = responses_part_reasoning(a);
            if (rc == 0)
                rc = wire_add_reasoning(a, json_get(it.value, "text"));
            a->item_reasoned = true;
        }
    return rc;
}

/* Reads a call. `done`: its arguments are complete; those that came in deltas are not read again.
 * Without a call_id the id of the item says that both of its events are about the same call. */
static int read_call_item(struct response *a, int64_t index, struct str item, bool done,
                          struct err *e)
{
    struct str call_id = json_get(item, "call_id");
    struct str id = json_body(call_id).n > 0 ? call_id : json_get(item, "id");
    int rc = wire_add_call(a, index, id, json_get(item, "name"), STR_NONE, e);
    const struct tool_call *call = rc == 0 ? response_call_at(a, index) : NULL;

    if (done && call && call->args.len == 0)
        rc = response_add_call(a, index, STR_NONE, STR_NONE, json_get(item, "arguments"), e);
    return rc;
}

static void begin_item(struct response *a)
{
    a->item_start = a->text.len;
    a->item_cited = a->item_reasoned = false;
}

/* Notes an item of another type. Some ask the client for something that chat cannot do; a shell
 * that runs at the server is followed by its output. */
static void read_other_item(struct response *a, struct str item)
{
    static const char *const asking[] = {"apply_patch_call",     "computer_call",
                                         "custom_tool_call",     "local_shell_call",
                                         "mcp_approval_request", "shell_call"};
    struct buf scratch = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE);
    struct str type = json_text(json_get(item, "type"), &scratch),
               action = json_get(item, "action");

    response_set_other(a, type);
    /* A search costs money, a page that is opened after it does not (OpenAI, "Pricing"). */
    if (str_ends(type, STR("_call")) &&
        (!json_get(action, "type").p || json_has_type(action, "search")))
        response_count_charge(a, type);
    if (str_ends(type, STR("_call_output")))
        response_ask_client(a, STR_NONE, STR_NONE);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (str_eq_c(type, asking[i]))
            response_ask_client(a, type, json_text(json_get(item, "name"), &name));
    buf_release(&scratch);
    buf_release(&name);
}

/* Reads an item of the output that is complete. */
static int read_whole_item(struct response *a, int64_t index, struct str item, struct err *e)
{
    /* An item goes back if it holds something that the text and the calls of the history do not:
     * reasoning, a call of a tool that runs at the server, the program of the server that made a
     * call, or the phase of a message, which OpenAI wants back (openai-openapi, MessagePhase). */
    bool goes_back = true;
    int rc = 0;

    if (json_type(item) != JSON_OBJECT)
        return 0;
    if (json_has_type(item, "message")) {
        goes_back = json_type(json_get(item, "phase")) == JSON_STRING;
        rc = read_message_item(a, item, e);
    } else if (json_has_type(item, "function_call")) {
        goes_back = json_has_type(json_get(item, "caller"), "program");
        rc = read_call_item(a, index, item, true, e);
    } else if (json_has_type(item, "reasoning")) {
        rc = read_reasoning_item(a, item);
    } else if (json_has_type(item, "image_generation_call")) {
        response_count_charge(a, STR("image_generation_call"));
        response_add_image(a, json_get(item, "result"));
    } else {
        read_other_item(a, item);
    }
    opaque_add_item(&a->opaque, item, goes_back);
    begin_item(a);
    return rc;
}

/* ---- the response: how it ends ---- */

static int read_incomplete(struct response *a, struct str response, struct err *e)
{
    struct str reason = json_get(json_get(response, "incomplete_details"), "reason");
    struct buf scratch = BUF_INIT(BUF_LINE), shown = BUF_INIT(BUF_SMALL);
    int rc = 0;

    if (json_is_text(reason, "max_output_tokens")) {
        response_set_finish(a, STR("length"));
    } else if (json_is_text(reason, "content_filter")) {
        response_set_finish(a, STR("content_filter"));
    } else {
        provider_error_add_excerpt(&shown, json_text(reason, &scratch), 80);
        rc = err_set(e, ERR_INCOMPLETE, "answer is incomplete: the server ended it%s%s",
                     shown.len > 0 ? ": " : "", buf_c(&shown));
    }
    buf_release(&scratch);
    buf_release(&shown);
    return rc;
}

/* Reads a response object at its end. `status` is its own, or that of the event. */
static int responses_read_end(struct response *a, struct str response, struct str status,
                              struct err *e)
{
    static const struct wire_usage counts[] = {
        {USAGE_INPUT, NULL, "input_tokens"},
        {USAGE_OUTPUT, NULL, "output_tokens"},
        {USAGE_CACHE_READ, "input_tokens_details", "cached_tokens"},
        {USAGE_CACHE_WRITE, "input_tokens_details", "cache_write_tokens"},
        {USAGE_REASONING, "output_tokens_details", "reasoning_tokens"},
        {.inner = NULL},
    };
    int64_t index = 0;

    wire_set_model(a, json_get(response, "model"));
    wire_read_usage(a, &a->usage, json_get(response, "usage"), counts);
    response_add_usage_member(a, "service_tier", json_get(response, "service_tier"));
    if (!a->begun) {
        begin_item(a);
        for (struct json_iter it = json_iter(json_get(response, "output"));
             !it.object && json_next(&it); index++)
            if (read_whole_item(a, index, it.value, e) != 0)
                return -1;
    }
    if (str_eq_c(status, "failed"))
        return provider_error_reported(response)
                   ? provider_error_set_reported(e, response)
                   : err_set(e, ERR_BUSY, "server error: the response failed, without a reason");
    if (str_eq_c(status, "incomplete")) {
        if (read_incomplete(a, response, e) != 0)
            return -1;
    } else if (status.n == 0 || str_eq_c(status, "completed")) {
        opaque_add_items(&a->opaque);
        response_set_finish(a, a->refused ? STR("content_filter") : STR("stop"));
    } else {
        return wire_unusable(e, ERR_INCOMPLETE, "answer is incomplete: its status is", status);
    }
    a->finished = true;
    return 0;
}

/* ---- the events of a stream ---- */

/* Reads an event about a part of an item. *known is set if it is one. */
static int read_part(struct response *a, struct str type, struct str object, bool *known,
                     struct err *e)
{
    struct str delta = json_get(object, "delta");
    int64_t index = 0;

    json_int(json_get(object, "output_index"), &index);
    *known = true;
    if (str_eq_c(type, "output_text.delta"))
        return responses_add_text(a, delta, e);
    if (str_eq_c(type, "function_call_arguments.delta"))
        return response_call_at(a, index)
                   ? response_add_call(a, index, STR_NONE, STR_NONE, delta, e)
                   : 0;
    if (str_eq_c(type, "refusal.delta"))
        return responses_add_refusal(a, delta, e);
    if (str_eq_c(type, "reasoning_summary_part.added"))
        return responses_part_reasoning(a);
    if (str_eq_c(type, "reasoning_summary_text.delta") || str_eq_c(type, "reasoning_text.delta")) {
        a->item_reasoned = true;
        return wire_add_reasoning(a, delta);
    }
    if (str_eq_c(type, "output_text.annotation.added")) {
        a->item_cited = true;
        return response_add_citation(a, json_get(object, "annotation"));
    }
    if (str_eq_c(type, "output_item.done"))
        return read_whole_item(a, index, json_get(object, "item"), e);
    *known = str_eq_c(type, "output_item.added");
    if (*known)
        begin_item(a);
    return *known && json_has_type(json_get(object, "item"), "function_call")
               ? read_call_item(a, index, json_get(object, "item"), false, e)
               : 0;
}

/* Reads an event. Returns 1 at the end of the response, 0 before it, or -1 with *e set. Events that
 * are not read repeat others, or report the progress of a tool at the server. */
static int read_known_event(struct response *a, struct str type, struct str object, struct err *e)
{
    struct str response = json_get(object, "response");
    bool known;
    int rc;

    if (!str_starts(type, STR("response.")))
        return 0;
    type = str_skip(type, strlen("response."));
    if (str_eq_c(type, "created") || str_eq_c(type, "in_progress"))
        wire_set_model(a, json_get(response, "model"));
    if (str_eq_c(type, "completed") || str_eq_c(type, "incomplete") || str_eq_c(type, "failed")) {
        struct buf scratch = BUF_INIT(BUF_LINE);
        struct str status = json_text(json_get(response, "status"), &scratch);

        /* Some servers end every stream with `completed`. */
        if (str_eq_c(type, "completed") && status.n > 0)
            type = status;
        rc = responses_read_end(a, response, type, e) == 0 ? 1 : -1;
        buf_release(&scratch);
        return rc;
    }
    rc = read_part(a, type, object, &known, e);
    a->begun = a->begun || known;
    return rc;
}

static int responses_read_event(struct response *a, struct str event, struct str data,
                                struct err *e)
{
    /* Some servers send this after the last event. It does not say that the response is whole. */
    if (str_starts(data, STR("[DONE]")))
        return a->begun ? 0
                        : err_set(e, ERR_INCOMPLETE,
                                  "answer is incomplete: the server does not "
                                  "speak the Responses API");
    return wire_read_typed_event(a, event, data, read_known_event, e);
}

static int responses_read_whole(struct response *a, struct str body, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str value, status;
    int rc;

    if (wire_parse_whole(body, &value, e) != 0)
        return -1;
    status = json_text(json_get(value, "status"), &scratch);
    if (provider_error_reported(value))
        rc = provider_error_set_reported(e, value);
    else if (!str_eq_c(status, "failed") && json_type(json_get(value, "output")) != JSON_ARRAY)
        rc = wire_unusable(e, ERR_BUSY, "the server's answer has no output", str_trim(body));
    else
        rc = responses_read_end(a, value, status, e);
    buf_release(&scratch);
    return rc;
}

/* ---- the servers ---- */

static const char *const client_tools[] = {
    "apply_patch", "computer", "computer_use_preview", "custom", "local_shell", "shell", NULL};

#define RESPONSES                                                                                  \
    .base_url = "https://api.openai.com/v1", .needs_key = true, .key_variable = "OPENAI_API_KEY",  \
    .base_variable = "OPENAI_BASE_URL", .key_name = "openai", .hosted_tools = true,                \
    .client_tools = client_tools, .documents = true, .effort_field = "reasoning.effort",           \
    .limit_field = "max_output_tokens", .schema_field = "text.format",                             \
    .missing = "no Responses API there? -p openai-chat uses Chat Completions",                     \
    .request = responses_request, .models = wire_models, .event = responses_read_event,            \
    .whole = responses_read_whole

const struct provider provider_openai_own = {
    .name = "openai",
    .cache_key = true,
    .elsewhere = &provider_openai,
    RESPONSES,
};

const struct provider provider_responses = {
    .name = "openai-responses",
    RESPONSES,
};
