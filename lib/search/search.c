#include "chathist/search/search.h"

#include <errno.h>
#include <stdlib.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/simd.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/time_blocks.h"
#include "search/literal_scan.h"
#include "search/parallel_scan.h"

/* ---- the scan ---- */

_Static_assert(PARALLEL_SCAN_PAUSED == SEARCH_PAUSED, "the scan returns what the search does");

struct search_work {
    struct literal_scan literals;
    struct skip_query query;
    struct skip_map map;
    struct time_blocks times;
    struct parallel_scan *scan;
    struct scan_item item; /* the hit that the scan has found last */
    bool unread;           /* its line is read by the next call, because of a pause */
};

/* In sizes of a block of the scan: a smaller file is parsed line by line; a file of which less is
 * left to be read is read by one thread; the largest chunk. */
#define SMALL(block) ((off_t)(block) / 4)
#define HELPED(block) ((off_t)(block)*32)
#define CHUNK(block) ((block)*16)

static void work_free(struct search_work *w)
{
    if (!w)
        return;
    parallel_scan_free(w->scan);
    literal_scan_release(&w->literals);
    skip_query_release(&w->query);
    skip_map_release(&w->map);
    time_blocks_release(&w->times);
    free(w);
}

/* Starts the search; `list`: its hits will be listed, and with `ordered` in the order of their
 * times. Returns 0, or -1 with *e set. */
static int start_scan(struct search *s, bool list, bool ordered, struct err *e)
{
    size_t block = s->scan.block_size;
    bool by_line = s->scan.size <= SMALL(block), literals = false;
    bool by_time = ordered && s->history && s->scan.size > 0;
    bool usual = s->in == SEARCH_IN_DEFAULT || s->in == SEARCH_CONTENT;
    struct search_work *w = mem_zalloc(sizeof *w);

    s->work = w;
    if (by_time) {
        struct history h = *s->history;

        if (s->cancel)
            h.cancel = s->cancel;
        if (time_blocks_load(&w->times, &h, &s->scan, e) < 0)
            return -1;
    }
    /* Line by line, every bad line is counted. */
    if (!by_line && !s->invert && usual)
        literals = pattern_literals(s->pattern, s->wide, &w->literals, &w->query);
    if (!by_line && s->history && s->skip_block > 0 && skip_query_helps(&w->query))
        skip_map_open(&w->map, s->scan.fd, s->scan.size, s->skip_block);
    w->scan = parallel_scan_new(&(struct parallel_scan_job){
        .scan = &s->scan,
        .filter = s->filter,
        .query = s->query && query_has_fields(s->query) ? s->query : NULL,
        .pattern = s->pattern,
        .unwanted = s->query && query_has_unwanted(s->query) ? &s->query->unwanted : NULL,
        .times = by_time ? &w->times : NULL,
        .now = s->history ? s->history->now : 0,
        .by_line = by_line,
        .in = s->in,
        .invert = s->invert,
        .literals = literals ? &w->literals : NULL,
        .threads = s->threads                                ? s->threads
                   : by_line || s->scan.size < HELPED(block) ? 1
                                                             : thread_pool_size(),
        /* It pauses between chunks. */
        .chunk_max = s->until ? block : CHUNK(block),
        .helped = HELPED(block),
        .most = s->most,
        .list = list,
        .history = w->map.count > 0 ? s->history : NULL,
        .skip = &w->query,
        .map = &w->map,
        .cancel = s->cancel,
        .until = s->until,
    });
    return 0;
}

/* Reads the next line that the scan has found. */
static int read_found_line(struct search *s, const struct scan_item *item, struct hit *h,
                           struct err *e)
{
    ssize_t got;

    buf_clear(&s->line);
    got = file_pread_full(s->scan.fd, buf_room(&s->line, item->n), item->n, item->at);
    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", s->scan.path);
    buf_grew(&s->line, (size_t)got);
    h->line = (struct line){.text = buf_str(&s->line),
                            .at = item->at,
                            .terminated = item->at + (off_t)item->n < s->scan.size};
    return 0;
}

/* ---- the loop ---- */

