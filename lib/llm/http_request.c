#include "chathist/llm/http.h"

#include <string.h>
#include <strings.h>

#include "chathist/base/file.h"
#include "chathist/base/time.h"

void http_request_init(struct http_request *r)
{
    *r = (struct http_request){
        .url = BUF_INIT(BUF_SMALL), .headers = BUF_INIT(BUF_SMALL), .body = BUF_INIT(SIZE_MAX)};
}

void http_request_release(struct http_request *r)
{
    buf_release(&r->url);
    buf_release(&r->headers);
    buf_release(&r->body);
}

void http_head_init(struct http_head *h)
{
    h->status = 0;
    for (int i = 0; i < HTTP_FIELDS; i++)
        buf_init(&h->field[i], BUF_SMALL);
}

void http_head_release(struct http_head *h)
{
    for (int i = 0; i < HTTP_FIELDS; i++)
        buf_release(&h->field[i]);
}

bool http_head_is_success(const struct http_head *h)
{
    return h->status >= 200 && h->status < 300;
}

bool http_name_is_token(struct str name)
{
    static const struct str others = STR("!#$%&'*+-.^_`|~");

    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_letter(name.p[i]) && !ascii_is_digit(name.p[i]) &&
            !memchr(others.p, name.p[i], others.n))
            return false;
    return name.n > 0;
}

int http_check_header(const char *name, struct str value, struct err *e)
{
    /* libcurl sends these as the connection and the body need them. */
    static const char *const fixed[] = {"Connection",
                                        "Content-Encoding",
                                        "Content-Length",
                                        "Expect",
                                        "Keep-Alive",
                                        "Proxy-Connection",
                                        "TE",
                                        "Trailer",
                                        "Upgrade",
                                        "Transfer-Encoding"};

    if (!http_name_is_token(str_of(name)))
        return err_set(e, ERR_USAGE,
                       "bad header: letters, digits and '-' are expected in its name");
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcasecmp(name, fixed[i]) == 0)
            return err_set(e, ERR_USAGE, "bad header '%s': it cannot be set", name);
    if (str_has_control(value))
        return err_set(e, ERR_USAGE, "bad header '%s': a control character in its value", name);
    return 0;
}

int http_add_header(struct http_request *r, const char *name, struct str value, struct err *e)
{
    if (str_has_control(value))
        return err_set(e, ERR_USAGE, "bad header '%s': a control character in its value", name);
    buf_add_c(&r->headers, name);
    buf_add_c(&r->headers, ": ");
    buf_add_str(&r->headers, value);
    buf_add_byte(&r->headers, '\n');
    if (r->headers.overflow)
        return err_set(e, ERR_USAGE, "bad header '%s': too long", name);
    return 0;
}

int64_t http_tick(const struct http_limits *limits, int64_t ms)
{
    if (!limits->tick)
        return ms;
    limits->tick(limits->tick_arg);
    return ms < HTTP_TICK_MS ? ms : HTTP_TICK_MS;
}

int http_wait(const struct http_limits *limits, int64_t ms)
{
    int64_t end = time_ticks() + ms;
    int cancelled;

    do {
        cancelled = file_wait(limits->cancel_fd, http_tick(limits, ms));
        ms = end - time_ticks();
    } while (cancelled == 0 && ms > 0);
    return cancelled;
}
