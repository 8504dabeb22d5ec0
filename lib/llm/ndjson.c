#include "llm/ndjson.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

void ndjson_init(struct ndjson *n, sse_fn *fn, void *arg)
{
    *n = (struct ndjson){.fn = fn, .arg = arg};
    buf_init(&n->line, SSE_EVENT_MAX);
}

void ndjson_release(struct ndjson *n)
{
    buf_release(&n->line);
}

static int too_long(struct err *e)
{
    return err_set(e, ERR_INCOMPLETE,
                   "answer is incomplete: a line of the stream is longer than %zu MiB",
                   SSE_EVENT_MAX >> 20);
}

static int take_line(struct ndjson *n, struct str line, struct err *e)
{
    struct buf repaired = BUF_INIT(3 * SSE_EVENT_MAX);
    int rc = 0;

    line = str_trim(line);
    if (utf8_valid(line) < line.n) {
        utf8_add_repaired(&repaired, line);
        line = buf_str(&repaired);
    }
    if (line.n > 0)
        rc = n->fn(n->arg, STR(""), line, e);
    n->done = rc == 1;
    buf_release(&repaired);
    return rc < 0 ? -1 : 0;
}

int ndjson_feed(struct ndjson *n, struct str piece, struct err *e)
{
    while (!n->done && piece.n > 0) {
        const char *end = memchr(piece.p, '\n', piece.n);
        size_t length = end ? (size_t)(end - piece.p) : piece.n;
        int rc;

        if (end && n->line.len == 0) {
            rc = take_line(n, (struct str){piece.p, length}, e);
        } else {
            buf_add(&n->line, piece.p, length);
            if (n->line.overflow)
                return too_long(e);
            if (!end)
                return 0;
            rc = take_line(n, buf_str(&n->line), e);
            buf_clear(&n->line);
        }
        if (rc != 0)
            return -1;
        piece = (struct str){end + 1, piece.n - length - 1};
    }
    return 0;
}

int ndjson_end(struct ndjson *n, struct err *e)
{
    struct str value;

    if (n->done || !json_check(buf_str(&n->line), &value, NULL))
        return 0;
    return take_line(n, buf_str(&n->line), e);
}
