#include "chathist/history/thread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/history/scan.h"
#include "chathist/history/title.h"
#include "history/session_index.h"

void thread_add(struct thread *t, struct str line)
{
    char *own = mem_copy(line.p, line.n);

    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->lines = mem_grow(t->lines, &t->lines_cap, t->count + 1, sizeof(*t->lines));
    t->lines[t->count] = own;
    t->at[t->count] = (struct message)MESSAGE_INIT;
    (void)message_parse(&t->at[t->count++], (struct str){own, line.n});
}

/* ---- dropping lines ---- */

/* What lines say of earlier ones. */
struct state {
    struct hash_map replaced; /* ids in `replaces` */
    char **waiting;           /* prompts that lines name, and that were not met yet */
    size_t waiting_count, waiting_cap;
    bool reset; /* older lines do not belong to the thread */
};

static void state_release(struct state *s)
{
    hash_map_release(&s->replaced);
    for (size_t i = 0; i < s->waiting_count; i++)
        free(s->waiting[i]);
    free(s->waiting);
}

/* Takes in what the next older line says. Returns whether the line itself belongs to the thread: it
 * is no title, no later line names it in `replaces`, and no reset comes after it. */
static bool stands(struct state *s, const struct message *m)
{
    bool out = s->reset || hash_map_find(&s->replaced, m->id);
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (message_is_title(m))
        return false;
    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);

        if (id.p)
            hash_map_add(&s->replaced, id);
    }
    buf_release(&scratch);
    s->reset = s->reset || (!out && message_is_reset(m));
    return !out;
}

/* Keeps the line that gives the title. */
static void keep_title(struct thread *t)
{
    const struct message *title = titles_find_line(t->at, t->count);

    if (!title || t->title)
        return;
    t->title_line = mem_copy(title->line.p, title->line.n);
    t->title = mem_zalloc(sizeof *t->title);
    *t->title = (struct message)MESSAGE_INIT;
    (void)message_parse(t->title, (struct str){t->title_line, title->line.n});
}

/* ---- the order of lines ---- */

/* Returns the turn of a line, counted from 1; 0 before the first prompt. An answer that names an
 * earlier prompt belongs to it, every other line to the newest prompt before it. The id of the line
 * is borrowed by `prompts`. */
static size_t turn_of(const struct message *m, struct hash_map *prompts, size_t *turns,
                      struct buf *scratch)
{
    const size_t *prompt = NULL;
    struct str named;

    if (m->role == ROLE_USER) {
        hash_map_set(prompts, m->id, ++*turns);
        return *turns;
    }
    named = message_text(m, FIELD_REPLY_TO, scratch);
    if (named.p)
        prompt = hash_map_find(prompts, named);
    return prompt ? *prompt : *turns;
}

#define DROPPED SIZE_MAX

/* Returns the place of each line in the thread, or DROPPED: the lines of a turn are together,
 * otherwise in the order of the file (a counting sort). *left is the number of lines that are not
 * dropped. The caller frees the places. */
static size_t *find_places(const struct message *line, size_t count, size_t *left)
{
    size_t *place = mem_zalloc((count + 1) * sizeof(*place)), *next, turns = 0;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct hash_map prompts = {0};
    struct state s = {0};

    for (size_t i = count; i-- > 0;)
        place[i] = stands(&s, &line[i]) ? 0 : DROPPED;
    for (size_t i = 0; i < count; i++)
        if (place[i] != DROPPED)
            place[i] = turn_of(&line[i], &prompts, &turns, &scratch);

    next = mem_zalloc((turns + 2) * sizeof(*next));
    for (size_t i = 0; i < count; i++)
        if (place[i] != DROPPED)
            next[place[i] + 1]++;
    for (size_t i = 0; i < turns; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < count; i++)
        if (place[i] != DROPPED)
            place[i] = next[place[i]]++;
    *left = next[turns];
    free(next);
    hash_map_release(&prompts);
    buf_release(&scratch);
    state_release(&s);
    return place;
}