int search_open(struct search *s, int dir, const char *history_path, struct pattern *pattern,
                const struct filter *filter, struct err *e)
{
    *s = (struct search){.message = MESSAGE_INIT,
                         .pattern = pattern,
                         .filter = filter && !filter_is_empty(filter) ? filter : NULL,
                         .in = SEARCH_IN_DEFAULT,
                         .wide = simd_wide(),
                         .skip_block = SKIP_BLOCK};
    if (scan_open(&s->scan, dir, history_path, e) < 0)
        return -1;
    s->texts = mem_zalloc(sizeof *s->texts);
    searched_text_init(s->texts);
    buf_init(&s->line, SIZE_MAX);
    /* The scan passes over the lines of other sessions fast. */
    if (filter && filter->sessions.count == 1)
        scan_only(&s->scan, filter->sessions.at[0]);
    return 0;
}

void search_close(struct search *s)
{
    work_free(s->work);
    scan_close(&s->scan);
    searched_text_release(s->texts);
    free(s->texts);
    buf_release(&s->line);
    message_release(&s->message);
}

/* Returns 1 and the first match if the message that was read matches the pattern and has no
 * unwanted word; 0 if not; -1 with *e set. */
static int match_texts(struct search *s, struct text_match *m, struct err *e)
{
    int refused = 0;

    if (s->query && query_has_unwanted(s->query)) {
        searched_text_begin(s->texts, &s->message, s->in);
        refused = pattern_find_any(&s->query->unwanted, s->texts, e);
    }
    if (refused != 0)
        return refused < 0 ? -1 : 0;
    searched_text_begin(s->texts, &s->message, s->in);
    return pattern_find_message(s->pattern, s->texts, m, e);
}

/* Decides about the message that was read. Returns 1, or SEARCH_FAILED with *e set. */
static int match(struct search *s, struct hit *h, struct err *e)
{
    struct text_match m = {0};
    int found = 0;

    h->message = &s->message;
    h->asked = (!s->filter || filter_match(s->filter, &s->message)) &&
               (!s->query || query_accepts(s->query, &s->message));
    if (h->asked)
        found = match_texts(s, &m, e);
    h->found = h->asked && found == (s->invert ? 0 : 1);
    if (found <= 0)
        m.number = m.at = m.len = 0;
    h->at = m.at;
    h->len = m.len;
    h->in_content = m.number == 0 && s->in & SEARCH_CONTENT;
    h->text = m.text;
    /* Later texts were read, too, or none. */
    if (m.count != m.number + 1) {
        h->text = STR("");
        searched_text_begin(s->texts, &s->message, s->in);
        for (size_t i = 0; i <= m.number; i++)
            (void)searched_text_next(s->texts, &h->text);
    }
    return found < 0 ? SEARCH_FAILED : 1;
}

/* The scan has decided that the line is a hit; it is parsed here for the place of the match. A
 * line that a writer took back meanwhile is passed over. */
static int next_item(struct search *s, struct hit *h, struct err *e)
{
    struct search_work *w = s->work;
    int more;

    h->found = false;
    if (!w->unread) {
        more = w->scan ? parallel_scan_next(w->scan, &w->item, &s->scan.bad, e) : 0;
        if (more != 1)
            return more;
        /* To read and parse a long line takes as long as to find it. */
        w->unread = s->until && time_ticks() >= *s->until;
        if (w->unread)
            return SEARCH_PAUSED;
    }
    w->unread = false;
    if (read_found_line(s, &w->item, h, e) < 0)
        return -1;
    h->time = w->item.time;
    return message_parse(&s->message, h->line.text) ? match(s, h, e) : 1;
}

int search_next(struct search *s, struct hit *h, struct err *e)
{
    int result;

    if (!s->work && start_scan(s, true, !s->any_order, e) < 0)
        return -1;
    do {
        /* Hits that were found ahead are not returned either. */
        if (thread_pool_cancelled(s->cancel))
            return 0;
        result = next_item(s, h, e);
    } while (result == 1 && !h->found);
    return result;
}

bool search_refused(const struct search *s)
{
    return s->work && parallel_scan_refused(s->work->scan);
}

int search_latest(struct search *s, int64_t *latest, struct err *e)
{
    if (!s->work && start_scan(s, true, !s->any_order, e) < 0)
        return -1;
    *latest = LINE_OLDEST;
    for (size_t i = 0; i < s->work->times.count; i++)
        if (s->work->times.at[i].latest > *latest)
            *latest = s->work->times.at[i].latest;
    return 0;
}

/* Begins again, to list the hits: a message that cannot be matched must be named. */
static int list_after_all(struct search *s, uint64_t *count)
{
    *count = 0;
    work_free(s->work);
    s->work = NULL;
    s->scan.bad = 0;
    return 0;
}

