/*
 * http - sends one HTTP request with libcurl and passes the response on as it arrives.
 *
 * An exchange has time-outs for connecting, for silence and, if the caller wants it, for its whole
 * duration (struct http_limits). libcurl's own conventions decide about proxies. Redirects are not
 * followed, because a key must not reach another host.
 *
 * Messages name the server only as host:port, followed by the address of the proxy if one was used.
 * They never contain another part of a URL, a header or a body.
 *
 * Writing to a server that has closed the connection can raise SIGPIPE under TLS. The caller
 * ignores that signal during an exchange (cli/signals).
 */
#ifndef CHATHIST_LLM_HTTP_H
#define CHATHIST_LLM_HTTP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* ---- a request, the time limits of an exchange, and waiting within them ----
 *
 * These functions are in llm/http_request.c, which does not use libcurl, so that programs that only
 * build requests (hist-export, for its provider formats) need not link it. */

struct http_request {
    struct buf url;
    struct buf headers; /* lines `Name: value\n`; may hold a key, so they are never shown */
    struct buf body;    /* empty: the request is a GET, otherwise a POST */
    const char *method; /* a method without a body, such as DELETE; borrowed; NULL: GET or POST */
    /* The request must not be carried out twice. libcurl sends others again, on a new connection,
     * if one that was used before is closed without a response. */
    bool once;
    uint64_t prompt; /* the checksum of what the model sees, to which blocks are bound; 0: none */
};
void http_request_init(struct http_request *r);
void http_request_release(struct http_request *r);
/* Returns whether this is a token (RFC 9110 section 5.6.2), as the name of a header is. */
bool http_name_is_token(struct str name);
/* Checks a header that the user wants to send: the name is a token (RFC 9110 section 5.6.2) and
 * none of those that describe the connection or the length of the body, and the value has no
 * control character. Returns 0, or -1 (ERR_USAGE); the message does not repeat the value. */
int http_check_header(const char *name, struct str value, struct err *e);
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
    /* From the end of the request to the first piece of the response body, or until http_sink.begun
     * says that the response has begun. HTTP_AS_IDLE: idle_ms applies to the head, and then again
     * to the first piece of the body. Or HTTP_NO_LIMIT. */
    long first_byte_ms;
    long whole_ms;       /* the longest time of the whole exchange */
    int cancel_fd;       /* the exchange stops at once when this is readable; -1: none */
    const char *ca_file; /* the trusted certificates, in PEM form; NULL: the system's */
    const char *ca_dir;  /* the same as a hashed directory */
    /* Called about every HTTP_TICK_MS while the program waits for the server; may be NULL. */
    void (*tick)(void *arg);
    void *tick_arg;
    /* Called once in each exchange, when the connection is being made or cannot be made, and before
     * anything of the request is sent, which waits for the function; may be NULL. */
    void (*before_send)(void *arg);
    /* Called after that, when the request is on its way and nothing of its response was passed on:
     * for what the server need not wait for; may be NULL. */
    void (*after_send)(void *arg);
    void *send_arg;
    struct http_pool *pool; /* keeps the connection for later exchanges; NULL: it is closed */
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

/* ---- the exchange ---- */

/* The status and the header fields that matter here. An absent field is empty. */
enum http_field {
    HTTP_MEDIA_TYPE,  /* the media type in lower case, without parameters */
    HTTP_LOCATION,    /* the target of a redirect */
    HTTP_RETRY_AFTER, /* seconds or an HTTP date, as sent */
    HTTP_RETRY_AFTER_MS,
    HTTP_SHOULD_RETRY, /* OpenAI's own field, like retry-after-ms */
    HTTP_SESSION_ID,   /* Mcp-Session-Id, see mcp/client */
    HTTP_CHALLENGE,    /* WWW-Authenticate: what a server wants that refuses a request */
    HTTP_COST,         /* LiteLLM's own field, in US dollars */
    HTTP_FIELDS
};

