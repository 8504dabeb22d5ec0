#include "chathist/llm/models.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/path.h"
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

struct reply {
    struct http_head head;
    struct buf body;
};

static void reply_init(struct reply *reply)
{
    http_head_init(&reply->head);
    buf_init(&reply->body, LIST_MAX);
}

static void reply_release(struct reply *reply)
{
    http_head_release(&reply->head);
    buf_release(&reply->body);
}

static int take_body(void *arg, struct str piece, struct err *e)
{
    struct reply *reply = arg;

    buf_add_str(&reply->body, piece);
    if (reply->body.overflow)
        return err_set(e, ERR_BUSY, "the server's list of models is over %zu MiB", LIST_MAX >> 20);
    return 0;
}

typedef int request_fn(const struct provider *p, const struct ask *ask, struct http_request *r,
                       struct err *e);

/* Makes a request with `ask_for`, and reads the response. */
static int fetch(request_fn *ask_for, const struct provider *p, const struct ask *ask,
                 const struct http_limits *limits, struct reply *reply, struct err *e)
{
    struct http_sink sink = {.head = &reply->head, .body = take_body, .arg = reply};
    struct http_request r;
    int rc;

    http_request_init(&r);
    rc = ask_for(p, ask, &r, e);
    if (rc == 0)
        rc = http_exchange(&r, limits, &sink, e);
    http_request_release(&r);
    return rc;
}

void model_list_add(struct model_list *l, struct str id)
{
    /* The cache has one name on each line. */
    if (id.n == 0 || memchr(id.p, '\n', id.n) || memchr(id.p, '\r', id.n))
        return;
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->windows = mem_grow(l->windows, &l->windows_cap, l->count + 1, sizeof *l->windows);
    l->windows[l->count] = 0;
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
static int64_t read_window(struct str model)
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

static int read_list(struct model_list *l, struct str body, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
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
        size_t before = l->count;

        struct str id = json_get(it.value, "id"),
                   name = json_text(id.p ? id : json_get(it.value, "name"), &scratch);

        if (!id.p && str_starts(name, STR("models/"))) /* Gemini */
            name = str_skip(name, 7);
        if (name.n > 0 && hash_map_add(&seen, name))
            model_list_add(l, name);
        if (l->count > before)
            l->windows[before] = read_window(it.value);
    }
    hash_map_release(&seen);
    buf_release(&scratch);
    return 0;
}

/* Names of models are printed and kept in the cache, so a key that a server repeats in them is
 * masked. */
static void mask_id(char **id, const char *key)
{
    struct str secret = secret_of(key);
    struct buf shown = BUF_INIT(SIZE_MAX);

    if (secret.n > 0 && !secret_is_word(secret) && str_find(str_of(*id), secret)) {
        buf_add_c(&shown, *id);
        secret_mask(&shown, secret, 0, 0);
        free(*id);
        *id = mem_copy(shown.data, shown.len);
    }
    buf_release(&shown);
}

static int fail(const struct ask *ask, const struct reply *reply, struct err *e)
{
    struct err own = ERR_INIT;

    provider_error_set_http(&own, reply->head.status, buf_str(&reply->body));
    if (ask->base_url)
        provider_error_explain(&own, reply->head.status, buf_str(&reply->body), ask->key,
                               ask->key_from, NULL);
    err_set(e, own.kind, "%s", err_text(&own));
    err_release(&own);
    return -1;
}

int model_list_load(struct model_list *l, const struct provider *p, const struct ask *ask,
                    struct err *e)
{
    struct reply reply;
    int result;

