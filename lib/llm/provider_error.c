#include "chathist/llm/provider_error.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

/* How much of a server's message is shown, in code points. */
#define MESSAGE_MAX 300

/* The error as the server described it, decoded. */
struct server_error {
    int status;     /* 200: reported inside a response */
    int64_t number; /* a numeric code, or 0 */
    struct buf message, code, type;
};

static enum err_kind kind_of_status(int status)
{
    if (status == 401 || status == 403)
        return ERR_AUTH;
    if (status == 429 || status >= 500)
        return ERR_BUSY;
    return ERR_REQUEST;
}

/* ---- reading ---- */

static bool is_truthy(struct str value)
{
    int64_t number;

    switch (json_type(value)) {
    case JSON_BOOL:
        return json_is_true(value);
    case JSON_NUMBER:
        return !json_int(value, &number) || number != 0;
    case JSON_STRING:
        return value.n > 2;
    case JSON_OBJECT:
    case JSON_ARRAY: {
        struct json_iter it = json_iter(value);

        return json_next(&it);
    }
    default:
        return false;
    }
}

bool provider_error_in(struct str error, struct str object)
{
    return is_truthy(error) || json_is_text(object, "error");
}

/* MiniMax reports errors as `base_resp`, whose code is 0 in an answer (platform.minimax.io, "Error
 * codes"), DashScope as `code` and `message` (Alibaba Cloud Model Studio, "Error messages"), and
 * FastAPI as `detail`. */
bool provider_error_reported(struct str value)
{
    enum { ERROR, OBJECT, BASE, CODE, MESSAGE, DETAIL, COUNT };
    static const char *const keys[COUNT] = {"error", "object",  "base_resp",
                                            "code",  "message", "detail"};
    struct str found[COUNT];

    json_pick(value, keys, found, COUNT);
    return provider_error_in(found[ERROR], found[OBJECT]) ||
           is_truthy(json_get(found[BASE], "status_code")) ||
           (is_truthy(found[CODE]) && json_type(found[MESSAGE]) == JSON_STRING) ||
           is_truthy(found[DETAIL]);
}

/* A code is a number, or a string that may hold a number. */
static void read_code(struct server_error *f, struct str value)
{
    if (json_int(value, &f->number))
        return;
    json_decode(value, &f->code);
    if (json_check(buf_str(&f->code), &value, NULL) && json_type(value) == JSON_NUMBER)
        json_int(value, &f->number);
}

/* Returns the first element of an array, or another value itself. */
static struct str first_of(struct str value)
{
    return json_type(value) == JSON_ARRAY ? json_at(value, 0) : value;
}

/* Reads the message from the first of the usual members that has one. FastAPI's `detail` can be a
 * list of objects. FastAPI and Mistral send the place of the wrong member separately,
 * `"loc":["body","messages",0,"role"]`: it comes before the message. */
static void read_error_message(struct server_error *f, struct str error)
{
    static const char *const keys[] = {"message",           "detail",     "error",    "msg",
                                       "error_description", "status_msg", "base_resp"};
    struct buf text = BUF_INIT(BUF_LINE);
    bool found = false;

    for (size_t i = 0; !found && i < sizeof keys / sizeof *keys; i++) {
        struct str value = first_of(json_get(error, keys[i]));

        buf_clear(&f->message);
        if (json_type(value) == JSON_OBJECT) {
            read_error_message(f, value);
        } else if (json_type(value) == JSON_STRING) {
            for (struct json_iter it = json_iter(json_get(error, "loc"));
                 !it.object && json_next(&it);) {
                buf_add_c(&f->message, f->message.len > 0 ? "." : "");
                buf_add_str(&f->message, json_type(it.value) == JSON_STRING
                                             ? json_text(it.value, &text)
                                             : it.value);
            }
            buf_add_c(&f->message, f->message.len > 0 ? ": " : "");
            json_decode(value, &f->message);
        }
        found = str_trim(buf_str(&f->message)).n > 0;
    }
    if (!found)
        buf_clear(&f->message);
    buf_release(&text);
}

struct str provider_error_object(struct str *value)
{
    struct str error;

    *value = first_of(*value);
    error = first_of(json_get(*value, "error"));
    return json_type(error) == JSON_OBJECT ? error : *value;
}

