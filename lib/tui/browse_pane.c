#include "tui/browse_pane.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tui/browse_item.h"

/* So many messages stay laid out. */
#define LAID_MAX 64

void browse_pane_init(struct browse_pane *p)
{
    *p = (struct browse_pane){.width = 2, .height = 1};
    pattern_init(&p->pattern);
}

/* ---- what is laid out ---- */

void browse_pane_unlay(struct browse_pane *p, size_t i)
{
    p->laid -= p->items[i].laid;
    p->items[i].laid = false;
    browse_lines_release(&p->items[i].lines);
}

static void unlay_all(struct browse_pane *p)
{
    for (size_t i = 0; i < p->thread.count; i++)
        if (p->items[i].laid)
            browse_pane_unlay(p, i);
}

static void release_items(struct browse_pane *p)
{
    unlay_all(p);
    for (size_t i = 0; i < p->thread.count; i++)
        free(p->items[i].hits);
    free(p->items);
    p->items = NULL;
}

void browse_pane_release(struct browse_pane *p)
{
    release_items(p);
    thread_release(&p->thread);
    pattern_release(&p->pattern);
}

/* Forgets what is far from what is seen. */
static void tidy(struct browse_pane *p)
{
    for (size_t i = 0; p->laid > LAID_MAX && i < p->thread.count; i++)
        if (p->items[i].laid && (i + LAID_MAX / 4 < p->top || i > p->top + LAID_MAX / 2))
            browse_pane_unlay(p, i);
}

struct browse_item *browse_pane_lay(struct browse_pane *p, size_t i)
{
    struct browse_item *item = &p->items[i];
    struct browse_item_view view = {.width = p->width,
                                    .pattern = p->searched ? &p->pattern : NULL,
                                    .hit = p->has_hit && p->hit == i ? p->hit_index : SIZE_MAX};

    if (item->laid)
        return item;
    browse_item_lay(item, &p->thread.at[i], &view);
    p->laid++;
    return item;
}

static size_t line_count(struct browse_pane *p, size_t i)
{
    return browse_pane_lay(p, i)->lines.count;
}

/* ---- messages that are shown ---- */

bool browse_pane_shows(const struct browse_pane *p, size_t i)
{
    return !p->role || str_eq_c(p->thread.at[i].role_text, p->role);
}

/* The next message that is shown, itself included; SIZE_MAX: none. */
static size_t shown_from(const struct browse_pane *p, size_t i)
{
    while (i < p->thread.count && !browse_pane_shows(p, i))
        i++;
    return i < p->thread.count ? i : SIZE_MAX;
}

/* The one before it. */
static size_t shown_before(const struct browse_pane *p, size_t i)
{
    while (i > 0)
        if (browse_pane_shows(p, --i))
            return i;
    return SIZE_MAX;
}

bool browse_pane_has(const struct browse_pane *p)
{
    return p->at < p->thread.count && browse_pane_shows(p, p->at);
}

/* ---- moving ---- */

/* The message that stands so many lines below the top; *line of it. SIZE_MAX: below the last. */
static size_t below(struct browse_pane *p, size_t lines, size_t *line)
{
    size_t i = p->top, passed = p->top_line;

    if (p->thread.count == 0)
        return SIZE_MAX;
    lines += passed;
    while (i != SIZE_MAX && lines >= line_count(p, i)) {
        lines -= line_count(p, i);
        i = shown_from(p, i + 1);
    }
    *line = lines;
    return i;
}

static void move_up(struct browse_pane *p, size_t lines)
{
    while (lines > p->top_line) {
        size_t before = shown_before(p, p->top);

        if (before == SIZE_MAX) {
            p->top_line = 0;
            return;
        }
        lines -= p->top_line + 1;
        p->top = before;
        p->top_line = line_count(p, before) - 1;
    }
    p->top_line -= lines;
}

