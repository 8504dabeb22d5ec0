/*
 * provider_echo - a model that works offline: it answers with the prompt and the number of messages
 * that it was sent.
 *
 *     PROMPT
 *     [3 messages]
 *
 * PROMPT is the last user message of the context. The system prompt is not counted. The answer
 * streams as server-sent events, about one word each, through the same code as other answers.
 * Tokens are words between white space.
 *
 * Options make it fail, so that scripts can be tested: `-o delay_ms=N` (a pause before each delta),
 * `-o status=N` (an HTTP error of that status), `-o cut=N` (the connection breaks after N bytes of
 * the text). Any other option or value is ERR_USAGE.
 */
#include <errno.h>
#include <stdint.h>

#include "chathist/base/json.h"
#include "chathist/base/cjson.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/http.h"
#include "llm/provider_wire.h"

/* The largest number of deltas of a long answer. */
#define DELTAS_MAX 4096
#define DELAY_MAX ((int64_t)24 * 60 * 60 * 1000)

/* The wire format of this provider, which only this file writes and reads. Without a stream the
 * text is one event.
 *
 *     data: {"text":"word "}
 *     data: {"finish":"stop","input":4,"output":3} */

struct faults {
    int64_t delay_ms;
    int64_t status;
    int64_t cut; /* -1: the connection is not cut */
};

/* ---- the request ---- */

static bool echo_number(struct str text, int64_t least, int64_t most, int64_t *out)
{
    struct str value;
    int64_t n;

    if (!json_check(text, &value, NULL) || !json_int(value, &n) || n < least || n > most)
        return false;
    *out = n;
    return true;
}

static int read_faults(const struct ask *ask, struct faults *f, struct err *e)
{
    *f = (struct faults){0, 200, -1};
    for (size_t i = 0; i < ask->options_count; i++) {
        struct str key = str_of(ask->options[i].key), value = ask->options[i].value;
        bool ok;

        /* The configuration has options for every provider. */
        if (ask->options[i].from == ASK_CONFIGURATION)
            continue;
        if (str_eq_c(key, "delay_ms"))
            ok = echo_number(value, 0, DELAY_MAX, &f->delay_ms);
        else if (str_eq_c(key, "status"))
            ok = echo_number(value, 200, 599, &f->status);
        else if (str_eq_c(key, "cut"))
            ok = echo_number(value, 0, INT64_MAX, &f->cut);
        else
            return err_set(e, ERR_USAGE,
                           "unknown option '%s' of 'echo': known are delay_ms, status, cut", key.p);
        if (!ok)
            return err_set(e, ERR_USAGE, "bad value '%.*s' of option '%s'",
                           (int)(value.n < 64 ? value.n : 64), value.p, key.p);
    }
    return 0;
}

/* Builds the body, which only a dry run shows. */
static int echo_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                        struct err *e)
{
    const struct context *c = ask->context;
    cJSON *t, *messages, *tools;
    struct faults faults;

    (void)p;
    if (read_faults(ask, &faults, e) != 0)
        return -1;
    t = cjson_object();
    messages = cjson_array();
    cjson_set_text(t, "model", str_of(ask->model));
    if (c->system)
        cjson_set_text(t, "system", (struct str){c->system, c->system_len});
    for (size_t i = 0; i < c->count; i++) {
        const struct context_message *m = &c->at[i];
        size_t images = attachment_images(m->attachments, m->attachments_count);
        cJSON *message = wire_message(m->role, (struct str){m->content, m->n});

        if (images > 0)
            cjson_set(message, "images", cJSON_CreateNumber((double)images));
        if (m->attachments_count > images)
            cjson_set(message, "documents",
                      cJSON_CreateNumber((double)(m->attachments_count - images)));
        if (m->tool_calls)
            cjson_set_raw(message, "tool_calls", str_of(m->tool_calls));
        if (m->tool_call_id)
            cjson_set_text(message, "tool_call_id", str_of(m->tool_call_id));
        cjson_push(messages, message);
    }
    cjson_set(t, "messages", messages);
    tools = ask->tools_count > 0 ? cjson_array() : NULL;
    for (size_t i = 0; i < ask->tools_count; i++) {
        cJSON *tool = cjson_object();

        cjson_set_text(tool, "name", str_of(ask->tools[i]->name));
        cjson_push(tools, tool);
    }
    if (tools)
        cjson_set(t, "tools", tools);
    cjson_set(t, "stream", cJSON_CreateBool(ask->stream));
    for (size_t i = 0; i < ask->options_count; i++)
        if (ask->options[i].from != ASK_CONFIGURATION)
            cjson_set_raw(t, ask->options[i].key, str_trim(ask->options[i].value));
    cjson_print(t, &r->body);
    cJSON_Delete(t);
    return 0;
}

/* ---- making the response ---- */

static int64_t count_words(struct str s)
{
    int64_t words = 0;

    while (str_word(&s).p)
        words++;
    return words;
}

