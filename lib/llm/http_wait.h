/*
 * http_wait - time that goes by while a server is waited for: who wants to know is told.
 */
#ifndef CHATHIST_LLM_HTTP_WAIT_H
#define CHATHIST_LLM_HTTP_WAIT_H

#include <stdint.h>

#include "chathist/llm/http_timer.h"

/* Calls limits->tick, if there is one; gives how much of `ms` may be waited before the next
 * time. */
int64_t http_tick(const struct http_limits *limits, int64_t ms);
/* Waits for `ms` milliseconds, ticking: 0 when the time is up, 1 when cancelled, -1 with errno
 * set. */
int http_wait(const struct http_limits *limits, int64_t ms);

#endif
