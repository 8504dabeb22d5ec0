#include "tui/browse_pane_shown.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

static bool has_role(const struct browse_pane *p, size_t message)
{
    return str_eq_c(p->thread.at[message].role_text, p->role);
}

void browse_pane_filter(struct browse_pane *p)
{
    size_t count = p->thread.count, last = SIZE_MAX, next = SIZE_MAX;

    free(p->shown);
    p->shown = NULL;
    if (!p->role)
        return;
    p->shown = mem_zalloc(count * sizeof *p->shown);
    for (size_t i = 0; i < count; i++) {
        p->shown[i].before = last;
        last = has_role(p, i) ? i : last;
    }
    for (size_t i = count; i-- > 0;) {
        next = has_role(p, i) ? i : next;
        p->shown[i].from = next;
    }
}

bool browse_pane_shows(const struct browse_pane *p, size_t message)
{
    return !p->shown || p->shown[message].from == message;
}

bool browse_pane_has(const struct browse_pane *p)
{
    return p->at < p->thread.count && browse_pane_shows(p, p->at);
}

bool browse_pane_folded(const struct browse_pane *p, size_t part)
{
    size_t message = p->parts.at[part].message;

    return p->thread.at[message].role == ROLE_TOOL && !p->open[message] &&
           part != p->parts.first[message] && part != browse_parts_last(&p->parts, message);
}

bool browse_pane_has_part(const struct browse_pane *p, size_t part)
{
    return part < p->parts.count && browse_pane_shows(p, p->parts.at[part].message) &&
           !browse_pane_folded(p, part);
}

size_t browse_pane_from(const struct browse_pane *p, size_t part)
{
    size_t message;

    if (part >= p->parts.count)
        return SIZE_MAX;
    message = p->parts.at[part].message;
    if (!browse_pane_shows(p, message)) {
        message = p->shown[message].from;
        return message != SIZE_MAX ? p->parts.first[message] : SIZE_MAX;
    }
    return browse_pane_folded(p, part) ? browse_parts_last(&p->parts, message) : part;
}

size_t browse_pane_before(const struct browse_pane *p, size_t part)
{
    size_t message;

    if (part == 0)
        return SIZE_MAX;
    message = p->parts.at[--part].message;
    if (!browse_pane_shows(p, message)) {
        message = p->shown[message].before;
        return message != SIZE_MAX ? browse_parts_last(&p->parts, message) : SIZE_MAX;
    }
    return browse_pane_folded(p, part) ? p->parts.first[message] : part;
}
