#include "chathist/history/time_blocks.h"

#include <sys/stat.h>

#include "chathist/history/message.h"
#include "history/session_index.h"

/* Loads the blocks with the index, if it is of the same file. Returns false if it is not. */
static bool load_from_index(struct time_blocks *b, const struct history *h, const struct scan *s)
{
    struct session_index x;
    struct stat st;
    int result = -1;

    if (s->fd < 0 || fstat(s->fd, &st) < 0 || !session_index_open(&x, h))
        return false;
    if (st.st_dev == x.st.st_dev && st.st_ino == x.st.st_ino) {
        result = session_index_times(&x, b);
        if (result < 0) {
            time_blocks_release(b);
            session_index_discard(&x);
            return false;
        }
    }
    session_index_close(&x);
    return result == 0;
}

int time_blocks_load(struct time_blocks *b, const struct history *h, const struct scan *s,
                     struct err *e)
{
    struct session_table t;
    int result = 0;

    *b = (struct time_blocks){0};
    if (!load_from_index(b, h, s)) {
        session_table_init(&t, h->now);
        result = session_table_read_all(&t, s, h->cancel, e);
        if (result == 0) {
            *b = t.blocks;
            t.blocks = (struct time_blocks){0};
        }
        session_table_release(&t);
    }
    while (b->count > 0 && b->at[b->count - 1].from >= s->size)
        b->count--;
    if (b->count > 0)
        b->at[b->count - 1].to = s->size;
    return result;
}

int line_time_at(struct time_blocks *b, const struct history *h, const struct scan *s, off_t at,
                 struct str timestamp, int64_t *time, struct err *e)
{
    struct line_clock c = line_clock_at(h->now, LINE_OLDEST);
    struct message m = MESSAGE_INIT;
    struct scan part;
    size_t i = 0;
    int result;

    *time = line_clock_time(&c, timestamp);
    if (c.borrowed == INT64_MAX)
        return 0;
    if (b->count == 0 && time_blocks_load(b, h, s, e) < 0)
        return -1;
    while (i + 1 < b->count && b->at[i + 1].from <= at)
        i++;
    if (i >= b->count)
        return 0;
    c = line_clock_at(h->now, b->at[i].before);
    scan_share(&part, s, b->at[i].from, at);
    while ((result = scan_message(&part, &m, NULL, e)) > 0)
        (void)line_clock_time(&c, m.timestamp);
    *time = c.latest;
    message_release(&m);
    scan_close(&part);
    return result;
}
