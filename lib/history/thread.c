#include "chathist/history/thread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/history/scan.h"
#include "history/session_index.h"

void thread_add(struct thread *t, struct str line)
{
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->lines = mem_grow(t->lines, &t->lines_cap, t->lines_count + 1, sizeof(*t->lines));
    t->lines[t->lines_count] = mem_copy(line.p, line.n);
    t->at[t->count] = (struct message)MESSAGE_INIT;
    (void)message_parse(&t->at[t->count], (struct str){t->lines[t->lines_count], line.n});
    t->count++;
    t->lines_count++;
}

/* ---- dropping lines ---- */

/* What lines say of earlier ones. */
struct state {
    struct hash_map replaced; /* ids in `replaces`; the keys are owned */
    char **keys;
    size_t keys_count, keys_cap;
    char **waiting; /* prompts that lines name, and that were not met yet */
    size_t waiting_count, waiting_cap;
    bool reset; /* older lines do not belong to the thread */
};

static void state_release(struct state *s)
{
    hash_map_release(&s->replaced);
    for (size_t i = 0; i < s->keys_count; i++)
        free(s->keys[i]);
    for (size_t i = 0; i < s->waiting_count; i++)
        free(s->waiting[i]);
    free(s->keys);
    free(s->waiting);
}

static bool is_replaced(const struct state *s, struct str id)
{
    return s->replaced.size > 0 && hash_map_find(&s->replaced, id);
}

/* Takes in what the next older line says. Returns whether the line itself belongs to the thread: it
 * is no title, no later line names it in `replaces`, and no reset comes after it. */
static bool stands(struct state *s, const struct message *m)
{
    bool out = s->reset || is_replaced(s, m->id);
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (message_is_title(m))
        return false;
    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);

        if (!id.p || is_replaced(s, id))
            continue;
        s->keys = mem_grow(s->keys, &s->keys_cap, s->keys_count + 1, sizeof *s->keys);
        s->keys[s->keys_count] = mem_copy(id.p, id.n);
        hash_map_set(&s->replaced, (struct str){s->keys[s->keys_count++], id.n}, 1);
    }
    buf_release(&scratch);
    s->reset = s->reset || (!out && message_is_reset(m));
    return !out;
}

/* Keeps the newest line that gives a title. */
static void keep_title(struct thread *t)
{
    size_t i = t->count;

    while (i > 0 && !message_is_title(&t->at[i - 1]))
        i--;
    if (i == 0 || t->title)
        return;
    t->title_line = mem_copy(t->at[i - 1].line.p, t->at[i - 1].line.n);
    t->title = mem_zalloc(sizeof *t->title);
    *t->title = (struct message)MESSAGE_INIT;
    (void)message_parse(t->title, (struct str){t->title_line, t->at[i - 1].line.n});
}

/* Drops message i if out[i] is true. */
static void leave_out(struct thread *t, const bool *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->count; i++) {
        if (out[i]) {
            message_release(&t->at[i]);
            free(t->lines[i]);
        } else {
            t->at[kept] = t->at[i];
            t->lines[kept] = t->lines[i];
            kept++;
        }
    }
    t->count = kept;
    t->lines_count = kept;
}

/* ---- the order of turns ---- */

/* Gives each line the number of its turn: 0 before the first prompt. An answer that names an
 * earlier prompt belongs to it, every other line to the newest prompt before it. */
static size_t number_turns(const struct thread *t, size_t *turn)
{
    struct hash_map prompts = {0}; /* id -> turn */
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t turns = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct message *m = &t->at[i];
        const size_t *prompt = NULL;

        if (m->role == ROLE_USER) {
            hash_map_set(&prompts, m->id, ++turns);
        } else {
            struct str named = message_text(m, FIELD_REPLY_TO, &scratch);

            if (named.p)
                prompt = hash_map_find(&prompts, named);
        }
        turn[i] = prompt ? *prompt : turns;
    }
    hash_map_release(&prompts);
    buf_release(&scratch);
    return turns;
}

/* Puts the lines of each turn together, otherwise in the order of the file (a counting sort). */
static void group_turns(struct thread *t)
{
    size_t *turn = mem_zalloc((t->count + 1) * sizeof(*turn));
    size_t turns = number_turns(t, turn);
    size_t *next = mem_zalloc((turns + 2) * sizeof(*next));
    struct message *sorted = mem_zalloc((t->count + 1) * sizeof(*sorted));

    for (size_t i = 0; i < t->count; i++)
        next[turn[i] + 1]++;
    for (size_t i = 0; i < turns; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < t->count; i++)
        sorted[next[turn[i]]++] = t->at[i];
    free(t->at);
    t->at = sorted;
    t->cap = t->count + 1;
    free(turn);
    free(next);
}

