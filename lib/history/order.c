#include "chathist/history/order.h"

#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "history/session_table.h"

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

int time_blocks_load(struct time_blocks *b, const struct history *h, const struct scan *s,
                     struct err *e)
{
    struct session_table t;
    int result;

    session_table_init(&t, h->now);
    result = session_table_read_all(&t, s, h->cancel, e);
    if (result == 0) {
        *b = t.blocks;
        t.blocks = (struct time_blocks){0};
        if (b->count > 0)
            b->at[b->count - 1].to = s->size;
    }
    session_table_release(&t);
    return result;
}

void time_blocks_release(struct time_blocks *b)
{
    free(b->at);
    *b = (struct time_blocks){0};
}
