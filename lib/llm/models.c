#include "chathist/llm/models.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/provider_error.h"

/* The largest list of models that is read. */
#define LIST_MAX ((size_t)16 << 20)
#define PROBE_MS 300
#define PROBE_TICK_MS 5

/* A request, and the response to it. */
struct fetch {
    struct http_request request;
    struct http_head head;
    struct buf body;
    struct http_sink sink;
    struct http_transfer *transfer; /* the transfer that asks a probe */
    struct err e;
};

static int add_to_body(void *arg, struct str piece, struct err *e)
{
    struct fetch *f = arg;

    buf_add_str(&f->body, piece);
    if (f->body.overflow)
        return err_set(e, ERR_BUSY, "the server's list of models is over %zu MiB", LIST_MAX >> 20);
    return 0;
}

static void fetch_init(struct fetch *f)
{
    *f = (struct fetch){.body = BUF_INIT(LIST_MAX), .e = ERR_INIT};
    http_request_init(&f->request);
    http_head_init(&f->head);
    f->sink = (struct http_sink){.head = &f->head, .body = add_to_body, .arg = f};
}

static void fetch_release(struct fetch *f)
{
    http_request_release(&f->request);
    http_head_release(&f->head);
    buf_release(&f->body);
    err_release(&f->e);
}

void model_list_add(struct model_list *l, struct str id, int64_t window)
{
    /* The cache has one name on each line. */
    if (id.n == 0 || memchr(id.p, '\n', id.n) || memchr(id.p, '\r', id.n))
        return;
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->windows = mem_grow(l->windows, &l->windows_cap, l->count + 1, sizeof *l->windows);
    l->windows[l->count] = window;
    l->at[l->count++] = mem_copy(id.p, id.n);
}

int64_t model_list_window(const struct model_list *l, const char *model)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->at[i], model) == 0)
            return l->windows[i];
    return 0;
}

/* Reads how many tokens the context of a model can hold. What it was loaded with precedes what it
 * could be loaded with. */
static int64_t window_of(struct str model)
{
    static const char *const members[] = {
        "loaded_context_length", "context_length",   "max_model_len",  "context_window",
        "max_context_length",    "max_input_tokens", "inputTokenLimit"};
    int64_t n;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (json_int(json_get(model, members[i]), &n) && n > 0)
            return n;
    return 0;
}

static int read_list(struct model_list *l, struct str body, const struct ask *ask, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_SMALL), shown = BUF_INIT(SIZE_MAX);
    struct hash_map seen = {0};
    struct json_iter it;
    struct str value, answer;

    if (!json_check(body, &answer, NULL))
        return err_set(e, ERR_BUSY, "the server's list of models is not JSON");
    value = answer;
    if (json_type(value) == JSON_OBJECT) { /* Together AI sends only the array */
        struct str data = json_get(value, "data");

        value = data.p ? data : json_get(value, "models"); /* Ollama */
    }
    if (json_type(value) != JSON_ARRAY)
        return provider_error_reported(answer)
                   ? provider_error_set_reported(e, answer)
                   : err_set(e, ERR_BUSY, "the server's answer is not a list of models");
    it = json_iter(value);
    while (json_next(&it)) {
        struct str id = json_get(it.value, "id"),
                   name = json_text(id.p ? id : json_get(it.value, "name"), &scratch);

        if (!id.p && str_starts(name, STR("models/"))) /* Gemini */
            name = str_skip(name, 7);
        if (name.n == 0 || !hash_map_add(&seen, name))
            continue;
        /* Names are printed and kept in the cache, so a key that a server repeats in them is masked.
         */
        buf_set(&shown, name);
        secret_mask(&shown, secret_distinct(ask->key), 0, 0);
        for (size_t i = 0; i < ask->headers_count; i++)
            secret_mask(&shown, secret_distinct(header_secret(&ask->headers[i])), 0, 0);
        model_list_add(l, buf_str(&shown), window_of(it.value));
    }
    hash_map_release(&seen);
    buf_release(&scratch);
    buf_release(&shown);
    return 0;
}

int model_list_load(struct model_list *l, const struct provider *p, const struct ask *ask,
                    struct err *e)
{
    struct fetch f;
    int result;

