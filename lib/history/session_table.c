#include "history/session_table.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/thread_pool.h"
#include "chathist/history/message.h"
#include "chathist/history/title.h"

/* A part of at least HELPED bytes is read by several threads, in pieces of PIECE bytes. */
#define HELPED ((off_t)4 << 20)
#define PIECE ((size_t)1 << 20)
#define BLOCK ((size_t)64 << 10)

/* ---- a table ---- */

void session_table_init(struct session_table *t, int64_t now)
{
    *t = (struct session_table){.clock = line_clock_at(now, LINE_OLDEST)};
    buf_init(&t->scratch, BUF_LINE);
}

void session_table_release(struct session_table *t)
{
    session_list_release(&t->list);
    hash_map_release(&t->numbers);
    free(t->ranges);
    free(t->titles);
    free(t->bad);
    time_blocks_release(&t->blocks);
    buf_release(&t->scratch);
    *t = (struct session_table){0};
}

/* ---- adding ---- */

const struct session *session_table_find(const struct session_table *t, struct str id,
                                         size_t *number)
{
    const size_t *found = hash_map_find(&t->numbers, id);

    if (!found)
        return NULL;
    *number = *found;
    return &t->list.at[*found];
}

/* Returns the session of that id. A session that was added now has no lines. Lines of one
 * session mostly follow each other. */
static struct session *table_session(struct session_table *t, struct str id)
{
    size_t number = t->range_count ? t->ranges[t->range_count - 1].owner : SIZE_MAX;
    const struct session *known = number < t->list.count ? &t->list.at[number] : NULL;
    struct session *s;

    if (!known || !str_eq(known->id, id))
        known = session_table_find(t, id, &number);
    if (known)
        return &t->list.at[number];
    s = session_list_add(&t->list);
    s->id = session_list_copy(&t->list, id);
    hash_map_set(&t->numbers, s->id, t->list.count - 1);
    return s;
}

/* Most timestamps have the same length, and the new one can overwrite the old one, which is in a
 * block of the list. */
static void set_last_used(struct session_table *t, struct session *s, struct str time)
{
    if (time.n == 0 || s->last_used.n != time.n)
        s->last_used = session_list_copy(&t->list, time);
    else
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): only takes the const away */
        memcpy((char *)(uintptr_t)s->last_used.p, time.p, time.n);
}

/* Copies a text that is not the one from before. */
static void copy_new_text(struct session_table *t, struct str *text, struct str before)
{
    if (text->p != before.p)
        *text = session_list_copy(&t->list, *text);
}

/* Adds a session of lines that come after those of the table. Only texts that count are copied: in
 * a large history each piece may have the same sessions. */
static size_t join_session(struct session_table *t, const struct session *from)
{
    struct session *s = table_session(t, from->id), before = *s;

    if (s->count + s->titles == 0)
        *s = *from;
    else
        session_add_later(&t->list, s, from);
    s->id = before.id;
    copy_new_text(t, &s->preview, before.preview);
    copy_new_text(t, &s->title, before.title);
    copy_new_text(t, &s->title_set, before.title_set);
    copy_new_text(t, &s->first_role, before.first_role);
    copy_new_text(t, &s->created_at, before.created_at);
    if (s->last_used.p != before.last_used.p) {
        s->last_used = before.last_used;
        set_last_used(t, s, from->last_used);
    }
    return (size_t)(s - t->list.at);
}

static void add_range(struct session_table *t, struct line_range r)
{
    struct line_range *last = t->range_count ? &t->ranges[t->range_count - 1] : NULL;

    if (last && last->owner == r.owner && last->to == r.from) {
        last->to = r.to;
        return;
    }
    t->ranges = mem_grow(t->ranges, &t->range_cap, t->range_count + 1, sizeof(*t->ranges));
    t->ranges[t->range_count++] = r;
}

static void add_bad(struct session_table *t, off_t at)
{
    size_t count = (size_t)t->list.bad_lines++;

    t->bad = mem_grow(t->bad, &t->bad_cap, count + 1, sizeof(*t->bad));
    t->bad[count] = (uint64_t)at;
}

/* Takes the beginning of the message as the preview, if the session has no message yet or if this
 * is the first one of the user. */
static void preview_message(struct session_table *t, struct session *s, const struct message *m)
{
    struct str preview;
    bool asked;

    if (s->count > 0 && (s->asked || m->role != ROLE_USER))
        return;
    preview = message_preview(m, &t->scratch);
    asked = m->role == ROLE_USER && str_trim(preview).n > 0;
    if (s->count == 0 || asked) {
        s->preview = session_list_copy(&t->list, preview);
        s->asked = asked;
    }
}