/* The last line does not leave the bottom of the panel. */
static void clamp(struct browse_pane *p)
{
    size_t line, here = 0;

    if (p->top >= p->thread.count || !browse_pane_shows(p, p->top)) {
        size_t near = p->top < p->thread.count ? shown_from(p, p->top) : SIZE_MAX;

        p->top = near != SIZE_MAX ? near : shown_before(p, p->thread.count);
        p->top_line = 0;
        if (p->top == SIZE_MAX)
            p->top = 0;
    }
    if (p->thread.count == 0 || !browse_pane_shows(p, p->top))
        return;
    if (p->top_line >= line_count(p, p->top))
        p->top_line = line_count(p, p->top) - 1;
    while (here < p->height && below(p, here, &line) != SIZE_MAX)
        here++;
    if (here < p->height)
        move_up(p, p->height - here);
}

/* What is acted on is seen. */
static void follow(struct browse_pane *p)
{
    size_t line, last = below(p, p->height > 0 ? p->height - 1 : 0, &line);

    if (last == SIZE_MAX)
        last = shown_before(p, p->thread.count);
    if (p->at < p->top || !browse_pane_shows(p, p->at < p->thread.count ? p->at : 0))
        p->at = p->top;
    if (last != SIZE_MAX && p->at > last)
        p->at = last;
    tidy(p);
}

static void settle(struct browse_pane *p)
{
    if (p->thread.count == 0) {
        p->top = p->top_line = p->at = 0;
        return;
    }
    clamp(p);
    follow(p);
}

void browse_pane_scroll(struct browse_pane *p, long lines)
{
    size_t line, to;

    if (p->thread.count == 0)
        return;
    if (lines < 0) {
        move_up(p, (size_t)-lines);
    } else {
        to = below(p, (size_t)lines, &line);
        if (to == SIZE_MAX) {
            browse_pane_last(p);
            return;
        }
        p->top = to;
        p->top_line = line;
    }
    settle(p);
}

void browse_pane_first(struct browse_pane *p)
{
    p->top = p->top_line = p->at = 0;
    settle(p);
    p->at = p->top;
}

void browse_pane_last(struct browse_pane *p)
{
    size_t last = shown_before(p, p->thread.count);

    if (last == SIZE_MAX)
        return;
    p->top = p->at = last;
    p->top_line = line_count(p, last) - 1;
    settle(p);
    p->at = last;
}

void browse_pane_bring(struct browse_pane *p, size_t i, size_t line, size_t above)
{
    size_t at_line;

    p->at = i;
    for (size_t row = 0; row < p->height; row++) {
        size_t there = below(p, row, &at_line);

        if (there == i && at_line == line)
            return;
        if (there == SIZE_MAX || there > i)
            break;
    }
    p->top = i;
    p->top_line = line;
    move_up(p, above);
    settle(p);
    p->at = i;
}

void browse_pane_step(struct browse_pane *p, bool on)
{
    size_t to;

    if (!browse_pane_has(p))
        return;
    to = on ? shown_from(p, p->at + 1) : shown_before(p, p->at);
    if (to == SIZE_MAX) {
        if (on)
            browse_pane_last(p);
        else
            browse_pane_first(p);
        return;
    }
    browse_pane_bring(p, to, 0, 0);
}

void browse_pane_point(struct browse_pane *p, size_t row)
{
    size_t line, i = below(p, row, &line);

    if (i != SIZE_MAX)
        p->at = i;
}

bool browse_pane_line(struct browse_pane *p, size_t row, const struct browse_lines **lines,
                      size_t *line, bool *current)
{
    size_t i;

    if (p->thread.count == 0 || !browse_pane_shows(p, p->top))
        return false;
    i = below(p, row, line);
    if (i == SIZE_MAX)
        return false;
    *lines = &p->items[i].lines;
    *current = i == p->at;
    return true;
}

size_t browse_pane_find(const struct browse_pane *p, struct str message)
{
    for (size_t i = 0; i < p->thread.count; i++)
        if (str_eq(p->thread.at[i].id, message))
            return i;
    return SIZE_MAX;
}

void browse_pane_return(struct browse_pane *p, struct str top, size_t line, struct str message)
{
    size_t i = browse_pane_find(p, top), at = browse_pane_find(p, message);

    if (i == SIZE_MAX)
        return;
    p->top = i;
    p->top_line = line;
    settle(p);
    if (at != SIZE_MAX) {
        p->at = at;
        follow(p);
    }
}