    *l = (struct model_list){0};
    if (!p->models) {
        model_list_add(l, str_of(p->name));
        return 0;
    }
    reply_init(&reply);
    result = fetch(p->models, p, ask, &ask->limits, &reply, e);
    if (result == 0 && !http_head_is_success(&reply.head))
        result = fail(ask, &reply, e);
    if (result == 0)
        result = read_list(l, buf_str(&reply.body), e);
    for (size_t i = 0; i < l->count; i++) {
        mask_id(&l->at[i], ask->key);
        for (size_t k = 0; k < ask->headers_count; k++)
            mask_id(&l->at[i], header_secret(&ask->headers[k]));
    }
    if (result < 0 && e)
        provider_error_mask_all(e, ask);
    reply_release(&reply);
    return result;
}

void model_list_release(struct model_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->at[i]);
    free(l->at);
    free(l->windows);
}

/* Asks one of the provider's questions. Returns the remaining milliseconds of `ms`. */
static int64_t ask_window(const struct provider *p, size_t question, const struct ask *ask,
                          int64_t ms, struct model_window *w)
{
    struct http_limits limits = ask->limits;
    struct reply reply;
    struct err e = ERR_INIT;
    struct str value;
    int64_t begin = time_now();

    limits.connect_ms = limits.idle_ms = (long)ms;
    limits.whole_ms = (long)ms;
    reply_init(&reply);
    if (fetch(p->window[question].request, p, ask, &limits, &reply, &e) == 0 &&
        http_head_is_success(&reply.head) && json_check(buf_str(&reply.body), &value, NULL))
        p->window[question].read(value, ask, w);
    err_release(&e);
    reply_release(&reply);
    return ms - (time_now() - begin) / 1000;
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
    int64_t chosen = chosen_window(p, ask), ms = PROBE_MS;

    *w = (struct model_window){0};
    for (size_t i = 0; chosen == 0 && ms > 0 && i < (whole ? 2 : 1) && p->window[i].request; i++)
        ms = ask_window(p, i, ask, ms, w);
    if (chosen > 0)
        w->most = chosen;
    if (w->most < 0)
        w->most = 0;
    if (w->loaded < 0)
        w->loaded = 0;
}

/* One probe while it is under way. */
struct probing {
    struct http_request request;
    struct reply reply;
    struct http_sink sink;
    struct http_transfer *transfer;
    struct err e;
};

/* Returns whether a probe that has ended found its server. */
static bool has_found(const struct probing *p, const struct model_probe *probe)
{
    struct str value;

    return http_state(p->transfer) == 0 && p->reply.head.status == 200 &&
           json_check(buf_str(&p->reply.body), &value, NULL) &&
           json_type(json_get(value, probe->provider->probe.list)) == JSON_ARRAY;
}

/* Returns true if a probe is under way, and none before it has found its server. */
static bool probes_go_on(const struct probing *all, const struct model_probe *probes, size_t count)
{
    for (size_t i = 0; i < count && !has_found(&all[i], &probes[i]); i++)
        if (http_state(all[i].transfer) == 1)
            return true;
    return false;
}

void models_probe(struct model_probe *probes, size_t count)
{
    struct http_limits limits = {
        .connect_ms = PROBE_MS, .idle_ms = PROBE_MS, .whole_ms = PROBE_MS, .cancel_fd = -1};
    struct http_pool *pool = http_pool_open();
    struct probing *all = mem_zalloc(count * sizeof *all);
    struct pollfd fds[16];
    int64_t end = time_now() + (int64_t)PROBE_MS * 1000;

    for (size_t i = 0; i < count; i++) {
        struct probing *p = &all[i];
        const char *url = probes[i].base_url, *host = strstr(url, "://");

        host = host ? host + 3 : url;
        *p = (struct probing){.e = ERR_INIT};
        http_request_init(&p->request);
        reply_init(&p->reply);
        p->sink = (struct http_sink){.head = &p->reply.head, .body = take_body, .arg = &p->reply};
        buf_add(&p->request.url, url, (size_t)(host - url) + strcspn(host, "/?#"));
        buf_add_c(&p->request.url, probes[i].provider->probe.path);
        p->transfer = http_begin(pool, &p->request, &limits, &p->sink, &p->e);
    }
    while (probes_go_on(all, probes, count) && time_now() < end) {
        size_t n = http_pool_fds(pool, fds, sizeof fds / sizeof *fds);

        poll(fds, (nfds_t)n, PROBE_TICK_MS);
        http_pool_step(pool);
    }
    for (size_t i = 0; i < count; i++) {
        probes[i].there = has_found(&all[i], &probes[i]);
        http_end(all[i].transfer);
        err_release(&all[i].e);
        reply_release(&all[i].reply);
        http_request_release(&all[i].request);
    }
    free(all);
    http_pool_close(pool);
}

