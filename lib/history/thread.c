#include "chathist/history/thread.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/keymap.h"
#include "chathist/base/mem.h"
#include "chathist/history/scan.h"
#include "history/session_index.h"

/* A copy: it was read from memory that the next line will overwrite. false: it is no message. */
static bool add_copy(struct thread *t, struct str line)
{
    bool valid;

    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof(*t->at));
    t->lines = mem_grow(t->lines, &t->lines_cap, t->lines_count + 1, sizeof(*t->lines));
    t->lines[t->lines_count] = mem_copy(line.p, line.n);
    t->at[t->count] = (struct message)MESSAGE_INIT;
    valid = message_parse(&t->at[t->count], (struct str){t->lines[t->lines_count], line.n});
    t->count++;
    t->lines_count++;
    return valid;
}

void thread_add(struct thread *t, struct str line)
{
    (void)add_copy(t, line);
}

/* `end` below 0: of the file. */
static int load_all(struct thread *t, int dir, const char *path, struct str session_id, off_t first,
                    off_t end, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    int result;

    if (scan_open(&s, dir, path, SCAN_FORWARD, e) < 0)
        return -1;
    scan_only(&s, session_id);
    if (end >= 0)
        scan_between(&s, first < s.size ? first : s.size, end < s.size ? end : s.size);
    while ((result = scan_message(&s, &m, NULL, e)) > 0)
        thread_add(t, m.line);
    t->all = t->count;
    t->bad_lines = s.bad;
    message_release(&m);
    scan_close(&s);
    return result;
}

/* ---- by the index ---- */

/* Adds the lines of a range. Returns 0; -1 unless they are all messages of the session. */
static int load_range(struct thread *t, struct scan *s, const struct line_range *range,
                      struct str session_id)
{
    struct line l;

    s->size = range->to;
    scan_from(s, range->from);
    while (scan_offset(s) < range->to) {
        if (scan_line(s, &l, NULL) <= 0 || l.too_long || !add_copy(t, l.text) ||
            !str_eq(t->at[t->count - 1].session_id, session_id))
            return -1;
    }
    return 0;
}

static bool load_by_index(struct thread *t, const struct history *h, struct str session_id)
{
    struct session_index x;
    struct session_lines lines;
    off_t size;
    int result;

    if (!session_index_open(&x, h))
        return false;
    size = x.scan.size;
    result = session_index_lines(&x, session_id, &lines);
    for (size_t i = 0; i < lines.count && result == 0; i++)
        result = load_range(t, &x.scan, &lines.at[i], session_id);
    x.scan.size = size;
    if (t->count != lines.messages)
        result = -1;
    if (result == 0)
        result = session_index_count_bad(&x, session_id, 0, &t->bad_lines);
    free(lines.at);
    t->all = t->count;
    if (result == 0) {
        session_index_close(&x);
        return true;
    }
    session_index_discard(&x);
    thread_release(t);
    return false;
}

/* ---- what is left out ---- */

/* Marks the lines that a later line names in its `replaces`. A line that names itself, a later one
 * or one that is not there changes nothing. */
static void mark_replaced(const struct thread *t, bool *out)
{
    struct keymap replaced_by = {0}; /* id -> the last line that replaces it */
    struct buf *texts = NULL;
    size_t cap = 0, count = 0;

    for (size_t i = 0; i < t->count; i++) {
        struct json_iter it = json_iter(t->at[i].field[FIELD_REPLACES]);

        while (!it.object && json_next(&it)) {
            texts = mem_grow(texts, &cap, count + 1, sizeof(*texts));
            buf_init(&texts[count], BUF_LINE);

            /* The map borrows: from the line, or from what was decoded, which stays where it is. */
            struct str id = json_text(it.value, &texts[count]);

            if (id.p)
                keymap_set(&replaced_by, id, i);
            count++;
        }
    }
    for (size_t i = 0; i < t->count; i++) {
        const size_t *by = keymap_find(&replaced_by, t->at[i].id);

        if (by && *by > i)
            out[i] = true;
    }
    keymap_release(&replaced_by);
    while (count)
        buf_release(&texts[--count]);
    free(texts);
}

