#include "chathist/mcp/jsonrpc.h"

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
    buf_init(&r->shown, BUF_SMALL);
}

void jsonrpc_release(struct jsonrpc *r)
{
    buf_release(&r->line);
    buf_release(&r->shown);
}

/* ---- reading ---- */

int jsonrpc_noise(struct jsonrpc *r, struct str what, struct err *e)
{
    if (r->shown.len == 0)
        provider_error_add_excerpt(&r->shown, what, EXCERPT_MAX);
    if (++r->noise <= JSONRPC_NOISE_MAX)
        return 0;
    return err_set(e, ERR_FAILURE, "it writes what is no message: '%s'", buf_c(&r->shown));
}

static bool is_id(struct str value)
{
    return json_type(value) == JSON_STRING || json_type(value) == JSON_NUMBER;
}

/* Reads a message. Returns false if the object is not a message. The method is decoded into
 * `method`. */
static bool read_message(struct str object, struct jsonrpc_message *m, struct buf *method)
{
    enum { VERSION, ID, METHOD, PARAMS, RESULT, ERROR, COUNT };
    static const char *const keys[COUNT] = {"jsonrpc", "id", "method", "params", "result", "error"};
    struct str got[COUNT];
    int64_t number;

    json_pick(object, keys, got, COUNT);
    *m = (struct jsonrpc_message){.id = got[ID], .number = -1};
    if (json_int(m->id, &number) && number >= 0)
        m->number = number;
    if (json_type(got[METHOD]) == JSON_STRING) {
        m->method = json_text(got[METHOD], method);
        m->body = got[PARAMS];
        m->kind = is_id(m->id) ? JSONRPC_REQUEST : JSONRPC_NOTIFICATION;
        return true;
    }
    m->kind =
        json_type(got[ERROR]) == JSON_OBJECT || got[RESULT].n == 0 ? JSONRPC_ERROR : JSONRPC_RESULT;
    m->body = got[m->kind == JSONRPC_ERROR ? ERROR : RESULT];
    /* An answer without a result and an error is an error: its request gets no other one. */
    return json_type(got[ERROR]) == JSON_OBJECT ||
           (is_id(m->id) && (m->body.n > 0 || got[VERSION].n > 0));
}

static int take_object(struct jsonrpc *r, struct str object, struct err *e)
{
    struct buf method = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct jsonrpc_message m;
    int result;

    if (read_message(object, &m, &method))
        result = r->fn(r->arg, &m, e);
    else
        result = jsonrpc_noise(r, object, e);
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

/* Is a line that is no JSON meant as a message? Its receiver would wait for it. */
static bool is_broken_message(struct str line)
{
    /* Frames with headers are the transport of the Language Server Protocol. They end without a
     * newline, so the reader would wait for the rest of the line. */
    return str_starts(line, STR("Content-Length:")) ||
           (str_starts(line, STR("{")) && str_find(line, STR("\"jsonrpc\"")));
}

int jsonrpc_take(struct jsonrpc *r, struct str line, struct err *e)
{
    struct buf repaired = BUF_INIT(3 * JSONRPC_MESSAGE_MAX);
    struct str value;
    int result;

    line = str_trim(line);
    if (line.n == 0)
        return 0;
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    if (json_check(line, &value, NULL)) {
        result = take_value(r, value, e);
    } else {
        if (is_broken_message(line)) {
            r->noise = JSONRPC_NOISE_MAX;
            buf_clear(&r->shown);
        }
        result = jsonrpc_noise(r, line, e);
    }
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
        result = jsonrpc_take(r, buf_str(&r->line), e);
        buf_clear(&r->line);
        if (result < 0)
            return -1;
        bytes = (struct str){end + 1, bytes.n - n - 1};
    }
    return 0;
}

/* ---- writing ---- */

static void add_part(struct buf *out, const char *key, struct str json)
{
    if (json.n == 0)
        return;
    json_add_key(out, key);
    json_add_compact(out, json);
}

void jsonrpc_add_call(struct buf *out, int64_t id, const char *method, struct str params)
{
    buf_add_c(out, "{\"jsonrpc\":\"2.0\"");
    if (id > 0)
        json_add_member_int(out, "id", id);
    json_add_member(out, "method", str_of(method));
    add_part(out, "params", params);
    buf_add_c(out, "}\n");
}

void jsonrpc_add_answer(struct buf *out, struct str id, const char *member, struct str json)
{
    buf_add_c(out, "{\"jsonrpc\":\"2.0\"");
    add_part(out, "id", id);
    add_part(out, member, json);
    buf_add_c(out, "}\n");
}

void jsonrpc_describe_error(struct buf *out, struct str error)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str message = json_type(error) == JSON_STRING ? error : json_get(error, "message");
    struct str text = str_trim(json_text(message, &scratch));
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
