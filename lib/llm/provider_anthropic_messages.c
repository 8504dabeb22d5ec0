#include "chathist/llm/provider_anthropic_messages.h"

#include <string.h>

#include "chathist/base/json.h"
#include "llm/call_ids.h"

/* What stands in for the user where a conversation begins with the model. */
#define OPENING "…"

/* The messages of a request, composed block by block. */
struct composer {
    const char *provider;
    const struct context *context;
    cJSON *messages;
    const char *role; /* of the message that is being composed; NULL: none yet */
    struct str text;  /* its only block so far, a text: that is sent as a string */
    cJSON *blocks;    /* its blocks; NULL: none yet */
    struct call_ids ids;
    struct buf names; /* of the tools in `tools`, each between line feeds */
    cJSON *tools;     /* a declaration of each tool that was called */
    size_t calls;
};

static void compose_init(struct composer *c, const char *provider, const struct context *context)
{
    *c = (struct composer){.provider = provider,
                           .context = context,
                           .messages = cjson_array(),
                           .names = BUF_INIT(BUF_LINE),
                           .tools = cjson_array()};
    call_ids_init(&c->ids, false);
    buf_add_byte(&c->names, '\n');
}

static void compose_release(struct composer *c)
{
    cJSON_Delete(c->messages);
    cJSON_Delete(c->tools);
    call_ids_release(&c->ids);
    buf_release(&c->names);
}

static cJSON *block_of(const char *type)
{
    cJSON *block = cjson_object();

    cjson_set_text(block, "type", str_of(type));
    return block;
}

/* Makes the only text a block like others, so that more can follow. */
static cJSON *open_blocks(struct composer *c)
{
    if (!c->blocks)
        c->blocks = cjson_array();
    if (c->text.p) {
        cJSON *block = block_of("text");

        cjson_set_text(block, "text", c->text);
        cjson_push(c->blocks, block);
        c->text = STR_NONE;
    }
    return c->blocks;
}

static void end_message(struct composer *c)
{
    cJSON *message;

    if (!c->role)
        return;
    message = cjson_object();
    cjson_set_text(message, "role", str_of(c->role));
    if (c->blocks)
        cjson_set(message, "content", open_blocks(c));
    else
        cjson_set_text(message, "content", c->text);
    cjson_push(c->messages, message);
    c->blocks = NULL;
    c->text = STR_NONE;
}

/* What comes next is that role's: goes on with the message or begins one. */
static void take_turn(struct composer *c, enum role role)
{
    const char *name = role == ROLE_ASSISTANT ? "assistant" : "user";

    if (c->role && strcmp(c->role, name) == 0)
        return;
    if (!c->role && role == ROLE_ASSISTANT) {
        c->role = "user";
        c->text = STR(OPENING);
    }
    end_message(c);
    c->role = name;
}

static void add_text(struct composer *c, enum role role, struct str text)
{
    if (str_trim(text).n == 0)
        return;
    take_turn(c, role);
    if (c->blocks || c->text.p)
        open_blocks(c);
    c->text = text;
    if (c->blocks)
        open_blocks(c);
}

/* Images stand before the text that is about them ("Vision": image-then-text works best). */
static void add_images(struct composer *c, const struct context_message *m)
{
    if (m->images_count > 0)
        take_turn(c, m->role);
    for (size_t i = 0; i < m->images_count; i++) {
        cJSON *block = block_of("image"), *source = block_of("base64");

        cjson_set_text(source, "media_type", str_of(m->images[i].type));
        cjson_set_text(source, "data", str_of(m->images[i].base64));
        cjson_set(block, "source", source);
        cjson_push(open_blocks(c), block);
    }
}

/* The arguments as the object that they must be. */
static void add_input(struct buf *out, struct str args)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str value = args;

    if (json_decode(args, &text) &&
        (!json_check(buf_str(&text), &value, NULL) || json_type(value) != JSON_OBJECT)) {
        buf_add_byte(out, '{');
        json_add_member(out, "INVALID_JSON", buf_str(&text));
        buf_add_byte(out, '}');
    } else {
        json_add_compact(out, value);
    }
    buf_release(&text);
}

static void declare_tool(struct composer *c, struct str name)
{
    struct buf entry = BUF_INIT(BUF_SMALL);
    cJSON *tool;

    buf_add_byte(&entry, '\n');
    buf_add_str(&entry, name);
    buf_add_byte(&entry, '\n');
    if (!str_find(buf_str(&c->names), buf_str(&entry))) {
        buf_add(&c->names, entry.data + 1, entry.len - 1);
        tool = cjson_object();
        cjson_set_text(tool, "name", name);
        cjson_set_raw(tool, "input_schema", STR("{\"type\":\"object\"}"));
        cjson_push(c->tools, tool);
    }
    buf_release(&entry);
}

