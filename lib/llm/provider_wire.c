#include "llm/provider_wire.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/provider_error.h"

/* How much of an unusable event or answer a message shows, in code points. */
#define EXCERPT_MAX 80

static void add_url(struct http_request *r, const struct provider *p, const struct ask *ask,
                    const char *version, const char *path)
{
    struct str query = str_of(ask->base_url ? ask->base_url : p->base_url);
    struct str base = str_cut(&query, '?');
    static const char *const endpoints[] = {"/chat/completions", "/messages"};

    while (str_ends(base, STR("/")))
        base.n--;
    /* Many services print the whole address of their endpoint. */
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (str_ends(base, str_of(endpoints[i])))
            base.n -= strlen(endpoints[i]);
    buf_add_str(&r->url, base);
    if (!str_ends(base, str_of(version)))
        buf_add_c(&r->url, version);
    buf_add_c(&r->url, path);
    if (query.n > 0) {
        buf_add_byte(&r->url, str_find(str_of(path), STR("?")) ? '&' : '?');
        buf_add_str(&r->url, query);
    }
}

int wire_begin_post(struct http_request *r, const struct provider *p, const struct ask *ask,
                    const char *version, const char *path, struct err *e)
{
    struct str accept = ask->stream ? STR("text/event-stream") : STR("application/json");

    add_url(r, p, ask, version, path);
    if (http_add_header(r, "Content-Type", STR("application/json"), e) != 0)
        return -1;
    return http_add_header(r, "Accept", accept, e);
}

int wire_begin_get(struct http_request *r, const struct provider *p, const struct ask *ask,
                   const char *version, const char *path, struct err *e)
{
    add_url(r, p, ask, version, path);
    return http_add_header(r, "Accept", STR("application/json"), e);
}

bool wire_has_option(const struct ask *ask, const char *key)
{
    for (size_t i = 0; i < ask->options_count; i++)
        if (strcmp(ask->options[i].key, key) == 0)
            return true;
    return false;
}

/* cJSON writes the bytes of a key unchanged, so they have to be valid UTF-8. */
static void set_option(cJSON *body, const struct ask_option *option)
{
    struct buf key = BUF_INIT(SIZE_MAX);
    struct str value;

    utf8_add_repaired(&key, str_of(option->key));
    if (json_check(option->value, &value, NULL))
        cjson_set_raw(body, buf_c(&key), value);
    else
        cjson_set_text(body, buf_c(&key), option->value);
    buf_release(&key);
}

void wire_set_options(cJSON *body, const struct ask *ask)
{
    for (size_t i = 0; i < ask->options_count; i++)
        set_option(body, &ask->options[i]);
}

void wire_take_model(struct response *a, struct str model)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (!a->model)
        response_set_model(a, json_text(model, &scratch));
    buf_release(&scratch);
}

struct str wire_finish(struct str reason, const struct wire_name *names)
{
    for (; names->theirs; names++)
        if (str_eq_c(reason, names->theirs))
            return str_of(names->ours);
    return reason;
}

int wire_unusable(struct err *e, enum err_kind kind, const char *what, struct str data)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    provider_error_add_excerpt(&shown, data, EXCERPT_MAX);
    err_set(e, kind, "%s: '%s'", what, buf_c(&shown));
    buf_release(&shown);
    return -1;
}

int wire_parse_event(struct str data, struct str *value, struct err *e)
{
    if (json_check(data, value, NULL))
        return 0;
    if (json_too_deep(data))
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: an event is nested more than %d levels deep",
                       JSON_DEPTH);
    return wire_unusable(e, ERR_INCOMPLETE, "answer is incomplete: an event is not JSON", data);
}

int wire_parse_whole(struct str body, struct str *value, struct err *e)
{
    if (json_check(body, value, NULL))
        return 0;
    if (json_too_deep(body))
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: it is nested more than %d levels deep", JSON_DEPTH);
    return wire_unusable(e, ERR_BUSY, "the server's answer is not JSON", str_trim(body));
}
