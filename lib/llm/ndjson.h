/*
 * ndjson - a push parser for a stream of lines, each a JSON value (github.com/ndjson/ndjson-spec), as
 * Ollama sends it.
 *
 * A line ends in LF or CRLF. Blank lines are ignored. Ill-formed UTF-8 becomes U+FFFD. Whether a line
 * is JSON is left to the reader.
 */
#ifndef CHATHIST_LLM_NDJSON_H
#define CHATHIST_LLM_NDJSON_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/sse.h"

struct ndjson {
    sse_fn *fn; /* receives each line as an event without a type; see llm/sse */
    void *arg;
    struct buf line; /* the beginning of an incomplete line */
    bool done;       /* fn returned 1 */
};

void ndjson_init(struct ndjson *n, sse_fn *fn, void *arg);
void ndjson_release(struct ndjson *n);
/* Parses the next piece of the stream. Returns 0, or -1 with *e set if fn failed, or if a line is
 * longer than SSE_EVENT_MAX (ERR_INCOMPLETE). */
int ndjson_feed(struct ndjson *n, struct str piece, struct err *e);
/* Ends the stream. A last line needs no line end, but one that is not complete JSON was cut and is
 * dropped. Returns 0, or -1 with *e set if fn failed. */
int ndjson_end(struct ndjson *n, struct err *e);

#endif
