#include "search/parallel_scan.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/simd.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/time_blocks.h"
#include "chathist/search/searched_text.h"

#define PAGE ((size_t)4096)
/* The room in front of the window for an unfinished line. A longer one gets a larger room, so that
 * it is not moved again. */
#define HEAD ((size_t)64 << 10)
/* A reader keeps memory up to this size after a long line. */
#define KEPT ((size_t)2 << 20)
/* How much is read at once of a line that ends after the chunk. */
#define TAIL ((size_t)16 << 10)

struct chunk {
    off_t begin, end;
    struct scan_rest rest; /* the part after this chunk */
    uint64_t hits, bad;
    struct scan_item *items; /* owned */
    size_t count, cap;
    bool failed;  /* a message could not be matched */
    bool refused; /* the filter does not accept a line */
    int errnum;   /* why it could not be read, or 0 */
};

/* Reads chunks on one of the threads. */
struct worker {
    const struct parallel_scan_job *job;
    struct chunk *chunk;
    /* windows: */
    char *memory;
    size_t head; /* the window begins at this offset in memory */
    size_t size; /* of memory */
    /* the whole lines that are scanned: */
    const char *text, *text_end;
    off_t text_at; /* where text is in the file */
    /* the line that was looked at last: */
    struct str line; /* without its newline */
    bool terminated; /* it has one */
    struct str timestamp;
    struct str content; /* the raw content, in which a literal counts */
    bool calls;         /* the line has tool calls, in which a literal counts, too */
    const char *next;   /* where the next line begins */
    bool parsed;        /* `message` is the line */
    struct pattern pattern, unwanted;
    bool literal; /* a literal in the content is a hit; see pattern_is_literal */
    struct line_times times;
    struct message message;
    struct searched_text texts;
    struct buf decoded; /* the content of a line that was not parsed */
};

struct parallel_scan {
    struct parallel_scan_job job;
    struct thread_pool *pool;
    struct worker workers[THREAD_POOL_MAX]; /* the first is the caller's */
    size_t worker_count;
    bool asked_for_help;
    /* changed by begin_chunk, and by the caller as long as it has no help: */
    struct scan_order order;
    size_t next_size;                                        /* of the next chunk */
    off_t cut;                                               /* size of the chunks so far */
    struct chunk chunks[THREAD_POOL_AHEAD(THREAD_POOL_MAX)]; /* by number */

    struct chunk *chunk;   /* the one that the caller has; NULL at the beginning and at the end */
    bool ended;            /* the caller had the last chunk */
    struct scan_held held; /* hits of chunks that the caller had */
    struct scan_rest rest; /* the part after these chunks */
    uint64_t hits;         /* in the chunks that the caller had */
    bool failed, refused;  /* as in one of these chunks */
};

/* ---- is a line a hit? ---- */

enum verdict {
    MISS,
    HIT,
    FAILED, /* it could not be matched */
    BAD,    /* the line is no valid message */
    UNSURE  /* it is a message; its texts decide */
};

static void add_worker(struct parallel_scan *s)
{
    struct worker *w = &s->workers[s->worker_count++];

    *w = (struct worker){.job = &s->job,
                         .message = MESSAGE_INIT,
                         .decoded = BUF_INIT(BUF_LINE),
                         .times = {.now = s->job.now, .scan = s->job.scan, .blocks = s->job.times}};
    searched_text_init(&w->texts);
    pattern_copy(&w->pattern, s->job.pattern);
    if (s->job.unwanted)
        pattern_copy(&w->unwanted, s->job.unwanted);
    else
        pattern_init(&w->unwanted);
    w->literal = pattern_is_literal(s->job.pattern) && !s->job.unwanted;
}

/* Returns whether a character begins at `at` in the raw text of a JSON string, rather than inside
 * an escape. */
static bool begins_character(const char *body, const char *at)
{
    for (ptrdiff_t k = 1; k <= 5 && at - body >= k; k++) {
        const char *escape = at - k, *p = escape;

        if (*escape != '\\' || (k > 1 && escape[1] != 'u'))
            continue;
        while (p > body && p[-1] == '\\')
            p--;
        if ((escape - p) % 2 == 0)
            return false;
    }
    return true;
}

/* Checks the line and finds its content. A line as our own programs write it is checked without a
 * parse if no field but the content matters. */
static enum verdict check_scanned_line(struct worker *w)
{
    unsigned in = w->job->in;

