#include "chathist/chat/embed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/provider_error.h"

#define TEXTS_MAX ((size_t)16 << 20)
/* The largest response that is read. */
#define VECTORS_MAX ((size_t)256 << 20)
/* A text that is refused is shortened to this number of code points, then to half of it, down to
 * LESS_TO. */
#define LESS_FROM ((size_t)800)
#define LESS_TO ((size_t)100)

static int add_to_response(void *arg, struct str piece, struct err *e)
{
    struct buf *response = arg;

    buf_add_str(response, piece);
    if (response->overflow)
        return err_set(e, ERR_BUSY, "the server's vectors are over %zu MiB", VECTORS_MAX >> 20);
    return 0;
}

struct embed {
    const struct provider *provider;
    const struct ask *ask;
    struct buf *out;
    size_t made, refused; /* texts */
    struct err why;       /* the last error */
};

/* Adds the body of the request for texts, JSON strings on lines. Returns 0, or -1 with *e set. */
static int add_body(struct buf *body, const struct ask *ask, struct str texts, struct err *e)
{
    struct str value;

    buf_add_byte(body, '{');
    json_add_member(body, "model", str_of(ask->model));
    json_add_key(body, "input");
    for (size_t n = 0; texts.n > 0; n++) {
        if (!json_check(str_cut(&texts, '\n'), &value, NULL) || json_type(value) != JSON_STRING)
            return err_set(e, ERR_USAGE, "line %zu of the texts is no JSON string", n + 1);
        buf_add_byte(body, n > 0 ? ',' : '[');
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

/* Asks the server for the vectors of texts. Returns 0; 1 if it refuses one of them; or -1 with
 * *e set as a turn would fail. */
static int ask_server(struct embed *x, struct str texts, size_t count)
{
    struct err *e = &x->why;
    struct buf response = BUF_INIT(VECTORS_MAX);
    struct http_request request;
    struct http_head head;
    struct http_sink sink = {.head = &head, .body = add_to_response, .arg = &response};
    int rc;

    http_request_init(&request);
    http_head_init(&head);
    /* The root of Ollama's own API is the base URL; others have their version in it. */
    rc = wire_begin(&request, x->provider, x->ask, true, x->provider->lines ? "/v1" : "",
                    "/embeddings", e);
    if (rc == 0)
        rc = add_body(&request.body, x->ask, texts, e);
    if (rc == 0)
        rc = http_exchange(&request, &x->ask->limits, &sink, e);
    if (rc == 0 && http_head_is_success(&head)) {
        rc = add_vectors(x->out, buf_str(&response), count, e);
    } else if (rc == 0) {
        rc = provider_error_set_http(e, head.status, buf_str(&response));
        provider_error_explain(e, head.status, buf_str(&response), x->ask, NULL);
        /* llama.cpp answers 500 for a text that is too long. */
        if ((e->kind == ERR_REQUEST && head.status != 404) || e->kind == ERR_TOO_LONG ||
            head.status == 500)
            rc = 1;
    }
    if (rc != 0)
        provider_error_mask(e, x->ask);
    http_request_release(&request);
    http_head_release(&head);
    buf_release(&response);
    return rc;
}

/* Asks for a text that was refused: for less and less of it, as it may be too long. */
static int ask_for_less(struct embed *x, struct str line)
{
    struct buf text = BUF_INIT(BUF_LINE), less = BUF_INIT(BUF_LINE);
    int rc = 1;

    (void)json_decode(str_trim(line), &text);
    for (size_t n = LESS_FROM; rc > 0 && n >= LESS_TO; n /= 2) {
        struct str beginning = utf8_first(buf_str(&text), n);

        if (beginning.n == text.len)
            continue;
        buf_clear(&less);
        json_add_string(&less, beginning);
        rc = ask_server(x, buf_str(&less), 1);
    }
    buf_release(&text);
    buf_release(&less);
    return rc;
}

/* Adds the vectors of texts. Of texts that the server refuses together it asks for each half. Returns 0,
 * or -1 with x->why set. */
static int load_vectors(struct embed *x, struct str texts, size_t count)
{
    struct str half = texts, rest = texts;
    int rc = ask_server(x, texts, count);

    if (rc > 0 && count == 1)
        rc = ask_for_less(x, texts);
    if (rc == 0)
        x->made += count;
    if (rc <= 0)
        return rc;
    if (count == 1) {
        buf_add_c(x->out, "null\n");
        x->refused++;
        return 0;
    }
    for (size_t i = 0; i < count / 2; i++)
        (void)str_cut(&rest, '\n');
    half.n = (size_t)(rest.p - texts.p);
    return load_vectors(x, half, count / 2) < 0 ? -1 : load_vectors(x, rest, count - count / 2);
}

int embed_run(struct chat_session *t)
{
    struct buf texts = BUF_INIT(TEXTS_MAX), vectors = BUF_INIT(VECTORS_MAX);
    struct ask ask = {.limits = t->limits.http};
    struct embed x = {.provider = t->server.provider, .ask = &ask, .out = &vectors};
    struct err e = ERR_INIT;
    size_t count;

    if (file_read_all(STDIN_FILENO, &texts) < 0) {
        (void)err_sys(&e, errno, "cannot read standard input");
        die_err(&e);
    }
    /* The last line may have no newline. */
    if (texts.len > 0 && texts.data[texts.len - 1] != '\n')
        buf_add_byte(&texts, '\n');
    count = str_count(buf_str(&texts), '\n');
    if (server_load_key(&t->server, &e) < 0)
        die_err(&e);
    server_address(&t->server, &ask);
    if (count > 0 && (load_vectors(&x, buf_str(&texts), count) < 0 || x.made == 0))
        die_err(&x.why);
    if (x.refused > 0)
        warnf("%zu of %zu texts have no vector: %s", x.refused, count, err_text(&x.why));
    out_raw(&t->events.out, buf_str(&vectors));
    err_release(&x.why);
    buf_release(&texts);
    buf_release(&vectors);
    return 0;
}
