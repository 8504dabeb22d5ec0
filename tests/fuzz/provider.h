/*
 * provider: whatever a server sends, as lines that are events or as a whole answer or as an
 * error, the answer stays valid: text is UTF-8, calls are JSON, a failure has a kind and one line
 * of message that is safe to show.
 */
#ifndef CHATHIST_TESTS_FUZZ_PROVIDER_H
#define CHATHIST_TESTS_FUZZ_PROVIDER_H

#include <stdint.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/provider_error.h"
#include "demand.h"

static inline void check_err(int rc, const struct err *e)
{
    demand((rc < 0) == (e->kind != ERR_NONE));
    demand(rc >= 0 || *err_text(e));
    for (const char *c = err_text(e); *c; c++)
        demand((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static inline int take(void *arg, struct str delta)
{
    size_t *seen = arg;

    demand(delta.n > 0 && utf8_valid(delta) == delta.n);
    *seen += delta.n;
    return 0;
}

static inline int take_citation(void *arg, struct str json)
{
    struct str value;

    (void)arg;
    demand(json_check(json, &value, NULL));
    return 0;
}

static inline void check_answer(struct response *a, size_t seen)
{
    struct buf calls = BUF_INIT(BUF_LINE);
    struct str value;

    demand(a->text.len == seen && utf8_valid(buf_str(&a->text)) == seen);
    response_finish_calls(a);
    for (size_t i = 0; i < a->calls_count; i++)
        demand(a->calls[i].id.len > 0 && a->calls[i].args.len > 0);
    response_calls_json(a, &calls);
    demand(json_check(buf_str(&calls), &value, NULL) && json_type(value) == JSON_ARRAY);
    demand(a->opaque.thinking.len == 0 || (json_check(buf_str(&a->opaque.thinking), &value, NULL) &&
                                           json_type(value) == JSON_ARRAY));
    demand(!a->finish_reason || *a->finish_reason);
    buf_release(&calls);
}

static inline void feed_events(const struct provider *p, struct str in)
{
    size_t seen = 0;
    struct response_sink sink = {.text = take, .citation = take_citation, .arg = &seen};
    struct response a;
    struct err e = ERR_INIT;
    int rc = 0;

    response_init(&a, &sink);
    while (rc == 0 && in.n > 0) {
        rc = p->event(&a, STR("message"), str_cut(&in, '\n'), &e);
        check_err(rc, &e);
        demand(rc <= 0 || a.finished);
    }
    check_answer(&a, seen);
    response_release(&a);
    err_release(&e);
}

static inline void feed_whole(const struct provider *p, struct str in)
{
    size_t seen = 0;
    struct response_sink sink = {.text = take, .citation = take_citation, .arg = &seen};
    struct response a;
    struct err e = ERR_INIT;
    int rc;

    response_init(&a, &sink);
    rc = p->whole(&a, in, &e);
    check_err(rc, &e);
    demand(rc < 0 || a.finished);
    check_answer(&a, seen);
    response_release(&a);
    err_release(&e);
}

static inline int fuzz_provider(const struct provider *p, const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct err e = ERR_INIT;

    feed_events(p, in);
    feed_whole(p, in);
    check_err(provider_error_set_http(&e, 200 + (int)(size % 400), in), &e);
    err_release(&e);
    return 0;
}

#endif
