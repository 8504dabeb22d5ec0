#include "tui/browse_pane_hits.h"

#include <stdint.h>

/* A hit is shown below so much of the panel. */
#define ABOVE_HIT 3

static size_t hit_count(struct browse_pane *p, size_t i)
{
    if (!p->searched || !browse_pane_shows(p, i))
        return 0;
    browse_item_look(&p->items[i], &p->thread.at[i], &p->pattern);
    return p->items[i].hit_count;
}

/* Has hit k of a message be the one that is looked at. */
static void look_at(struct browse_pane *p, size_t i, size_t k)
{
    struct browse_item *item = &p->items[i];
    size_t line;

    if (p->has_hit && p->hit < p->thread.count)
        browse_pane_unlay(p, p->hit);
    browse_pane_unlay(p, i);
    item->unfolded = true;
    p->has_hit = true;
    p->hit = i;
    p->hit_index = k;
    browse_pane_lay(p, i);
    line = browse_item_line(item, item->hits[k].at);
    browse_pane_bring(p, i, line, p->height / ABOVE_HIT);
}

bool browse_pane_next_hit(struct browse_pane *p, bool on)
{
    size_t i = p->at, count = p->thread.count;

    if (!browse_pane_has(p))
        return false;
    if (p->has_hit && p->hit == i) {
        if (on && p->hit_index + 1 < hit_count(p, i)) {
            look_at(p, i, p->hit_index + 1);
            return true;
        }
        if (!on && p->hit_index > 0) {
            look_at(p, i, p->hit_index - 1);
            return true;
        }
    } else if (hit_count(p, i) > 0 && on) {
        look_at(p, i, 0);
        return true;
    }
    for (size_t passed = 0; passed < count; passed++) {
        i = on ? (i + 1) % count : (i + count - 1) % count;
        if (hit_count(p, i) > 0) {
            look_at(p, i, on ? 0 : p->items[i].hit_count - 1);
            return true;
        }
    }
    return false;
}

bool browse_pane_show(struct browse_pane *p, struct str message, size_t at)
{
    size_t i = browse_pane_find(p, message), k = 0;

    if (i == SIZE_MAX || !browse_pane_shows(p, i))
        return false;
    if (hit_count(p, i) == 0) {
        browse_pane_bring(p, i, 0, 0);
        return true;
    }
    while (k + 1 < p->items[i].hit_count && p->items[i].hits[k].at < at)
        k++;
    look_at(p, i, k);
    return true;
}
