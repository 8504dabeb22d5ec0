#include "chathist/history/thread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/history/scan.h"
#include "chathist/history/title.h"
#include "history/session_index.h"

/* Keeps memory that lines are in. */
static char *own_block(struct thread *t, char *block)
{
    t->blocks = mem_grow(t->blocks, &t->blocks_cap, t->blocks_count + 1, sizeof(char *));
    t->blocks[t->blocks_count++] = block;
    return block;
}

/* Adds a line that lives as long as the thread. */
static bool add_kept(struct thread *t, struct str line)
{
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->at[t->count] = (struct message)MESSAGE_INIT;
    return message_parse(&t->at[t->count++], line);
}

bool thread_add(struct thread *t, struct str line)
{
    return add_kept(t, (struct str){own_block(t, mem_copy(line.p, line.n)), line.n});
}

/* ---- dropping lines ---- */

/* What lines say of earlier ones. */
struct state {
    struct hash_map replaced; /* ids in `replaces` */
    bool reset;               /* older lines do not belong to the thread */
};

/* Takes in what the next older line says. Returns whether the line itself belongs to the thread: it
 * is no title, no later line names it in `replaces`, and no reset comes after it. */
static bool line_counts(struct state *s, const struct message *m)
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

/* Returns whether an array of strings has this one. */
static bool has_string(struct str array, struct str text)
{
    struct json_iter it = json_iter(array);
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool has = false;

    while (!has && !it.object && json_next(&it))
        has = str_eq(json_text(it.value, &scratch), text);
    buf_release(&scratch);
    return has;
}

/* Returns the number of the line before line i that was imported from the same record and that it
 * replaces; else i. */
static size_t find_replaced(const struct message *line, size_t i)
{
    struct str replaces = line[i].field[FIELD_REPLACES], origin = line[i].field[FIELD_ORIGIN];

    for (size_t n = i; replaces.p && origin.p && n-- > 0;)
        if (str_eq(line[n].field[FIELD_ORIGIN], origin) && has_string(replaces, line[n].id))
            return n;
    return i;
}

/* Returns the numbers of the lines in the order of the file, but a line that replaces another one of
 * its record stands where that one did. The caller frees them. */
static size_t *order_lines(const struct message *line, size_t count)
{
    size_t *order = mem_zalloc((count + 1) * sizeof(*order)),
           *at = mem_zalloc((count + 1) * sizeof(*at));

    for (size_t i = 0; i < count; i++) {
        size_t was = find_replaced(line, i);

        order[i] = at[i] = i;
        if (was < i) {
            at[i] = at[was];
            at[was] = i;
            order[at[i]] = i;
            order[i] = was;
        }
    }
    free(at);
    return order;
}

/* Returns the place of each line in the thread, or DROPPED: the lines of a turn are together,
 * otherwise in the order of order_lines (a counting sort). *left is the number of lines that are not
 * dropped. The caller frees the places. */
static size_t *find_places(const struct message *line, size_t count, size_t *left)
{
    size_t *place = mem_zalloc((count + 1) * sizeof(*place)), *order = order_lines(line, count),
           *next, turns = 0;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct hash_map prompts = {0};
    struct state s = {0};

    for (size_t i = count; i-- > 0;)
        place[i] = line_counts(&s, &line[i]) ? 0 : DROPPED;
    for (size_t i = 0; i < count; i++)
        if (place[order[i]] != DROPPED)
            place[order[i]] = turn_of(&line[order[i]], &prompts, &turns, &scratch);

    next = mem_zalloc((turns + 2) * sizeof(*next));
    for (size_t i = 0; i < count; i++)
        if (place[i] != DROPPED)
            next[place[i] + 1]++;
    for (size_t i = 0; i < turns; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < count; i++)
        if (place[order[i]] != DROPPED)
            place[order[i]] = next[place[order[i]]]++;
    *left = next[turns];
    free(next);
    free(order);
    hash_map_release(&prompts);
    buf_release(&scratch);
    hash_map_release(&s.replaced);
    return place;
}

static void truncate_thread(struct thread *t, size_t count)
{
    while (t->count > count)
        message_release(&t->at[--t->count]);
}

void thread_finish(struct thread *t)
{
    const struct message *title = titles_find_line(t->at, t->count);
    size_t left, *place = find_places(t->at, t->count, &left);

    if (title && !t->title) {
        t->title = mem_zalloc(sizeof *t->title);
        *t->title = (struct message)MESSAGE_INIT;
        (void)message_parse(t->title, title->line);
    }
    /* Each swap brings one message to its place. Those without a place gather at the end. */
    for (size_t i = 0; i < t->count; i++) {
        while (place[i] != DROPPED && place[i] != i) {
            size_t to = place[i];
            struct message m = t->at[to];

            t->at[to] = t->at[i];
            t->at[i] = m;
            place[i] = place[to];
            place[to] = to;
        }
    }
    free(place);
    truncate_thread(t, left);
}

