#include "chathist/llm/http_head.h"

#include <string.h>

static const char *const names[HTTP_HEAD_FIELDS] = {
    [HTTP_HEAD_TYPE] = "content-type",           [HTTP_HEAD_LOCATION] = "location",
    [HTTP_HEAD_RETRY_AFTER] = "retry-after",     [HTTP_HEAD_RETRY_AFTER_MS] = "retry-after-ms",
    [HTTP_HEAD_SHOULD_RETRY] = "x-should-retry",
};

void http_head_init(struct http_head_reader *r)
{
    r->bytes = 0;
    for (int i = 0; i < HTTP_HEAD_FIELDS; i++)
        buf_init(&r->fields[i], BUF_SMALL);
}

void http_head_release(struct http_head_reader *r)
{
    for (int i = 0; i < HTTP_HEAD_FIELDS; i++)
        buf_release(&r->fields[i]);
}

static void forget(struct http_head_reader *r)
{
    for (int i = 0; i < HTTP_HEAD_FIELDS; i++)
        buf_clear(&r->fields[i]);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name(struct str name, const char *wanted)
{
    if (name.n != strlen(wanted))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (lower(name.p[i]) != wanted[i])
            return false;
    return true;
}

static void keep(struct http_head_reader *r, struct str line)
{
    struct str value = line;
    struct str name = str_cut(&value, ':');

    for (int i = 0; i < HTTP_HEAD_FIELDS; i++)
        if (is_name(name, names[i])) {
            buf_clear(&r->fields[i]);
            buf_add_str(&r->fields[i], str_trim(value));
        }
}

enum http_head_state http_head_take(struct http_head_reader *r, struct str line)
{
    r->bytes += line.n;
    if (r->bytes > HTTP_HEAD_MAX)
        return HTTP_HEAD_TOO_LONG;
    line = str_trim(line);
    if (line.n == 0)
        return HTTP_HEAD_ENDS;
    if (str_starts(line, STR("HTTP/")))
        forget(r);
    else
        keep(r, line);
    return HTTP_HEAD_MORE;
}

/* `Text/Event-Stream; charset=x` becomes `text/event-stream`. */
static void reduce_media_type(struct buf *type)
{
    struct str rest = buf_str(type);
    struct str media = str_trim(str_cut(&rest, ';'));
    size_t skipped = type->len > 0 ? (size_t)(media.p - type->data) : 0;

    buf_truncate(type, skipped + media.n);
    buf_consume(type, skipped);
    for (size_t i = 0; i < type->len; i++)
        type->data[i] = lower(type->data[i]);
}

bool http_head_get(struct http_head_reader *r, int status, struct http_head *head)
{
    if (status >= 100 && status < 200) {
        forget(r);
        return false;
    }
    reduce_media_type(&r->fields[HTTP_HEAD_TYPE]);
    *head = (struct http_head){
        .status = status,
        .media_type = buf_c(&r->fields[HTTP_HEAD_TYPE]),
        .location = buf_c(&r->fields[HTTP_HEAD_LOCATION]),
        .retry_after = buf_c(&r->fields[HTTP_HEAD_RETRY_AFTER]),
        .retry_after_ms = buf_c(&r->fields[HTTP_HEAD_RETRY_AFTER_MS]),
        .should_retry = buf_c(&r->fields[HTTP_HEAD_SHOULD_RETRY]),
    };
    return true;
}
