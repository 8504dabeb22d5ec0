#include "browse/panel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/search/query.h"
#include "browse/text.h"

/* ---- which messages and parts are shown ---- */

/* Returns whether the message has the wanted role. */
static bool shows(const struct browse_pane *p, size_t message)
{
    return !p->role || str_eq_c(p->thread.at[message].role_text, p->role);
}

static size_t message_of(const struct browse_pane *p, size_t part)
{
    return p->parts.at[part].message;
}

bool browse_pane_has(const struct browse_pane *p)
{
    return p->at < p->thread.count && shows(p, p->at);
}

/* Returns whether the part is empty because it continues a folded result. */
static bool is_folded(const struct browse_pane *p, size_t part)
{
    size_t message = message_of(p, part);

    return p->thread.at[message].role == ROLE_TOOL && !p->open[message] &&
           part != p->parts.first[message] && part != browse_parts_last(&p->parts, message);
}

/* Returns whether the part exists and is shown. */
static bool has_part(const struct browse_pane *p, size_t part)
{
    return part < p->parts.count && shows(p, message_of(p, part)) && !is_folded(p, part);
}

/* Return the first shown part from `part` on, and the last one before it, or SIZE_MAX. */
static size_t part_from(const struct browse_pane *p, size_t part)
{
    while (part < p->parts.count && !has_part(p, part))
        part++;
    return part < p->parts.count ? part : SIZE_MAX;
}

static size_t part_before(const struct browse_pane *p, size_t part)
{
    while (part > 0 && !has_part(p, part - 1))
        part--;
    return part - 1;
}

/* At most this many parts stay laid out. */
#define LAID_MAX 64

void browse_pane_init(struct browse_pane *p)
{
    *p = (struct browse_pane){.width = 2, .height = 1};
    pattern_init(&p->pattern);
}

/* ---- layout ---- */

static void unlay(struct browse_pane *p, size_t i)
{
    p->laid -= p->parts.at[i].laid;
    browse_part_unlay(&p->parts.at[i]);
}

static void unlay_message(struct browse_pane *p, size_t message)
{
    for (size_t i = p->parts.first[message]; i <= browse_parts_last(&p->parts, message); i++)
        unlay(p, i);
}

static void unlay_all(struct browse_pane *p)
{
    for (size_t i = 0; p->laid > 0 && i < p->parts.count; i++)
        unlay(p, i);
}

void browse_pane_release(struct browse_pane *p)
{
    free(p->open);
    free(p->hits);
    browse_parts_release(&p->parts);
    thread_release(&p->thread);
    pattern_release(&p->pattern);
}

static struct browse_part *lay(struct browse_pane *p, size_t i)
{
    struct browse_part *part = &p->parts.at[i];
    size_t message = message_of(p, i);
    struct browse_part_view view = {.width = p->width,
                                    .first = i == p->parts.first[message],
                                    .last = i == browse_parts_last(&p->parts, message),
                                    .unfolded = p->open[message],
                                    .pattern = p->searched ? &p->pattern : NULL};
    struct buf scratch = BUF_INIT(BUF_LINE), tool = BUF_INIT(BUF_LINE);

    if (part->laid)
        return part;
    if (view.first && p->thread.at[message].role == ROLE_TOOL)
        browse_add_tool_name(&tool, &p->thread, message);
    view.tool = buf_str(&tool);
    if (p->has_hit && p->hit == message)
        view.here = p->hit_at;
    browse_part_lay(part, &p->thread.at[message],
                    browse_parts_text(&p->parts, &p->thread, message, &scratch), &view);
    p->laid++;
    buf_release(&scratch);
    buf_release(&tool);
    return part;
}

static size_t line_count(struct browse_pane *p, size_t i)
{
    return lay(p, i)->lines.count;
}

/* ---- moving ---- */

