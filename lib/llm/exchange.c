#include "chathist/llm/exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/buf.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/refusals.h"
#include "chathist/llm/sse.h"

/* ---- whether and when to try again ---- */

/* In seconds: more than three thousand years. */
#define NUMBER_MAX 1e11
/* How often RETRY_FIRST is doubled until it is RETRY_MOST. */
#define RETRY_DOUBLED 4

static bool retry_is_worthwhile(enum err_kind kind, const struct http_head *head)
{
    if (!head)
        return kind == ERR_NETWORK;
    if (head->status < 400)
        return false;
    if (strcmp(buf_c(&head->field[HTTP_SHOULD_RETRY]), "true") == 0)
        return true;
    if (strcmp(buf_c(&head->field[HTTP_SHOULD_RETRY]), "false") == 0)
        return false;
    /* A conversation that is too long does not become shorter, whatever the status: llama.cpp sends
     * 500. */
    if (kind == ERR_REFUSED || kind == ERR_TOO_LONG || kind == ERR_QUOTA)
        return false;
    if (head->status == 408 || head->status == 409)
        return true;
    return kind != ERR_REQUEST && (head->status == 429 || head->status >= 500);
}

/* Reads a wait, in milliseconds, at the beginning of a text: a duration with units, a date, or a
 * number in units of `scale` milliseconds. A date in the past is not a wait. */
static bool read_wait(const char *text, int scale, int64_t now, int64_t *ms)
{
    struct str span = str_of(text), date = {text, strcspn(text, "\"\\\n")};
    size_t digits = strspn(text, "0123456789.");
    char *end;
    int64_t us;
    double n;

    if (time_read_span(&span, ms))
        return true;
    if (time_parse_http(date, &us) || time_parse_iso(date, &us)) {
        *ms = (us - now) / 1000;
        return us >= now;
    }
    n = strtod(text, &end);
    if (digits == 0 || end != text + digits || ascii_is_letter(end[strspn(end, " ")]))
        return false;
    *ms = (int64_t)((n < NUMBER_MAX ? n : NUMBER_MAX) * scale);
    return true;
}

/* Returns the place after the first of the words, which the text begins with in any case, or
 * NULL. */
static const char *after_word(const char *text, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);

        if (strnlen(text, n) == n && str_eq_lower((struct str){text, n}, *words))
            return text + n;
    }
    return NULL;
}

/* Finds a wait in the body of an error: `"retryDelay":"8.1s"` of Google, `"retry_after_ms":50`,
 * `Please try again in 1m2.5s` of OpenAI, `wait 3 seconds`, `"estimated_time":20` of Hugging
 * Face. */
static bool find_wait(const char *body, int64_t now, int64_t *ms)
{
    const char *const *begins = WORDS("retry", "try", "wait", "resets", "reset", "estimated");
    const char *const *fillers =
        WORDS("ms", "milli", "delay", "after", "again", "in", "for", "time", "at", "least", "about",
              "another", "your", "request", "seconds", "sec");

    for (const char *at = body; *at; at++) {
        const char *next = at > body && ascii_is_letter(at[-1]) ? NULL : after_word(at, begins);
        bool named = ascii_lower(*at) == 'w';
        int scale = 1000;

        while (next) {
            const char *p = next + strspn(next, " \"'_-:={\\");

            next = after_word(p, fillers);
            if (!next && named && read_wait(p, scale, now, ms))
                return true;
            named = true;
            if (ascii_lower(*p) == 'm')
                scale = 1;
        }
    }
    return false;
}

/* Returns how long the server asks to wait, in milliseconds, or -1 if it does not say or the time
 * has passed. */
static int64_t retry_requested(const struct http_head *head, const struct retry_moment *at)
{
    int64_t ms;

    if (read_wait(buf_c(&head->field[HTTP_RETRY_AFTER_MS]), 1, at->now, &ms) ||
        read_wait(buf_c(&head->field[HTTP_RETRY_AFTER]), 1000, at->now, &ms) ||
        find_wait(at->body, at->now, &ms))
        return ms;
    return -1;
}

int64_t retry_wait(unsigned repeated, enum err_kind kind, const struct http_head *head,
                   const struct retry_moment *at)
{
    int64_t ms;

    if (!retry_is_worthwhile(kind, head))
        return -1;
    ms = head ? retry_requested(head, at) : -1;
    if (ms >= 0)
        return ms <= at->most ? ms : -1;
    ms = repeated < RETRY_DOUBLED ? RETRY_FIRST << repeated : RETRY_MOST;
    return ms - (int64_t)(at->random % 1001) * ms / 4000;
}

