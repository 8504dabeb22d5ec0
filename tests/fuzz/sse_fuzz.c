/*
 * sse: an event stream fed in one piece, byte by byte, and in pieces whose sizes are taken from the
 * input gives the same events, and the same result. Their text is valid UTF-8.
 */
#include <stdint.h>
#include <string.h>

#include "chathist/base/utf8.h"
#include "chathist/llm/sse.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(void *arg, struct str event, struct str data, struct err *e)
{
    struct buf *log = arg;

    demand(event.n > 0 && utf8_valid(event) == event.n && utf8_valid(data) == data.n);
    demand(!memchr(event.p, '\n', event.n));
    buf_addf(log, "%zu,%zu:", event.n, data.n);
    buf_add_str(log, event);
    buf_add_str(log, data);
    if (str_starts(data, STR("fail")))
        return err_set(e, ERR_BUSY, "fail");
    return str_eq_c(data, "[DONE]");
}

/* Pieces of `step` bytes; 0: the stream's own bytes are the sizes. */
static void feed(struct str in, size_t step, struct buf *log)
{
    struct err e = ERR_INIT;
    struct sse s;
    int rc = 0;

    sse_init(&s, note, log);
    for (size_t at = 0; rc == 0 && at < in.n;) {
        size_t n = step ? step : (size_t)(unsigned char)in.p[at] % 16;

        n = n < in.n - at ? n : in.n - at;
        rc = sse_feed(&s, (struct str){in.p + at, n}, &e);
        at += n > 0 || step > 0 ? n : 1; /* an empty piece, and then one of one byte */
        if (rc == 0 && n == 0)
            rc = sse_feed(&s, (struct str){in.p + at - 1, 1}, &e);
    }
    if (rc == 0)
        rc = sse_end(&s, &e);
    demand((rc == 0) == (e.kind == ERR_NONE));
    buf_addf(log, "%d", rc);
    err_release(&e);
    sse_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct buf whole = BUF_INIT(BUF_LINE), other = BUF_INIT(BUF_LINE);
    static const size_t steps[] = {1, 2, 3, 7, 0};

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