struct http_head {
    int status; /* 0: no head has arrived */
    struct buf field[HTTP_FIELDS];
};
void http_head_init(struct http_head *h);
void http_head_release(struct http_head *h);
/* Returns true for a status of 200 to 299. */
bool http_head_is_success(const struct http_head *h);

/* Receives the response. The head is filled in before the first call of `body`. If body returns -1,
 * the exchange ends and http_exchange returns -1 with *e as that function left it, which may be
 * unset. */
struct http_sink {
    struct http_head *head; /* the caller initialises and releases it */
    int (*body)(void *arg, struct str piece, struct err *e);
    void *arg;
    /* Called after each piece of the body; may be NULL. Returns how many milliseconds to wait for
     * the rest at most, because the response is complete except for trailing information
     * (HTTP_ENDING_MS), or altogether, so that only the end of the body is missing, after which the
     * connection can serve the next request (HTTP_ENDED_MS). Returns 0 if the response goes on. */
    long (*ending)(void *arg);
    /* Called after each piece until it returns true, which ends first_byte_ms; NULL: the first
     * piece does. */
    bool (*begun)(void *arg);
    /* Returns how many bytes of content have come. If that stays the same for HTTP_EMPTY_FACTOR
     * times idle_ms, although other bytes come, the exchange ends; NULL: every byte is content. */
    size_t (*content)(void *arg);
};
/* Servers send pings for as long as a model thinks, so that this is far more than 1. */
#define HTTP_EMPTY_FACTOR 12
#define HTTP_ENDING_MS 2000
#define HTTP_ENDED_MS 100

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

/*
 * ---- exchanges side by side ----
 *
 * Exchanges of one pool run side by side, in the thread that steps the pool, and the pool keeps
 * their connections for later ones.
 *
 *     http_pool_open -> (http_begin -> (http_pool_fds, poll, http_pool_step) ... http_state
 *                        -> http_end) ... -> http_pool_close
 */
struct http_pool;
struct http_transfer;

/* libcurl is started by the first exchange. Never returns NULL. */
struct http_pool *http_pool_open(void);
/* Ends the exchanges of the pool and closes its connections. NULL is ignored. */
void http_pool_close(struct http_pool *p);
/* Begins an exchange. The arguments are those of http_exchange and stay valid until http_end, also
 * what they point to; the cancel_fd and the tick of the limits have no meaning. Never returns NULL:
 * http_state returns -1 for an exchange that could not begin. */
struct http_transfer *http_begin(struct http_pool *p, const struct http_request *r,
                                 const struct http_limits *limits, const struct http_sink *sink,
                                 struct err *e);
/* Sends and receives what can be without waiting, and calls the sinks. They must not begin or end
 * an exchange. */
void http_pool_step(struct http_pool *p);
/* Fills in up to `most` descriptors that the pool waits for. Returns how many; if 0, the next step
 * should follow soon. Some things happen without a descriptor, so step from time to time as well.
 */
size_t http_pool_fds(struct http_pool *p, struct pollfd *fds, size_t most);
/* Returns 1 while an exchange is under way, and then what http_exchange returns. */
int http_state(const struct http_transfer *x);
/* Frees an exchange. If it is under way it is broken off. */
void http_end(struct http_transfer *x);

/* Returns the name and version of the library that makes the requests, for bug reports. */
const char *http_library(void);
/* Adds `host:port` of an http or https URL. Returns false if the URL is not one. */
bool http_origin(const char *url, struct buf *out);
/* Sets the error of a redirect that is not followed, with the host and port that it leads to.
 * Returns -1. */
int http_refuse_redirect(const struct http_head *head, struct err *e);
/* Adds the URL that `reference` means in a response from the http or https URL `base` (RFC 3986,
 * section 5). Returns false if its scheme, host or port is another, so that a request for one server
 * reaches no other. */
bool http_resolve(const char *base, const char *reference, struct buf *out);
/* Returns true if the host of this http or https URL is a loopback name or address. */
bool http_is_loopback(const char *url);

#endif
