/*
 * http - sends one HTTP request with libcurl and passes the response on as it arrives.
 *
 * An exchange has time-outs for connecting and for silence (struct http_limits), but no limit on
 * its whole duration. libcurl's own conventions decide about proxies. Redirects are not followed,
 * because a key must not reach another host.
 *
 * Messages name the server only as host:port, followed by the address of the proxy if one was used.
 * They never contain another part of a URL, a header or a body.
 *
 * Writing to a server that has closed the connection can raise SIGPIPE under TLS. The caller
 * ignores that signal during an exchange (cli/signals).
 */
#ifndef CHATHIST_LLM_HTTP_H
#define CHATHIST_LLM_HTTP_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/http_request.h"

/* The status and the header fields that matter here. An absent field is "". The strings are
 * borrowed: they are valid during the call only. */
struct http_head {
    int status;
    const char *media_type;     /* in lower case, without parameters */
    const char *location;       /* the target of a redirect */
    const char *retry_after;    /* as sent: seconds or an HTTP date */
    const char *retry_after_ms; /* OpenAI's own field, like x-should-retry */
    const char *should_retry;
};

/* Receives the response. If head or body returns -1, the exchange ends and http_exchange returns
 * -1 with *e as that function left it, which may be unset. */
struct http_sink {
    int (*head)(void *arg, const struct http_head *head, struct err *e); /* once, before the body */
    int (*body)(void *arg, struct str piece, struct err *e);
    void *arg;
    /* Called after each piece of the body; may be NULL. Returns true if the response is complete
     * except for trailing information, for which http_exchange waits HTTP_ENDING_MS at most. */
    bool (*ending)(void *arg);
};
#define HTTP_ENDING_MS 2000

/* Returns 0 if the whole response arrived, whatever its status. Returns -1 with *e set:
 *  - ERR_USAGE: the URL is not an http or https URL;
 *  - ERR_UNTRUSTED: the certificate was refused;
 *  - ERR_NETWORK: no connection, a TLS error, no response, or a response with a status other than
 *    2xx that broke off;
 *  - ERR_TIMEOUT: connected, but the server was silent for too long before a response or during a
 *    2xx response;
 *  - ERR_INCOMPLETE: a 2xx response broke off after its head for another reason;
 *  - ERR_SIGNAL: limits->cancel_fd became readable. */
int http_exchange(const struct http_request *r, const struct http_limits *limits,
                  const struct http_sink *sink, struct err *e);

/* Returns the name and version of the library that makes the requests, for bug reports. */
const char *http_library(void);
/* Adds `host:port` of an http or https URL. Returns false if the URL is not one. */
bool http_origin(const char *url, struct buf *out);
/* Returns true if the host of this http or https URL is a loopback name or address. */
bool http_is_loopback(const char *url);

#endif