static void read_json(struct server_error *f, struct str value)
{
    struct str object = provider_error_object(&value), error = first_of(json_get(value, "error"));

    if (json_type(error) == JSON_STRING)
        json_decode(error, &f->message);
    read_code(f, json_get(object, "status_code"));
    read_code(f, json_get(object, "code"));
    json_decode(json_get(object, "type"), &f->type);
    if (f->message.len == 0)
        read_error_message(f, object);
    if (f->message.len == 0)
        buf_add_str(&f->message, f->type.len > 0 ? buf_str(&f->type) : buf_str(&f->code));
    if (f->message.len == 0)
        json_add_compact(&f->message, object);
}

/* Finds `needle` (in lower case) in text without regard to the case of ASCII letters. Returns
 * its place, or NULL. */
static const char *find_lower(struct str text, const char *needle)
{
    size_t n = strlen(needle);

    for (size_t i = 0; i + n <= text.n; i++)
        if (str_eq_lower((struct str){text.p + i, n}, needle))
            return text.p + i;
    return NULL;
}

bool provider_error_mentions(struct str text, const char *const *words)
{
    for (; *words; words++)
        if (find_lower(text, *words))
            return true;
    return false;
}

bool provider_error_add_page(struct buf *out, struct str body)
{
    struct str text = str_trim(body), title;
    const char *begin = find_lower(text, "<title"), *end;

    if (!str_starts(text, STR("<")) || !find_lower(text, "<html"))
        return false;
    if (begin)
        begin = memchr(begin, '>', (size_t)(text.p + text.n - begin));
    if (begin) {
        title = (struct str){begin + 1, (size_t)(text.p + text.n - begin - 1)};
        end = find_lower(title, "</title");
        if (end)
            buf_add_str(out, str_trim((struct str){title.p, (size_t)(end - title.p)}));
    }
    buf_add_c(out, out->len > 0 ? " (an HTML page)" : "an HTML page");
    return true;
}

/* ---- the kind of the error ---- */

/* Returns whether the names that the server gave the error hold one of these words. */
static bool is_named(const struct server_error *f, const char *const *words)
{
    return provider_error_mentions(buf_str(&f->code), words) ||
           provider_error_mentions(buf_str(&f->type), words);
}

/* Returns whether the server's error has one of these names or, unless it is about the key or the
 * rate, one of these phrases. `too many tokens` of a rate limit may succeed later. */
static bool is_about(const struct server_error *f, const char *const *names,
                     const char *const *phrases)
{
    return is_named(f, names) || (f->status != 401 && f->status != 403 && f->status != 429 &&
                                  provider_error_mentions(buf_str(&f->message), phrases));
}

static enum err_kind error_kind_of(const struct server_error *f)
{
    if (f->status == 413 ||
        is_about(f, WORDS("context_length", "exceed_context_size", "context_window"),
                 WORDS("context length", "context size", "context window", "context limit",
                       "maximum context", "too many tokens", "prompt is too long")))
        return ERR_TOO_LONG;
    if (is_about(f,
                 WORDS("content_policy", "content_filter", "invalid_prompt", "bio_policy",
                       "cyber_policy", "policy_violation"),
                 WORDS("content policy", "content management policy")))
        return ERR_REFUSED;
    /* The account has no quota left, in the words of OpenAI and Azure, OpenAI's billing, Moonshot,
     * DeepSeek and Zhipu, or OpenRouter. */
    if ((f->status == 200 || kind_of_status(f->status) == ERR_BUSY) &&
        is_named(f,
                 WORDS("insufficient_quota", "billing_hard_limit", "billing_not_active",
                       "exceeded_current_quota", "insufficient_balance", "insufficient_credits")))
        return ERR_QUOTA;
    /* The next request would get the same answer: llama.cpp without a model for images (500) or
     * without --embeddings (501, not_supported_error). */
    if (is_about(f, WORDS("not_supported_error"), WORDS("input is not supported")))
        return ERR_REQUEST;
    if (f->status != 200)
        return kind_of_status(f->status);
    if (f->number >= 400 && f->number < 600)
        return kind_of_status((int)f->number);
    if (is_named(f, WORDS("authentication", "permission", "api_key", "apikey", "unauthorized")))
        return ERR_AUTH;
    if (is_named(f, WORDS("invalid_", "invalidparameter", "not_found", "badrequest", "bad_request",
                          "unsupported", "billing", "image", "data_residency")))
        return ERR_REQUEST;
    return ERR_BUSY;
}