    w->parsed = false;
    if (!w->job->filter && !w->job->query && (in == SEARCH_IN_DEFAULT || in == SEARCH_CONTENT) &&
        own_line_check(w->line, &w->timestamp, &w->content, &w->calls)) {
        w->calls = w->calls && in & SEARCH_TOOLS;
        return UNSURE;
    }
    if (!scan_may_match(w->job->scan, w->line) || str_trim(w->line).n == 0)
        return MISS;
    if (!message_parse(&w->message, w->line))
        return BAD;
    w->parsed = true;
    w->timestamp = w->message.timestamp;
    w->calls = w->message.field[FIELD_TOOL_CALLS].p && in & SEARCH_TOOLS;
    if (w->job->filter && !filter_match(w->job->filter, &w->message)) {
        w->chunk->refused = true;
        return MISS;
    }
    if ((message_is_title(&w->message) && !(in & SEARCH_TITLE)) ||
        (w->job->query && !query_accepts(w->job->query, &w->message)))
        return MISS;
    w->content = json_body(w->message.field[FIELD_CONTENT]);
    return UNSURE;
}

/* Looks for the pattern in the only text of a line that was not parsed. Returns as pattern_find
 * does. */
static int find_in_content(struct worker *w)
{
    /* The content stands between its quotes. */
    struct str text = json_text((struct str){w->content.p - 1, w->content.n + 2}, &w->decoded);
    uint64_t missing = pattern_all_groups(&w->pattern);
    size_t at, len;
    int found = pattern_find_groups(&w->pattern, text, &missing, &at, &len, NULL);

    if (w->decoded.cap > KEPT)
        buf_release(&w->decoded);
    return found > 0 ? missing == 0 : found;
}

/* Looks in all texts of the message. Returns as pattern_find does. */
static int find_in_texts(struct worker *w)
{
    struct text_match m;
    int refused = 0, found = 0;

    if (w->job->unwanted) {
        searched_text_begin(&w->texts, &w->message, w->job->in);
        refused = pattern_find_any(&w->unwanted, &w->texts, NULL);
    }
    if (refused == 0) {
        searched_text_begin(&w->texts, &w->message, w->job->in);
        found = pattern_find_message(&w->pattern, &w->texts, &m, NULL);
    }
    searched_text_shrink(&w->texts);
    return refused < 0 ? -1 : found;
}

/* Decides about a line by its decoded texts. */
static enum verdict verify_line(struct worker *w)
{
    int found;

    if (!w->parsed && !w->calls && !w->job->unwanted) {
        found = find_in_content(w);
    } else {
        if (!w->parsed && !message_parse(&w->message, w->line))
            return BAD;
        w->parsed = true;
        found = find_in_texts(w);
    }
    return found < 0 ? FAILED : (found > 0) != w->job->invert ? HIT : MISS;
}

/* Decides about a line with a place where a literal may be. If all bytes of a literal are known to
 * be at `at`, in the content, and nothing else is wanted, nothing has to be decoded. */
static enum verdict verify_match(struct worker *w, const char *place, const char *at)
{
    bool in_content = place >= w->content.p && place < w->content.p + w->content.n;

    if (!in_content && !w->calls)
        return MISS;
    if (at && in_content && w->literal && begins_character(w->content.p, at))
        return HIT;
    return verify_line(w);
}

/* ---- the lines of a window ---- */

static void add_item(struct worker *w, off_t at, size_t n, enum verdict verdict)
{
    struct chunk *c = w->chunk;
    int64_t time = 0;

    c->bad += verdict == BAD;
    c->hits += verdict == HIT;
    c->failed |= verdict == FAILED;
    if (!w->job->list)
        return;
    /* A line that is no valid message has no time. */
    if (w->job->times)
        (void)line_times_get(&w->times, at, verdict == BAD ? STR("") : w->timestamp, &time, NULL);
    c->items = mem_grow(c->items, &c->cap, c->count + 1, sizeof *c->items);
    c->items[c->count++] = (struct scan_item){.at = at,
                                              .time = time,
                                              .n = (uint32_t)n,
                                              .bad = verdict == BAD,
                                              .failed = verdict == FAILED};
}

/* Makes the line that begins at `begin` the current one. It has no newline before `from`. */
static void set_line(struct worker *w, const char *begin, const char *from)
{
    const char *newline = memchr(from, '\n', (size_t)(w->text_end - from));

    w->terminated = newline != NULL;
    w->line = (struct str){begin, (size_t)((newline ? newline : w->text_end) - begin)};
    w->content = (struct str){begin, 0};
    w->next = newline ? newline + 1 : w->text_end;
}