/* The limits of a response body, and of the body of an error or of a response in an unknown form.
 */
#define WHOLE_MAX (RESPONSE_MAX * 2)
#define ERROR_MAX ((size_t)1 << 20)
/* A response that begins with more blank bytes than this counts as an event stream. */
#define BLANK_MAX ((size_t)64 << 10)
#define EXCERPT_MAX 80
/* How many bytes are read after the end of a response, to be able to use the connection again. */
#define AFTER_END_MAX ((size_t)16 << 10)
/* The status that stands for an error at the start of a stream of status 200. */
#define EARLY_STATUS 503

/* The form of the response body. */
enum form {
    FORM_OPEN, /* not yet known */
    FORM_EVENTS,
    FORM_JSON,
    FORM_OTHER,
    FORM_ERROR, /* the body of a status other than 2xx */
};

struct exchange {
    const struct provider *provider;
    const struct ask *ask;
    struct response *response;
    struct sse sse;
    enum form form;
    struct http_head head;
    struct buf body;  /* everything but an event stream */
    bool ended;       /* the response has ended and the rest need not be read */
    size_t after_end; /* bytes that came since */
    bool failed;      /* the provider reported an error and set *e */
    bool any_event;
    bool broke;     /* the transfer did not reach its end */
    bool silent;    /* the transfer ended by a time-out */
    bool continues; /* more of the response came after its end */
};

/* ---- receiving ---- */

static int on_event(void *arg, struct str event, struct str data, struct err *e)
{
    struct exchange *x = arg;
    struct response *a = x->response;
    bool finished = a->finished;
    size_t before = a->text.len + a->calls_bytes;
    int rc = x->provider->event(a, event, data, e);

    x->any_event = true;
    x->continues = x->continues || (finished && a->text.len + a->calls_bytes > before);
    x->failed = rc < 0 && !a->sink_failed;
    if (x->failed)
        buf_set(&x->body, data);
    if (rc == 1)
        a->finished = true;
    return rc;
}

static bool is_event_stream(const struct exchange *x)
{
    return str_eq_c(buf_str(&x->head.field[HTTP_MEDIA_TYPE]),
                    x->provider->lines ? "application/x-ndjson" : "text/event-stream");
}

/* Decides about the form by the beginning of the body: that of JSON, or of the first field of an
 * event stream. Returns FORM_OPEN if more text is needed. */
static enum form form_of(const struct exchange *x, struct str body)
{
    static const char *const fields[] = {"data:", "event:", ":", "id:", "retry:"};
    struct str text = str_trim(utf8_without_bom(body));

    if (text.n == 0)
        return body.n > BLANK_MAX ? FORM_EVENTS : FORM_OPEN;
    if (str_starts(UTF8_BOM, body))
        return FORM_OPEN;
    if (x->provider->lines && is_event_stream(x))
        return FORM_EVENTS;
    if (text.p[0] == '{' || text.p[0] == '[')
        return FORM_JSON;
    if (is_event_stream(x))
        return FORM_EVENTS;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t n = strlen(fields[i]), have = text.n < n ? text.n : n;

        if (memcmp(text.p, fields[i], have) == 0)
            return have == n ? FORM_EVENTS : FORM_OPEN;
    }
    return FORM_OTHER;
}

/* The body of an error is not looked at for its form. */
static void check_status(struct exchange *x)
{
    if (x->form == FORM_OPEN && x->head.status != 0 && !http_head_is_success(&x->head))
        x->form = FORM_ERROR;
}

