#include "tui/browse_ahead.h"

#include <string.h>

bool browse_ahead_any(const struct browse_ahead *a)
{
    return a->last || a->lines != 0;
}

void browse_ahead_move(struct browse_ahead *a, long lines, bool first)
{
    a->lines += lines;
    if ((a->last && a->lines > 0) || (!a->last && first && a->lines < 0))
        a->lines = 0;
}

size_t browse_ahead_place(struct browse_ahead *a, size_t at, size_t count, bool whole)
{
    size_t end = count > 0 ? count - 1 : 0, from = a->last || at > end ? end : at;
    size_t far = (size_t)(a->lines < 0 ? -a->lines : a->lines), rest = 0;

    if (a->lines < 0) {
        from = from > far ? from - far : 0;
    } else {
        rest = far > end - from ? far - (end - from) : 0;
        from += far - rest;
    }
    if (whole)
        *a = (struct browse_ahead){0};
    else if (!a->last)
        a->lines = (long)rest;
    return from;
}

void browse_ahead_push(struct browse_ahead_text *a, enum browse_command command)
{
    if (a->count < BROWSE_AHEAD_MAX)
        a->at[a->count++] = command;
}

enum browse_command browse_ahead_pop(struct browse_ahead_text *a)
{
    enum browse_command command = a->at[0];

    memmove(a->at, a->at + 1, --a->count * sizeof *a->at);
    return command;
}