static bool is_long_line(const struct worker *w)
{
    return w->line.n > w->job->scan->line_max;
}

/* A bad line without a newline is not counted: a writer may be at it. */
static void add_verdict(struct worker *w, enum verdict verdict)
{
    if (verdict == HIT || verdict == FAILED || (verdict == BAD && w->terminated))
        add_item(w, w->text_at + (w->line.p - w->text), w->line.n, verdict);
}

/* Decides about a line that was not looked at yet. */
static void judge_line(struct worker *w)
{
    enum verdict verdict = is_long_line(w) ? BAD : check_scanned_line(w);

    add_verdict(w, verdict == UNSURE ? verify_line(w) : verdict);
}

/* Called for each place that passes the probes. Returns where to go on. */
static const char *judge_place(void *ctx, const char *place)
{
    struct worker *w = ctx;
    enum verdict verdict = UNSURE;
    const char *at;

    if (!literal_scan_may_match(w->job->literals, place, w->content.p, w->text_end, &at))
        return place + 1;
    if (place >= w->next) {
        set_line(w, w->next + simd_after_newline(w->next, (size_t)(place - w->next)), place);
        verdict = is_long_line(w) ? BAD : check_scanned_line(w);
    }
    /* In a line that was parsed, the calls may stand before the content. */
    if (verdict == UNSURE && place < w->content.p && !(w->calls && w->parsed))
        return w->content.p;
    if (verdict == UNSURE)
        verdict = verify_match(w, place, at);
    add_verdict(w, verdict);
    return w->next;
}

/* Scans the lines from `from` up to `to`; `at` is the offset of `from` in the file. */
static void scan_text(struct worker *w, char *from, char *to, off_t at)
{
    w->text = from;
    w->next = from;
    w->text_end = to;
    w->text_at = at;
    w->content = (struct str){from, 0};
    /* The first line may be too long, whatever it holds. */
    if ((size_t)(to - from) > w->job->scan->line_max) {
        set_line(w, from, from);
        if (is_long_line(w))
            add_verdict(w, BAD);
        else
            w->next = from;
    }
    if (w->job->literals) {
        literal_scan_each(w->job->literals, w->next, to, judge_place, w);
        return;
    }
    while (w->next < to) {
        set_line(w, w->next, w->next);
        judge_line(w);
    }
}

/* ---- windows ---- */

static char *window(const struct worker *w)
{
    return w->memory + w->head;
}

static size_t window_size(const struct worker *w)
{
    size_t size = w->job->scan->block_size;

    return size > TAIL ? size : TAIL;
}

/* Moves n bytes from the window, or from before it, directly before the window. */
static void carry(struct worker *w, const char *rest, size_t n)
{
    w->head = n > HEAD ? n : HEAD;
    if (rest != window(w) - n)
        memmove(window(w) - n, rest, n);
    if (w->head + window_size(w) > w->size) {
        w->size = w->head + window_size(w) + w->head / 4;
        w->memory = mem_resize(w->memory, w->size, 1);
    }
}

struct reading {
    off_t next;     /* the offset of the next window */
    size_t held;    /* length of the unfinished line right before the window */
    bool passing;   /* the rest of a line is passed over: another chunk's, or one too long */
    off_t too_long; /* where the line begins that is too long, else -1 */
};

/* Passes over the rest of a line. Returns where the next line begins, or NULL if the window ends
 * before. */
static char *pass_over(struct worker *w, struct reading *g, char *from, size_t n)
{
    char *newline = memchr(from, '\n', n);

    if (!newline)
        return NULL;
    if (g->too_long >= 0)
        add_item(w, g->too_long, 0, BAD);
    g->passing = false;
    g->too_long = -1;
    return newline + 1;
}

/* Returns the end of the last line that is complete in the window, from `from` (where an unfinished
 * line may begin) to `to`. After the chunk (`after`) only the unfinished line counts, and *last is
 * set at its end. */
static char *end_of_lines(const struct worker *w, char *from, char *to, bool after, bool *last)
{
    /* The unfinished line has no newline before the window. */
    char *fresh = from > window(w) ? from : window(w), *newline;
    size_t n;

    if (!after) {
        n = simd_after_newline(fresh, (size_t)(to - fresh));
        return *last ? to : n ? fresh + n : from;
    }
    newline = memchr(fresh, '\n', (size_t)(to - fresh));
    if (!newline)
        return *last ? to : from;
    *last = true;
    return newline + 1;
}

