/*
 * exchange - one exchange with a model: request -> http -> sse -> deltas of a response.
 *
 * An exchange that fails before the response began is repeated (see retry_wait). A response that
 * the server paused (`pause_turn`: Anthropic's servers end a long response of their own tools so)
 * is continued by sending its blocks back.
 */
#ifndef CHATHIST_LLM_EXCHANGE_H
#define CHATHIST_LLM_EXCHANGE_H

#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/response.h"

/*
 * Sends the request and collects the response in `a`. Text goes to the response's sink as it
 * arrives. The tool calls are complete afterwards (response_finish_calls).
 *
 * Returns 0 if the response is complete. Its finish_reason is set; the caller decides what `length`
 * and `content_filter` mean.
 *
 * Returns -1 with *e set if it is not. `a` holds what arrived, with the finish_reason that the
 * server sent, or `interrupted` (a signal, or the sink failed), or `error`. The kinds of error:
 *  - an HTTP status other than 2xx: by status and body (provider_error_set_http); ERR_REQUEST for a
 *    redirect;
 *  - an error object in the stream, or in a JSON body with status 200: by its content, but
 *    ERR_INCOMPLETE if text came before it;
 *  - neither a finish_reason nor an end mark: ERR_INCOMPLETE;
 *  - a response that is neither an event stream nor JSON: ERR_BUSY, with its beginning in the
 *    message;
 *  - a transport error: as http_exchange; a sink that failed: ERR_SIGNAL without a message.
 *
 * An exchange that failed before any part of the response came is repeated up to ask->retries
 * times. This includes a stream of status 200 whose first event says that the server is busy. A
 * signal ends the wait between two attempts (ERR_SIGNAL). If the server refuses a part that the
 * request can do without, the request is repeated at once without it, and this is not counted
 * (llm/refusals). ask->refused keeps the refusal for the next requests.
 *
 * The first bytes of the response decide about its form, whatever its media type is: `{` or `[`
 * begins JSON, a field of an event stream begins an event stream. If the server repeats the key in
 * a message, the key is masked.
 *
 * A response that the server paused is continued, and its parts become one response. *rounds counts
 * the continuations, up to max_rounds. A response that is still paused then, or whose blocks could
 * not be kept, ends with `pause_turn`. If a continuation fails after text came, the error is
 * ERR_INCOMPLETE, except for signals.
 *
 * *e must be empty. On success it is empty, too.
 */
int exchange_run(const struct provider *p, const struct ask *ask, struct response *a,
                 unsigned max_rounds, unsigned *rounds, struct err *e);

/*
 * Whether and when to repeat a failed exchange. These functions only decide: they do not wait, read
 * a clock or draw a number. The rules are those of the vendors' own clients (openai-python,
 * _base_client.py): HTTP 408, 409, 429 and 5xx, and a connection that could not be made or was lost
 * before a response. x-should-retry overrules the status. retry-after-ms, else Retry-After (RFC
 * 9110 section 10.2.3), else the body of the error says when, as a number, a duration or a date. An
 * idle time-out is not repeated, because the user chose how long to wait.
 */

/* How often an exchange is repeated by default. */
#define RETRY_TIMES 2
/* In milliseconds. If a server asks for more than RETRY_AFTER_MAX (or the provider's own maximum),
 * the exchange is not repeated. If it does not say, the wait is RETRY_FIRST, doubled each time up
 * to RETRY_MOST, and shortened by up to a quarter at random. */
#define RETRY_AFTER_MAX 120000
#define RETRY_FIRST 500
#define RETRY_MOST 8000

/* The moment of a failure. */
struct retry_moment {
    int64_t now; /* microseconds since 1970, to compare with dates */
    const char
        *body; /* the body of the error, in which the server can also ask for a wait; never NULL */
    unsigned random; /* any number */
    int64_t most;    /* the longest wait, in milliseconds, that this server may ask for */
};

/* Returns the milliseconds to wait before the next attempt, or -1 if there should be no other.
 * `repeated` counts the repetitions so far, `kind` is the kind of the error, and `head` is the head
 * of the response, or NULL if none came. */
int64_t retry_wait(unsigned repeated, enum err_kind kind, const struct http_head *head,
                   const struct retry_moment *at);

#endif