/* Returns the part, and its line *line, that is `lines` lines below the top, or SIZE_MAX. */
static size_t below(struct browse_pane *p, size_t lines, size_t *line)
{
    size_t i = p->top, passed = p->top_line;

    if (p->thread.count == 0)
        return SIZE_MAX;
    lines += passed;
    while (i != SIZE_MAX && lines >= line_count(p, i)) {
        lines -= line_count(p, i);
        i = part_from(p, i + 1);
    }
    *line = lines;
    return i;
}

static void scroll_up(struct browse_pane *p, size_t lines)
{
    while (lines > p->top_line) {
        size_t before = part_before(p, p->top);

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

/* Keeps the panel filled: the last line of the thread never rises above the bottom row. */
static void fill_panel(struct browse_pane *p)
{
    size_t line, here = 0, top;

    if (!has_part(p, p->top)) {
        top = p->top < p->parts.count ? part_from(p, p->top) : SIZE_MAX;
        p->top = top != SIZE_MAX ? top : part_before(p, p->parts.count);
        p->top_line = 0;
    }
    if (p->top == SIZE_MAX) {
        p->top = 0;
        return;
    }
    if (p->top_line >= line_count(p, p->top))
        p->top_line = line_count(p, p->top) - 1;
    while (here < p->height && below(p, here, &line) != SIZE_MAX)
        here++;
    if (here < p->height)
        scroll_up(p, p->height - here);
}

/* Fills the panel. If the current message is out of view then, makes the nearest visible one
 * current. */
static void refit(struct browse_pane *p)
{
    size_t line, top, last;

    if (p->parts.count == 0) {
        p->top = p->top_line = p->at = 0;
        return;
    }
    fill_panel(p);
    top = message_of(p, p->top);
    last = below(p, p->height > 0 ? p->height - 1 : 0, &line);
    if (last == SIZE_MAX)
        last = part_before(p, p->parts.count);
    if (p->at < top || !shows(p, p->at < p->thread.count ? p->at : 0))
        p->at = top;
    if (last != SIZE_MAX && p->at > message_of(p, last))
        p->at = message_of(p, last);
    /* Parts that are far from the visible ones do not stay laid out. */
    for (size_t i = 0; p->laid > LAID_MAX && i < p->parts.count; i++)
        if (p->parts.at[i].laid && (i + LAID_MAX / 4 < p->top || i > p->top + LAID_MAX / 2))
            unlay(p, i);
    if (p->unseen > 0 && below(p, p->height, &line) == SIZE_MAX)
        p->unseen = 0;
}

void browse_pane_scroll(struct browse_pane *p, long lines)
{
    size_t line, to;

    if (p->thread.count == 0)
        return;
    if (lines < 0) {
        scroll_up(p, (size_t)-lines);
    } else {
        to = below(p, (size_t)lines, &line);
        if (to == SIZE_MAX) {
            browse_pane_last(p);
            return;
        }
        p->top = to;
        p->top_line = line;
    }
    refit(p);
}

void browse_pane_first(struct browse_pane *p)
{
    p->top = p->top_line = p->at = 0;
    refit(p);
    p->at = p->parts.count > 0 ? message_of(p, p->top) : 0;
}

void browse_pane_last(struct browse_pane *p)
{
    size_t last = part_before(p, p->parts.count);

    if (last == SIZE_MAX)
        return;
    p->top = last;
    p->at = message_of(p, last);
    p->top_line = line_count(p, last) - 1;
    refit(p);
    p->at = message_of(p, last);
}

/* Scrolls so that byte `at` of a message is visible, `above` lines below the top if it was not
 * visible before. Offset 0 means the header. The message is laid out again. */
static void bring(struct browse_pane *p, size_t message, size_t at, size_t above)
{
    size_t at_line = 0, i = browse_parts_find(&p->parts, message, at), line = 0;

    p->at = message;
    if (is_folded(p, i))
        i = p->parts.first[message];
    if (at == SIZE_MAX)
        line = lay(p, i)->call;
    else if (at > 0 || above > 0)
        line = browse_part_line(lay(p, i), at - p->parts.at[i].at);
    for (size_t row = 0; row < p->height; row++) {
        size_t there = below(p, row, &at_line);

        if (there == i && at_line == line)
            return;
        if (there == SIZE_MAX || there > i)
            break;
    }
    p->top = i;
    p->top_line = line;
    scroll_up(p, above);
    refit(p);
    p->at = message;
}

void browse_pane_step(struct browse_pane *p, bool on)
{
    size_t to;

    if (!browse_pane_has(p))
        return;
    to = on ? part_from(p, browse_parts_last(&p->parts, p->at) + 1)
            : part_before(p, p->parts.first[p->at]);
    if (to == SIZE_MAX && on)
        browse_pane_last(p);
    else if (to == SIZE_MAX)
        browse_pane_first(p);
    else
        bring(p, message_of(p, to), 0, 0);
}

void browse_pane_point(struct browse_pane *p, size_t row)
{
    size_t line, i = below(p, row, &line);

    if (i != SIZE_MAX)
        p->at = message_of(p, i);
}

bool browse_pane_line(struct browse_pane *p, size_t row, const struct browse_lines **lines,
                      size_t *line, bool *current)
{
    size_t i;

    if (!has_part(p, p->top))
        return false;
    i = below(p, row, line);
    if (i == SIZE_MAX)
        return false;
    *lines = &p->parts.at[i].lines;
    *current = message_of(p, i) == p->at && i == p->parts.first[p->at];
    return true;
}

size_t browse_find_message(const struct thread *t, struct str id)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(t->at[i].id, id))
            return i;
    return SIZE_MAX;
}

