/*
 * http_timer - how long a server may be silent: which limit holds at the moment, and what is left
 * of it.
 *
 * Policy alone: it is told what happened and when, in milliseconds of clock_ticks, and neither
 * waits nor looks at a clock. Why not libcurl's timers: LOW_SPEED_TIME averages over seconds, and
 * there is none for the first byte. What is counted is bytes, not sense: a server that sends
 * comments or blanks says that it is alive, and there is no limit on the answer as a whole.
 */
#ifndef CHATHIST_LLM_HTTP_TIMER_H
#define CHATHIST_LLM_HTTP_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* What an exchange is held to. Milliseconds; 0: none. */
struct http_limits {
    long connect_ms; /* until the connection stands, TLS included; libcurl keeps it, because it
                      * shares the time among the addresses of a name */
    long idle_ms;    /* between two pieces of the request, and of the answer's body */
    /* From the end of the request to the first piece of the answer's body. HTTP_AS_IDLE: idle_ms
     * for the whole of the head, and again from there on; HTTP_NO_LIMIT. */
    long first_byte_ms;
    int cancel_fd;       /* readable: give up at once (signals write to it); -1: none */
    const char *ca_file; /* certificates that are trusted, PEM; NULL: the system's */
    const char *ca_dir;  /* the same as a hashed directory */
    /* Called at least every HTTP_TICK_MS or so while something is waited for; NULL: never. */
    void (*tick)(void *arg);
    void *tick_arg;
};
#define HTTP_CONNECT_MS 10000
#define HTTP_IDLE_MS 300000
#define HTTP_TICK_MS 100
/* The most that idle_ms is worth when the answer is known to be whole. */
#define HTTP_ENDING_MS 2000
#define HTTP_AS_IDLE 0
#define HTTP_NO_LIMIT (-1)

enum http_phase { HTTP_CONNECTING, HTTP_SENDING, HTTP_WAITING, HTTP_COMING };

struct http_timer {
    const struct http_limits *limits; /* borrowed */
    enum http_phase phase;
    int64_t since;    /* when the limit that holds began */
    uint64_t to_send; /* bytes of the request's body */
    uint64_t sent;
    bool ending; /* the answer is whole but for an afterword */
};

void http_timer_start(struct http_timer *t, const struct http_limits *limits, uint64_t to_send,
                      int64_t now);
/* The connection stands. */
void http_timer_connected(struct http_timer *t, int64_t now);
/* So much of the request's body has been sent since its beginning. */
void http_timer_sent(struct http_timer *t, uint64_t bytes, int64_t now);
/* The final head has come whole. */
void http_timer_head(struct http_timer *t, int64_t now);
/* A piece of the body has come. */
void http_timer_body(struct http_timer *t, int64_t now);
/* Is the answer whole by now? Then HTTP_ENDING_MS is the limit, unless idle_ms is shorter. */
void http_timer_ending(struct http_timer *t, bool ending);

/* Milliseconds until the limit that holds runs out, 0 or less when it has; `none` when there is no
 * limit. */
int64_t http_timer_left(const struct http_timer *t, int64_t now, int64_t none);
/* `nothing came within 1 s (idle time-out)`: the limit that holds, once it ran out. While
 * connecting: `no connection within …`. */
void http_timer_add_reason(const struct http_timer *t, struct buf *out);

#endif