int search_count(struct search *s, bool any, uint64_t *count, struct err *e)
{
    struct scan_item item;
    int result;

    if (!s->work && start_scan(s, any, false, e) < 0)
        return -1;
    if (!any) {
        result = parallel_scan_count(s->work->scan, count, &s->scan.bad, e);
        return result == 0 ? list_after_all(s, count) : result;
    }
    result = parallel_scan_next(s->work->scan, &item, &s->scan.bad, e);
    *count = result == 1;
    if (result == 1 && item.failed)
        return list_after_all(s, count);
    return result == 0 ? 1 : result;
}

int search_matches(struct search *s, struct hit *h, search_see *see, void *ctx, struct err *e)
{
    size_t at, len;
    int more = 0;

    searched_text_begin(s->texts, h->message, s->in);
    while (more >= 0 && searched_text_next(s->texts, &h->text)) {
        pattern_start(s->pattern, h->text);
        while ((more = pattern_next(s->pattern, &at, &len, e)) > 0)
            see(ctx, h, at, len);
    }
    return more < 0 ? -1 : 0;
}

int search_again(struct search *s, struct str line, struct hit *h, struct err *e)
{
    if (!message_parse(&s->message, line))
        return err_set(e, ERR_FAILURE, "a line changed meanwhile");
    /* A message that could not be matched may be there as context. */
    match(s, h, NULL);
    return 0;
}

void search_let_go(struct search *s)
{
    work_free(s->work);
    s->work = NULL;
    buf_release(&s->line);
}

/* ---- the skip index ---- */

struct search_learned {
    struct skip_map map;
    bool grow;
};

struct search_learned *search_learned(struct search *s)
{
    struct search_learned *l;
    uint64_t hits;

    if (!s->work || s->work->map.count == 0 || s->most > 0 ||
        !parallel_scan_ended(s->work->scan, &hits))
        return NULL;
    l = mem_zalloc(sizeof *l);
    l->map = s->work->map;
    /* An index does not help to find a text that is in most blocks, and the hits took time. */
    l->grow = hits < l->map.count;
    s->work->map = (struct skip_map){0};
    return l;
}

void search_learned_free(struct search_learned *l, const struct history *update, bool all)
{
    enum skip_growth growth = all ? SKIP_ALL : SKIP_PART;

    if (!l)
        return;
    if (update)
        skip_index_update(update, &l->map, l->grow ? growth : SKIP_NOTHING);
    skip_map_release(&l->map);
    free(l);
}

/* ---- snippets ---- */

/* Returns the offset of up to `count` code points before `at`. Stray continuation bytes count
 * together with the character before them. */
static size_t step_back(struct str s, size_t at, size_t count)
{
    while (count-- && at) {
        at--;
        while (utf8_inside(s, at))
            at--;
    }
    return at;
}

#define ELLIPSIS "\xe2\x80\xa6"

void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len)
{
    /* A match that is wider than the snippet fills the whole snippet. */
    struct str match = utf8_first((struct str){content.p + at, len}, width);
    size_t left = width - utf8_count(match);
    size_t begin = step_back(content, at, left / 2);
    size_t before = utf8_count((struct str){content.p + begin, at - begin});
    size_t end = at + match.n;

    end += utf8_first(str_skip(content, end), left - before).n;

    /* Space that is not used after the match is used before it. */
    size_t after = utf8_count((struct str){content.p + at + match.n, end - at - match.n});

    begin = step_back(content, begin, left - before - after);

    struct buf line = BUF_INIT(SIZE_MAX);
    size_t from, to;

    if (begin > 0)
        buf_add_c(out, ELLIPSIS);
    from = out->len;

    /* The line is made three times, each time with one more part, to see where the match is in it.
     * White space at the end of a part becomes one blank if something follows. */
    vis_add_line(&line, (struct str){content.p + begin, at - begin}, safe);
    from += line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, at + match.n - begin}, safe);
    to = out->len + line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, end - begin}, safe);
    buf_add_str(out, buf_str(&line));
    if (from < to && out->data[from] == ' ')
        from++;
    if (end < content.n)
        buf_add_c(out, ELLIPSIS);
    if (mark)
        *mark = from;
    if (mark_len)
        *mark_len = to - from;
    buf_release(&line);
}
