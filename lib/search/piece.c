#include "chathist/search/piece.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/simd_text.h"

#define PAGE ((size_t)4096)
/* The room in front of the window, for the line under way; of a longer one the window is behind it,
 * so that it is not moved again. And how much is kept of what such a line needed. */
#define HEAD ((size_t)64 << 10)
#define KEPT ((size_t)2 << 20)
/* How much is read at once of a line that goes on behind the piece. */
#define TAIL ((size_t)16 << 10)

void piece_release(struct piece *p)
{
    free(p->items);
    *p = (struct piece){0};
}

void piece_reader_release(struct piece_reader *r)
{
    free(r->memory);
    r->memory = NULL;
}

/* ---- memory ---- */

static char *window(const struct piece_reader *r)
{
    return r->memory + r->head;
}

static size_t window_size(const struct piece_reader *r)
{
    return r->job->block_size > TAIL ? r->job->block_size : TAIL;
}

static void make_memory(struct piece_reader *r)
{
    size_t size = (HEAD + window_size(r) + PAGE - 1) / PAGE * PAGE;

    r->head = HEAD;
    r->size = size;
    r->memory = aligned_alloc(PAGE, size);
    if (!r->memory)
        mem_exhausted();
}

/* Puts the n bytes at `rest`, which are in the window or before it, right before the window. */
static void carry(struct piece_reader *r, const char *rest, size_t n)
{
    r->head = n > HEAD ? n : HEAD;
    if (rest != window(r) - n)
        memmove(window(r) - n, rest, n);
    if (r->head + window_size(r) > r->size) {
        r->size = r->head + window_size(r) + r->head / 4;
        r->memory = mem_resize(r->memory, r->size, 1);
    }
}

/* ---- lines ---- */

static void add(struct piece_reader *r, off_t at, size_t n, bool bad)
{
    struct piece *p = r->piece;

    if (bad)
        p->bad++;
    else
        p->hits++;
    if (!r->job->list)
        return;
    p->items = mem_grow(p->items, &p->cap, p->count + 1, sizeof *p->items);
    p->items[p->count++] = (struct piece_item){at, n, bad};
}

/* The line that begins at `begin` is looked at next; there is no newline in it before `from`. */
static void set_line(struct piece_reader *r, const char *begin, const char *from)
{
    const char *newline = memchr(from, '\n', (size_t)(r->text_end - from));

    r->terminated = newline != NULL;
    r->line = (struct str){begin, (size_t)((newline ? newline : r->text_end) - begin)};
    r->content = (struct str){begin, 0};
    r->behind = newline ? newline + 1 : r->text_end;
}

static bool is_too_long(const struct piece_reader *r)
{
    return r->line.n > r->job->line_max;
}

static void note(struct piece_reader *r, enum piece_verdict verdict)
{
    if (verdict == PIECE_HIT || (verdict == PIECE_BAD && r->terminated))
        add(r, r->text_at + (r->line.p - r->text), r->line.n, verdict == PIECE_BAD);
}

/* Reads the line with a place where a needle may be. */
static enum piece_verdict read_line(struct piece_reader *r, const char *place)
{
    set_line(r, r->behind + simd_behind_newline(r->behind, (size_t)(place - r->behind)), place);
    if (is_too_long(r))
        return PIECE_BAD;
    return r->job->read(r->ctx, r->line,
                        skip_map_proven(r->job->map, r->text_at + (r->line.p - r->text)),
                        &r->content);
}

/* Called for each place where a needle may be. */
static const char *seen(void *ctx, const char *place)
{
    struct piece_reader *r = ctx;
    enum piece_verdict verdict = PIECE_ON;
    const char *at;

    if (!needles_may_match(r->job->needles, place, r->content.p, r->text_end, &at))
        return place + 1;
    if (place >= r->behind)
        verdict = read_line(r, place);
    if (verdict == PIECE_ON && place < r->content.p)
        return r->content.p;
    if (verdict == PIECE_ON && place < r->content.p + r->content.n)
        verdict = r->job->ask(r->ctx, at);
    note(r, verdict);
    return r->behind;
}

