/*
 * jsonrpc: a stream fed in one piece, byte by byte, and in pieces of other sizes gives the same
 * messages and the same end; each is valid JSON in UTF-8. What an MCP server could answer with is
 * made into text that is valid UTF-8.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/mcp/jsonrpc.h"
#include "chathist/mcp/client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool held)
{
    if (!held)
        abort();
}

static int note(void *arg, const struct jsonrpc_message *m, struct err *e)
{
    struct buf *log = arg, text = BUF_INIT(4096);
    struct attachment_list images = {0};
    struct str value;
    bool failed;

    buf_addf(log, "%d %zu %zu %zu\n", (int)m->kind, m->id.n, m->method.n, m->body.n);
    demand(m->body.n == 0 || json_check(m->body, &value, NULL));
    demand(utf8_valid(m->method) == m->method.n);
    mcp_result_add(&text, &images, m->body, &failed);
    demand(!text.overflow && utf8_valid(buf_str(&text)) == text.len);
    buf_release(&text);
    attachment_list_release(&images);
    return str_eq_c(m->method, "stop") ? err_set(e, ERR_FAILURE, "stop") : 0;
}

static void feed(struct str in, size_t step, struct buf *log)
{
    struct err e = ERR_INIT;
    struct jsonrpc r;
    int rc = 0;

    jsonrpc_init(&r, note, log);
    for (size_t at = 0; rc == 0 && at < in.n; at += step)
        rc = jsonrpc_feed(&r, (struct str){in.p + at, in.n - at < step ? in.n - at : step}, &e);
    demand((rc == 0) == (e.kind == ERR_NONE));
    buf_addf(log, "%d %zu", rc, r.noise);
    err_release(&e);
    jsonrpc_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct buf whole = BUF_INIT(BUF_LINE), other = BUF_INIT(BUF_LINE);
    static const size_t steps[] = {1, 3, 17};

    feed(in, size + 1, &whole);
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        buf_clear(&other);
        feed(in, steps[i], &other);
        demand(str_eq(buf_str(&whole), buf_str(&other)));
    }
    buf_release(&whole);
    buf_release(&other);
    return 0;
}
