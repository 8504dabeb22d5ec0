#include "tui/browse_target.h"

void browse_target_init(struct browse_target *t)
{
    *t = (struct browse_target){0};
    buf_init(&t->id, BUF_LINE);
    buf_init(&t->hit, BUF_LINE);
}

void browse_target_release(struct browse_target *t)
{
    buf_release(&t->id);
    buf_release(&t->hit);
}

bool browse_target_is(const struct browse_target *t, size_t history, struct str id)
{
    return t->history == history && str_eq(buf_str(&t->id), id);
}

struct browse_target browse_target_known(const struct browse_sessions *sessions, size_t history,
                                         struct str id)
{
    struct browse_target t = {.history = history, .end = -1, .last_line = -1};
    const struct browse_sought *sought = &sessions->shown;
    const struct browse_session *s =
        browse_sessions_at(sessions, browse_sessions_find(sessions, history, id));

    if (s && sessions->partial) {
        t.first = s->first;
        t.end = s->end;
    }
    if (s) {
        t.last_line = s->last_line;
        t.count = s->count;
    } else if (sought->place != SIZE_MAX && sought->history == history &&
               str_eq(buf_str(&sought->id), id)) {
        t.last_line = sought->last_line;
        t.count = sought->count;
    }
    return t;
}

bool browse_target_changed(const struct browse_target *t, const struct browse_target *now,
                           const uint64_t *lines)
{
    if (now->last_line < 0)
        return false;
    if (t->last_line < 0)
        return lines && *lines != now->count;
    return t->last_line != now->last_line || t->count != now->count || t->end != now->end;
}
