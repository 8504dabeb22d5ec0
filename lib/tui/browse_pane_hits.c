#include "tui/browse_pane_hits.h"

#include <stdint.h>

#include "base/utf8.h"
#include "tui/browse_pane_shown.h"

/* A hit is shown below so much of the panel. */
#define ABOVE_HIT 3

static void look_at(struct browse_pane *p, size_t message, struct browse_place hit)
{
    if (p->has_hit && p->hit < p->thread.count)
        browse_pane_unlay_message(p, p->hit);
    browse_pane_unlay_message(p, message);
    p->open[message] = true;
    p->has_hit = true;
    p->hit = message;
    p->hit_at = hit;
    browse_pane_bring(p, message, hit.at, p->height / ABOVE_HIT);
}

/* ---- in a text ---- */

/* The first hit that begins from `from` on and before `to`, or the last one. */
static bool find(struct pattern *pattern, struct str text, size_t from, size_t to, bool last,
                 struct browse_place *hit)
{
    size_t stop = text.n > to + BROWSE_OVERLAP ? to + BROWSE_OVERLAP : text.n, at, n;
    bool found = false;

    while (utf8_inside(text, stop))
        stop++;
    pattern_start(pattern, (struct str){text.p + from, stop - from});
    while ((last || !found) && pattern_next(pattern, &at, &n, NULL) > 0 && from + at < to) {
        *hit = (struct browse_place){from + at, n};
        found = true;
    }
    return found;
}

/* ---- in slices ---- */

/* In the message that it is at, up to `budget` bytes: how many that were. *found: there it is. */
static size_t look_through(struct browse_pane *p, size_t budget, bool *found)
{
    struct browse_seek *s = &p->seek;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = browse_parts_text(&p->parts, &p->thread, s->message, &scratch);
    struct browse_place hit;
    size_t from, to;

    if (s->place > text.n)
        s->place = text.n;
    if (s->on) {
        from = s->place;
        to = text.n - from > budget ? from + budget : text.n;
        while (utf8_inside(text, to))
            to++;
    } else {
        to = s->place;
        from = to > budget ? to - budget : 0;
        while (utf8_inside(text, from))
            from--;
    }
    *found = from < to && find(&p->pattern, text, from, to, !s->on, &hit);
    s->place = s->on ? to : from;
    if (*found)
        look_at(p, s->message, hit);
    else if (s->place == (s->on ? text.n : 0))
        s->place = SIZE_MAX;
    buf_release(&scratch);
    return to - from;
}

/* To the next message. false: that were all. */
static bool next_message(struct browse_pane *p)
{
    struct browse_seek *s = &p->seek;
    size_t count = p->thread.count;

    s->message = s->on ? (s->message + 1) % count : (s->message + count - 1) % count;
    s->place = s->on ? 0 : SIZE_MAX - 1;
    return s->passed++ < count;
}

enum browse_found browse_pane_seek(struct browse_pane *p)
{
    struct browse_seek *s = &p->seek;
    size_t left = BROWSE_SLICE;
    bool found = false;

    while (s->going && left > BROWSE_SLICE_MESSAGE) {
        size_t used = 0;

        left -= BROWSE_SLICE_MESSAGE;
        if (browse_pane_shows(p, s->message))
            used = look_through(p, left, &found);
        else
            s->place = SIZE_MAX;
        left -= used < left ? used : left;
        if (found)
            s->going = false;
        else if (s->place == SIZE_MAX)
            s->going = next_message(p);
    }
    return found ? BROWSE_FOUND : s->going ? BROWSE_GOES_ON : BROWSE_NOT_FOUND;
}

enum browse_found browse_pane_next_hit(struct browse_pane *p, bool on)
{
    bool here = p->has_hit && p->hit == p->at;

    if (!browse_pane_has(p) || !p->searched)
        return BROWSE_NOT_FOUND;
    p->seek = (struct browse_seek){.going = true, .on = on, .message = p->at};
    if (here)
        p->seek.place = on ? p->hit_at.at + p->hit_at.n : p->hit_at.at;
    return browse_pane_seek(p);
}

bool browse_pane_show(struct browse_pane *p, struct str message, size_t at)
{
    size_t i = browse_pane_find(p, message), to;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct browse_place hit;
    struct str text;

    if (i == SIZE_MAX || !browse_pane_shows(p, i))
        return false;
    p->seek.going = false;
    text = browse_parts_text(&p->parts, &p->thread, i, &scratch);
    to = text.n - (at < text.n ? at : text.n) > BROWSE_PART ? at + BROWSE_PART : text.n;
    if (p->searched && at < text.n && !utf8_inside(text, at) &&
        find(&p->pattern, text, at, to, false, &hit))
        look_at(p, i, hit);
    else
        browse_pane_bring(p, i, 0, 0);
    buf_release(&scratch);
    return true;
}