static void add_title(struct session_table *t, size_t owner, struct str line)
{
    t->titles = mem_grow(t->titles, &t->title_cap, t->title_count + 1, sizeof(*t->titles));
    t->titles[t->title_count++] = (struct title_line){owner, session_list_copy(&t->list, line)};
}

/* Adds the line of a message from `at` to `end`. */
static void add_message(struct session_table *t, const struct message *m, int64_t time, off_t at,
                        off_t end)
{
    struct session *s = table_session(t, m->session_id);
    bool is_title = message_is_title(m), first = s->count + s->titles == 0;

    if (first) {
        s->first_line = at;
        s->created_at = session_list_copy(&t->list, m->timestamp);
        s->created = time;
        s->used = LINE_OLDEST;
        s->preview = s->title = s->title_set = session_list_copy(&t->list, STR(""));
    }
    if (first || (s->count == 0 && !is_title))
        s->first_role = session_list_copy(&t->list, m->role_text);
    if (is_title)
        add_title(t, (size_t)(s - t->list.at), m->line);
    else
        preview_message(t, s, m);
    /* A title does not use the session. */
    if (first || (!is_title && time >= s->used))
        set_last_used(t, s, m->timestamp);
    if (!is_title && time > s->used)
        s->used = time;
    if (first || !is_title)
        s->last_line = at;
    s->count += !is_title;
    s->titles += is_title;
    s->bytes += (uint64_t)(end - at);
    add_range(t, (struct line_range){at, end, (size_t)(s - t->list.at)});
}

/* Adds a block to the end. */
static struct time_block *add_block(struct time_blocks *b)
{
    b->at = mem_grow(b->at, &b->cap, b->count + 1, sizeof(*b->at));
    return &b->at[b->count++];
}

static void add_line(struct session_table *t, struct message *m, const struct line *l, off_t end)
{
    enum scan_verdict verdict = scan_judge(l, m);
    struct time_blocks *b = &t->blocks;
    struct time_block *block;

    if (b->count == 0 || l->at - b->at[b->count - 1].from >= TIME_BLOCK)
        *add_block(b) = (struct time_block){.from = l->at,
                                            .earliest = INT64_MAX,
                                            .latest = LINE_OLDEST,
                                            .before = t->clock.latest,
                                            .ascending = true};
    block = &b->at[b->count - 1];
    block->to = end;
    if (verdict == SCAN_MESSAGE) {
        int64_t time = line_clock_time(&t->clock, m->timestamp);

        block->ascending = block->ascending && time >= block->latest;
        block->earliest = time < block->earliest ? time : block->earliest;
        block->latest = time > block->latest ? time : block->latest;
        add_message(t, m, time, l->at, end);
    } else if (verdict == SCAN_BAD) {
        add_bad(t, l->at);
    }
    t->end = end;
}

/* Adds all of `next`, whose lines come after those of `t`. */
static void join_tables(struct session_table *t, const struct session_table *next)
{
    size_t *numbers = mem_zalloc(next->list.count * sizeof(*numbers));

    for (size_t i = 0; i < next->list.count; i++)
        numbers[i] = join_session(t, &next->list.at[i]);
    for (size_t i = 0; i < next->range_count; i++) {
        struct line_range r = next->ranges[i];

        r.owner = numbers[r.owner];
        add_range(t, r);
    }
    for (size_t i = 0; i < next->title_count; i++)
        add_title(t, numbers[next->titles[i].owner], next->titles[i].line);
    for (size_t i = 0; i < next->list.bad_lines; i++)
        add_bad(t, (off_t)next->bad[i]);
    for (size_t i = 0; i < next->blocks.count; i++) {
        struct time_block *b = add_block(&t->blocks);

        *b = next->blocks.at[i];
        b->before = b->before > t->clock.latest ? b->before : t->clock.latest;
    }
    if (next->clock.latest > t->clock.latest)
        t->clock.latest = next->clock.latest;
    if (next->clock.ahead < t->clock.ahead)
        t->clock.ahead = next->clock.ahead;
    if (next->end > t->end)
        t->end = next->end;
    free(numbers);
}

static int by_owner(const void *a, const void *b)
{
    size_t x = ((const struct title_line *)a)->owner, y = ((const struct title_line *)b)->owner;

    return (x > y) - (x < y);
}

/* Gives each session its title, once all lines have been added. */
static void choose_titles(struct session_table *t)
{
    struct message m = MESSAGE_INIT;
    size_t owner;

    if (t->title_count > 0)
        qsort(t->titles, t->title_count, sizeof(*t->titles), by_owner);
    for (size_t i = 0; i < t->title_count;) {
        struct titles titles = {0};

        for (owner = t->titles[i].owner; i < t->title_count && t->titles[i].owner == owner; i++)
            if (message_parse(&m, t->titles[i].line))
                titles_add(&titles, &m);
        session_set_titles(&t->list, &t->list.at[owner], &titles);
        titles_release(&titles);
    }
    message_release(&m);
}

