#include "chathist/history/order.h"

#include <stdlib.h>

#include "chathist/base/time.h"

struct line_clock line_clock_at(int64_t now, int64_t latest)
{
    return (struct line_clock){
        .now = now, .latest = latest, .ahead = INT64_MAX, .borrowed = INT64_MAX};
}

int64_t line_clock_time(struct line_clock *c, struct str timestamp)
{
    int64_t time;
    bool readable = time_parse_iso(timestamp, &time);

    if (readable && time <= c->now) {
        if (time > c->latest)
            c->latest = time;
        return time;
    }
    if (readable && time < c->ahead)
        c->ahead = time;
    if (c->latest < c->borrowed)
        c->borrowed = c->latest;
    return c->latest;
}

int line_compare(int64_t time, off_t at, int64_t other_time, off_t other_at)
{
    if (time != other_time)
        return time > other_time ? -1 : 1;
    return (at < other_at) - (at > other_at);
}

void time_blocks_release(struct time_blocks *b)
{
    free(b->at);
    *b = (struct time_blocks){0};
}
