#include "chathist/llm/jsonrpc.h"

#include <inttypes.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/provider_error.h"

/* How much of a line that is not a message an error shows, in code points. */
#define EXCERPT_MAX 80

/* How much of an error's message is shown, in bytes. */
#define ERROR_TEXT_MAX ((size_t)4000)

void jsonrpc_init(struct jsonrpc *r, jsonrpc_fn *fn, void *arg)
{
    *r = (struct jsonrpc){.fn = fn, .arg = arg};
    buf_init(&r->line, JSONRPC_MESSAGE_MAX);
}

void jsonrpc_release(struct jsonrpc *r)
{
    buf_release(&r->line);
}

/* ---- reading ---- */

int jsonrpc_noise(struct jsonrpc *r, struct str what, struct err *e)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    if (++r->noise <= JSONRPC_NOISE_MAX)
        return 0;
    provider_error_add_excerpt(&shown, what, EXCERPT_MAX);
    err_set(e, ERR_FAILURE, "it writes what is no message: '%s'", buf_c(&shown));
    buf_release(&shown);
    return -1;
}

/* Frames with headers are the transport of the Language Server Protocol. They end without a newline,
 * so the reader would wait for the rest of the line. */
static int refuse_frame(struct jsonrpc *r, struct str line, struct err *e)
{
    r->noise = JSONRPC_NOISE_MAX;
    return jsonrpc_noise(r, line, e);
}

/* The members of a message. */
struct members {
    struct str id, method, params, result, error;
};

static struct members members_of(struct str object)
{
    struct members m = {STR_NONE, STR_NONE, STR_NONE, STR_NONE, STR_NONE};
    struct json_iter it = json_iter(object);

    while (json_next(&it)) {
        if (json_key_is(it.key, "id"))
            m.id = it.value;
        else if (json_key_is(it.key, "method"))
            m.method = it.value;
        else if (json_key_is(it.key, "params"))
            m.params = it.value;
        else if (json_key_is(it.key, "result"))
            m.result = it.value;
        else if (json_key_is(it.key, "error"))
            m.error = it.value;
    }
    return m;
}

static bool is_id(struct str value)
{
    return json_type(value) == JSON_STRING || json_type(value) == JSON_NUMBER;
}

/* Finds the kind of a message by its members. Returns false if it is not a message. */
static bool classify(const struct members *parts, struct jsonrpc_message *m)
{
    m->id = parts->id;
    if (json_type(parts->method) == JSON_STRING) {
        m->body = parts->params;
        m->kind = is_id(parts->id) ? JSONRPC_REQUEST : JSONRPC_NOTIFICATION;
        return true;
    }
    if (json_type(parts->error) == JSON_OBJECT) {
        m->body = parts->error;
        m->kind = JSONRPC_ERROR;
        return true;
    }
    m->body = parts->result;
    m->kind = JSONRPC_RESULT;
    return is_id(parts->id) && parts->result.n > 0;
}

static int take_object(struct jsonrpc *r, struct str object, struct err *e)
{
    struct jsonrpc_message m = {.number = -1};
    struct buf method = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct members parts = members_of(object);
    int64_t number;
    int result;

    if (json_type(object) != JSON_OBJECT || !classify(&parts, &m))
        return jsonrpc_noise(r, object, e);
    if (json_int(m.id, &number) && number >= 0)
        m.number = number;
    m.method = json_text(parts.method, &method);
    result = r->fn(r->arg, &m, e);
    buf_release(&method);
    return result;
}

static int take_value(struct jsonrpc *r, struct str value, struct err *e)
{
    struct json_iter it = json_iter(value);
    int result = 0;

    if (json_type(value) != JSON_ARRAY)
        return take_object(r, value, e);
    while (result == 0 && json_next(&it))
        result = take_object(r, it.value, e);
    return result;
}

static int take_line(struct jsonrpc *r, struct str line, struct err *e)
{
    struct buf repaired = BUF_INIT(3 * JSONRPC_MESSAGE_MAX);
    struct str value;
    int result;

    line = str_trim(line);
    if (line.n == 0)
        return 0;
    if (str_starts(line, STR("Content-Length:")))
        return refuse_frame(r, line, e);
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    if (json_check(line, &value, NULL))
        result = take_value(r, value, e);
    else
        result = jsonrpc_noise(r, line, e);
    buf_release(&repaired);
    return result;
}

int jsonrpc_feed(struct jsonrpc *r, struct str bytes, struct err *e)
{
    while (bytes.n > 0) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
        int result;

        buf_add(&r->line, bytes.p, n);
        if (r->line.overflow)
            return err_set(e, ERR_FAILURE, "it sent a message of more than %zu MiB",
                           JSONRPC_MESSAGE_MAX >> 20);
        if (!end)
            break;
        result = take_line(r, buf_str(&r->line), e);
        buf_clear(&r->line);
        if (result < 0)
            return -1;
        bytes = (struct str){end + 1, bytes.n - n - 1};
    }
    return 0;
}

/* ---- writing ---- */

static void begin(struct buf *out)
{
    buf_add_c(out, "{\"jsonrpc\":\"2.0\"");
}

static void add_part(struct buf *out, const char *key, struct str json)
{
    if (json.n == 0)
        return;
    json_add_key(out, key);
    json_add_compact(out, json);
}

void jsonrpc_add_request(struct buf *out, int64_t id, const char *method, struct str params)
{
    begin(out);
    json_add_member_int(out, "id", id);
    json_add_member(out, "method", str_of(method));
    add_part(out, "params", params);
    buf_add_c(out, "}\n");
}

void jsonrpc_add_notification(struct buf *out, const char *method, struct str params)
{
    begin(out);
    json_add_member(out, "method", str_of(method));
    add_part(out, "params", params);
    buf_add_c(out, "}\n");
}

void jsonrpc_add_result(struct buf *out, struct str id, struct str result)
{
    begin(out);
    add_part(out, "id", id);
    add_part(out, "result", result);
    buf_add_c(out, "}\n");
}

void jsonrpc_add_error(struct buf *out, struct str id, int code, const char *message)
{
    begin(out);
    add_part(out, "id", id);
    json_add_key(out, "error");
    buf_add_byte(out, '{');
    json_add_member_int(out, "code", code);
    json_add_member(out, "message", str_of(message));
    buf_add_c(out, "}}\n");
}

void jsonrpc_describe_error(struct buf *out, struct str error)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str text = str_trim(json_text(json_get(error, "message"), &scratch));
    int64_t code;

    if (text.n > ERROR_TEXT_MAX) {
        buf_add(out, text.p, utf8_valid((struct str){text.p, ERROR_TEXT_MAX}));
        buf_add_c(out, "…");
    } else if (text.n > 0) {
        buf_add_str(out, text);
    } else {
        buf_add_c(out, "an error without a message");
    }
    if (json_int(json_get(error, "code"), &code))
        buf_addf(out, " (%" PRId64 ")", code);
    buf_release(&scratch);
}
