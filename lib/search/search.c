#include "chathist/search/search.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/crew.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"
#include "chathist/history/index_file.h"
#include "search/judge.h"

/* ---- many lines at once ---- */

struct search_sweep {
    struct needles needles;
    struct skip_query query;
    struct judge judges[CREW_MAX];
    void *ctx[CREW_MAX];
    size_t threads;
    struct sweep *sweep;
};

/* Parts of a block of the scan: a file of less is parsed line by line, one with less left to be
 * read is read by one thread. And the largest piece. */
#define SMALL(block) ((off_t)(block) / 4)
#define HELPED(block) ((off_t)(block)*32)
#define PIECE(block) ((block)*16)

static void sweep_release(struct search_sweep *w)
{
    sweep_free(w->sweep);
    for (size_t i = 0; i < w->threads; i++)
        judge_release(&w->judges[i]);
    needles_release(&w->needles);
    skip_query_release(&w->query);
    free(w);
}

/* What of a large history is to be read, as far as its skip index tells. */
static void narrow(void *arg, struct skip_map *map)
{
    const struct search *s = arg;
    const char *index = history_index(s->history);

    skip_map_make(map, s->history->dir_fd, s->history->skip,
                  index ? index_file_generation(s->history->dir_fd, index, s->scan.fd) : 0,
                  s->skip_block, s->scan.size, &s->sweep->query);
}

/* Has the search done by a sweep, if it can be. */
static void start(struct search *s, bool list)
{
    size_t block = s->scan.block_size;

    s->started = true;
    if (s->invert || s->scan.sparse || s->scan.way != SCAN_BACKWARD || s->scan.size <= SMALL(block))
        return;

    struct search_sweep *w = mem_zalloc(sizeof *w);

    needles_init(&w->needles, s->with);
    if (!pattern_needles(s->pattern, &w->needles, &w->query)) {
        sweep_release(w);
        return;
    }
    w->threads = s->threads ? s->threads : s->scan.size < HELPED(block) ? 1 : crew_size();
    for (size_t i = 0; i < w->threads; i++) {
        judge_init(&w->judges[i], &s->scan, s->filter, s->pattern);
        w->ctx[i] = &w->judges[i];
    }
    w->sweep = sweep_new(&(struct sweep_job){
        .piece = {.needles = &w->needles,
                  .fd = s->scan.fd,
                  .size = s->scan.size,
                  .block_size = block,
                  .line_max = s->scan.line_max,
                  .read = judge_read,
                  .ask = judge_ask,
                  .list = list},
        .path = s->scan.path,
        .threads = w->threads,
        .ctx = w->ctx,
        .piece_max = PIECE(block),
        .helped = HELPED(block),
        .narrow = s->history && !w->query.useless ? narrow : NULL,
        .narrow_arg = s,
        .cancel = s->cancel,
    });
    s->sweep = w;
}

int search_open(struct search *s, int dir, const char *history_path, struct pattern *pattern,
                const struct filter *filter, enum scan_way way, struct err *e)
{
    *s = (struct search){.message = MESSAGE_INIT,
                         .pattern = pattern,
                         .filter = filter && !filter_is_empty(filter) ? filter : NULL,
                         .with = simd_best(),
                         .skip_block = SKIP_BLOCK};
    if (scan_open(&s->scan, dir, history_path, way, e) < 0)
        return -1;
    buf_init(&s->decoded, BUF_LINE);
    buf_init(&s->line, SIZE_MAX);
    /* Of one session alone the lines are found fast. */
    if (filter && filter->sessions.count == 1)
        scan_only(&s->scan, filter->sessions.at[0]);
    return 0;
}

void search_close(struct search *s)
{
    if (s->sweep)
        sweep_release(s->sweep);
    scan_close(&s->scan);
    buf_release(&s->decoded);
    buf_release(&s->line);
    message_release(&s->message);
}

/* Looks at the message that was read: 1, or SEARCH_FAILED. */
static int match(struct search *s, struct hit *h, struct err *e)
{
    int found;

    h->message = &s->message;
    h->content = message_content(&s->message, &s->decoded);
    h->at = h->len = 0;
    h->found = false;
    h->asked = !s->filter || filter_match(s->filter, &s->message);
    if (!h->asked)
        return 1;
    found = pattern_find(s->pattern, h->content, &h->at, &h->len, e);
    h->found = found == (s->invert ? 0 : 1);
    return found < 0 ? SEARCH_FAILED : 1;
}