/* Scans a window of `got` bytes; `last` if the file ends with it. Returns false if the chunk has
 * been read. */
static bool scan_window(struct worker *w, struct reading *g, size_t got, bool last)
{
    bool after = g->next >= w->chunk->end;
    char *from = window(w) - g->held, *to = window(w) + got, *stop;

    if (!after)
        skip_map_sum(w->job->map, g->next, window(w), got);
    if (g->passing) {
        char *start = pass_over(w, g, from, got);

        g->next += (off_t)got;
        if (!start)
            return !last && (g->too_long >= 0 || g->next < w->chunk->end);
        from = start;
        if (g->next - (to - from) > w->chunk->end)
            return false;
    } else {
        g->next += (off_t)got;
    }
    stop = end_of_lines(w, from, to, after, &last);
    scan_text(w, from, stop, g->next - (to - from));
    if (last)
        return false;

    g->held = (size_t)(to - stop);
    if (g->held > w->job->scan->line_max) {
        g->passing = true;
        g->too_long = g->next - (off_t)g->held;
        g->held = 0;
    }
    carry(w, stop, g->held);
    return true;
}

/* Reads a chunk in windows. Returns 0, or -1 with errno set. If the file has become shorter, it
 * ends there. */
static int read_windows(struct worker *w, const struct chunk *c)
{
    struct reading g = {.next = c->begin, .passing = c->begin > 0, .too_long = -1};
    off_t size = w->job->scan->size;
    bool more = c->begin < size;

    if (!w->memory) {
        w->size = (HEAD + window_size(w) + PAGE - 1) / PAGE * PAGE;
        w->memory = aligned_alloc(PAGE, w->size);
        if (!w->memory)
            mem_exhausted();
    }
    w->head = HEAD;
    while (more) {
        off_t stop = g.next < c->end ? c->end : size;
        size_t most = g.next < c->end || g.held > TAIL ? w->job->scan->block_size : TAIL;
        size_t want = stop - g.next < (off_t)most ? (size_t)(stop - g.next) : most;
        ssize_t got = file_pread_full(w->job->scan->fd, window(w), want, g.next);

        if (got < 0)
            return -1;
        more = scan_window(w, &g, (size_t)got, (size_t)got < want || g.next + (off_t)got >= size);
    }
    if (w->size > KEPT) {
        free(w->memory);
        w->memory = NULL;
    }
    return 0;
}

/* Reads the whole history line by line. Returns 0, or -1 with errno set. */
static int read_by_line(struct worker *w)
{
    struct scan lines;
    struct line l;
    int more;

    scan_share(&lines, w->job->scan, 0, w->job->scan->size);
    while ((more = scan_line(&lines, &l, NULL)) > 0 && !thread_pool_cancelled(w->job->cancel)) {
        w->line = l.text;
        w->terminated = l.terminated;
        w->text = l.text.p;
        w->text_at = l.at;
        if (l.too_long)
            add_verdict(w, BAD);
        else
            judge_line(w);
    }
    scan_close(&lines);
    return more < 0 ? -1 : 0;
}

/* ---- chunks ---- */

static struct chunk *chunk_of(struct parallel_scan *s, size_t number)
{
    return &s->chunks[number % THREAD_POOL_AHEAD(s->job.threads)];
}

/* Cuts the next chunk off the part that is left. */
static bool begin_chunk(void *ctx, size_t number)
{
    struct parallel_scan *s = ctx;
    struct chunk *c = chunk_of(s, number);

    *c = (struct chunk){.items = c->items, .cap = c->cap};
    if (thread_pool_cancelled(s->job.cancel) ||
        !scan_order_cut(&s->order, (off_t)s->next_size, &c->begin, &c->end))
        return false;
    c->rest = scan_order_rest(&s->order);
    s->cut += c->end - c->begin;
    if (s->next_size * 2 <= s->job.chunk_max)
        s->next_size *= 2;
    return true;
}

/* Fills in the hits of a chunk, of which begin and end are set. */
static void work_on_chunk(void *ctx, size_t number, size_t thread)
{
    struct parallel_scan *s = ctx;
    struct worker *w = &s->workers[thread];
    struct chunk *c = chunk_of(s, number);

    w->chunk = c;
    if ((s->job.by_line ? read_by_line(w) : read_windows(w, c)) < 0)
        c->errnum = errno;
    scan_items_sort(c->items, c->count);
}