/* Marks what stands before the last reset, which itself stays. */
static void mark_reset(const struct thread *t, bool *out)
{
    size_t reset = t->count;

    while (reset > 0 && (out[reset - 1] || !message_is_reset(&t->at[reset - 1])))
        reset--;
    for (size_t i = 0; i + 1 < reset; i++)
        out[i] = true;
}

void thread_leave_out(struct thread *t, const bool *out)
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
    struct keymap prompts = {0}; /* id -> turn */
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t turns = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct message *m = &t->at[i];
        const size_t *prompt = NULL;

        if (m->role == ROLE_USER) {
            keymap_set(&prompts, m->id, ++turns);
        } else {
            struct str named = message_text(m, FIELD_REPLY_TO, &scratch);

            if (named.p)
                prompt = keymap_find(&prompts, named);
        }
        turn[i] = prompt ? *prompt : turns;
    }
    keymap_release(&prompts);
    buf_release(&scratch);
    return turns;
}

/* Puts the lines of each turn together, otherwise in the order of the file (a counting sort). */
static void group_turns(struct thread *t)
{
    size_t *turn = mem_zalloc(t->count * sizeof(*turn));
    size_t turns = number_turns(t, turn);
    size_t *next = mem_zalloc((turns + 2) * sizeof(*next));
    struct message *sorted = mem_zalloc(t->count * sizeof(*sorted));

    for (size_t i = 0; i < t->count; i++)
        next[turn[i] + 1]++;
    for (size_t i = 0; i < turns; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < t->count; i++)
        sorted[next[turn[i]]++] = t->at[i];
    free(t->at);
    t->at = sorted;
    t->cap = t->count;
    free(turn);
    free(next);
}

void thread_settle(struct thread *t)
{
    bool *out;

    if (t->count == 0)
        return;
    out = mem_zalloc(t->count * sizeof(*out));
    mark_replaced(t, out);
    mark_reset(t, out);
    thread_leave_out(t, out);
    free(out);
    group_turns(t);
}

/* Is a message of that id no longer of the thread once this line is there? */
static bool takes_out(const struct message *m, struct str id)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool named = message_is_reset(m);

    while (!it.object && !named && json_next(&it))
        named = str_eq(json_text(it.value, &scratch), id);
    buf_release(&scratch);
    return named;
}

void thread_turn_back(struct thread *t, size_t place)
{
    bool *out = mem_zalloc(t->count);
    bool is_out = false;

    for (size_t i = place + 1; i < t->count; i++) {
        is_out = is_out || takes_out(&t->at[i], t->at[place].id);
        out[i] = is_out;
    }
    thread_leave_out(t, out);
    free(out);
    thread_settle(t);
}

int thread_load(struct thread *t, int dir, const char *history_path, struct str session_id,
                bool raw, struct err *e)
{
    *t = (struct thread){0};
    if (load_all(t, dir, history_path, session_id, 0, -1, e) < 0) {
        thread_release(t);
        return -1;
    }
    if (!raw)
        thread_settle(t);
    return 0;
}

int thread_load_between(struct thread *t, int dir, const char *history_path, struct str session_id,
                        off_t first, off_t end, struct err *e)
{
    *t = (struct thread){0};
    if (load_all(t, dir, history_path, session_id, first, end, e) < 0) {
        thread_release(t);
        return -1;
    }
    thread_settle(t);
    return 0;
}

int thread_find(struct thread *t, const struct history *h, struct str session_id, bool raw,
                struct err *e)
{
    *t = (struct thread){0};
    if (!load_by_index(t, h, session_id))
        return thread_load(t, h->dir_fd, h->path, session_id, raw, e);
    if (!raw)
        thread_settle(t);
    return 0;
}

void thread_release(struct thread *t)
{
    for (size_t i = 0; i < t->count; i++)
        message_release(&t->at[i]);
    for (size_t i = 0; i < t->lines_count; i++)
        free(t->lines[i]);
    free(t->at);
    free(t->lines);
    *t = (struct thread){0};
}
