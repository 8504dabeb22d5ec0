#include "llm/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

void answer_init(struct answer *a, const struct answer_sink *sink)
{
    memset(a, 0, sizeof *a);
    buf_init(&a->text, ANSWER_MAX);
    buf_init(&a->thinking, 8 * ANSWER_MAX); /* JSON of what is bounded as text */
    buf_init(&a->reasoning, ANSWER_MAX);
    buf_init(&a->block.start, ANSWER_MAX);
    buf_init(&a->block.text, ANSWER_MAX);
    buf_init(&a->block.signature, ANSWER_MAX);
    a->input_tokens = -1;
    a->output_tokens = -1;
    a->sink = sink;
}

void answer_release(struct answer *a)
{
    for (size_t i = 0; i < a->calls_count; i++) {
        buf_release(&a->calls[i].id);
        buf_release(&a->calls[i].name);
        buf_release(&a->calls[i].args);
        buf_release(&a->calls[i].extra);
    }
    free(a->calls);
    free(a->model);
    free(a->finish_reason);
    buf_release(&a->text);
    buf_release(&a->thinking);
    buf_release(&a->reasoning);
    buf_release(&a->block.start);
    buf_release(&a->block.text);
    buf_release(&a->block.signature);
    answer_init(a, a->sink);
}

static bool is_too_long(const struct answer *a)
{
    const struct thinking_block *b = &a->block;

    return a->text.len + a->calls_bytes + a->thinking.len + a->reasoning.len + b->start.len +
               b->text.len + b->signature.len >
           ANSWER_MAX;
}

static int too_long(struct err *e)
{
    return err_set(e, ERR_INCOMPLETE, "answer is incomplete: it is longer than %zu MiB",
                   ANSWER_MAX >> 20);
}

int answer_add_text(struct answer *a, struct str text, struct err *e)
{
    size_t before = a->text.len;

    if (text.n == 0)
        return 0;
    utf8_add_repaired(&a->text, text);
    if (a->text.overflow || is_too_long(a))
        return too_long(e);
    if (a->sink && a->sink->text) {
        struct str delta = {a->text.data + before, a->text.len - before};

        if (a->sink->text(a->sink->arg, delta) != 0) {
            a->sink_failed = true;
            return -1;
        }
    }
    return 0;
}

int answer_add_reasoning(struct answer *a, struct str text)
{
    struct buf whole = BUF_INIT(SIZE_MAX);

    a->reasoned |= text.n > 0;
    /* A server that thinks without end is only not told of all of it. */
    if (a->keep_reasoning)
        utf8_add_repaired(&a->reasoning, text);
    if (text.n == 0 || !a->sink || !a->sink->reasoning)
        return 0;
    utf8_add_repaired(&whole, text);
    a->sink_failed = a->sink->reasoning(a->sink->arg, buf_str(&whole)) != 0;
    buf_release(&whole);
    return a->sink_failed ? -1 : 0;
}

int answer_add_citation(struct answer *a, struct str json)
{
    if (!a->sink || !a->sink->citation || a->sink->citation(a->sink->arg, json) == 0)
        return 0;
    a->sink_failed = true;
    return -1;
}

/* ---- reasoning ---- */

int answer_begin_thinking(struct answer *a, int64_t index, struct str block, struct err *e)
{
    struct thinking_block *b = &a->block;

    b->open = true;
    b->index = index;
    buf_clear(&b->start);
    buf_clear(&b->text);
    buf_clear(&b->signature);
    json_add_compact(&b->start, block);
    return b->start.overflow || is_too_long(a) ? too_long(e) : 0;
}

int answer_add_thinking(struct answer *a, int64_t index, struct str text, struct str signature,
                        struct err *e)
{
    struct thinking_block *b = &a->block;

    if (!b->open || b->index != index)
        return 0;
    utf8_add_repaired(&b->text, text);
    utf8_add_repaired(&b->signature, signature);
    return b->text.overflow || b->signature.overflow || is_too_long(a) ? too_long(e) : 0;
}

