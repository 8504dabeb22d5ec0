#include "chathist/convert/select.h"

#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/mem.h"

/* So many lines are between two calls of tick. */
#define TICK_LINES 256

static size_t session_of(struct select *s, struct str id)
{
    const size_t *place = keymap_find(&s->places, id);
    struct select_session *new;

    if (place)
        return *place;
    s->sessions =
        mem_grow(s->sessions, &s->sessions_cap, s->sessions_count + 1, sizeof *s->sessions);
    new = &s->sessions[s->sessions_count];
    *new = (struct select_session){
        .name = mem_copy(id.p, id.n), .first = SELECT_NONE, .last = SELECT_NONE, .used = INT64_MIN};
    new->id = (struct str){new->name, id.n};
    keymap_set(&s->places, new->id, s->sessions_count);
    return s->sessions_count++;
}

static void add(struct select *s, const struct message *m, const struct line *l, bool grown)
{
    size_t index = session_of(s, m->session_id), i = s->lines_count;
    struct select_session *session = &s->sessions[index];
    int64_t time;

    s->lines = mem_grow(s->lines, &s->lines_cap, i + 1, sizeof *s->lines);
    s->lines[i] = (struct select_line){l->at, l->text.n, index, SELECT_NONE};
    s->lines_count++;
    if (session->last == SELECT_NONE)
        session->first = i;
    else
        s->lines[session->last].next = i;
    session->last = i;
    session->grown = session->grown || grown;
    if (clock_parse_iso(m->timestamp, &time))
        session->used = time;
}

/* A writer may be at a line that has no end yet: with a state it waits for the next run. */
static void take(struct select *s, struct export_state *state, bool whole, const struct message *m,
                 const struct line *l)
{
    bool is_new = true;

    if (state && !l->terminated)
        return;
    if (state) {
        is_new = export_state_is_new(state, m, l->at);
        export_state_pass(state, m, l);
    }
    if (is_new || whole)
        add(s, m, l, is_new);
}

int select_load(struct select *s, int dir, const char *history_path, struct export_state *state,
                bool whole, void (*tick)(void), struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct line l;
    uint64_t count = 0;
    int result;

    *s = (struct select){.line = BUF_INIT(BUF_LINE)};
    if (scan_open(&s->scan, dir, history_path, SCAN_FORWARD, e) < 0)
        return -1;
    result = state ? export_state_find(state, &s->scan, !whole, e) : 0;
    while (result >= 0 && (result = scan_message(&s->scan, &m, &l, e)) > 0) {
        take(s, state, whole, &m, &l);
        if (tick && ++count % TICK_LINES == 0)
            tick();
    }
    s->bad_lines = s->scan.bad;
    message_release(&m);
    if (result < 0)
        select_release(s);
    return result;
}

size_t select_find(const struct select *s, struct str id)
{
    const size_t *place = keymap_find(&s->places, id);

    return place ? *place : SELECT_NONE;
}

int select_read(struct select *s, size_t i, struct str *line, struct err *e)
{
    if (scan_again(&s->scan, s->lines[i].at, s->lines[i].n, &s->line, e) < 0)
        return -1;
    *line = buf_str(&s->line);
    return 0;
}

void select_release(struct select *s)
{
    for (size_t i = 0; i < s->sessions_count; i++)
        free(s->sessions[i].name);
    free(s->sessions);
    free(s->lines);
    keymap_release(&s->places);
    buf_release(&s->line);
    scan_close(&s->scan);
    *s = (struct select){.scan = {.fd = -1}};
}
