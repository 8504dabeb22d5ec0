#include "chathist/llm/provider_openai_messages.h"

#include <string.h>

#include "chathist/base/json.h"
#include "llm/call_ids.h"

/* The content of a message that has to be there for the order of the roles alone. */
#define STAND_IN "…"

/* ---- what goes back as it came ---- */

static bool same_text(struct str a, struct str b)
{
    struct buf x = BUF_INIT(BUF_LINE), y = BUF_INIT(BUF_LINE);
    bool same = str_eq(json_text(a, &x), json_text(b, &y));

    buf_release(&x);
    buf_release(&y);
    return same;
}

/* What came with the call of that id. */
static void set_extra(cJSON *call, struct str id, struct str thinking)
{
    for (struct json_iter it = json_iter(thinking); json_next(&it);)
        if (json_has_type(it.value, "extra_content") && same_text(json_get(it.value, "id"), id) &&
            json_type(json_get(it.value, "extra_content")) == JSON_OBJECT)
            cjson_set_raw(call, "extra_content", json_get(it.value, "extra_content"));
}

static void set_reasoning(cJSON *message, struct str thinking)
{
    for (struct json_iter it = json_iter(thinking); json_next(&it);)
        if (json_has_type(it.value, "reasoning_content") &&
            json_type(json_get(it.value, "text")) == JSON_STRING)
            cjson_set_raw(message, "reasoning_content", json_get(it.value, "text"));
        else if (json_has_type(it.value, "reasoning_details") &&
                 json_type(json_get(it.value, "reasoning_details")) == JSON_ARRAY)
            cjson_set_raw(message, "reasoning_details", json_get(it.value, "reasoning_details"));
}

/* ---- the messages ---- */

/* The arguments as the text of an object. Some servers answer HTTP 500 to any other text (llama.cpp,
 * vLLM before its PR 48922), and do so for the rest of the session: what the model wrote as invalid
 * JSON becomes `{}`, and the result of the call says what was wrong with it. */
static void add_arguments(struct buf *out, struct str args)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str value = args;

    if (json_decode(args, &text) && !json_check(buf_str(&text), &value, NULL))
        value = STR_NONE;
    if (json_type(value) == JSON_OBJECT)
        json_add_compact(out, value);
    else
        buf_add_c(out, "{}");
    buf_release(&text);
}

/* A call in OpenAI's form: {"id","type":"function","function":{"name","arguments"}}. */
static cJSON *call_tree(struct str raw, struct str thinking, struct call_ids *ids)
{
    cJSON *call = cjson_object(), *function = cjson_object();
    struct buf text = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_LINE);

    call_name_add(&out, json_text(json_get(raw, "name"), &text));
    cjson_set_text(function, "name", buf_str(&out));
    buf_clear(&out);
    add_arguments(&out, json_get(raw, "args"));
    cjson_set_text(function, "arguments", buf_str(&out));
    buf_clear(&out);
    call_ids_add(ids, json_text(json_get(raw, "id"), &text), &out);
    cjson_set_text(call, "id", buf_str(&out));
    cjson_set_text(call, "type", STR("function"));
    cjson_set(call, "function", function);
    set_extra(call, json_get(raw, "id"), thinking);
    buf_release(&text);
    buf_release(&out);
    return call;
}

static cJSON *calls_tree(struct str calls, struct str thinking, struct call_ids *ids)
{
    cJSON *array = cjson_array();

    call_ids_begin(ids);
    for (struct json_iter it = json_iter(calls); json_next(&it);)
        cjson_push(array, call_tree(it.value, thinking, ids));
    return array;
}

/* Text, if there is any, and images as data URLs. */
static cJSON *parts_tree(const struct context_message *m)
{
    cJSON *array = cjson_array();

    if (str_trim((struct str){m->content, m->n}).n > 0) {
        cJSON *part = cjson_object();

        cjson_set_text(part, "type", STR("text"));
        cjson_set_text(part, "text", (struct str){m->content, m->n});
        cjson_push(array, part);
    }
    for (size_t i = 0; i < m->images_count; i++) {
        cJSON *part = cjson_object(), *url = cjson_object();
        struct buf data = BUF_INIT(SIZE_MAX);

        buf_addf(&data, "data:%s;base64,", m->images[i].type);
        buf_add_c(&data, m->images[i].base64);
        cjson_set_text(part, "type", STR("image_url"));
        cjson_set_text(url, "url", buf_str(&data));
        cjson_set(part, "image_url", url);
        cjson_push(array, part);
        buf_release(&data);
    }
    return array;
}

static cJSON *text_tree(enum role role, struct str text)
{
    cJSON *t = cjson_object();

    cjson_set_text(t, "role", str_of(role_name(role)));
    cjson_set_text(t, "content", text);
    return t;
}

static void set_result_id(cJSON *t, struct call_ids *ids)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    call_ids_next(ids, &id);
    cjson_set_text(t, "tool_call_id", buf_str(&id));
    buf_release(&id);
}

/* The content is "" where there is no text: llama-cpp-python refuses null. */
static cJSON *message_tree(const struct context_message *m, const char *provider,
                           struct call_ids *ids)
{
    bool own = m->thinking && strcmp(m->provider, provider) == 0;
    struct str thinking = own ? str_of(m->thinking) : STR_NONE;
    cJSON *t = cjson_object();

    cjson_set_text(t, "role", str_of(role_name(m->role)));
    if (m->tool_call_id)
        set_result_id(t, ids);
    if (m->images_count > 0)
        cjson_set(t, "content", parts_tree(m));
    else
        cjson_set_text(t, "content", (struct str){m->content, m->n});
    if (m->tool_calls) {
        set_reasoning(t, thinking);
        cjson_set(t, "tool_calls", calls_tree(str_of(m->tool_calls), thinking, ids));
    }
    return t;
}

/* Chat templates raise an exception unless the user begins, and unless user and model take turns
 * (Gemma, Mistral, Llama 2): a stand-in takes the place of the message that is missing. */
static void fill_gap(cJSON *array, const struct context *c, size_t i)
{
    if (i == 0 && c->at[i].role != ROLE_USER)
        cjson_push(array, text_tree(ROLE_USER, STR(STAND_IN)));
    if (i > 0 && c->at[i].role == ROLE_USER && c->at[i - 1].role == ROLE_TOOL)
        cjson_push(array, text_tree(ROLE_ASSISTANT, STR(STAND_IN)));
}

cJSON *openai_messages(const struct context *c, struct str system, const char *provider,
                       bool short_ids)
{
    cJSON *array = cjson_array();
    struct call_ids ids;

    call_ids_init(&ids, short_ids);
    if (str_trim(system).n > 0)
        cjson_push(array, text_tree(ROLE_SYSTEM, system));
    for (size_t i = 0; i < c->count; i++) {
        fill_gap(array, c, i);
        cjson_push(array, message_tree(&c->at[i], provider, &ids));
    }
    call_ids_release(&ids);
    return array;
}
