/*
 * sse - server-sent events, pushed in as bytes come (WHATWG HTML, "event stream interpretation").
 *
 * UTF-8 always; one BOM at the start is dropped; lines end at LF, CR or CRLF; a code point or a
 * CRLF may be split between pieces. Data is handed on as the bytes of complete lines, ill-formed
 * UTF-8 as U+FFFD. The fields `id` and `retry` serve a reconnection, which there is none of here.
 */
#ifndef CHATHIST_LLM_SSE_H
#define CHATHIST_LLM_SSE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* The most that one line, and one event's data, may hold. */
#define SSE_EVENT_MAX ((size_t)64 << 20)

/* One event: its type ("message" when none was given) and its data, borrowed for the call. 0: go
 * on; 1: this was the last one, ignore what follows; -1 with *e. */
typedef int sse_fn(void *arg, struct str event, struct str data, struct err *e);

struct sse {
    sse_fn *fn;
    void *arg;
    struct buf line; /* the beginning of a line whose end has not come */
    struct buf event, data;
    bool started;  /* the place for a BOM is past */
    bool after_cr; /* an LF that comes now belongs to that CR */
    bool done;     /* fn said so */
};

void sse_init(struct sse *s, sse_fn *fn, void *arg);
void sse_release(struct sse *s);
/* 0, or -1: fn failed, or a line or an event is over SSE_EVENT_MAX (ERR_INCOMPLETE). */
int sse_feed(struct sse *s, struct str piece, struct err *e);
/* The end of the stream: an event that was not ended by a blank line is dropped, except `[DONE]`
 * (some llama-server builds end so), with or without its line end. */
int sse_end(struct sse *s, struct err *e);

#endif