static int read_body(void *arg, struct str piece, struct err *e)
{
    struct exchange *x = arg;

    if (x->ended) {
        x->after_end += piece.n;
        return x->after_end > AFTER_END_MAX ? -1 : 0;
    }
    check_status(x);
    if (x->form == FORM_OPEN || x->form == FORM_JSON) {
        buf_add_str(&x->body, piece);
        if (x->body.overflow) {
            x->failed = true;
            return err_set(e, ERR_INCOMPLETE, "answer is incomplete: it is longer than %zu MiB",
                           WHOLE_MAX >> 20);
        }
        if (x->form == FORM_OPEN)
            x->form = form_of(x, buf_str(&x->body));
        piece = x->form == FORM_EVENTS ? buf_str(&x->body) : STR_NONE;
    }
    if (x->form == FORM_EVENTS) {
        if (sse_feed(&x->sse, piece, e) != 0) {
            x->failed = !x->response->sink_failed;
            return -1;
        }
        x->ended = x->sse.done;
        /* A connection that is kept is read to the end of the body. */
        return x->ended && !x->ask->limits.pool ? -1 : 0;
    }
    /* Only the beginning of an error, or of a response in an unknown form, is kept. */
    if (x->form == FORM_ERROR || x->form == FORM_OTHER) {
        buf_add(&x->body, piece.p, piece.n < ERROR_MAX ? piece.n : ERROR_MAX);
        x->ended = x->body.len >= ERROR_MAX;
        buf_truncate(&x->body, ERROR_MAX);
    }
    return x->ended ? -1 : 0;
}

static bool nothing_came(const struct response *a)
{
    return a->text.len + a->calls_count + a->opaque.thinking.len == 0 && !a->reasoned;
}

/* Returns whether the first text, reasoning or call came. A stream of comments and empty chunks has
 * not begun. */
static bool on_begun(void *arg)
{
    const struct exchange *x = arg;

    return (x->form != FORM_OPEN && x->form != FORM_EVENTS) || x->response->finished ||
           !nothing_came(x->response);
}

static size_t count_content(void *arg)
{
    const struct exchange *x = arg;
    const struct response *a = x->response;

    return x->body.len + a->text.len + a->calls_bytes + a->reasoned + a->opaque.thinking.len +
           a->images.len + a->raw_usage.len;
}

/* After its finish reason a stream only sends the usage and the end mark. But some servers send the
 * reason in every chunk, so this is 0 if text follows it. */
static long on_ending(void *arg)
{
    const struct exchange *x = arg;

    if (x->ended)
        return HTTP_ENDED_MS;
    return x->response->finished && !x->continues ? HTTP_ENDING_MS : 0;
}

/* ---- the result ---- */

static int no_answer(struct exchange *x, struct err *e)
{
    struct str body = str_trim(buf_str(&x->body));
    struct buf shown = BUF_INIT(BUF_SMALL), page = BUF_INIT(BUF_LINE);
    bool html = provider_error_add_page(&page, body);

    provider_error_add_excerpt(&shown, html ? buf_str(&page) : body, EXCERPT_MAX);
    if (body.n == 0)
        err_set(e, ERR_BUSY, "the server's answer is empty");
    else
        err_set(e, ERR_BUSY, "the server's answer is neither an event stream nor JSON: %s%s%s",
                html ? "" : "'", buf_c(&shown), html ? "" : "'");
    buf_release(&page);
    buf_release(&shown);
    return -1;
}

/* Returns the result of a response whose transfer is complete, or need not be completed. */
static int complete_result(struct exchange *x, struct err *e)
{
    if (x->form == FORM_JSON) {
        int rc = x->provider->whole(x->response, str_trim(utf8_without_bom(buf_str(&x->body))), e);

        x->failed = rc < 0 && !x->response->sink_failed;
        return rc;
    }
    if (x->form == FORM_OTHER || (x->form == FORM_OPEN && !is_event_stream(x)))
        return no_answer(x, e);
    if (x->form == FORM_EVENTS && sse_end(&x->sse, e) != 0)
        return -1;
    if (x->response->finished)
        return 0;
    return err_set(e, ERR_INCOMPLETE, "answer is incomplete: the stream ended early");
}

/* Turns an error that came after text into ERR_INCOMPLETE, so that the caller saves the text. */
static void make_incomplete(struct err *e)
{
    char *text = e->text;

    if (e->kind == ERR_INCOMPLETE)
        return;
    e->text = NULL;
    err_set(e, ERR_INCOMPLETE, "answer is incomplete: %s", text);
    free(text);
}

