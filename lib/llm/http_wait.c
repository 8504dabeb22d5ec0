#include "llm/http_wait.h"

#include "chathist/base/clock.h"
#include "chathist/base/io.h"

int64_t http_tick(const struct http_limits *limits, int64_t ms)
{
    if (!limits->tick)
        return ms;
    limits->tick(limits->tick_arg);
    return ms < HTTP_TICK_MS ? ms : HTTP_TICK_MS;
}

int http_wait(const struct http_limits *limits, int64_t ms)
{
    int64_t end = clock_ticks() + ms;
    int cancelled;

    do {
        cancelled = io_wait(limits->cancel_fd, http_tick(limits, ms));
        ms = end - clock_ticks();
    } while (cancelled == 0 && ms > 0);
    return cancelled;
}
