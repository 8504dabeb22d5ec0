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

static const struct time_block *block_at(const struct time_blocks *b, off_t at)
{
    size_t from = 0, to = b->count;

    while (from < to) {
        size_t i = from + (to - from) / 2;

        if (b->at[i].to <= at)
            from = i + 1;
        else
            to = i;
    }
    return from < b->count ? &b->at[from] : NULL;
}

/* Reads the lines before `at` in its block, from the line that was asked for last. */
static int read_before(struct line_times *t, const struct time_block *block, off_t at,
                       struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan lines;
    int result;

    if (t->block != block || at < t->to) {
        t->block = block;
        t->clock = line_clock_at(t->now, block->before);
        t->to = block->from;
    }
    scan_share(&lines, t->scan, t->to, at);
    while ((result = scan_message(&lines, &m, NULL, e)) > 0)
        (void)line_clock_time(&t->clock, m.timestamp);
    t->to = at;
    scan_close(&lines);
    message_release(&m);
    return result;
}

int line_times_get(struct line_times *t, off_t at, struct str timestamp, int64_t *time,
                   struct err *e)
{
    struct line_clock alone = line_clock_at(t->now, LINE_OLDEST);
    const struct time_block *block;
    int result;

    *time = line_clock_time(&alone, timestamp);
    if (alone.borrowed == INT64_MAX)
        return 0;
    if (!t->blocks) {
        if (time_blocks_load(&t->loaded, t->h, t->scan, e) < 0)
            return -1;
        t->blocks = &t->loaded;
    }
    block = block_at(t->blocks, at);
    if (!block)
        return 0;
    result = read_before(t, block, at, e);
    *time = t->clock.latest;
    return result;
}

void line_times_release(struct line_times *t)
{
    time_blocks_release(&t->loaded);
}