    *l = (struct model_list){0};
    if (!p->models) {
        model_list_add(l, str_of(p->name), 0);
        return 0;
    }
    fetch_init(&f);
    result = p->models(p, ask, &f.request, e);
    if (result == 0)
        result = http_exchange(&f.request, &ask->limits, &f.sink, e);
    if (result == 0 && http_head_is_success(&f.head)) {
        result = read_list(l, buf_str(&f.body), ask, e);
    } else if (result == 0) {
        result = provider_error_set_http(e, f.head.status, buf_str(&f.body));
        provider_error_explain(e, f.head.status, buf_str(&f.body), ask, NULL);
    }
    if (result < 0)
        provider_error_mask(e, ask);
    fetch_release(&f);
    return result;
}

void model_list_release(struct model_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->at[i]);
    free(l->at);
    free(l->windows);
}

/* Returns the size of the context that the user has chosen with an option, or 0. */
static int64_t chosen_window(const struct provider *p, const struct ask *ask)
{
    struct str value;
    int64_t n, chosen = 0;

    for (size_t i = 0; p->window_field && i < ask->options_count; i++) {
        const struct ask_option *option = &ask->options[i];
        bool inside = p->options_field && strcmp(option->key, p->options_field) == 0;

        if ((inside || strcmp(option->key, p->window_field) == 0) &&
            json_check(option->value, &value, NULL) &&
            json_int(inside ? json_get(value, p->window_field) : value, &n) && n > 0)
            chosen = n;
    }
    return chosen;
}

void model_window_load(const struct provider *p, const struct ask *ask, bool whole,
                       struct model_window *w)
{
    int64_t ms = PROBE_MS;

    *w = (struct model_window){.most = chosen_window(p, ask)};
    if (w->most > 0)
        return;
    for (size_t i = 0; ms > 0 && i < (whole ? 2 : 1) && p->window[i].request; i++) {
        struct http_limits limits = ask->limits;
        int64_t begin = time_now();
        struct fetch f;
        struct str value;

        limits.connect_ms = limits.idle_ms = limits.whole_ms = (long)ms;
        fetch_init(&f);
        if (p->window[i].request(p, ask, &f.request, &f.e) == 0 &&
            http_exchange(&f.request, &limits, &f.sink, &f.e) == 0 &&
            http_head_is_success(&f.head) && json_check(buf_str(&f.body), &value, NULL))
            p->window[i].read(value, ask, w);
        fetch_release(&f);
        ms -= (time_now() - begin) / 1000;
    }
    if (w->most < 0)
        w->most = 0;
    if (w->loaded < 0)
        w->loaded = 0;
}

/* Returns whether a probe has found its server. llama.cpp answers with HTTP 503 while it loads the
 * model (tools/server/README.md there). */
static bool has_found(const struct fetch *f, const struct provider *p)
{
    struct str value;

    if (http_state(f->transfer) != 0 || !json_check(buf_str(&f->body), &value, NULL))
        return false;
    if (f->head.status == 503)
        return json_is_text(json_get(json_get(value, "error"), "type"), "unavailable_error");
    return f->head.status == 200 && json_type(json_get(value, p->probe.list)) == JSON_ARRAY;
}

void models_probe(struct model_probe *probes, size_t count)
{
    struct http_limits limits = {
        .connect_ms = PROBE_MS, .idle_ms = PROBE_MS, .whole_ms = PROBE_MS, .cancel_fd = -1};
    struct http_pool *pool = http_pool_open();
    struct fetch *all = mem_zalloc(count * sizeof *all);
    struct pollfd fds[16];
    int64_t end = time_now() + (int64_t)PROBE_MS * 1000;
    bool more = true; /* a probe is under way, and none before it has found its server */

    for (size_t i = 0; i < count; i++) {
        struct fetch *f = &all[i];
        const char *url = probes[i].base_url, *host = strstr(url, "://");

        host = host ? host + 3 : url;
        fetch_init(f);
        buf_add(&f->request.url, url, (size_t)(host - url) + strcspn(host, "/?#"));
        buf_add_c(&f->request.url, probes[i].provider->probe.path);
        f->transfer = http_begin(pool, &f->request, &limits, &f->sink, &f->e);
    }
    while (more && time_now() < end) {
        size_t n = http_pool_fds(pool, fds, sizeof fds / sizeof *fds);

        poll(fds, (nfds_t)n, PROBE_TICK_MS);
        http_pool_step(pool);
        more = false;
        for (size_t i = 0; i < count && !more && !has_found(&all[i], probes[i].provider); i++)
            more = http_state(all[i].transfer) == 1;
    }
    for (size_t i = 0; i < count; i++) {
        probes[i].there = has_found(&all[i], probes[i].provider);
        http_end(all[i].transfer);
        fetch_release(&all[i]);
    }
    free(all);
    http_pool_close(pool);
}