/* Adds the member with what came for it behind its first value. */
static void add_grown(struct buf *out, struct str object, const char *key, const struct buf *more)
{
    struct buf whole = BUF_INIT(2 * ANSWER_MAX);
    struct str first = json_get(object, key);

    if (json_type(first) == JSON_STRING || more->len > 0) {
        json_decode(first, &whole);
        buf_add_str(&whole, buf_str(more));
        json_add_member(out, key, buf_str(&whole));
    }
    buf_release(&whole);
}

static void add_block(struct buf *out, const struct thinking_block *b)
{
    struct str object = buf_str(&b->start);

    if (b->text.len + b->signature.len == 0) {
        buf_add_str(out, object);
        return;
    }
    buf_add_byte(out, '{');
    for (struct json_iter it = json_iter(object); json_next(&it);) {
        if (json_key_is(it.key, "thinking") || json_key_is(it.key, "signature"))
            continue;
        buf_add_c(out, str_ends(buf_str(out), STR("{")) ? "\"" : ",\"");
        buf_add_str(out, it.key);
        buf_add_c(out, "\":");
        buf_add_str(out, it.value);
    }
    add_grown(out, object, "thinking", &b->text);
    add_grown(out, object, "signature", &b->signature);
    buf_add_byte(out, '}');
}

/* Is it a string that is not empty? */
static bool has_text(struct str value)
{
    return json_type(value) == JSON_STRING && value.n > 2;
}

static bool is_signed(const struct thinking_block *b)
{
    return b->signature.len > 0 || has_text(json_get(buf_str(&b->start), "signature")) ||
           has_text(json_get(buf_str(&b->start), "data"));
}

static void push_thinking(struct answer *a, struct str block)
{
    if (a->thinking.len > 0)
        buf_truncate(&a->thinking, a->thinking.len - 1);
    buf_add_byte(&a->thinking, a->thinking.len > 0 ? ',' : '[');
    buf_add_str(&a->thinking, block);
    buf_add_byte(&a->thinking, ']');
}

void answer_end_thinking(struct answer *a, int64_t index)
{
    struct thinking_block *b = &a->block;

    if (!b->open || b->index != index)
        return;
    b->open = false;
    if (is_signed(b)) {
        struct buf block = BUF_INIT(8 * ANSWER_MAX);

        add_block(&block, b);
        push_thinking(a, buf_str(&block));
        buf_release(&block);
    }
    buf_clear(&b->start);
    buf_clear(&b->text);
    buf_clear(&b->signature);
}

/* ---- calls ---- */

/* Is this the complete text of an object, so that what follows belongs to another call? */
static bool is_object(struct str json)
{
    struct str value;

    return str_ends(str_trim(json), STR("}")) && json_check(json, &value, NULL) &&
           json_type(value) == JSON_OBJECT;
}

static bool same_call(const struct tool_call *c, struct str id, struct str name)
{
    if (id.n > 0 && c->id.len > 0)
        return str_eq(id, buf_str(&c->id));
    return !(name.n > 0 && is_object(buf_str(&c->args)));
}

/* The newest call at that index: only it can still grow. */
static struct tool_call *newest_at(const struct answer *a, int64_t index)
{
    for (size_t i = a->calls_count; i-- > 0;)
        if (a->calls[i].index == index)
            return &a->calls[i];
    return NULL;
}

int answer_add_call(struct answer *a, int64_t index, struct str id, struct str name,
                    struct str args, struct err *e)
{
    struct tool_call *c = newest_at(a, index);

    if (!c || !same_call(c, id, name)) {
        if (a->calls_count == ANSWER_CALLS_MAX)
            return err_set(e, ERR_INCOMPLETE,
                           "answer is incomplete: it has more than %d tool calls",
                           ANSWER_CALLS_MAX);
        a->calls = mem_grow(a->calls, &a->calls_cap, a->calls_count + 1, sizeof *a->calls);
        c = &a->calls[a->calls_count++];
        c->index = index;
        buf_init(&c->id, BUF_SMALL);
        buf_init(&c->name, BUF_SMALL);
        buf_init(&c->args, ANSWER_MAX);
        buf_init(&c->extra, ANSWER_MAX);
    }
    if (c->id.len == 0)
        utf8_add_repaired(&c->id, id);
    /* Servers either send the name once, or repeat it, or cut it in pieces. */
    if (!str_eq(name, buf_str(&c->name)))
        utf8_add_repaired(&c->name, name);
    utf8_add_repaired(&c->args, args);
    a->calls_bytes += id.n + name.n + args.n;
    if (c->id.overflow || c->name.overflow || c->args.overflow || is_too_long(a))
        return too_long(e);
    return 0;
}

