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

/* What the rules below look at. Borrows from the message. */
static struct outline_line outline_of(const struct message *m)
{
    return (struct outline_line){.role = m->role,
                                 .reset = message_is_reset(m),
                                 .title = message_is_title(m),
                                 .id = m->id,
                                 .reply_to = m->field[FIELD_REPLY_TO],
                                 .replaces = m->field[FIELD_REPLACES]};
}

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
static bool stands(struct state *s, const struct outline_line *l)
{
    bool out = s->reset || hash_map_find(&s->replaced, l->id);
    struct json_iter it = json_iter(l->replaces);
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (l->title)
        return false;
    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);

        if (id.p)
            hash_map_add(&s->replaced, id);
    }
    buf_release(&scratch);
    s->reset = s->reset || (!out && l->reset);
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

static bool message_stands(struct state *s, const struct message *m)
{
    struct outline_line l = outline_of(m);

    return stands(s, &l);
}

/* ---- the order of lines ---- */

/* Returns the turn of a line, counted from 1; 0 before the first prompt. An answer that names an
 * earlier prompt belongs to it, every other line to the newest prompt before it. The id of the line
 * is borrowed by `prompts`. */
static size_t turn_of(const struct outline_line *l, struct hash_map *prompts, size_t *turns,
                      struct buf *scratch)
{
    const size_t *prompt = NULL;
    struct str named;

    if (l->role == ROLE_USER) {
        hash_map_set(prompts, l->id, ++*turns);
        return *turns;
    }
    named = json_text(l->reply_to, scratch);
    if (named.p)
        prompt = hash_map_find(prompts, named);
    return prompt ? *prompt : *turns;
}

#define DROPPED SIZE_MAX

/* Returns the place of each line in the thread, or DROPPED: the lines of a turn are together,
 * otherwise in the order of the file (a counting sort). *left is the number of lines that are not
 * dropped. The caller frees the places. */
static size_t *find_places(const struct outline_line *line, size_t count, size_t *left)
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
    struct outline_line *line = mem_zalloc((t->count + 1) * sizeof(*line));
    struct message *at = mem_zalloc((t->count + 1) * sizeof(*at));
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    char **lines = mem_zalloc((t->count + 1) * sizeof(*lines));
    size_t *place, left;

    keep_title(t);
    for (size_t i = 0; i < t->count; i++)
        line[i] = outline_of(&t->at[i]);
    place = find_places(line, t->count, &left);
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
    free(line);
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
        if (!wish->raw && !message_stands(s, m))
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
        if (!message_stands(s, &b->m) || b->m.role != ROLE_SYSTEM)
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

/* ---- the outline of a thread ---- */

/* The texts of an outline are in blocks of this size, or larger ones. */
#define TEXT_BLOCK ((size_t)64 << 10)

static struct str keep_text(struct outline *o, struct str text)
{
    char *at;

    if (!text.p)
        return STR_NONE;
    if (o->room <= text.n) {
        o->room = text.n < TEXT_BLOCK ? TEXT_BLOCK : text.n + 1;
        o->texts = mem_grow(o->texts, &o->texts_cap, o->texts_count + 1, sizeof(*o->texts));
        o->texts[o->texts_count++] = o->next = mem_zalloc(o->room);
    }
    at = o->next;
    memcpy(at, text.p, text.n);
    o->next += text.n;
    o->room -= text.n;
    return (struct str){at, text.n};
}

static void outline_add(struct outline *o, const struct back *b)
{
    struct outline_line l = outline_of(&b->m);

    l.at = b->at;
    l.n = b->n;
    l.id = keep_text(o, l.id);
    l.reply_to = keep_text(o, l.reply_to);
    l.replaces = keep_text(o, l.replaces);
    o->line = mem_grow(o->line, &o->cap, o->count + 1, sizeof(*o->line));
    o->line[o->count++] = l;
}

/* Drops and orders the lines of a raw outline, as thread_settle does. */
static void outline_settle(struct outline *o)
{
    struct outline_line *line = mem_zalloc((o->count + 1) * sizeof(*line));
    size_t left, *place = find_places(o->line, o->count, &left);

    for (size_t i = 0; i < o->count; i++)
        if (place[i] != DROPPED)
            line[place[i]] = o->line[i];
    free(place);
    free(o->line);
    o->line = line;
    o->cap = o->count + 1;
    o->count = left;
}

/* Returns whether a message of that id no longer belongs to the thread once this line is there. */
static bool takes_out(const struct outline_line *l, struct str id)
{
    struct state s = {0};
    bool out;

    (void)stands(&s, l);
    out = s.reset || hash_map_find(&s.replaced, id);
    state_release(&s);
    return out;
}

void outline_turn_back(struct outline *o, size_t place)
{
    size_t end = place + 1;

    while (end < o->count && !takes_out(&o->line[end], o->line[place].id))
        end++;
    o->count = end;
    outline_settle(o);
}

/* Reads the lines, the newest first. 0, -1, BROKEN. */
static int outline_read(struct outline *o, struct back *b, bool raw, struct err *e)
{
    int result;

    while ((result = back_next(b, e)) > 0)
        outline_add(o, b);
    if (result == 0)
        result = count_bad(b, true, &o->bad_lines);
    if (result == 0)
        result = scan_open_same(&o->file, b->indexed ? &b->x.scan : &b->scan, e);
    if (result < 0)
        return result;
    for (size_t i = 0, j = o->count; i + 1 < j; i++) {
        struct outline_line l = o->line[i];

        o->line[i] = o->line[--j];
        o->line[j] = l;
    }
    if (!raw)
        outline_settle(o);
    return 0;
}

int outline_find(struct outline *o, const struct history *h, struct str session_id, bool raw,
                 struct err *e)
{
    bool by_index = true;
    struct back b;
    int result;

    do {
        *o = (struct outline){.file.fd = -1};
        if (back_open(&b, h, session_id, by_index, e) < 0)
            return -1;
        result = outline_read(o, &b, raw, e);
        if (result == BROKEN)
            history_remove_index(h);
        back_close(&b);
        if (result < 0)
            outline_release(o);
        by_index = false;
    } while (result == BROKEN);
    return result;
}

int outline_message(const struct outline *o, size_t i, struct message *m, struct buf *line,
                    struct err *e)
{
    const struct outline_line *l = &o->line[i];

    if (scan_again(&o->file, l->at, l->n, line, e) < 0)
        return -1;
    if (message_parse(m, buf_str(line)) && str_eq(m->id, l->id))
        return 0;
    return err_set(e, ERR_FAILURE, "'%s' was changed while it was read", o->file.path);
}

void outline_release(struct outline *o)
{
    for (size_t i = 0; i < o->texts_count; i++)
        free(o->texts[i]);
    free(o->texts);
    free(o->line);
    scan_close(&o->file);
    *o = (struct outline){.file.fd = -1};
}