/* Returns the result of the exchange, given the result `rc` of the transfer. */
static int exchange_result(struct exchange *x, int rc, struct err *e)
{
    struct response *a = x->response;

    check_status(x);
    x->broke = rc != 0 && !x->ended;
    x->silent = x->broke && e->kind == ERR_TIMEOUT;
    if (x->silent && (x->form != FORM_OPEN || x->body.len > 0) &&
        (x->ask->limits.first_byte_ms == HTTP_AS_IDLE || on_begun(x)))
        e->kind = ERR_INCOMPLETE;
    if (!x->failed && x->form != FORM_ERROR && (rc == 0 || x->ended))
        rc = complete_result(x, e);
    if (a->sink_failed) {
        err_release(e);
        e->kind = ERR_SIGNAL;
        return -1;
    }
    if (x->failed) {
        if (a->text.len > 0)
            make_incomplete(e);
        return -1;
    }
    if (rc != 0 && e->kind == ERR_SIGNAL)
        return -1;
    if (x->form == FORM_ERROR && x->head.status >= 300 && x->head.status < 400)
        return http_refuse_redirect(&x->head, e);
    if (x->form == FORM_ERROR) {
        provider_error_set_http(e, x->head.status, buf_str(&x->body));
        provider_error_explain(e, x->head.status, buf_str(&x->body), x->ask, x->provider->missing);
        return -1;
    }
    /* After the end of the response it does not matter how the connection ended. */
    if (a->finished) {
        err_release(e);
        return 0;
    }
    return rc;
}

/* ---- repeating ---- */

/* Returns the milliseconds to wait before the exchange is repeated, or -1 if it is not repeated. */
static int64_t time_to_wait(struct exchange *x, unsigned repeated, struct err *e)
{
    bool stream = x->form == FORM_OPEN || x->form == FORM_EVENTS;
    bool nothing = nothing_came(x->response);
    /* The first event of a stream with status 200 said that the server is busy. vLLM, OpenRouter
     * and Anthropic do this. It counts like the corresponding status. */
    bool early = nothing && x->failed && x->form == FORM_EVENTS && e->kind == ERR_BUSY;
    /* The stream was lost before the response began. This counts like a missing head. A complete
     * stream with events that are not understood comes from another kind of server. */
    bool lost = nothing && stream && !x->failed && !x->silent && (x->broke || !x->any_event) &&
                e->kind == ERR_INCOMPLETE;
    int64_t now = time_now(), asked;
    /* Clients that are refused at the same moment differ in the microseconds. */
    struct retry_moment at = {.now = now,
                              .body = buf_c(&x->body),
                              .random = (unsigned)(now % TIME_SECOND),
                              .most = x->provider->retry_after_max ? x->provider->retry_after_max
                                                                   : RETRY_AFTER_MAX};

    if (early)
        x->head.status = EARLY_STATUS;
    asked = retry_requested(&x->head, &at);
    if (e->kind == ERR_BUSY && asked > at.most)
        err_set(e, e->kind, "%s (the server asks to wait for %" PRId64 " s)", err_text(e),
                (asked + 999) / 1000);
    if (repeated >= x->ask->retries)
        return -1;
    if (lost || x->head.status == 0)
        return retry_wait(repeated, lost ? ERR_NETWORK : e->kind, NULL, &at);
    return retry_wait(repeated, e->kind, &x->head, &at);
}

/* Waits if the exchange is to be repeated. Returns false if it is not, or if a signal ended the
 * wait. */
static bool wait_to_repeat(struct exchange *x, unsigned repeated, struct err *e)
{
    const struct response_sink *sink = x->response->sink;
    int64_t ms = time_to_wait(x, repeated, e);

    if (ms < 0)
        return false;
    provider_error_mask(e, x->ask);
    if (sink && sink->again)
        sink->again(sink->arg, e, ms, repeated + 1);
    if (http_wait(&x->ask->limits, ms) == 0) {
        err_release(e);
        response_release(x->response); /* forget the model and usage from before the failure */
        return true;
    }
    err_set(e, ERR_SIGNAL, "interrupted");
    return false;
}

/* Builds the request again without what the server refused. Returns false if it refused something
 * that the request needs. */
static bool gave_way(const struct exchange *x, struct http_request *r, struct err *e)
{
    struct buf notice = BUF_INIT(BUF_SMALL);
    bool again = x->form == FORM_ERROR && e->kind != ERR_REFUSED &&
                 refusals_learn(x->provider, x->ask, x->head.status, e->kind == ERR_TOO_LONG,
                                buf_str(&x->body), buf_str(&r->body), &notice);

    if (again) {
        if (notice.len > 0)
            response_notice(x->response, buf_c(&notice));
        err_release(e);
        http_request_release(r);
        http_request_init(r);
        again = refusals_request(x->provider, x->ask, r, e) == 0;
    } else if (notice.len > 0) {
        err_set(e, e->kind, "%s (set by %s)", err_text(e), buf_c(&notice));
    }
    buf_release(&notice);
    return again;
}