int answer_add_call_extra(struct answer *a, int64_t index, struct str json, struct err *e)
{
    struct tool_call *c = newest_at(a, index);

    if (!c || json_type(json) != JSON_OBJECT)
        return 0;
    buf_clear(&c->extra);
    json_add_compact(&c->extra, json);
    a->calls_bytes += json.n;
    return c->extra.overflow || is_too_long(a) ? too_long(e) : 0;
}

/* What goes back with the calls. Once: it is gone then. */
static void settle_thinking(struct answer *a)
{
    struct buf block = BUF_INIT(8 * ANSWER_MAX);

    if (a->calls_count > 0 && a->reasoning.len > 0) {
        buf_add_c(&block, "{");
        json_add_member(&block, "type", STR("reasoning_content"));
        json_add_member(&block, "text", buf_str(&a->reasoning));
        buf_add_c(&block, "}");
        push_thinking(a, buf_str(&block));
    }
    buf_clear(&a->reasoning);
    for (size_t i = 0; i < a->calls_count; i++) {
        struct tool_call *c = &a->calls[i];

        if (c->extra.len == 0)
            continue;
        buf_clear(&block);
        buf_add_c(&block, "{");
        json_add_member(&block, "type", STR("extra_content"));
        json_add_member(&block, "id", buf_str(&c->id));
        json_add_key(&block, "extra_content");
        buf_add_str(&block, buf_str(&c->extra));
        buf_add_c(&block, "}");
        push_thinking(a, buf_str(&block));
        buf_clear(&c->extra);
    }
    buf_release(&block);
}

void answer_settle_calls(struct answer *a)
{
    for (size_t i = 0; i < a->calls_count; i++) {
        struct tool_call *c = &a->calls[i];

        if (c->id.len == 0) {
            buf_add_c(&c->id, "call_");
            id_add_message(&c->id, clock_now() / 1000);
        }
        if (c->name.len == 0)
            buf_add_c(&c->name, "unnamed");
        if (str_trim(buf_str(&c->args)).n == 0) {
            buf_clear(&c->args);
            buf_add_c(&c->args, "{}");
        }
    }
    settle_thinking(a);
    if (a->finish_reason && strcmp(a->finish_reason, a->calls_count ? "stop" : "tool_calls") == 0)
        answer_set_finish(a, str_of(a->calls_count ? "tool_calls" : "stop"));
}

void answer_set_usage(struct answer *a, int64_t input_tokens, int64_t output_tokens)
{
    if (input_tokens >= 0)
        a->input_tokens = input_tokens;
    if (output_tokens >= 0)
        a->output_tokens = output_tokens;
}

static void replace(char **field, struct str value)
{
    if (value.n == 0)
        return;
    free(*field);
    *field = mem_copy(value.p, value.n);
}

void answer_set_model(struct answer *a, struct str model)
{
    replace(&a->model, model);
}

void answer_set_finish(struct answer *a, struct str reason)
{
    replace(&a->finish_reason, reason);
}

void answer_add_members(const struct tool_call *c, struct buf *out)
{
    struct str value;

    json_add_member(out, "id", buf_str(&c->id));
    json_add_member(out, "name", buf_str(&c->name));
    json_add_key(out, "args");
    if (json_check(buf_str(&c->args), &value, NULL) && json_type(value) == JSON_OBJECT)
        json_add_compact(out, value);
    else
        json_add_string(out, buf_str(&c->args));
}

void answer_calls_json(const struct answer *a, struct buf *out)
{
    buf_add_byte(out, '[');
    for (size_t i = 0; i < a->calls_count; i++) {
        buf_add_c(out, i > 0 ? ",{" : "{");
        answer_add_members(&a->calls[i], out);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
}
