#include "llm/provider_openai_messages.h"

#include <stdint.h>
#include <string.h>

#include "base/json.h"

/* Mistral's ids of calls. */
#define SHORT_ID 9
#define DIGITS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

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

/* ---- ids of calls ---- */

/* The ids that the calls of a request get, where servers take only short ones. */
struct short_ids {
    bool wanted;
    struct buf taken;   /* all of them, each SHORT_ID bytes */
    struct buf waiting; /* those of the calls whose results come next, likewise */
};

static bool is_short_id(struct str id)
{
    static const struct str digits = STR(DIGITS);
    bool is = id.n == SHORT_ID;

    for (size_t i = 0; is && i < id.n; i++)
        is = memchr(digits.p, id.p[i], digits.n) != NULL;
    return is;
}

static bool is_taken(const struct short_ids *ids, const char *id)
{
    for (size_t at = 0; at < ids->taken.len; at += SHORT_ID)
        if (memcmp(ids->taken.data + at, id, SHORT_ID) == 0)
            return true;
    return false;
}

/* FNV-1a (RFC 9923): the same call has the same id in every request. */
static uint64_t hash(struct str text)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 1099511628211u;
    return h;
}

static void make_short(char out[SHORT_ID], uint64_t number)
{
    for (size_t i = 0; i < SHORT_ID; i++, number /= strlen(DIGITS))
        out[i] = DIGITS[number % strlen(DIGITS)];
}

/* The id under which a call goes out; that of its result is told by next_short. */
static void add_short(struct short_ids *ids, struct str id, struct buf *out)
{
    char made[SHORT_ID];
    uint64_t number = hash(id);

    if (is_short_id(id))
        memcpy(made, id.p, SHORT_ID);
    else
        make_short(made, number++);
    while (is_taken(ids, made))
        make_short(made, number++);
    buf_add(&ids->taken, made, SHORT_ID);
    buf_add(&ids->waiting, made, SHORT_ID);
    buf_add(out, made, SHORT_ID);
}

static void set_call_id(struct json_tree *call, struct str raw_id, struct short_ids *ids)
{
    struct buf text = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_SMALL);

    if (ids->wanted) {
        add_short(ids, json_text(raw_id, &text), &out);
        json_tree_set_text(call, "id", buf_str(&out));
    } else {
        json_tree_set_raw(call, "id", raw_id);
    }
    buf_release(&text);
    buf_release(&out);
}

/* Results stand behind their calls, in their order (context_settle). */
static void set_result_id(struct json_tree *message, const char *id, struct short_ids *ids)
{
    struct str next = {ids->waiting.data, SHORT_ID};

    if (ids->waiting.len == 0) {
        json_tree_set_text(message, "tool_call_id", str_of(id));
        return;
    }
    json_tree_set_text(message, "tool_call_id", next);
    buf_consume(&ids->waiting, SHORT_ID);
}

/* ---- the messages ---- */

/* Calls in OpenAI's form: {"id","type":"function","function":{"name","arguments"}}, the arguments
 * being JSON in a string; what the model once wrote as invalid JSON goes back as it was. */
static struct json_tree *calls_tree(struct str calls, struct str thinking, struct short_ids *ids)
{
    struct json_tree *array = json_tree_array();
    struct buf args = BUF_INIT(BUF_LINE);

    buf_clear(&ids->waiting);
    for (struct json_iter it = json_iter(calls); json_next(&it);) {
        struct json_tree *call = json_tree_object();
        struct json_tree *function = json_tree_object();
        struct str raw = json_get(it.value, "args");

        buf_clear(&args);
        if (!json_decode(raw, &args))
            buf_add_str(&args, raw);
        json_tree_set_raw(function, "name", json_get(it.value, "name"));
        json_tree_set_text(function, "arguments", buf_str(&args));
        set_call_id(call, json_get(it.value, "id"), ids);
        json_tree_set_text(call, "type", STR("function"));
        json_tree_set(call, "function", function);
        set_extra(call, json_get(it.value, "id"), thinking);
        json_tree_push(array, call);
    }
    buf_release(&args);
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

static struct json_tree *message_tree(const struct context_message *m, const char *provider,
                                      struct short_ids *ids)
{
    bool own = m->thinking && strcmp(m->provider, provider) == 0;
    struct str thinking = own ? str_of(m->thinking) : STR_NONE;
    struct json_tree *t = json_tree_object();

    json_tree_set_text(t, "role", str_of(role_name(m->role)));
    if (m->tool_call_id)
        set_result_id(t, m->tool_call_id, ids);
    if (m->images_count > 0)
        json_tree_set(t, "content", parts_tree(m));
    else if (m->tool_calls && m->n == 0)
        json_tree_set_raw(t, "content", STR("null"));
    else
        json_tree_set_text(t, "content", (struct str){m->content, m->n});
    if (m->tool_calls) {
        set_reasoning(t, thinking);
        json_tree_set(t, "tool_calls", calls_tree(str_of(m->tool_calls), thinking, ids));
    }
    return t;
}

struct json_tree *openai_messages(const struct context *c, struct str system, const char *provider,
                                  bool short_ids)
{
    struct json_tree *array = json_tree_array();
    struct short_ids ids = {
        .wanted = short_ids, .taken = BUF_INIT(BUF_LINE), .waiting = BUF_INIT(BUF_LINE)};

    if (system.p) {
        struct json_tree *t = json_tree_object();

        json_tree_set_text(t, "role", STR("system"));
        json_tree_set_text(t, "content", system);
        json_tree_push(array, t);
    }
    for (size_t i = 0; i < c->count; i++)
        json_tree_push(array, message_tree(&c->at[i], provider, &ids));
    buf_release(&ids.taken);
    buf_release(&ids.waiting);
    return array;
}