/* Carries out one exchange. *more is set if it failed and is to be repeated; *repeated counts the
 * repetitions after a failure. */
static int try_once(const struct provider *p, const struct ask *ask, struct http_request *r,
                    struct response *a, unsigned *repeated, bool *more, struct err *e)
{
    struct exchange x = {.provider = p, .ask = ask, .response = a, .body = BUF_INIT(WHOLE_MAX)};
    struct http_sink sink = {.head = &x.head,
                             .body = read_body,
                             .arg = &x,
                             .ending = on_ending,
                             .begun = on_begun,
                             .content = count_content};
    int rc;

    http_head_init(&x.head);
    sse_init(&x.sse, on_event, &x);
    x.sse.lines = p->lines;
    a->secrets_count = 0;
    response_add_secret(a, ask->key);
    for (size_t i = 0; i < ask->headers_count; i++)
        response_add_secret(a, header_secret(&ask->headers[i]));
    a->opaque.before = r->prompt;
    if (p->exchange && ask->limits.before_send)
        ask->limits.before_send(ask->limits.send_arg);
    if (p->exchange && ask->limits.after_send)
        ask->limits.after_send(ask->limits.send_arg);
    rc = p->exchange ? p->exchange(ask, r, &sink, e) : http_exchange(r, &ask->limits, &sink, e);
    rc = exchange_result(&x, rc, e);
    *more = rc != 0 && (gave_way(&x, r, e) || wait_to_repeat(&x, (*repeated)++, e));
    if (!*more)
        response_finish_usage(a, buf_str(&x.head.field[HTTP_COST]));
    sse_release(&x.sse);
    http_head_release(&x.head);
    buf_release(&x.body);
    return rc;
}

/* Sends the request until it is answered or fails for good, and collects the response
 * (exchange_run). */
static int exchange_once(const struct provider *p, const struct ask *ask, struct response *a,
                         struct err *e)
{
    size_t refused = ask->refused ? ask->refused->count : 0;
    struct http_request r;
    unsigned repeated = 0;
    bool more;
    int rc;

    http_request_init(&r);
    rc = refusals_request(p, ask, &r, e);
    for (more = rc == 0; more;)
        rc = try_once(p, ask, &r, a, &repeated, &more, e);
    http_request_release(&r);
    if (!a->sink_failed && response_end_text(a, rc == 0 ? e : NULL) != 0) {
        if (rc == 0 && a->sink_failed)
            e->kind = ERR_SIGNAL;
        rc = -1;
    }
    /* An error after the reason of a complete response makes it incomplete. */
    if (rc != 0 && !a->finish_reason)
        response_set_finish(a, e->kind == ERR_SIGNAL ? STR("interrupted") : STR("error"));
    else if (rc != 0 && e->kind != ERR_SIGNAL &&
             message_ending(str_of(a->finish_reason), NULL) == ENDING_COMPLETE)
        response_set_finish(a, STR("error"));
    else if (!a->finish_reason)
        response_set_finish(a, a->refused ? STR("content_filter") : STR("stop"));
    response_finish_calls(a);
    if (rc == 0)
        err_release(e);
    if (ask->refused)
        refusals_end_exchange(ask->refused, refused,
                              rc == 0 || (e->kind != ERR_REQUEST && e->kind != ERR_TOO_LONG));
    provider_error_mask(e, ask);
    return rc;
}

int exchange_run(const struct provider *p, const struct ask *ask, struct response *a,
                 unsigned max_rounds, unsigned *rounds, struct err *e)
{
    int rc = exchange_once(p, ask, a, e);

    /* The next part of a paused response is appended to it. */
    while (rc == 0 && a->calls_count == 0 && *rounds < max_rounds && opaque_is_whole(&a->opaque) &&
           message_ending(str_of(a->finish_reason), NULL) == ENDING_PAUSED) {
        struct ask next = *ask;
        struct response part;

        ++*rounds;
        response_init(&part, a->sink);
        next.paused = buf_str(&a->opaque.turn);
        next.container = buf_str(&a->opaque.container);
        rc = exchange_once(p, &next, &part, e);
        if (response_join(a, &part, rc == 0 ? e : NULL) != 0)
            rc = -1;
        response_release(&part);
        if (rc != 0 && a->text.len > 0 && e->kind != ERR_SIGNAL)
            make_incomplete(e);
    }
    return rc;
}