static void add_call(struct composer *c, struct str call)
{
    struct buf text = BUF_INIT(BUF_LINE), out = BUF_INIT(BUF_LINE);
    cJSON *block = block_of("tool_use");

    c->calls++;
    call_ids_add(&c->ids, json_text(json_get(call, "id"), &text), &out);
    cjson_set_text(block, "id", buf_str(&out));
    buf_clear(&out);
    call_name_add(&out, json_text(json_get(call, "name"), &text));
    declare_tool(c, buf_str(&out));
    cjson_set_text(block, "name", buf_str(&out));
    buf_clear(&out);
    add_input(&out, json_get(call, "args"));
    cjson_set_raw(block, "input", buf_str(&out));
    cjson_push(open_blocks(c), block);
    buf_release(&text);
    buf_release(&out);
}

/* Adds the blocks of an answer in the order in which they came, signed ones byte for byte: a
 * thinking block that was moved is refused ("… cannot be modified"). A call is taken from `calls`,
 * which has the id that its result goes out with. */
static void add_blocks(struct composer *c, struct str blocks, struct json_iter *calls)
{
    for (struct json_iter it = json_iter(blocks); !it.object && json_next(&it);) {
        if (json_type(it.value) != JSON_OBJECT)
            continue;
        if (!json_has_type(it.value, "tool_use"))
            cjson_push(open_blocks(c), cjson_raw(it.value));
        else if (json_next(calls))
            add_call(c, calls->value);
    }
}

/* Are these all blocks of an answer, and not its thinking alone? */
static bool has_calls(struct str blocks)
{
    for (struct json_iter it = json_iter(blocks); !it.object && json_next(&it);)
        if (json_has_type(it.value, "tool_use"))
            return true;
    return false;
}

static void add_calls(struct composer *c, size_t at)
{
    const struct context_message *m = &c->context->at[at];
    bool own =
        m->thinking && strcmp(m->provider, c->provider) == 0 && context_in_loop(c->context, at);
    struct str blocks = own ? str_of(m->thinking) : STR_NONE;
    struct json_iter calls = json_iter(str_of(m->tool_calls));

    take_turn(c, ROLE_ASSISTANT);
    call_ids_begin(&c->ids);
    add_blocks(c, blocks, &calls);
    if (!has_calls(blocks))
        add_text(c, ROLE_ASSISTANT, (struct str){m->content, m->n});
    while (json_next(&calls))
        add_call(c, calls.value);
}

/* The result of the next call: they stand behind it in its order (context_settle). */
static void add_result(struct composer *c, const struct context_message *m)
{
    struct str text = {m->content, m->n};
    struct buf id = BUF_INIT(BUF_SMALL);
    cJSON *block;

    if (call_ids_next(&c->ids, &id)) {
        take_turn(c, ROLE_TOOL);
        block = block_of("tool_result");
        cjson_set_text(block, "tool_use_id", buf_str(&id));
        if (str_trim(text).n > 0)
            cjson_set_text(block, "content", text);
        cjson_push(open_blocks(c), block);
    }
    buf_release(&id);
}

static void compose(struct composer *c)
{
    for (size_t i = 0; i < c->context->count; i++) {
        const struct context_message *m = &c->context->at[i];

        if (m->role == ROLE_TOOL)
            add_result(c, m);
        else if (m->tool_calls)
            add_calls(c, i);
        else {
            add_images(c, m);
            add_text(c, m->role, (struct str){m->content, m->n});
        }
    }
    end_message(c);
}

/* Gives the arrays away. */
static void take(struct composer *c, cJSON **messages, cJSON **tools)
{
    *messages = c->messages;
    c->messages = NULL;
    *tools = c->calls > 0 ? c->tools : NULL;
    if (*tools)
        c->tools = NULL;
}

int anthropic_messages(const struct context *context, const char *provider, cJSON **messages,
                       cJSON **tools, struct err *e)
{
    struct composer c;
    int rc = 0;

    compose_init(&c, provider, context);
    compose(&c);
    if (c.role && strcmp(c.role, "user") == 0)
        take(&c, messages, tools);
    else
        rc = err_set(e, ERR_USAGE, "the conversation does not end with a prompt");
    compose_release(&c);
    return rc;
}

void anthropic_conversation(const struct context *context, const char *provider, cJSON **messages,
                            cJSON **tools)
{
    struct composer c;

    compose_init(&c, provider, context);
    compose(&c);
    take(&c, messages, tools);
    compose_release(&c);
}