/* Looks at the lines from `from` on; `at` is where that is in the file. */
static void look(struct piece_reader *r, char *from, char *to, off_t at)
{
    r->text = from;
    r->behind = from;
    r->text_end = to;
    r->text_at = at;
    r->content = (struct str){from, 0};
    /* The line that was carried may have become too long, whatever it holds. */
    if ((size_t)(to - from) > r->job->line_max) {
        set_line(r, from, from);
        if (is_too_long(r))
            note(r, PIECE_BAD);
        else
            r->behind = from;
    }
    find_each(&r->job->needles->find, r->behind, to, seen, r);
}

/* ---- windows ---- */

struct reading {
    off_t next;   /* to be read */
    size_t held;  /* bytes of a line that lie right before the window */
    bool passing; /* the rest of a line is passed over: another piece's, or one that is too long */
    off_t too_long; /* where that one begins, else -1 */
};

/* Ends passing over at the newline, when there is one: where the next line begins, else NULL. */
static char *pass_over(struct piece_reader *r, struct reading *g, char *from, size_t n)
{
    char *newline = memchr(from, '\n', n);

    if (!newline)
        return NULL;
    if (g->too_long >= 0)
        add(r, g->too_long, (size_t)(g->next + (newline - from) - g->too_long), true);
    g->passing = false;
    g->too_long = -1;
    return newline + 1;
}

/* Where the lines end that can be looked at by now: those between `from`, what was held, and `to`.
 * `behind`: only the line under way, and with its end the piece ends. */
static char *stop_of(const struct piece_reader *r, char *from, char *to, bool behind, bool *last)
{
    /* What was held has no newline. */
    char *fresh = from > window(r) ? from : window(r), *newline;
    size_t n;

    if (!behind) {
        n = simd_behind_newline(fresh, (size_t)(to - fresh));
        return *last ? to : n ? fresh + n : from;
    }
    newline = memchr(fresh, '\n', (size_t)(to - fresh));
    if (!newline)
        return *last ? to : from;
    *last = true;
    return newline + 1;
}

/* Looks at a window of `got` bytes, the last one of the file when `last`. false: the piece has been
 * read. */
static bool take(struct piece_reader *r, struct reading *g, size_t got, bool last)
{
    bool behind = g->next >= r->piece->end; /* only the line under way is ours */
    char *from = window(r) - g->held, *to = window(r) + got, *stop;

    if (g->passing) {
        char *start = pass_over(r, g, from, got);

        g->next += (off_t)got;
        if (!start)
            return !last && (g->too_long >= 0 || g->next < r->piece->end);
        from = start;
        if (g->next - (to - from) > r->piece->end)
            return false;
    } else {
        g->next += (off_t)got;
    }
    stop = stop_of(r, from, to, behind, &last);
    look(r, from, stop, g->next - (to - from));
    if (last)
        return false;

    g->held = (size_t)(to - stop);
    if (g->held > r->job->line_max) {
        g->passing = true;
        g->too_long = g->next - (off_t)g->held;
        g->held = 0;
    }
    carry(r, stop, g->held);
    return true;
}

int piece_read(struct piece_reader *r, struct piece *p)
{
    struct reading g = {.next = p->begin, .passing = p->begin > 0, .too_long = -1};
    bool more = p->begin < r->job->size;

    p->hits = p->bad = 0;
    p->count = 0;
    r->piece = p;
    if (!r->memory)
        make_memory(r);
    r->head = HEAD;
    while (more) {
        off_t stop = g.next < p->end ? p->end : r->job->size;
        size_t most = g.next < p->end || g.held > TAIL ? r->job->block_size : TAIL;
        size_t want = stop - g.next < (off_t)most ? (size_t)(stop - g.next) : most;
        ssize_t got = io_pread_full(r->job->fd, window(r), want, g.next);

        if (got < 0)
            return -1;
        more = take(r, &g, (size_t)got, (size_t)got < want || g.next + (off_t)got >= r->job->size);
    }
    if (r->size > KEPT)
        piece_reader_release(r);
    return 0;
}