void thread_settle(struct thread *t)
{
    struct message *at = mem_zalloc((t->count + 1) * sizeof(*at));
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    char **lines = mem_zalloc((t->count + 1) * sizeof(*lines));
    size_t *place, left;

    keep_title(t);
    place = find_places(t->at, t->count, &left);
    for (size_t i = 0; i < t->count; i++) {
        if (place[i] == DROPPED) {
            message_release(&t->at[i]);
            free(t->lines[i]);
        } else {
            at[place[i]] = t->at[i];
            lines[place[i]] = t->lines[i];
        }
    }
    free(t->at);
    free(t->lines);
    t->at = at;
    t->lines = lines;
    t->cap = t->lines_cap = t->count + 1;
    t->count = left;
    free(place);
}

void thread_turn_back(struct thread *t, size_t place)
{
    struct state s = {0};
    size_t end = place + 1, count = t->count;

    /* The line belongs to the thread until a later one resets the session or replaces it. */
    for (; end < count; end++) {
        (void)stands(&s, &t->at[end]);
        if (s.reset || hash_map_find(&s.replaced, t->at[place].id))
            break;
    }
    state_release(&s);
    for (t->count = end; count > end;) {
        message_release(&t->at[--count]);
        free(t->lines[count]);
    }
    thread_settle(t);
}

int thread_find(struct thread *t, const struct history *h, struct str session_id, bool raw,
                struct err *e)
{
    struct tail_wish wish = {.messages = SIZE_MAX, .bytes = SIZE_MAX, .raw = raw};
    struct tail tail;

    *t = (struct thread){0};
    if (tail_load(&tail, h, session_id, &wish, e) < 0)
        return -1;
    *t = tail.thread;
    return 0;
}

void thread_release(struct thread *t)
{
    for (size_t i = 0; i < t->count; i++) {
        message_release(&t->at[i]);
        free(t->lines[i]);
    }
    if (t->title)
        message_release(t->title);
    free(t->title);
    free(t->title_line);
    free(t->at);
    free(t->lines);
    *t = (struct thread){0};
}

/* ---- the lines of a session, newest first ---- */

struct back {
    struct str session;
    struct message m; /* the line that was given last; borrowed until the next one */
    off_t at;         /* its offset */
    size_t n;         /* its length, without the newline */
    bool indexed;
    struct session_index x;
    struct session_lines lines;
    size_t left;      /* ranges whose first line was not given */
    uint64_t given;   /* lines that were read */
    struct scan scan; /* of a range; without an index, of the whole history */
    bool scanning;    /* scan is open */
    bool quick;       /* not all lines are given, but at least the decisive ones */
    bool skipped;     /* a range was not read, because it is not decisive */
};

/* A range is read in blocks of this size. Most sessions are small. */
#define RANGE_BLOCK ((size_t)16 << 10)

static int back_open(struct back *b, const struct history *h, struct str session, bool by_index,
                     struct err *e)
{
    *b = (struct back){.session = session, .m = MESSAGE_INIT};
    b->indexed = by_index && session_index_open(&b->x, h);
    if (b->indexed) {
        b->at = b->x.scan.size;
        if (session_index_lines(&b->x, session, &b->lines) == 0) {
            b->left = b->lines.count;
            return 0;
        }
        session_index_discard(&b->x);
        b->indexed = false;
    }
    if (scan_open(&b->scan, h->dir_fd, h->path, SCAN_BACKWARD, e) < 0)
        return -1;
    scan_only(&b->scan, session);
    b->scanning = true;
    b->at = b->scan.size;
    return 0;
}

static void back_close(struct back *b)
{
    message_release(&b->m);
    if (b->scanning)
        scan_close(&b->scan);
    free(b->lines.at);
    if (b->indexed)
        session_index_close(&b->x);
}

/* Returns whether the line is not decisive. A name or a role that does not appear literally could
 * only be written with \u. */
static bool is_dull(struct str text)
{
    return !str_find(text, STR("\"system\"")) && !str_find(text, STR("\"replaces\"")) &&
           !str_find(text, STR("\\u"));
}

/* 1, 0, -1. */
static int next_by_scan(struct back *b, struct err *e)
{
    struct line l;
    int result;

    while ((result = scan_line(&b->scan, &l, e)) > 0) {
        if (!scan_may_give(&b->scan, l.text) || (b->quick && is_dull(l.text)))
            continue;
        b->at = l.at;
        b->n = l.text.n;

        enum scan_verdict verdict = scan_judge(&l, &b->m);

        b->scan.bad += verdict == SCAN_BAD;
        if (verdict == SCAN_MESSAGE && str_eq(b->m.session_id, b->session))
            return 1;
    }
    return result;
}

