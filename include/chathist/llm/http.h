/*
 * http - one POST or GET over libcurl, its answer handed on as it comes.
 *
 * Time-outs by llm/http_timer, no deadline on the whole. Proxies by libcurl's conventions.
 * Redirects are not followed: a key never goes to another host.
 *
 * Messages name the server as host:port alone, with the address of the proxy that stands before it;
 * no part of a URL, header or body is in them.
 *
 * A write to a server that has gone can raise SIGPIPE under TLS: who asks over the network ignores
 * that signal meanwhile (turn/interrupt).
 */
#ifndef CHATHIST_LLM_HTTP_H
#define CHATHIST_LLM_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/llm/http_head.h"
#include "chathist/llm/http_timer.h"

struct http_request {
    struct buf url;
    struct buf headers; /* lines `Name: value\n`; may hold a key, never shown */
    struct buf body;    /* empty: GET */
};
void http_request_init(struct http_request *r);
void http_request_release(struct http_request *r);
/* Adds a header line. -1 (ERR_USAGE, without the value) when the value holds a line break or
 * another control character. */
int http_add_header(struct http_request *r, const char *name, struct str value, struct err *e);

/* What the answer is handed to. -1 from either ends the exchange: http_exchange returns -1 and *e
 * is what they made of it, perhaps nothing. */
struct http_sink {
    int (*head)(void *arg, const struct http_head *head, struct err *e); /* once, before the body */
    int (*body)(void *arg, struct str piece, struct err *e);
    void *arg;
    /* After each piece: does no more than an afterword follow, for which nobody waits long
     * (http_timer_ending)? NULL: nobody knows. */
    bool (*ending)(void *arg);
};

/* 0 when the answer came whole (whatever its status). -1: ERR_USAGE (not a URL of http or https),
 * ERR_UNTRUSTED (the certificate), ERR_NETWORK (could not connect, TLS, no answer, an answer other than 2xx broke off), ERR_TIMEOUT
 * (connected, and idle for too long before an answer or in one of 2xx), ERR_INCOMPLETE when it
 * broke off otherwise after the head of a 2xx answer, ERR_SIGNAL when cancelled. */
int http_exchange(const struct http_request *r, const struct http_limits *limits,
                  const struct http_sink *sink, struct err *e);

/* Adds `host:port` of an http(s) URL. false when it is none. */
bool http_origin(const char *url, struct buf *out);
/* Is the host of this http(s) URL a loopback name or address? */
bool http_is_loopback(const char *url);

#endif