bool browse_pane_position(const struct browse_pane *p, struct browse_position *at)
{
    size_t top;

    if (p->top >= p->parts.count || p->at >= p->thread.count)
        return false;
    top = message_of(p, p->top);
    *at = (struct browse_position){.top = p->thread.at[top].id,
                                   .part = p->top - p->parts.first[top],
                                   .line = p->top_line,
                                   .at = p->thread.at[p->at].id};
    return true;
}

void browse_pane_return(struct browse_pane *p, const struct browse_position *at)
{
    size_t top = browse_find_message(&p->thread, at->top),
           message = browse_find_message(&p->thread, at->at);

    if (top != SIZE_MAX) {
        size_t first = p->parts.first[top], last = browse_parts_last(&p->parts, top);

        p->top = at->part < last - first ? first + at->part : last;
        p->top_line = at->line;
    }
    if (message != SIZE_MAX)
        p->at = message;
    refit(p);
}

/* ---- folding ---- */

void browse_pane_fold(struct browse_pane *p, bool all)
{
    size_t at = p->at;

    if (all) {
        p->unfolded = !p->unfolded;
        unlay_all(p);
        if (p->open)
            memset(p->open, p->unfolded, p->thread.count);
    }
    if (!browse_pane_has(p))
        return;
    if (!all) {
        p->open[at] = !p->open[at];
        unlay_message(p, at);
    }
    refit(p);
    bring(p, at, 0, 0);
    refit(p);
}

/* ---- changes of the contents ---- */

/* Keeps the text at the top of the panel in place, unless that would hide the current message. */
void browse_pane_resize(struct browse_pane *p, size_t width, size_t height)
{
    size_t from = 0, at = p->at;
    bool inside = false;

    if (width == p->width && height == p->height)
        return;
    if (p->top < p->parts.count && p->parts.at[p->top].laid) {
        const struct browse_part *part = &p->parts.at[p->top];

        inside = p->top_line > part->body && p->top_line < part->lines.count;
        from = inside ? part->lines.at[p->top_line].from : 0;
    }
    if (width != p->width)
        unlay_all(p);
    p->width = width;
    p->height = height;
    if (inside)
        p->top_line = browse_part_line(lay(p, p->top), from);
    refit(p);
    if (p->at != at && at < p->thread.count && shows(p, at))
        bring(p, at, p->has_hit && p->hit == at ? p->hit_at.at : 0, 0);
}