/* ---- the message ---- */

void provider_error_add_excerpt(struct buf *out, struct str text, size_t max)
{
    struct str first = utf8_first(text, max);

    vis_add_line(out, first, true);
    if (first.n < text.n)
        buf_add_c(out, "…");
}

/* Sets the error of a status and a body, of which `value` is the JSON, or STR_NONE. */
static int set(struct err *e, int status, struct str value, struct str body)
{
    struct server_error f = {status, 0, BUF_INIT(BUF_LINE), BUF_INIT(BUF_LINE), BUF_INIT(BUF_LINE)};
    struct buf shown = BUF_INIT(BUF_SMALL);
    struct str rest = str_trim(body);
    enum err_kind kind;

    if (value.p)
        read_json(&f, value);
    else if (!provider_error_add_page(&f.message, body))
        buf_add_str(&f.message, str_starts(rest, STR("<")) ? rest : str_cut(&rest, '\n'));
    kind = error_kind_of(&f);
    provider_error_add_excerpt(&shown, str_trim(buf_str(&f.message)), MESSAGE_MAX);
    if (shown.len == 0)
        buf_add_c(&shown, "no message");
    if (kind == ERR_QUOTA)
        buf_add_c(&shown, " (the account has no quota left: not tried again)");
    if (status != 200)
        err_set(e, kind, "HTTP %d: %s", status, buf_c(&shown));
    else if (f.number >= 400 && f.number < 600)
        err_set(e, kind, "server error %d: %s", (int)f.number, buf_c(&shown));
    else
        err_set(e, kind, "server error: %s", buf_c(&shown));
    buf_release(&shown);
    buf_release(&f.message);
    buf_release(&f.code);
    buf_release(&f.type);
    return -1;
}

int provider_error_set_reported(struct err *e, struct str value)
{
    return set(e, 200, value, STR_NONE);
}

struct str provider_error_body(struct str body)
{
    struct str text = str_trim(body);

    return str_starts(text, STR("data:")) ? str_skip(text, strlen("data:")) : body;
}

int provider_error_set_http(struct err *e, int status, struct str body)
{
    struct str value;
    bool json;

    body = provider_error_body(body);
    json = json_check(body, &value, NULL) &&
           (json_type(value) == JSON_OBJECT || json_type(value) == JSON_ARRAY);

    return set(e, status, json ? value : STR_NONE, body);
}

void provider_error_explain(struct err *e, int status, struct str body, const struct ask *ask,
                            const char *missing)
{
    bool sent = ask->key && *ask->key;

    if (!e || !ask->base_url)
        return;
    if (e->kind == ERR_AUTH && sent && ask->key_from)
        err_set(e, e->kind, "%s (key from %s)", err_text(e), ask->key_from);
    else if (e->kind == ERR_AUTH && !sent)
        err_set(e, e->kind, "%s (no key was sent)", err_text(e));
    else if (status == 404 && e->kind == ERR_REQUEST && find_lower(body, "model"))
        err_set(e, e->kind, "%s (chathist models lists them)", err_text(e));
    else if (status == 404 && e->kind == ERR_REQUEST)
        err_set(e, e->kind, "%s (%s)", err_text(e),
                missing ? missing : "is the base URL right? most end in /v1");
}

/* ---- the key ---- */

bool header_names_secret(const char *name)
{
    return provider_error_mentions(str_of(name), WORDS("auth", "key", "token", "secret", "cookie"));
}

const char *header_secret(const struct ask_header *header)
{
    const char *blank = strrchr(header->value, ' ');

    if (!header->secret)
        return NULL;
    return blank ? blank + 1 : header->value;
}

static void mask_secret(struct err *e, const char *key)
{
    struct buf shown = BUF_INIT(SIZE_MAX);
    struct str secret = secret_of(key);

    if (secret.n == 0 || !str_find(str_of(err_text(e)), secret))
        return;
    buf_add_c(&shown, err_text(e));
    secret_mask(&shown, secret, 0, 0);
    err_set(e, e->kind, "%s", buf_c(&shown));
    buf_release(&shown);
}

void provider_error_mask(struct err *e, const struct ask *ask)
{
    mask_secret(e, ask->key);
    for (size_t i = 0; i < ask->headers_count; i++)
        mask_secret(e, header_secret(&ask->headers[i]));
}
