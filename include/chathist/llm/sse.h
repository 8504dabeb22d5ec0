/*
 * sse - a push parser for server-sent events (WHATWG HTML, "event stream interpretation").
 *
 * The stream is UTF-8; a byte order mark at its start is dropped. A line ends in LF, CR or CRLF. A
 * code point or a CRLF may be split between two pieces. Ill-formed UTF-8 in data becomes U+FFFD.
 * The parser does not reconnect; for a caller that does, it keeps the fields `id` and `retry`.
 *
 * A stream may also be lines of JSON, as Ollama sends: each line that is not blank is the data of
 * an event. The last one may lack its line end, but it must be a complete value.
 */
#ifndef CHATHIST_LLM_SSE_H
#define CHATHIST_LLM_SSE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The longest line, and the longest data of one event, in bytes. */
#define SSE_EVENT_MAX ((size_t)64 << 20)

/* Receives one event: its type ("message" by default) and its data, both borrowed for the call.
 * Returns 0 to continue, 1 if this was the last event and the rest is to be ignored, or -1 with *e
 * set. */
typedef int sse_fn(void *arg, struct str event, struct str data, struct err *e);

struct sse {
    sse_fn *fn;
    void *arg;
    bool lines;      /* the stream is lines of JSON; the caller may set this before it begins */
    struct buf line; /* the beginning of an incomplete line */
    struct buf event, data;
    struct buf last_id; /* the last event ID: of the last event that is complete; empty: none */
    int64_t retry_ms;   /* how long to wait before reconnecting; -1: not said */
    struct buf id;      /* the id of the incomplete event */
    bool started;       /* the first line has been read; a byte order mark can only be before it */
    bool after_cr;      /* the last byte was a CR: an LF that follows belongs to it */
    bool done;          /* fn returned 1 */
};

void sse_init(struct sse *s, sse_fn *fn, void *arg);
void sse_release(struct sse *s);
/* Parses the next piece of the stream. Returns 0, or -1 with *e set if fn failed, or if a line or
 * an event is longer than SSE_EVENT_MAX (ERR_INCOMPLETE). */
int sse_feed(struct sse *s, struct str piece, struct err *e);
/* Ends the stream. An event without a blank line after it is dropped, except `[DONE]`, which some
 * builds of llama-server send so. Returns 0, or -1 with *e set if fn failed. */
int sse_end(struct sse *s, struct err *e);

#endif
