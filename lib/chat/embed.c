#include "chathist/chat/embed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/provider_error.h"

#define TEXTS_MAX ((size_t)16 << 20)
/* The largest response that is read. */
#define VECTORS_MAX ((size_t)256 << 20)

static int add_to_response(void *arg, struct str piece, struct err *e)
{
    struct buf *response = arg;

    buf_add_str(response, piece);
    if (response->overflow)
        return err_set(e, ERR_BUSY, "the server's vectors are over %zu MiB", VECTORS_MAX >> 20);
    return 0;
}

/* Adds the body of the request. Returns 0 and the number of texts, or -1 with *e set. */
static int add_body(struct buf *body, const struct ask *ask, struct str texts, size_t *count,
                    struct err *e)
{
    *count = 0;
    buf_add_byte(body, '{');
    json_add_member(body, "model", str_of(ask->model));
    json_add_key(body, "input");
    buf_add_byte(body, '[');
    while (texts.p) {
        struct str line = str_trim(str_cut(&texts, '\n')), value;

        if (line.n == 0)
            continue;
        if (!json_check(line, &value, NULL) || json_type(value) != JSON_STRING)
            return err_set(e, ERR_USAGE, "line %zu of the texts is no JSON string", *count + 1);
        buf_add_c(body, (*count)++ > 0 ? "," : "");
        buf_add_str(body, value);
    }
    buf_add_c(body, "]}");
    return 0;
}

/* Adds the arrays of a response in the order of their texts. */
static int add_vectors(struct buf *out, struct str response, size_t count, struct err *e)
{
    struct str *vectors = mem_zalloc((count + 1) * sizeof *vectors), answer = STR_NONE;
    struct json_iter it;
    size_t found = 0;
    int64_t index;

    if (json_check(response, &answer, NULL) && json_type(json_get(answer, "data")) == JSON_ARRAY) {
        it = json_iter(json_get(answer, "data"));
        while (json_next(&it)) {
            struct str vector = json_get(it.value, "embedding");

            if (json_int(json_get(it.value, "index"), &index) && index >= 0 &&
                (uint64_t)index < count && json_type(vector) == JSON_ARRAY && !vectors[index].p) {
                vectors[index] = vector;
                found++;
            }
        }
    }
    for (size_t i = 0; found == count && i < count; i++) {
        json_add_compact(out, vectors[i]);
        buf_add_byte(out, '\n');
    }
    free(vectors);
    if (found == count)
        return 0;
    if (answer.p && provider_error_reported(answer))
        return provider_error_set_reported(e, answer);
    return err_set(e, ERR_BUSY, "the server sent %zu of %zu vectors", found, count);
}

/* Asks the server that `ask` addresses for the vectors of the texts. Returns 0, or -1 with *e set as a
 * turn would fail. */
static int load_vectors(const struct provider *p, const struct ask *ask, struct str texts,
                        struct buf *out, struct err *e)
{
    struct buf response = BUF_INIT(VECTORS_MAX);
    struct http_request request;
    struct http_head head;
    struct http_sink sink = {.head = &head, .body = add_to_response, .arg = &response};
    size_t count;
    int rc;

    http_request_init(&request);
    http_head_init(&head);
    /* The root of Ollama's own API is the base URL; others have their version in it. */
    rc = wire_begin(&request, p, ask, true, p->lines ? "/v1" : "", "/embeddings", e);
    if (rc == 0)
        rc = add_body(&request.body, ask, texts, &count, e);
    if (rc == 0 && count > 0) {
        rc = http_exchange(&request, &ask->limits, &sink, e);
        if (rc == 0 && http_head_is_success(&head)) {
            rc = add_vectors(out, buf_str(&response), count, e);
        } else if (rc == 0) {
            rc = provider_error_set_http(e, head.status, buf_str(&response));
            provider_error_explain(e, head.status, buf_str(&response), ask, NULL);
        }
    }
    if (rc < 0)
        provider_error_mask_all(e, ask);
    http_request_release(&request);
    http_head_release(&head);
    buf_release(&response);
    return rc;
}

int embed_run(struct chat_session *t)
{
    struct buf texts = BUF_INIT(TEXTS_MAX), vectors = BUF_INIT(VECTORS_MAX);
    struct ask ask = {.limits = t->limits.http};
    struct err e = ERR_INIT;

    if (file_read_all(STDIN_FILENO, &texts) < 0) {
        (void)err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    if (server_load_key(&t->server, &e) < 0)
        die_err(&e);
    server_address(&t->server, &ask);
    if (load_vectors(t->server.provider, &ask, buf_str(&texts), &vectors, &e) < 0)
        die_err(&e);
    out_raw(&t->events.out, buf_str(&vectors));
    buf_release(&texts);
    buf_release(&vectors);
    return 0;
}