void browse_pane_search(struct browse_pane *p, struct str text, bool is_query)
{
    struct query q;

    unlay_all(p);
    pattern_release(&p->pattern);
    pattern_init(&p->pattern);
    p->searched = text.n > 0;
    p->counted = 0;
    p->has_hit = false;
    if (p->searched && !is_query) {
        p->searched = pattern_add(&p->pattern, text, NULL) == 0;
    } else if (p->searched) {
        p->searched = query_parse(&q, text, time_now(), NULL) == 0;
        if (p->searched) {
            p->searched = query_add_words(&q, &p->pattern, NULL) == 0;
            query_release(&q);
        }
    }
    refit(p);
}

void browse_pane_set_role(struct browse_pane *p, const char *role)
{
    p->role = role;
    p->counted = 0;
    p->has_hit = false;
    refit(p);
}

/* Copies the folding and the current hit from the panel's former contents. */
static void copy_folding(struct browse_pane *p, const struct browse_pane *old)
{
    for (size_t i = 0; i < old->thread.count; i++) {
        size_t place;

        if (old->open[i] == p->unfolded)
            continue;
        place = browse_find_message(&p->thread, old->thread.at[i].id);
        if (place != SIZE_MAX)
            p->open[place] = old->open[i];
    }
    if (p->has_hit) {
        p->hit = browse_find_message(&p->thread, old->thread.at[old->hit].id);
        p->has_hit = p->hit != SIZE_MAX;
    }
}

void browse_pane_set(struct browse_pane *p, struct thread *t, struct browse_parts *parts, bool same)
{
    struct browse_pane old = *p;
    struct browse_position at;

    p->laid = 0;
    p->thread = *t;
    p->parts = *parts;
    *t = (struct thread){0};
    *parts = (struct browse_parts){0};
    p->open = mem_zalloc(p->thread.count * sizeof *p->open);
    p->hits = mem_zalloc(p->parts.count * sizeof *p->hits);
    p->counted = 0;
    memset(p->open, p->unfolded, p->thread.count);
    if (same && browse_pane_position(&old, &at)) {
        copy_folding(p, &old);
        browse_pane_return(p, &at);
        if (p->thread.count > old.thread.count)
            p->unseen += p->thread.count - old.thread.count;
    } else {
        p->unseen = 0;
        p->top = p->top_line = p->at = 0;
        p->has_hit = false;
    }
    free(old.open);
    free(old.hits);
    browse_parts_release(&old.parts);
    thread_release(&old.thread);
    refit(p);
}

/* ---- from hit to hit ---- */

/* A hit is shown a third of the height of the panel below its top. */
#define ABOVE_HIT 3

static void go_to_message(struct browse_pane *p, size_t message, struct browse_place hit)
{
    if (p->has_hit && p->hit < p->thread.count)
        unlay_message(p, p->hit);
    unlay_message(p, message);
    p->open[message] = true;
    p->has_hit = true;
    p->hit = message;
    p->hit_at = hit;
    bring(p, message, hit.at, p->height / ABOVE_HIT);
}

/* Passes at most `most` hits of a part that begin before byte `to` of the message: those in the
 * content, then at SIZE_MAX one for all tool calls. Sets *hit to the last of them. Returns their
 * number. */
static size_t pass_hits(struct browse_pane *p, size_t part, size_t to, size_t most,
                        struct browse_place *hit)
{
    const struct browse_part *of = &p->parts.at[part];
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = browse_parts_text(&p->parts, &p->thread, of->message, &scratch);
    size_t end = of->n == SIZE_MAX ? text.n : of->at + of->n, stop, at, n, count = 0;