void thread_settle(struct thread *t)
{
    struct state s = {0};
    bool *out = mem_zalloc(t->count + 1);

    keep_title(t);
    for (size_t i = t->count; i-- > 0;)
        out[i] = !stands(&s, &t->at[i]);
    leave_out(t, out);
    free(out);
    state_release(&s);
    group_turns(t);
}

/* Returns whether a message of that id no longer belongs to the thread once this line is there. */
static bool takes_out(const struct message *m, struct str id)
{
    struct state s = {0};
    bool out;

    (void)stands(&s, m);
    out = s.reset || is_replaced(&s, id);
    state_release(&s);
    return out;
}

void thread_turn_back(struct thread *t, size_t place)
{
    bool *out = mem_zalloc(t->count);
    bool is_out = false;

    for (size_t i = place + 1; i < t->count; i++) {
        is_out = is_out || takes_out(&t->at[i], t->at[place].id);
        out[i] = is_out;
    }
    leave_out(t, out);
    free(out);
    thread_settle(t);
}

int thread_load_between(struct thread *t, int dir, const char *history_path, struct str session_id,
                        off_t first, off_t end, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    int result;

    *t = (struct thread){0};
    if (scan_open(&s, dir, history_path, SCAN_FORWARD, e) < 0)
        return -1;
    scan_only(&s, session_id);
    scan_between(&s, first < s.size ? first : s.size, end < s.size ? end : s.size);
    while ((result = scan_message(&s, &m, NULL, e)) > 0)
        thread_add(t, m.line);
    t->all = t->count;
    t->bad_lines = s.bad;
    message_release(&m);
    scan_close(&s);
    if (result < 0)
        thread_release(t);
    else
        thread_settle(t);
    return result;
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
    for (size_t i = 0; i < t->count; i++)
        message_release(&t->at[i]);
    for (size_t i = 0; i < t->lines_count; i++)
        free(t->lines[i]);
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
    bool indexed;
    struct session_index x;
    struct session_lines lines;
    size_t left;      /* ranges whose first line was not given */
    uint64_t given;   /* lines that were read */
    struct scan scan; /* of a range; without an index, of the whole history */
    bool scanning;    /* scan is open */
    bool quick;       /* only lines that find_system can want are given */
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

/* Returns whether find_system can skip the line. A name or a role that does not appear literally
 * could only be written with \u. */
static bool is_dull(const struct back *b, struct str text)
{
    return b->quick && !str_find(text, STR("\"system\"")) && !str_find(text, STR("\"replaces\"")) &&
           !str_find(text, STR("\\u"));
}

/* 1, 0, -1. */
static int next_by_scan(struct back *b, struct err *e)
{
    struct line l;
    int result;

    while ((result = scan_line(&b->scan, &l, e)) > 0) {
        if (!scan_may_give(&b->scan, l.text) || is_dull(b, l.text))
            continue;
        b->at = l.at;

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

        if (b->scanning && b->at == range->from) {
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
        b->given++;
        if (is_dull(b, l.text))
            continue;
        return message_parse(&b->m, l.text) && str_eq(b->m.session_id, b->session) ? 1 : BROKEN;
    }
    return b->given == b->lines.lines ? 0 : BROKEN;
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

/* Notes the prompt that the line names, which is further up. */
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
        if (wish->raw ? wish->plain && message_is_title(m) : !stands(s, m))
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
        group_turns(&t->thread);
    return 0;
}

static int try(struct tail *t, const struct history *h, struct str session_id,
               const struct tail_wish *wish, bool by_index, struct err *e)
{
    struct state s = {0};
    struct back b;
    int result;

    *t = (struct tail){0};
    if (back_open(&b, h, session_id, by_index, e) < 0)
        return -1;
    result = load(t, &b, &s, wish, e);
    if (result == BROKEN)
        history_remove_index(h);
    back_close(&b);
    state_release(&s);
    if (result < 0)
        tail_release(t);
    return result;
}

int tail_load(struct tail *t, const struct history *h, struct str session_id,
              const struct tail_wish *wish, struct err *e)
{
    const struct tail_wish whole = {
        .messages = SIZE_MAX, .bytes = SIZE_MAX, .raw = wish->raw, .plain = wish->plain};
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

void tail_release(struct tail *t)
{
    thread_release(&t->thread);
    thread_release(&t->system);
}
