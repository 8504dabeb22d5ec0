#include "llm/provider_openai_body.h"

#include "chathist/base/cjson.h"
#include "chathist/llm/provider_openai_messages.h"
#include "llm/provider_wire.h"
#include "llm/structured.h"

/* A tool without parameters still names their schema: Gemini and Mistral want the member. */
static cJSON *tools_tree(const struct ask *ask)
{
    cJSON *array = cjson_array();

    for (size_t i = 0; i < ask->tools_count; i++) {
        const struct tool *tool = ask->tools[i];
        cJSON *function = cjson_object();
        cJSON *t = cjson_object();

        cjson_set_text(function, "name", str_of(tool->name));
        if (*tool->description)
            cjson_set_text(function, "description", str_of(tool->description));
        cjson_set_raw(function, "parameters", str_of(tool->parameters));
        cjson_set_text(t, "type", STR("function"));
        cjson_set(t, "function", function);
        cjson_push(array, t);
    }
    return array;
}

/* What a server is no longer asked for. */
enum less {
    LESS_USAGE = 1 << 0,  /* of a stream */
    LESS_SCHEMA = 1 << 1, /* in its present form */
    LESS_FORMAT = 1 << 2, /* of the answer, in any form */
};

static cJSON *messages_tree(const struct provider *p, const struct ask *ask, unsigned less)
{
    const struct context *c = ask->context;
    struct buf system = BUF_INIT(2 * BUF_LINE);
    struct str text = {c->system, c->system_len};
    cJSON *array;

    if (less & (LESS_SCHEMA | LESS_FORMAT)) {
        buf_add_str(&system, text);
        structured_add_instruction(&system, ask->schema);
        text = buf_str(&system);
    }
    array = openai_messages(c, text, p->name, p->short_call_ids);
    buf_release(&system);
    return array;
}

void openai_body_set(const struct provider *p, const struct ask *ask, unsigned less,
                     struct http_request *r)
{
    bool usage =
        ask->stream && !wire_has_option(ask, "stream") && !p->usage_unasked && !(less & LESS_USAGE);
    cJSON *t = cjson_object();

    cjson_set_text(t, "model", str_of(ask->model));
    cjson_set(t, "messages", messages_tree(p, ask, less));
    if (ask->tools_count > 0)
        cjson_set(t, "tools", tools_tree(ask));
    cjson_set(t, "stream", cJSON_CreateBool(ask->stream));
    if (usage)
        cjson_set_raw(t, "stream_options", STR("{\"include_usage\":true}"));
    if (ask->schema.p && !(less & (LESS_SCHEMA | LESS_FORMAT)))
        structured_set_response_format(t, ask->schema);
    else if (ask->schema.p && !(less & LESS_FORMAT))
        structured_set_json_object(t, ask->schema);
    wire_set_options(t, ask);
    buf_clear(&r->body);
    cjson_print(t, &r->body);
    cJSON_Delete(t);
}

static bool names_format(struct str body)
{
    return str_find(body, STR("response_format")) || str_find(body, STR("response format")) ||
           str_find(body, STR("json_schema"));
}

/* Servers name the field that they do not know when they refuse it: HTTP 400 (OpenAI's own wording,
 * Azure, DeepSeek, Groq, gateways), 422 (pydantic), 500 (llama-cpp-python). What the user asked for
 * by an option is not taken away. A schema that the server cannot hold the answer to is told to the
 * model; chat checks the answer in any case. */
bool openai_body_drop_unsupported(const struct provider *p, const struct ask *ask, int status,
                                  struct str body, unsigned *less, struct http_request *r)
{
    unsigned before = *less;

    if (status != 400 && status != 422 && status != 500)
        return false;
    if (ask->stream && !p->usage_unasked && !wire_has_option(ask, "stream_options") &&
        str_find(body, STR("stream_options")))
        *less |= LESS_USAGE;
    else if (ask->schema.p && !wire_has_option(ask, "response_format") && names_format(body))
        *less |= *less & LESS_SCHEMA ? LESS_FORMAT : LESS_SCHEMA;
    if (*less != before)
        openai_body_set(p, ask, *less, r);
    return *less != before;
}
