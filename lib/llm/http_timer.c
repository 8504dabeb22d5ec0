#include "chathist/llm/http_timer.h"

static void enter(struct http_timer *t, enum http_phase phase, int64_t now)
{
    t->phase = phase;
    t->since = now;
}

void http_timer_start(struct http_timer *t, const struct http_limits *limits, uint64_t to_send,
                      int64_t now)
{
    *t = (struct http_timer){.limits = limits, .to_send = to_send};
    enter(t, HTTP_CONNECTING, now);
}

void http_timer_connected(struct http_timer *t, int64_t now)
{
    if (t->phase == HTTP_CONNECTING)
        enter(t, t->to_send > 0 ? HTTP_SENDING : HTTP_WAITING, now);
}

void http_timer_sent(struct http_timer *t, uint64_t bytes, int64_t now)
{
    if (t->phase != HTTP_SENDING || bytes == t->sent)
        return;
    t->sent = bytes;
    enter(t, bytes < t->to_send ? HTTP_SENDING : HTTP_WAITING, now);
}

void http_timer_head(struct http_timer *t, int64_t now)
{
    if (t->phase == HTTP_WAITING && t->limits->first_byte_ms == HTTP_AS_IDLE)
        t->since = now;
}

void http_timer_body(struct http_timer *t, int64_t now)
{
    enter(t, HTTP_COMING, now);
}

void http_timer_ending(struct http_timer *t, bool ending)
{
    t->ending = ending;
}

static bool waits_for_first(const struct http_timer *t)
{
    return t->phase == HTTP_WAITING && t->limits->first_byte_ms != HTTP_AS_IDLE;
}

/* The limit that holds, in milliseconds; 0 or less: none. */
static long limit(const struct http_timer *t)
{
    long idle_ms = t->limits->idle_ms;

    if (t->ending && (idle_ms <= 0 || idle_ms > HTTP_ENDING_MS))
        idle_ms = HTTP_ENDING_MS;
    if (t->phase == HTTP_CONNECTING)
        return t->limits->connect_ms;
    return waits_for_first(t) ? t->limits->first_byte_ms : idle_ms;
}

int64_t http_timer_left(const struct http_timer *t, int64_t now, int64_t none)
{
    return limit(t) > 0 ? t->since + limit(t) - now : none;
}

void http_timer_add_reason(const struct http_timer *t, struct buf *out)
{
    long ms = limit(t);
    const char *what = "nothing came", *which = "idle";

    if (t->phase == HTTP_CONNECTING) {
        what = "no connection";
        which = "connect";
    } else if (waits_for_first(t)) {
        which = "first-byte";
    }
    if (ms % 1000 == 0)
        buf_addf(out, "%s within %ld s (%s time-out)", what, ms / 1000, which);
    else
        buf_addf(out, "%s within %ld ms (%s time-out)", what, ms, which);
}
