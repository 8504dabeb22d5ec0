#include "tui/browse_wait.h"

void browse_wait_init(struct browse_wait *w)
{
    w->command = BROWSE_NOTHING;
    browse_target_init(&w->of);
}

void browse_wait_release(struct browse_wait *w)
{
    browse_target_release(&w->of);
}

void browse_wait_end(struct browse_wait *w)
{
    w->command = BROWSE_NOTHING;
    buf_clear(&w->of.id);
}

/* Notes the session as soon as it is known. */
static bool is_for_another(struct browse_wait *w, const struct browse *b)
{
    size_t history;
    struct str id;

    if (!browse_knows_chosen(b) || !browse_chosen(b, &history, &id))
        return false;
    if (w->of.id.len > 0)
        return !browse_target_is(&w->of, history, id);
    w->of.history = history;
    buf_add_str(&w->of.id, id);
    return false;
}

enum browse_command browse_wait_next(struct browse_wait *w, struct browse *b)
{
    enum browse_command command = w->command;

    w->command = BROWSE_NOTHING;
    if (command == BROWSE_NOTHING || !is_for_another(w, b))
        return command;
    browse_say(b, "given up: another session is chosen by now");
    return BROWSE_NOTHING;
}