    end = to < end ? to : end;
    stop = text.n > end + BROWSE_OVERLAP ? end + BROWSE_OVERLAP : text.n;
    while (utf8_inside(text, stop))
        stop++;
    if (of->at < end)
        pattern_start(&p->pattern, (struct str){text.p + of->at, stop - of->at});
    while (of->at < end && count < most && pattern_next(&p->pattern, &at, &n, NULL) > 0 &&
           of->at + at < end) {
        *hit = (struct browse_place){of->at + at, n};
        count++;
    }
    buf_release(&scratch);
    if (count < most && to == SIZE_MAX && part == browse_parts_last(&p->parts, of->message) &&
        browse_calls_match(&p->thread.at[of->message], &p->pattern)) {
        *hit = (struct browse_place){SIZE_MAX, 0};
        count++;
    }
    return count;
}

bool browse_pane_is_counting(const struct browse_pane *p)
{
    return p->searched && p->counted < p->parts.count;
}

void browse_pane_count(struct browse_pane *p)
{
    struct browse_place hit;

    for (int i = 0; i < BROWSE_COUNT_PARTS && browse_pane_is_counting(p); i++) {
        size_t part = p->counted++;

        p->hits[part] =
            shows(p, message_of(p, part)) ? pass_hits(p, part, SIZE_MAX, SIZE_MAX, &hit) : 0;
    }
}

/* Returns the number of hits in the parts before this one. */
static size_t hits_before(const struct browse_pane *p, size_t part)
{
    size_t count = 0;

    for (size_t i = 0; i < part; i++)
        count += p->hits[i];
    return count;
}

bool browse_pane_hit_number(struct browse_pane *p, size_t *number, size_t *total)
{
    struct browse_place hit;
    size_t part;

    if (!p->has_hit || !p->searched || browse_pane_is_counting(p) || p->hit >= p->thread.count)
        return false;
    part = browse_parts_find(&p->parts, p->hit, p->hit_at.at);
    *total = hits_before(p, p->parts.count);
    *number = hits_before(p, part) + (p->hit_at.at == SIZE_MAX
                                          ? p->hits[part]
                                          : pass_hits(p, part, p->hit_at.at, SIZE_MAX, &hit) + 1);
    return true;
}

bool browse_pane_next_hit(struct browse_pane *p, bool on, bool *wrapped)
{
    size_t total = p->searched ? hits_before(p, p->parts.count) : 0, number, next, part = 0;
    struct browse_place hit = {0};

    *wrapped = false;
    if (total == 0 || !browse_pane_has(p))
        return false;
    /* Numbers from 0 on. Without a current hit in this message its first or last one follows. */
    if (p->hit == p->at && browse_pane_hit_number(p, &number, &total))
        next = on ? number : number - 2;
    else
        next = on ? hits_before(p, p->parts.first[p->at])
                  : hits_before(p, p->parts.first[p->at + 1]) - 1;
    *wrapped = next >= total;
    if (*wrapped)
        next = on ? 0 : total - 1;
    for (; next >= p->hits[part]; part++)
        next -= p->hits[part];
    (void)pass_hits(p, part, SIZE_MAX, next + 1, &hit);
    go_to_message(p, message_of(p, part), hit);
    return true;
}

bool browse_pane_show(struct browse_pane *p, struct str message, size_t at)
{
    size_t i = browse_find_message(&p->thread, message), to, place, n;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text;

    if (i == SIZE_MAX || !shows(p, i))
        return false;
    text = browse_parts_text(&p->parts, &p->thread, i, &scratch);
    at = at < text.n && !utf8_inside(text, at) ? at : text.n;
    to = text.n - at > BROWSE_PART ? at + BROWSE_PART : text.n;
    while (utf8_inside(text, to))
        to++;
    if (p->searched && at < to &&
        pattern_find(&p->pattern, (struct str){text.p + at, to - at}, &place, &n, NULL) > 0)
        go_to_message(p, i, (struct browse_place){at + place, n});
    else if (p->searched && browse_calls_match(&p->thread.at[i], &p->pattern))
        go_to_message(p, i, (struct browse_place){SIZE_MAX, 0});
    else
        bring(p, i, 0, 0);
    buf_release(&scratch);
    return true;
}