/* The index does not say where the lines are. */
#define BROKEN (-2)

/* 1, 0, BROKEN. */
static int next_by_index(struct back *b)
{
    struct line l;

    while (b->left > 0) {
        const struct line_range *range = &b->lines.at[b->left - 1];
        bool skip = b->quick && !range->decisive;

        if (skip || (b->scanning && b->at == range->from)) {
            b->skipped = b->skipped || skip;
            if (b->scanning)
                scan_close(&b->scan);
            b->scanning = false;
            b->left--;
            continue;
        }
        if (!b->scanning) {
            scan_share(&b->scan, &b->x.scan, range->to, range->to);
            b->scan.way = SCAN_BACKWARD;
            b->scan.block_size = RANGE_BLOCK;
            b->scanning = true;
        }
        if (scan_line(&b->scan, &l, NULL) <= 0 || l.too_long || l.at < range->from)
            return BROKEN;
        b->at = l.at;
        b->n = l.text.n;
        b->given++;
        return message_parse(&b->m, l.text) && str_eq(b->m.session_id, b->session) &&
                       message_is_decisive(&b->m) == range->decisive
                   ? 1
                   : BROKEN;
    }
    return b->skipped || b->given == b->lines.lines ? 0 : BROKEN;
}

/* The next older line of the session: 1, 0, -1, BROKEN. */
static int back_next(struct back *b, struct err *e)
{
    return b->indexed ? next_by_index(b) : next_by_scan(b, e);
}

/* The bad lines among those that were read, as a scan counts them. 0, BROKEN. */
static int count_bad(struct back *b, bool whole, uint64_t *bad)
{
    *bad = b->indexed ? 0 : b->scan.bad;
    if (!b->indexed || session_index_count_bad(&b->x, b->session, whole ? 0 : b->at, bad) == 0)
        return 0;
    return BROKEN;
}

/* ---- reading ---- */

/* The thread has to be loaded as a whole: a line names a prompt that is far up or missing. */
#define ODD (-3)

/* Notes the prompt that the line names; it is further up. */
static void wait_for_prompt(struct state *s, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name = message_text(m, FIELD_REPLY_TO, &scratch);

    if (m->role != ROLE_USER && name.p) {
        s->waiting =
            mem_grow(s->waiting, &s->waiting_cap, s->waiting_count + 1, sizeof *s->waiting);
        s->waiting[s->waiting_count++] = mem_copy(name.p, name.n);
    }
    buf_release(&scratch);
}

/* A prompt was met: no line waits for it any longer. */
static void meet_prompt(struct state *s, struct str id)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->waiting_count; i++) {
        if (str_eq_c(id, s->waiting[i]))
            free(s->waiting[i]);
        else
            s->waiting[kept++] = s->waiting[i];
    }
    s->waiting_count = kept;
}

/* If a prompt that lines name is not found, this many times as many lines are kept before the
 * thread counts as odd. */
#define PATIENCE 4
#define PATIENCE_LEAST 256

static bool is_limited(const struct tail_wish *wish)
{
    return wish->messages < SIZE_MAX || wish->bytes < SIZE_MAX;
}

/* Keeps the newest lines, the newest first. 1: there may be more, 0, -1, BROKEN, ODD. */
static int keep_lines(struct tail *t, struct back *b, struct state *s, const struct tail_wish *wish,
                      struct err *e)
{
    size_t bytes = 0;
    int result;

    while ((result = back_next(b, e)) > 0) {
        const struct message *m = &b->m;

        t->thread.all++;
        if (!wish->raw && !stands(s, m))
            continue;
        if (!wish->raw && m->role == ROLE_USER)
            meet_prompt(s, m->id);
        else if (!wish->raw && is_limited(wish))
            wait_for_prompt(s, m);
        thread_add(&t->thread, m->line);
        bytes += m->line.n;
        if (!is_limited(wish))
            continue;
        if (s->reset)
            return 0;
        if (t->thread.count < wish->messages && bytes < wish->bytes)
            continue;
        if (s->waiting_count == 0)
            return 1;
        if ((t->thread.count / PATIENCE >= wish->messages || bytes / PATIENCE >= wish->bytes) &&
            t->thread.count >= PATIENCE_LEAST)
            return ODD;
    }
    return result;
}

