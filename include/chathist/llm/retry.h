/*
 * retry - is an exchange that failed worth another one, and when?
 *
 * Policy alone: it does not wait, ask for the time or draw a number. The rules are those of the
 * servers' own clients (openai-python, _base_client.py): HTTP 408, 409, 429 and 5xx, and a
 * connection that could not be made or was lost before an answer; x-should-retry overrules the
 * status; retry-after-ms, else Retry-After (RFC 9110 section 10.2.3), say when. An idle time-out is
 * not among them: who has waited for as long as he wanted to is told so.
 */
#ifndef CHATHIST_LLM_RETRY_H
#define CHATHIST_LLM_RETRY_H

#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/llm/http.h"

/* How often an exchange is repeated unless somebody says otherwise. */
#define RETRY_TIMES 2
/* Milliseconds. A server that wants a longer wait than the first, unless its provider says
 * otherwise, is not tried again. One that says nothing is waited for as long as the second; that
 * doubles up to the third, less up to a quarter of it. */
#define RETRY_AFTER_MAX 120000
#define RETRY_FIRST 500
#define RETRY_MOST 8000

/* The moment of a failure. */
struct retry_moment {
    int64_t now;     /* microseconds since 1970, for a date in Retry-After */
    unsigned random; /* any number: the jitter */
    int64_t most;    /* the longest wish of this server's that is honoured, in milliseconds */
};

/* Returns the milliseconds to wait before the next try, or -1: give up. `repeated` is how often it
 * was tried again so far, `kind` what it failed with, `head` its answer's, NULL when none came. */
int64_t retry_wait(unsigned repeated, enum err_kind kind, const struct http_head *head,
                   const struct retry_moment *at);
/* How long the server wants to be left alone, in milliseconds; -1: it does not say, or the time is
 * over. */
int64_t retry_wish(const struct http_head *head, int64_t now);

#endif