static void echo_add_text(struct buf *out, const struct context *c)
{
    size_t images = 0, documents = 0;

    for (size_t i = c->count; i-- > 0;)
        if (c->at[i].role == ROLE_USER) {
            buf_add(out, c->at[i].content, c->at[i].n);
            break;
        }
    for (size_t i = 0; i < c->count; i++) {
        images += attachment_images(c->at[i].attachments, c->at[i].attachments_count);
        documents += c->at[i].attachments_count;
    }
    documents -= images;
    buf_addf(out, "\n[%zu message%s", c->count, c->count == 1 ? "" : "s");
    if (images > 0)
        buf_addf(out, ", %zu image%s", images, images == 1 ? "" : "s");
    if (documents > 0)
        buf_addf(out, ", %zu document%s", documents, documents == 1 ? "" : "s");
    buf_add_byte(out, ']');
}

/* Returns the next delta, of at least `least` bytes: up to the end of a word and the white space
 * after it. */
static struct str next_delta(struct str *rest, size_t least)
{
    size_t n = 0;
    struct str delta;

    while (n < rest->n && (n < least || !ascii_is_space(rest->p[n])))
        n++;
    while (n < rest->n && ascii_is_space(rest->p[n]))
        n++;
    delta = (struct str){rest->p, n};
    *rest = str_skip(*rest, n);
    return delta;
}

/* Waits, unless the user interrupts. */
static int pause_ms(const struct ask *ask, int64_t ms, struct err *e)
{
    int cancelled = http_wait(&ask->limits, ms);

    if (cancelled > 0)
        return err_set(e, ERR_SIGNAL, "interrupted");
    return cancelled < 0 ? err_sys(e, errno, "cannot wait") : 0;
}

static int send_answer(const struct ask *ask, const struct faults *f, struct str text,
                       const struct http_sink *sink, struct err *e)
{
    const struct context *c = ask->context;
    int64_t input = count_words((struct str){c->system, c->system ? c->system_len : 0});
    bool cut = f->cut >= 0 && (uint64_t)f->cut <= text.n;
    struct buf event = BUF_INIT(BUF_LINE);
    struct str rest = text;
    int rc = 0;

    if (cut) {
        rest.n = ask->stream ? (size_t)f->cut : 0;
        rest.n = utf8_valid(rest);
    }
    sink->head->status = (int)f->status;
    while (rc == 0 && rest.n > 0) {
        rc = pause_ms(ask, f->delay_ms, e);
        buf_set(&event, STR("data: {"));
        json_add_member(&event, "text",
                        next_delta(&rest, ask->stream ? text.n / DELTAS_MAX : text.n));
        buf_add_c(&event, "}\n\n");
        if (rc == 0)
            rc = sink->body(sink->arg, buf_str(&event), e);
    }
    for (size_t i = 0; i < c->count; i++)
        input += count_words((struct str){c->at[i].content, c->at[i].n});
    buf_set(&event, STR("data: {"));
    json_add_member(&event, "finish", STR("stop"));
    json_add_member_int(&event, "input", input);
    json_add_member_int(&event, "output", count_words(text));
    buf_add_c(&event, "}\n\n");
    if (rc == 0)
        rc = cut ? err_set(e, ERR_INCOMPLETE,
                           "answer is incomplete: the connection was cut as requested")
                 : sink->body(sink->arg, buf_str(&event), e);
    buf_release(&event);
    return rc;
}

static int echo_exchange(const struct ask *ask, const struct http_request *r,
                         const struct http_sink *sink, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct faults faults;
    int rc;

    (void)r;
    if (read_faults(ask, &faults, e) != 0)
        return -1;
    if (faults.status >= 300) {
        rc = pause_ms(ask, faults.delay_ms, e);
        buf_addf(&text, "{\"error\":{\"message\":\"status %d as requested\",\"type\":\"echo\"}}",
                 (int)faults.status);
        sink->head->status = (int)faults.status;
        /* The same error would come again, so the head forbids a retry. */
        buf_add_c(&sink->head->field[HTTP_SHOULD_RETRY], "false");
        if (rc == 0)
            rc = sink->body(sink->arg, buf_str(&text), e);
    } else {
        echo_add_text(&text, ask->context);
        rc = send_answer(ask, &faults, buf_str(&text), sink, e);
    }
    buf_release(&text);
    return rc;
}

/* ---- reading the response ---- */

static int echo_read_object(struct response *a, struct str json, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str value;
    int rc;

    if (!json_check(json, &value, NULL))
        return err_set(e, ERR_INCOMPLETE, "answer is incomplete: an event is not JSON");
    rc = response_add_text(a, json_get(value, "text"), e);
    usage_read(&a->usage, USAGE_INPUT, json_get(value, "input"));
    usage_read(&a->usage, USAGE_OUTPUT, json_get(value, "output"));
    if (json_get(value, "finish").n > 0) {
        response_set_model(a, STR("echo"));
        response_set_finish(a, json_text(json_get(value, "finish"), &scratch));
        a->finished = true;
    }
    buf_release(&scratch);
    return rc;
}

static int echo_read_event(struct response *a, struct str event, struct str data, struct err *e)
{
    (void)event;
    return echo_read_object(a, data, e) != 0 ? -1 : a->finished;
}

const struct provider provider_echo = {
    .name = "echo",
    .documents = true,
    .request = echo_request,
    .exchange = echo_exchange,
    .event = echo_read_event,
    .whole = echo_read_object,
};