/* ---- folding ---- */

void browse_pane_fold(struct browse_pane *p)
{
    if (!browse_pane_has(p))
        return;
    p->items[p->at].unfolded = !p->items[p->at].unfolded;
    browse_pane_unlay(p, p->at);
    browse_pane_bring(p, p->at, 0, 0);
    settle(p);
}

void browse_pane_fold_all(struct browse_pane *p)
{
    size_t at = p->at;

    p->unfolded = !p->unfolded;
    unlay_all(p);
    for (size_t i = 0; i < p->thread.count; i++)
        p->items[i].unfolded = p->unfolded;
    if (browse_pane_has(p)) {
        browse_pane_bring(p, at, 0, 0);
        settle(p);
    }
}

/* ---- what is shown changes ---- */

/* The place by the byte of the text that stands at the top. */
void browse_pane_resize(struct browse_pane *p, size_t width, size_t height)
{
    size_t from = 0;
    bool inside = false;

    if (width == p->width && height == p->height)
        return;
    if (p->top < p->thread.count && p->items[p->top].laid) {
        const struct browse_item *item = &p->items[p->top];

        inside = p->top_line > item->body && p->top_line < item->lines.count;
        from = inside ? item->from + item->lines.at[p->top_line].from : 0;
    }
    if (width != p->width)
        unlay_all(p);
    p->width = width;
    p->height = height;
    if (inside) {
        browse_pane_lay(p, p->top);
        p->top_line = browse_item_line(&p->items[p->top], from);
    }
    settle(p);
}

void browse_pane_search(struct browse_pane *p, struct str text)
{
    unlay_all(p);
    pattern_release(&p->pattern);
    pattern_init(&p->pattern);
    p->searched = text.n > 0;
    p->has_hit = false;
    if (p->searched)
        (void)pattern_add(&p->pattern, text, NULL);
    for (size_t i = 0; i < p->thread.count; i++) {
        p->items[i].looked = false;
        p->items[i].hit_count = 0;
    }
    settle(p);
}

void browse_pane_set_role(struct browse_pane *p, const char *role)
{
    p->role = role;
    p->has_hit = false;
    settle(p);
}

/* Takes over what was unfolded, and where we are. */
static void keep_place(struct browse_pane *p, const struct thread *old,
                       const struct browse_item *items, size_t top, size_t at, size_t hit)
{
    size_t place;

    for (size_t i = 0, j = 0; i < old->count; i++) {
        for (size_t k = j; k < p->thread.count && k < j + 8; k++) {
            if (!str_eq(old->at[i].id, p->thread.at[k].id))
                continue;
            p->items[k].unfolded = items[i].unfolded;
            j = k + 1;
            break;
        }
    }
    place = browse_pane_find(p, old->at[top].id);
    p->top = place != SIZE_MAX ? place : top;
    place = browse_pane_find(p, old->at[at].id);
    p->at = place != SIZE_MAX ? place : at;
    if (p->has_hit) {
        p->hit = hit < old->count ? browse_pane_find(p, old->at[hit].id) : SIZE_MAX;
        p->has_hit = p->hit != SIZE_MAX;
    }
}

void browse_pane_take(struct browse_pane *p, struct thread *t, bool same)
{
    struct thread old = p->thread;
    struct browse_item *items = p->items;
    size_t top = p->top, at = p->at;

    for (size_t i = 0; i < old.count; i++)
        browse_lines_release(&items[i].lines);
    p->laid = 0;
    p->thread = *t;
    *t = (struct thread){0};
    p->items = mem_zalloc(p->thread.count * sizeof *p->items);
    for (size_t i = 0; i < p->thread.count; i++) {
        browse_lines_init(&p->items[i].lines);
        p->items[i].unfolded = p->unfolded;
    }
    if (same && top < old.count && at < old.count) {
        keep_place(p, &old, items, top, at, p->hit);
    } else {
        p->top = p->top_line = p->at = 0;
        p->has_hit = false;
    }
    for (size_t i = 0; i < old.count; i++)
        free(items[i].hits);
    free(items);
    thread_release(&old);
    settle(p);
}