int search_each(struct search *s, struct hit *h, struct err *e)
{
    int result = scan_message(&s->scan, &s->message, &h->line, e);

    s->started = true;
    return result > 0 ? match(s, h, e) : result;
}

/* The next line that the sweep has found, read again. What a writer took back meanwhile is no
 * hit. */
static int next_swept(struct search *s, struct hit *h, struct err *e)
{
    struct piece_item item;
    int more;

    while ((more = sweep_next(s->sweep->sweep, &item, &s->scan.bad, e)) > 0) {
        buf_clear(&s->line);

        char *to = buf_room(&s->line, item.n);
        ssize_t got = io_pread_full(s->scan.fd, to, item.n, item.at);

        if (got < 0)
            return err_sys(e, errno, "cannot read '%s'", s->scan.path);
        buf_grew(&s->line, (size_t)got);
        h->line = (struct line){.text = buf_str(&s->line),
                                .at = item.at,
                                .terminated = item.at + (off_t)item.n < s->scan.size};
        if ((size_t)got == item.n && message_parse(&s->message, h->line.text) &&
            match(s, h, e) == 1 && h->found)
            return 1;
    }
    return more;
}

int search_next(struct search *s, struct hit *h, struct err *e)
{
    int result;

    if (!s->started)
        start(s, true);
    do {
        /* What was found ahead is not given either. */
        if (crew_cancelled(s->cancel))
            return 0;
        result = s->sweep ? next_swept(s, h, e) : search_each(s, h, e);
    } while (result == 1 && !h->found);
    return result;
}

int search_count(struct search *s, bool any, uint64_t *count, struct err *e)
{
    struct piece_item item;
    int result;

    if (!s->started)
        start(s, any);
    if (!s->sweep)
        return 0;
    if (!any)
        return sweep_count(s->sweep->sweep, count, &s->scan.bad, e) < 0 ? -1 : 1;
    result = sweep_next(s->sweep->sweep, &item, &s->scan.bad, e);
    *count = result > 0;
    return result < 0 ? -1 : 1;
}

bool search_was_long(const struct search *s)
{
    return s->sweep && sweep_missed(s->sweep->sweep) > 0;
}

int search_again(struct search *s, struct str line, struct hit *h, struct err *e)
{
    if (!message_parse(&s->message, line))
        return err_set(e, ERR_FAILURE, "a line changed meanwhile");
    /* One that could not be matched may be there as context. */
    match(s, h, NULL);
    return 0;
}

/* ---- snippets ---- */

/* The offset of up to `count` code points before `at`. Continuation bytes that continue nothing are
 * passed together with what stands before them. */
static size_t step_back(struct str s, size_t at, size_t count)
{
    while (count-- && at) {
        at--;
        while (utf8_inside(s, at))
            at--;
    }
    return at;
}

static size_t step_on(struct str s, size_t at, size_t count)
{
    return at + utf8_first((struct str){s.p + at, s.n - at}, count).n;
}

#define ELLIPSIS "\xe2\x80\xa6"

void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len)
{
    /* A match that is wider than the snippet fills it. */
    struct str match = utf8_first((struct str){content.p + at, len}, width);
    size_t left = width - utf8_count(match);
    size_t begin = step_back(content, at, left / 2);
    size_t before = utf8_count((struct str){content.p + begin, at - begin});
    size_t end = step_on(content, at + match.n, left - before);

    /* What is not used behind the match goes before it. */
    size_t behind = utf8_count((struct str){content.p + at + match.n, end - at - match.n});

    begin = step_back(content, begin, left - before - behind);

    struct buf line = BUF_INIT(SIZE_MAX);
    size_t from, to;

    if (begin > 0)
        buf_add_c(out, ELLIPSIS);
    from = out->len;

    /* The line is made three times, each with one more part, to see where in it the match is. White
     * space that ends a part is one blank when something follows. */
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