/* ---- reading ---- */

/* A part of the history that one thread reads: whole lines. */
struct piece {
    struct session_table table;
    struct scan scan;
    off_t from, end;
};

struct reading {
    const struct table_read *r;
    struct session_table *table; /* gets all lines */
    struct scan scan;            /* the scan of all that is read */
    off_t next;                  /* the next piece begins here */
    struct piece pieces[THREAD_POOL_SLOTS];
};

static int begin_piece(void *ctx, size_t slot, struct err *e)
{
    struct reading *g = ctx;
    struct piece *p = &g->pieces[slot];
    int result;

    if (thread_pool_cancelled(g->r->cancel))
        return 0;
    session_table_init(&p->table, g->table->clock.now);
    p->from = g->next;
    result = scan_split(&g->scan, &g->next, (off_t)PIECE, &p->scan, e);
    p->end = g->next;
    return result;
}

static int read_piece(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct reading *g = ctx;
    struct piece *p = &g->pieces[slot];
    struct message m = MESSAGE_INIT;
    struct line l;
    int more;

    (void)thread;
    if (p->scan.block_size > BLOCK)
        p->scan.block_size = BLOCK;
    while ((more = scan_line(&p->scan, &l, e)) > 0 && l.terminated)
        add_line(&p->table, &m, &l, scan_offset(&p->scan));
    if (g->r->exact && p->scan.size < p->end)
        more = -1;
    message_release(&m);
    scan_close(&p->scan);
    return more < 0 ? -1 : 0;
}

/* Adds a piece that was read. It is read again if a clock was wrong in it, and times depend on the
 * lines before it. */
static int join_piece(void *ctx, size_t slot, struct err *e)
{
    struct reading *g = ctx;
    const struct table_read *r = g->r;
    struct piece *p = &g->pieces[slot];
    off_t size = r->to - r->from;

    if (p->table.clock.borrowed < g->table->clock.latest) {
        session_table_release(&p->table);
        session_table_init(&p->table, g->table->clock.now);
        p->table.clock.latest = g->table->clock.latest;
        scan_share(&p->scan, &g->scan, p->from, p->end);
        if (read_piece(g, slot, 0, e) < 0)
            return -1;
    }
    join_tables(g->table, &p->table);
    session_table_release(&p->table);
    if (r->scan->work && size > (off_t)PIECE)
        r->scan->work(
            &(struct task){r->scan->task, NULL, (uint64_t)(p->end - r->from), (uint64_t)size});
    return 0;
}

int session_table_read(struct session_table *t, const struct table_read *r)
{
    struct reading *g = mem_zalloc(sizeof(*g));
    int result;

    g->r = r;
    g->table = t;
    g->next = r->from;
    scan_share(&g->scan, r->scan, r->from, r->to);
    if (t->end < r->from)
        t->end = r->from;
    result = thread_pool_run(&(struct thread_pool_job){.threads = thread_pool_size(),
                                                       .alone = r->to - r->from < HELPED,
                                                       .ctx = g,
                                                       .begin = begin_piece,
                                                       .work = read_piece,
                                                       .join = join_piece},
                             r->e);
    if (thread_pool_cancelled(r->cancel))
        result = -1;
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        session_table_release(&g->pieces[i].table);
    scan_close(&g->scan);
    free(g);
    choose_titles(t);
    if (r->scan->work && r->to - r->from > (off_t)PIECE)
        r->scan->work(NULL);
    return result;
}

int session_table_read_torn(struct session_table *t, const struct scan *s, off_t size)
{
    struct message m = MESSAGE_INIT;
    struct scan last;
    struct line l;
    int more;

    if (t->end >= size)
        return 0;
    scan_share(&last, s, t->end, size);
    more = scan_line(&last, &l, NULL);
    if (more > 0) {
        size_t titles = t->title_count;

        add_line(t, &m, &l, size);
        if (t->title_count > titles)
            choose_titles(t);
    }
    message_release(&m);
    scan_close(&last);
    return more < 0 ? -1 : 0;
}

int session_table_read_all(struct session_table *t, const struct scan *s, const atomic_bool *cancel,
                           struct err *e)
{
    int result = session_table_read(
        t, &(struct table_read){.scan = s, .to = s->size, .cancel = cancel, .e = e});

    if (result == 0)
        result = session_table_read_torn(t, s, s->size);
    if (thread_pool_cancelled(cancel))
        result = err_set(e, ERR_SIGNAL, "interrupted");
    return result;
}