/* Much is left after the first chunk: loads the skip index, and starts helpers if much must still
 * be read. */
static void get_help(struct parallel_scan *s)
{
    s->asked_for_help = true;
    if (s->job.history) {
        skip_map_load(s->job.map, s->job.history, s->job.skip);
        if (skip_map_left(s->job.map, s->order.size) - s->cut < s->job.helped)
            return;
    }
    while (s->worker_count < s->job.threads)
        add_worker(s);
    thread_pool_help(s->pool);
}

/* ---- the caller ---- */

struct parallel_scan *parallel_scan_new(const struct parallel_scan_job *job)
{
    struct parallel_scan *s = mem_zalloc(sizeof *s);

    s->job = *job;
    s->next_size = job->by_line ? (size_t)job->scan->size : job->scan->block_size;
    scan_order_init(&s->order, job->scan->size, (off_t)s->next_size,
                    job->by_line ? NULL : job->times, job->map);
    /* The newest cells are the first of the order. */
    if (job->most > 0 && (off_t)s->order.count > job->most / s->order.cell)
        s->order.count = (size_t)(job->most / s->order.cell);
    s->pool =
        thread_pool_new(&(struct thread_pool_work){job->threads, s, begin_chunk, work_on_chunk});
    add_worker(s);
    return s;
}

void parallel_scan_free(struct parallel_scan *s)
{
    if (!s)
        return;
    thread_pool_free(s->pool);
    for (size_t i = 0; i < s->worker_count; i++) {
        struct worker *w = &s->workers[i];

        free(w->memory);
        message_release(&w->message);
        searched_text_release(&w->texts);
        buf_release(&w->decoded);
        pattern_release(&w->pattern);
        pattern_release(&w->unwanted);
    }
    for (size_t i = 0; i < THREAD_POOL_AHEAD(s->job.threads); i++)
        free(s->chunks[i].items);
    scan_order_release(&s->order);
    scan_held_release(&s->held);
    free(s);
}

/* Makes the next chunk, read, the current one. Returns 1; 0 after the last one; -1 with *e set; or
 * PARALLEL_SCAN_PAUSED. */
static int next_chunk(struct parallel_scan *s, struct err *e)
{
    size_t number;

    if (s->job.until && time_ticks() >= *s->job.until)
        return PARALLEL_SCAN_PAUSED;
    if (!s->asked_for_help && s->chunk && s->order.size - s->cut >= s->job.helped)
        get_help(s);
    s->chunk = thread_pool_next(s->pool, &number) ? chunk_of(s, number) : NULL;
    s->ended = !s->chunk;
    if (s->ended) {
        s->rest.any = false;
        /* Other searches may go on for long. */
        for (size_t i = 0; i < s->worker_count; i++) {
            free(s->workers[i].memory);
            s->workers[i].memory = NULL;
        }
        return 0;
    }
    s->rest = s->chunk->rest;
    s->hits += s->chunk->hits;
    if (s->chunk->errnum)
        return err_sys(e, s->chunk->errnum, "cannot read '%s'", s->job.scan->path);
    s->failed |= s->chunk->failed;
    s->refused |= s->chunk->refused;
    if (s->chunk->count > 0) {
        scan_held_add(&s->held, (struct scan_run){s->chunk->items, s->chunk->count});
        s->chunk->items = NULL;
        s->chunk->count = s->chunk->cap = 0;
    }
    return 1;
}

int parallel_scan_next(struct parallel_scan *s, struct scan_item *hit, uint64_t *bad, struct err *e)
{
    int more = 1;

    while (more == 1 || more == 0) {
        while (scan_held_next(&s->held, s->rest, hit)) {
            if (!hit->bad)
                return 1;
            ++*bad;
        }
        if (s->ended)
            return 0;
        more = next_chunk(s, e);
    }
    return more;
}

int parallel_scan_count(struct parallel_scan *s, uint64_t *hits, uint64_t *bad, struct err *e)
{
    int more;

    while ((more = next_chunk(s, e)) == 1)
        *bad += s->chunk->bad;
    *hits = s->hits;
    return more == 0 ? !s->failed : more;
}

bool parallel_scan_refused(const struct parallel_scan *s)
{
    return s->refused;
}

bool parallel_scan_ended(struct parallel_scan *s, uint64_t *hits)
{
    *hits = s->hits;
    return s->ended && !thread_pool_cancelled(s->job.cancel);
}
