/*
 * http_request - an HTTP request as data, the time limits of an exchange, and waiting within them.
 *
 * This module does not use libcurl, so that programs which only build requests (hist-export, for
 * its provider formats) need not link it. llm/http sends the request.
 */
#ifndef CHATHIST_LLM_HTTP_REQUEST_H
#define CHATHIST_LLM_HTTP_REQUEST_H

#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct http_request {
    struct buf url;
    struct buf headers; /* lines `Name: value\n`; may hold a key, so they are never shown */
    struct buf body;    /* empty: the request is a GET, otherwise a POST */
};
void http_request_init(struct http_request *r);
void http_request_release(struct http_request *r);
/* Adds a header line. Returns 0, or -1 (ERR_USAGE) if the value holds a line break or another
 * control character. The message does not repeat the value, which may be a key. */
int http_add_header(struct http_request *r, const char *name, struct str value, struct err *e);

/* The limits of an exchange. Times are in milliseconds; 0 means no limit. */
struct http_limits {
    /* Until the connection is made, including TLS. libcurl keeps this limit itself, because it
     * divides the time among the addresses of a name. */
    long connect_ms;
    /* Between two pieces of the request, and between two pieces of the response body. */
    long idle_ms;
    /* From the end of the request to the first piece of the response body. HTTP_AS_IDLE: idle_ms
     * applies to the head, and then again to the first piece of the body. Or HTTP_NO_LIMIT. */
    long first_byte_ms;
    int cancel_fd;       /* the exchange stops at once when this is readable; -1: none */
    const char *ca_file; /* the trusted certificates, in PEM form; NULL: the system's */
    const char *ca_dir;  /* the same as a hashed directory */
    /* Called about every HTTP_TICK_MS while the program waits for the server; may be NULL. */
    void (*tick)(void *arg);
    void *tick_arg;
};
#define HTTP_CONNECT_MS 10000
#define HTTP_IDLE_MS 300000
#define HTTP_TICK_MS 100
#define HTTP_AS_IDLE 0
#define HTTP_NO_LIMIT (-1)

/* Calls limits->tick, if it is set. Returns how much of `ms` to wait before the next tick. */
int64_t http_tick(const struct http_limits *limits, int64_t ms);
/* Waits for `ms` milliseconds and ticks meanwhile. Returns 0 when the time is up, 1 if
 * limits->cancel_fd became readable, or -1 with errno set. */
int http_wait(const struct http_limits *limits, int64_t ms);

#endif