void thread_turn_back(struct thread *t, size_t place)
{
    struct state s = {0};
    size_t end = place + 1;

    /* The line belongs to the thread until a later one resets the session or replaces it. */
    for (; end < t->count; end++) {
        (void)line_counts(&s, &t->at[end]);
        if (s.reset || hash_map_find(&s.replaced, t->at[place].id))
            break;
    }
    hash_map_release(&s.replaced);
    truncate_thread(t, end);
    thread_finish(t);
}

void thread_release(struct thread *t)
{
    truncate_thread(t, 0);
    if (t->title)
        message_release(t->title);
    free(t->title);
    while (t->blocks_count > 0)
        free(t->blocks[--t->blocks_count]);
    free(t->blocks);
    free(t->at);
    memset(t, 0, sizeof(*t));
}

/* ---- reading ---- */

/* Reads the lines of a session at the places that the index has for them. Returns false if they are
 * not there. */
static bool read_by_index(struct thread *t, struct session_index *x, struct str session_id)
{
    struct session_lines lines;
    bool right = session_index_lines(x, session_id, &lines) == 0;
    struct str rest = STR_NONE;
    size_t size = 0;
    char *text;

    for (size_t i = 0; i < lines.count; i++)
        size += (size_t)(lines.at[i].to - lines.at[i].from);
    text = own_block(t, mem_resize(NULL, size + 1, 1));
    for (size_t i = 0; right && i < lines.count; i++) {
        size_t n = (size_t)(lines.at[i].to - lines.at[i].from);

        right = file_pread_full(x->scan.fd, text + rest.n, n, lines.at[i].from) == (ssize_t)n;
        rest.n += n;
    }
    for (rest.p = text; right && rest.n > 0;)
        right =
            add_kept(t, str_cut(&rest, '\n')) && str_eq(t->at[t->count - 1].session_id, session_id);
    right = right && t->count == lines.lines &&
            session_index_count_bad(x, session_id, &t->bad_lines) == 0;
    free(lines.at);
    return right;
}

static int read_by_scan(struct thread *t, const struct history *h, struct str session_id,
                        struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    int more;

    if (scan_open(&s, h->dir_fd, h->path, e) < 0)
        return -1;
    scan_only(&s, session_id);
    while ((more = scan_message(&s, &m, NULL, e)) > 0)
        (void)thread_add(t, m.line);
    t->bad_lines = s.bad;
    message_release(&m);
    scan_close(&s);
    return more;
}

int thread_find(struct thread *t, const struct history *h, struct str session_id, bool raw,
                struct err *e)
{
    struct session_index x;
    bool found = false;

    *t = (struct thread){0};
    if (session_index_open(&x, h)) {
        found = read_by_index(t, &x, session_id);
        if (found)
            session_index_close(&x);
        else
            session_index_discard(&x);
    }
    if (!found) {
        thread_release(t);
        if (read_by_scan(t, h, session_id, e) < 0) {
            thread_release(t);
            return -1;
        }
    }
    t->all = t->count;
    if (!raw)
        thread_finish(t);
    return 0;
}

/* ---- news from other machines ---- */

int thread_find_news(struct thread_news *n, const struct history *h, struct str session_id,
                     struct str mark, const struct hash_map *own)
{
    struct message m = MESSAGE_INIT;
    struct session_lines lines = {0};
    struct session_index x;
    struct scan s;
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool indexed = session_index_open(&x, h), found, reset;
    int more = 0;

    if (indexed && session_index_lines(&x, session_id, &lines) == 0)
        scan_share(&s, &x.scan, 0, lines.count > 0 ? lines.at[lines.count - 1].to : 0);
    else
        more = scan_open(&s, h->dir_fd, h->path, NULL);
    free(lines.at);
    if (more == 0) {
        scan_only(&s, session_id);
        more = scan_find(&s, &mark, 1, &m, NULL);
        found = more > 0;
        if (found)
            buf_set(&n->newest, m.id);
        else if (more == 0)
            scan_from(&s, 0);
        while (more >= 0 && (more = scan_message(&s, &m, NULL, NULL)) > 0) {
            buf_set(&n->newest, m.id);
            if (!found || hash_map_find(own, m.id))
                continue;
            reset = message_is_reset(&m);
            n->resets += reset;
            n->systems += m.role == ROLE_SYSTEM && (!reset || message_content(&m, &scratch).n > 0);
            n->replacing += m.field[FIELD_REPLACES].p && !message_is_title(&m);
        }
        message_release(&m);
        scan_close(&s);
    }
    if (indexed)
        session_index_close(&x);
    buf_release(&scratch);
    return more;
}
