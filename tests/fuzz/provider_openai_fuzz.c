/*
 * provider_openai: whatever a server sends, as lines that are events or as a whole answer or as an
 * error, the answer stays valid: text is UTF-8, calls are JSON, a failure has a kind and one line
 * of message that is safe to show.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "llm/provider_openai.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool held)
{
    if (!held)
        abort();
}

static void check_err(int rc, const struct err *e)
{
    demand((rc < 0) == (e->kind != ERR_NONE));
    demand(rc >= 0 || *err_text(e));
    for (const char *c = err_text(e); *c; c++)
        demand((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static int take(void *arg, struct str delta)
{
    size_t *seen = arg;

    demand(delta.n > 0 && utf8_valid(delta) == delta.n);
    *seen += delta.n;
    return 0;
}

static void check_answer(struct answer *a, size_t seen)
{
    struct buf calls = BUF_INIT(BUF_LINE);
    struct str value;

    demand(a->text.len == seen && utf8_valid(buf_str(&a->text)) == seen);
    answer_settle_calls(a);
    for (size_t i = 0; i < a->calls_count; i++)
        demand(a->calls[i].id.len > 0 && a->calls[i].args.len > 0);
    answer_calls_json(a, &calls);
    demand(json_check(buf_str(&calls), &value, NULL) && json_type(value) == JSON_ARRAY);
    demand(!a->finish_reason || *a->finish_reason);
    buf_release(&calls);
}

static void feed_events(struct str in)
{
    size_t seen = 0;
    struct answer_sink sink = {take, &seen};
    struct answer a;
    struct err e = ERR_INIT;
    int rc = 0;

    answer_init(&a, &sink);
    while (rc == 0 && in.n > 0) {
        rc = provider_openai.event(&a, STR("message"), str_cut(&in, '\n'), &e);
        check_err(rc, &e);
        demand(rc <= 0 || a.finished);
    }
    check_answer(&a, seen);
    answer_release(&a);
    err_release(&e);
}

static void feed_whole(struct str in)
{
    size_t seen = 0;
    struct answer_sink sink = {take, &seen};
    struct answer a;
    struct err e = ERR_INIT;
    int rc;

    answer_init(&a, &sink);
    rc = provider_openai.whole(&a, in, &e);
    check_err(rc, &e);
    demand(rc < 0 || a.finished);
    check_answer(&a, seen);
    answer_release(&a);
    err_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct err e = ERR_INIT;

    feed_events(in);
    feed_whole(in);
    check_err(provider_openai.failure(200 + (int)(size % 400), in, &e), &e);
    err_release(&e);
    return 0;
}
