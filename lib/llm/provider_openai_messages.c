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
static void set_extra(struct json_tree *call, struct str id, struct str thinking)
{
    for (struct json_iter it = json_iter(thinking); json_next(&it);)
        if (json_has_type(it.value, "extra_content") && same_text(json_get(it.value, "id"), id) &&
            json_type(json_get(it.value, "extra_content")) == JSON_OBJECT)
            json_tree_set_raw(call, "extra_content", json_get(it.value, "extra_content"));
}

static void set_reasoning(struct json_tree *message, struct str thinking)
{
    for (struct json_iter it = json_iter(thinking); json_next(&it);)
        if (json_has_type(it.value, "reasoning_content") &&
            json_type(json_get(it.value, "text")) == JSON_STRING)
            json_tree_set_raw(message, "reasoning_content", json_get(it.value, "text"));
        else if (json_has_type(it.value, "reasoning_details") &&
                 json_type(json_get(it.value, "reasoning_details")) == JSON_ARRAY)
            json_tree_set_raw(message, "reasoning_details",
                              json_get(it.value, "reasoning_details"));
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
static struct json_tree *call_tree(struct str raw, struct str thinking, struct call_ids *ids)
{
    struct json_tree *call = json_tree_object(), *function = json_tree_object();
    struct buf text = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_LINE);

    call_name_add(&out, json_text(json_get(raw, "name"), &text));
    json_tree_set_text(function, "name", buf_str(&out));
    buf_clear(&out);
    add_arguments(&out, json_get(raw, "args"));
    json_tree_set_text(function, "arguments", buf_str(&out));
    buf_clear(&out);
    call_ids_add(ids, json_text(json_get(raw, "id"), &text), &out);
    json_tree_set_text(call, "id", buf_str(&out));
    json_tree_set_text(call, "type", STR("function"));
    json_tree_set(call, "function", function);
    set_extra(call, json_get(raw, "id"), thinking);
    buf_release(&text);
    buf_release(&out);
    return call;
}

static struct json_tree *calls_tree(struct str calls, struct str thinking, struct call_ids *ids)
{
    struct json_tree *array = json_tree_array();

    call_ids_begin(ids);
    for (struct json_iter it = json_iter(calls); json_next(&it);)
        json_tree_push(array, call_tree(it.value, thinking, ids));
    return array;
}

/* Text, if there is any, and images as data URLs. */
static struct json_tree *parts_tree(const struct context_message *m)
{
    struct json_tree *array = json_tree_array();

    if (str_trim((struct str){m->content, m->n}).n > 0) {
        struct json_tree *part = json_tree_object();

        json_tree_set_text(part, "type", STR("text"));
        json_tree_set_text(part, "text", (struct str){m->content, m->n});
        json_tree_push(array, part);
    }
    for (size_t i = 0; i < m->images_count; i++) {
        struct json_tree *part = json_tree_object(), *url = json_tree_object();
        struct buf data = BUF_INIT(SIZE_MAX);

        buf_addf(&data, "data:%s;base64,", m->images[i].type);
        buf_add_c(&data, m->images[i].base64);
        json_tree_set_text(part, "type", STR("image_url"));
        json_tree_set_text(url, "url", buf_str(&data));
        json_tree_set(part, "image_url", url);
        json_tree_push(array, part);
        buf_release(&data);
    }
    return array;
}

static struct json_tree *text_tree(enum role role, struct str text)
{
    struct json_tree *t = json_tree_object();

    json_tree_set_text(t, "role", str_of(role_name(role)));
    json_tree_set_text(t, "content", text);
    return t;
}

static void set_result_id(struct json_tree *t, struct call_ids *ids)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    call_ids_next(ids, &id);
    json_tree_set_text(t, "tool_call_id", buf_str(&id));
    buf_release(&id);
}

/* The content is "" where there is no text: llama-cpp-python refuses null. */
static struct json_tree *message_tree(const struct context_message *m, const char *provider,
                                      struct call_ids *ids)
{
    bool own = m->thinking && strcmp(m->provider, provider) == 0;
    struct str thinking = own ? str_of(m->thinking) : STR_NONE;
    struct json_tree *t = json_tree_object();

    json_tree_set_text(t, "role", str_of(role_name(m->role)));
    if (m->tool_call_id)
        set_result_id(t, ids);
    if (m->images_count > 0)
        json_tree_set(t, "content", parts_tree(m));
    else
        json_tree_set_text(t, "content", (struct str){m->content, m->n});
    if (m->tool_calls) {
        set_reasoning(t, thinking);
        json_tree_set(t, "tool_calls", calls_tree(str_of(m->tool_calls), thinking, ids));
    }
    return t;
}

/* Chat templates raise an exception unless the user begins, and unless user and model take turns
 * (Gemma, Mistral, Llama 2): a stand-in takes the place of the message that is missing. */
static void fill_gap(struct json_tree *array, const struct context *c, size_t i)
{
    if (i == 0 && c->at[i].role != ROLE_USER)
        json_tree_push(array, text_tree(ROLE_USER, STR(STAND_IN)));
    if (i > 0 && c->at[i].role == ROLE_USER && c->at[i - 1].role == ROLE_TOOL)
        json_tree_push(array, text_tree(ROLE_ASSISTANT, STR(STAND_IN)));
}

struct json_tree *openai_messages(const struct context *c, struct str system, const char *provider,
                                  bool short_ids)
{
    struct json_tree *array = json_tree_array();
    struct call_ids ids;

    call_ids_init(&ids, short_ids);
    if (str_trim(system).n > 0)
        json_tree_push(array, text_tree(ROLE_SYSTEM, system));
    for (size_t i = 0; i < c->count; i++) {
        fill_gap(array, c, i);
        json_tree_push(array, message_tree(&c->at[i], provider, &ids));
    }
    call_ids_release(&ids);
    return array;
}
