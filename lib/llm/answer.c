#include "chathist/llm/answer.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/clock.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"

/* How much of a refusal's reason is told, in code points. */
#define REFUSAL_MAX 300

void answer_init(struct answer *a, const struct answer_sink *sink)
{
    memset(a, 0, sizeof *a);
    buf_init(&a->text, ANSWER_MAX);
    replay_init(&a->replay);
    usage_init(&a->usage);
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
    free(a->refusal);
    buf_release(&a->text);
    replay_release(&a->replay);
    answer_init(a, a->sink);
}

static bool is_too_long(const struct answer *a)
{
    return a->text.len + a->calls_bytes > ANSWER_MAX;
}

static int too_long(struct err *e)
{
    return err_set(e, ERR_INCOMPLETE, "answer is incomplete: it is longer than %zu MiB",
                   ANSWER_MAX >> 20);
}

/* Hands on what of the text is behind so many bytes. */
static int hand_on(struct answer *a, size_t before, struct err *e)
{
    if (a->text.overflow || is_too_long(a))
        return too_long(e);
    if (a->text.len > before && a->sink && a->sink->text) {
        struct str delta = {a->text.data + before, a->text.len - before};

        if (a->sink->text(a->sink->arg, delta) != 0) {
            a->sink_failed = true;
            return -1;
        }
    }
    return 0;
}

int answer_add_text(struct answer *a, struct str string, struct err *e)
{
    size_t before = a->text.len;

    json_pieces_add(&a->pieces, string, &a->text);
    return hand_on(a, before, e);
}

int answer_end_text(struct answer *a, struct err *e)
{
    size_t before = a->text.len;

    json_pieces_end(&a->pieces, &a->text);
    return hand_on(a, before, e);
}

int answer_add_reasoning(struct answer *a, struct str text)
{
    struct buf whole = BUF_INIT(SIZE_MAX);

    a->reasoned |= text.n > 0;
    replay_add_reasoning(&a->replay, text);
    if (text.n == 0 || !a->sink || !a->sink->reasoning)
        return 0;
    utf8_add_repaired(&whole, text);
    a->sink_failed = a->sink->reasoning(a->sink->arg, buf_str(&whole)) != 0;
    buf_release(&whole);
    return a->sink_failed ? -1 : 0;
}

void answer_drop_media(struct answer *a, enum answer_media media)
{
    if (a->unkept & media)
        return;
    a->unkept |= media;
    if (a->sink && a->sink->notice)
        a->sink->notice(a->sink->arg, media == ANSWER_IMAGE
                                          ? "the answer has an image, which is not kept"
                                          : "the answer has sound, which is not kept");
}

int answer_add_citation(struct answer *a, struct str json)
{
    if (!a->sink || !a->sink->citation || a->sink->citation(a->sink->arg, json) == 0)
        return 0;
    a->sink_failed = true;
    return -1;
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
    size_t before;

    if (!c || !same_call(c, id, name)) {
        if (a->calls_count == ANSWER_CALLS_MAX)
            return err_set(e, ERR_INCOMPLETE,
                           "answer is incomplete: it has more than %d tool calls",
                           ANSWER_CALLS_MAX);
        a->calls = mem_grow(a->calls, &a->calls_cap, a->calls_count + 1, sizeof *a->calls);
        c = &a->calls[a->calls_count++];
        c->index = index;
        c->pieces = (struct json_pieces){0};
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
    before = c->args.len;
    if (json_type(args) == JSON_OBJECT)
        json_add_compact(&c->args, args);
    else
        json_pieces_add(&c->pieces, args, &c->args);
    a->calls_bytes += id.n + name.n + c->args.len - before;
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

/* What came with the calls goes back with them. Once: it is gone then. */
static void settle_extras(struct answer *a)
{
    struct buf block = BUF_INIT(8 * ANSWER_MAX);

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
        replay_push(&a->replay, buf_str(&block));
        buf_clear(&c->extra);
    }
    buf_release(&block);
}

void answer_settle_calls(struct answer *a)
{
    for (size_t i = 0; i < a->calls_count; i++) {
        struct tool_call *c = &a->calls[i];

        json_pieces_end(&c->pieces, &c->args);
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
    replay_settle(&a->replay, a->calls_count > 0);
    settle_extras(a);
    if (a->finish_reason && strcmp(a->finish_reason, a->calls_count ? "stop" : "tool_calls") == 0)
        answer_set_finish(a, str_of(a->calls_count ? "tool_calls" : "stop"));
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

void answer_set_refusal(struct answer *a, struct str category, struct str explanation)
{
    struct buf shown = BUF_INIT(BUF_SMALL);
    struct str why = str_trim(explanation), kind = str_trim(category);

    vis_add_line(&shown, utf8_first(why, REFUSAL_MAX), true);
    if (kind.n > 0) {
        buf_add_c(&shown, why.n > 0 ? " (" : "");
        vis_add_line(&shown, utf8_first(kind, REFUSAL_MAX), true);
        buf_add_c(&shown, why.n > 0 ? ")" : "");
    }
    replace(&a->refusal, buf_str(&shown));
    buf_release(&shown);
}

int answer_join(struct answer *a, struct answer *next, struct err *e)
{
    buf_add_str(&a->text, buf_str(&next->text));
    replay_join(&a->replay, &next->replay);
    free(a->calls);
    a->calls = next->calls;
    a->calls_count = next->calls_count;
    a->calls_cap = next->calls_cap;
    a->calls_bytes = next->calls_bytes;
    next->calls = NULL;
    next->calls_count = next->calls_cap = 0;
    usage_sum(&a->usage, &next->usage);
    answer_set_model(a, str_of(next->model));
    answer_set_finish(a, str_of(next->finish_reason));
    replace(&a->refusal, str_of(next->refusal));
    a->finished = next->finished;
    a->refused = next->refused;
    a->reasoned = a->reasoned || next->reasoned;
    a->sink_failed = next->sink_failed;
    return a->text.overflow || is_too_long(a) ? too_long(e) : 0;
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
