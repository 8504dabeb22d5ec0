/*
 * provider.h: what the tests of a provider share. Before they include it they define PROVIDER as
 * the name of its struct provider.
 */
#ifndef CHATHIST_TESTS_UNIT_PROVIDER_H
#define CHATHIST_TESTS_UNIT_PROVIDER_H

#include "test.h"

#include "chathist/llm/provider.h"

extern const struct provider PROVIDER;

static inline void check_request(const struct ask *ask, const char *url, const char *headers,
                                 const char *body, int line)
{
    struct http_request r;
    struct err e = ERR_INIT;

    http_request_init(&r);
    test_check_int(PROVIDER.request(&PROVIDER, ask, &r, &e), 0, "request", __BASE_FILE__, line);
    test_check_str(buf_c(&r.url), url, "url", __BASE_FILE__, line);
    test_check_str(buf_c(&r.headers), headers, "headers", __BASE_FILE__, line);
    test_check_str(buf_c(&r.body), body, "body", __BASE_FILE__, line);
    test_check_str(err_text(&e), "", "error", __BASE_FILE__, line);
    http_request_release(&r);
    err_release(&e);
}
#define CHECK_REQUEST(ask, url, headers, body) check_request(ask, url, headers, body, __LINE__)

static inline void add_line(struct context *c, const char *line)
{
    struct message m = MESSAGE_INIT;

    if (CHECK(message_parse(&m, str_of(line))))
        context_add(c, &m);
    message_release(&m);
}

#define LINE(role, rest)                                                                           \
    "{\"id\":\"1-0\",\"session_id\":\"s\",\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\","     \
    "\"role\":\"" role "\"," rest "}"

struct read {
    struct response a;
    struct response_sink sink;
    struct buf citations;
    struct err e;
    int sink_result;
};

static inline int take_text(void *arg, struct str delta)
{
    (void)arg;
    (void)delta;
    return 0;
}

static inline int take_citation(void *arg, struct str json)
{
    struct read *r = arg;

    buf_add_str(&r->citations, json);
    return r->sink_result;
}

static inline void read_init(struct read *r)
{
    memset(r, 0, sizeof *r);
    buf_init(&r->citations, BUF_SMALL);
    r->sink = (struct response_sink){.text = take_text, .citation = take_citation, .arg = r};
    response_init(&r->a, &r->sink);
}

static inline void read_release(struct read *r)
{
    response_release(&r->a);
    buf_release(&r->citations);
    err_release(&r->e);
}

/* Feeds events, given as their data and ended by NULL. Returns the result of the last one. */
static inline int feed(struct read *r, const char *const *events)
{
    int rc = 0;

    for (; rc == 0 && *events; events++)
        rc = PROVIDER.event(&r->a, STR("message"), str_of(*events), &r->e);
    return rc;
}
#define FEED(r, ...) feed(r, (const char *const[]){__VA_ARGS__, NULL})

/* Checks the settled calls in the history's form. */
static inline void check_calls(struct read *r, const char *want, int line)
{
    struct buf json = BUF_INIT(BUF_SMALL);

    response_finish_calls(&r->a);
    response_calls_json(&r->a, &json);
    test_check_str(buf_c(&json), want, "calls", __BASE_FILE__, line);
    buf_release(&json);
}
#define CHECK_CALLS(r, want) check_calls(r, want, __LINE__)

static inline void check_event_error(const char *event, const char *data, enum err_kind kind,
                                     const char *text, int line)
{
    struct read r;

    read_init(&r);
    test_check_int(PROVIDER.event(&r.a, str_of(event), str_of(data), &r.e), -1, data, __BASE_FILE__,
                   line);
    test_check_int((long long)r.e.kind, (long long)kind, data, __BASE_FILE__, line);
    test_check_str(err_text(&r.e), text, data, __BASE_FILE__, line);
    test_check(!r.a.finished, data, __BASE_FILE__, line);
    read_release(&r);
}
#define EVENT_ERROR(event, data, kind, text) check_event_error(event, data, kind, text, __LINE__)

static inline void check_whole_error(const char *body, enum err_kind kind, const char *text,
                                     int line)
{
    struct read r;

    read_init(&r);
    test_check_int(PROVIDER.whole(&r.a, str_of(body), &r.e), -1, body, __BASE_FILE__, line);
    test_check_int((long long)r.e.kind, (long long)kind, body, __BASE_FILE__, line);
    test_check_str(err_text(&r.e), text, body, __BASE_FILE__, line);
    read_release(&r);
}
#define WHOLE_ERROR(body, kind, text) check_whole_error(body, kind, text, __LINE__)

#endif