/* Reads on, without keeping lines, for the newest system line. 0, -1, BROKEN, ODD. */
static int find_system(struct tail *t, struct back *b, struct state *s, struct err *e)
{
    int result;

    b->quick = true;
    while (!s->reset && (result = back_next(b, e)) != 0) {
        if (result < 0)
            return result;
        if (!stands(s, &b->m) || b->m.role != ROLE_SYSTEM)
            continue;
        if (b->m.field[FIELD_REPLY_TO].p)
            return ODD;
        thread_add(&t->system, b->m.line);
        return 0;
    }
    return 0;
}

static bool has_system(const struct thread *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->at[i].role == ROLE_SYSTEM)
            return true;
    return false;
}

static void reverse(struct thread *t)
{
    for (size_t i = 0, j = t->count; i + 1 < j; i++) {
        struct message m = t->at[i];
        char *line = t->lines[i];

        t->at[i] = t->at[--j];
        t->at[j] = m;
        t->lines[i] = t->lines[j];
        t->lines[j] = line;
    }
}

/* 0, -1, BROKEN, ODD. */
static int load(struct tail *t, struct back *b, struct state *s, const struct tail_wish *wish,
                struct err *e)
{
    int result = keep_lines(t, b, s, wish, e);

    if (result < 0)
        return result;
    t->whole = result == 0;
    result = count_bad(b, t->whole && (!s->reset || !is_limited(wish)), &t->thread.bad_lines);
    if (result == 0 && !t->whole && wish->system && !wish->raw && !has_system(&t->thread))
        result = find_system(t, b, s, e);
    if (result < 0)
        return result;
    reverse(&t->thread);
    if (!wish->raw)
        thread_settle(&t->thread);
    return 0;
}

static int try(struct tail *t, const struct history *h, struct str session_id,
               const struct tail_wish *wish, bool by_index, struct err *e)
{
    struct tail got = {0};
    struct state s = {0};
    struct back b;
    int result;

    if (back_open(&b, h, session_id, by_index, e) < 0)
        return -1;
    result = load(&got, &b, &s, wish, e);
    if (result == BROKEN)
        history_remove_index(h);
    back_close(&b);
    state_release(&s);
    if (result < 0)
        tail_release(&got);
    else
        *t = got;
    return result;
}

int tail_load(struct tail *t, const struct history *h, struct str session_id,
              const struct tail_wish *wish, struct err *e)
{
    const struct tail_wish whole = {.messages = SIZE_MAX, .bytes = SIZE_MAX, .raw = wish->raw};
    bool by_index = true;
    int result;

    while ((result = try(t, h, session_id, wish, by_index, e)) < -1) {
        if (result == BROKEN)
            by_index = false;
        else
            wish = &whole;
    }
    return result;
}

/* ---- what came in ---- */

static void count_news(struct thread_news *n, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool reset = message_is_reset(m);

    n->resets += reset;
    n->systems += m->role == ROLE_SYSTEM && (!reset || message_content(m, &scratch).n > 0);
    n->replacing += m->field[FIELD_REPLACES].p && !message_is_title(m);
    buf_release(&scratch);
}

int thread_find_news(struct thread_news *n, const struct history *h, struct str session_id,
                     struct str mark, const struct hash_map *own, struct err *e)
{
    bool by_index = true, found;
    struct back b;
    int result;

    do {
        if (back_open(&b, h, session_id, by_index, e) < 0)
            return -1;
        n->systems = n->resets = n->replacing = 0;
        buf_clear(&n->newest);
        found = false;
        while (!found && (result = back_next(&b, e)) > 0) {
            if (n->newest.len == 0)
                buf_set(&n->newest, b.m.id);
            found = str_eq(b.m.id, mark);
            if (!found && !hash_map_find(own, b.m.id))
                count_news(n, &b.m);
        }
        if (!found)
            n->systems = n->resets = n->replacing = 0;
        if (result == BROKEN)
            history_remove_index(h);
        by_index = false;
        back_close(&b);
    } while (result == BROKEN);
    return result < 0 ? -1 : 0;
}

void tail_release(struct tail *t)
{
    thread_release(&t->thread);
    thread_release(&t->system);
}