/* ---- the cache ---- */

char *model_cache_path(const char *dir, const struct provider *p, const char *base_url)
{
    struct buf name = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);
    char *path = NULL;

    if (http_origin(base_url, &origin) && !str_find(buf_str(&origin), STR("/"))) {
        const char *host = strstr(base_url, "://"), *at = host ? strchr(host + 3, '/') : NULL;
        /* One address may have several servers. The query may hold a key. */
        struct str place = at ? (struct str){at, strcspn(at, "?#")} : STR("");

        while (str_ends(place, STR("/")))
            place.n--;
        buf_addf(&name, "%s@%s", p->name, buf_c(&origin));
        for (size_t i = 0; i < place.n; i++)
            buf_add_byte(&name, place.p[i] == '/' ? '%' : place.p[i]);
        path = path_join(dir, buf_c(&name));
    }
    buf_release(&name);
    buf_release(&origin);
    return path;
}

static bool is_fresh(const char *path, int64_t max_age)
{
    struct stat st;
    int64_t age = -1;

    if (path && lstat(path, &st) == 0)
        age = time_now() - (int64_t)st.st_mtime * TIME_SECOND;
    return age >= 0 && age <= max_age;
}

bool model_cache_is_fresh(const char *dir, const struct provider *p, const char *base_url,
                          int64_t max_age)
{
    char *path = model_cache_path(dir, p, base_url);
    bool fresh = is_fresh(path, max_age);

    free(path);
    return fresh;
}

/* Can the name be in the cache? A file that was damaged may hold anything. */
static bool is_cacheable(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < ' ' || name.p[i] == '\x7f')
            return false;
    return utf8_valid(name) == name.n;
}

bool model_cache_load(const char *dir, const struct provider *p, const char *base_url,
                      int64_t max_age, struct model_list *l)
{
    char *path = model_cache_path(dir, p, base_url);
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str rest = STR_NONE;

    *l = (struct model_list){0};
    if (is_fresh(path, max_age) && file_read_state(path, &text, NULL) > 0)
        rest = buf_str(&text);
    while (rest.p) {
        struct str window = str_cut(&rest, '\n'), id = str_cut(&window, '\t');
        size_t before = l->count;

        if (is_cacheable(id))
            model_list_add(l, id);
        if (l->count > before && window.p)
            json_int(window, &l->windows[before]);
    }
    free(path);
    buf_release(&text);
    return l->count > 0;
}

int model_cache_store(const char *dir, const struct provider *p, const char *base_url,
                      const struct model_list *l, struct err *e)
{
    char *path = model_cache_path(dir, p, base_url);
    struct buf text = BUF_INIT(BUF_SMALL);
    int result = -1;

    for (size_t i = 0; i < l->count; i++)
        if (is_cacheable(str_of(l->at[i])) && l->windows[i] > 0)
            buf_addf(&text, "%s\t%" PRId64 "\n", l->at[i], l->windows[i]);
        else if (is_cacheable(str_of(l->at[i])))
            buf_addf(&text, "%s\n", l->at[i]);
    if (!path || text.overflow)
        err_set(e, ERR_FAILURE, "cannot keep the list of models");
    else if (file_make_dirs(dir, e) >= 0)
        result = file_replace(path, buf_str(&text), e);
    free(path);
    buf_release(&text);
    return result;
}
