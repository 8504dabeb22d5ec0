#include "tui/browse_words.h"

#include <inttypes.h>

#include "base/utf8.h"
#include "base/vis.h"

#define TITLE 60

void browse_title_box(struct buf *out, const struct browse *b)
{
    size_t count = browse_list_count(b);

    if (b->role)
        buf_addf(out, "role %s  ", b->role);
    if (b->all)
        buf_add_c(out, "all histories  ");
    if (count > 0)
        buf_addf(out, "%zu/", browse_list(b)->at + 1);
    buf_addf(out, "%zu%s", count, (b->searching ? !b->hits_done : b->sessions.partial) ? "+" : "");
}

void browse_title_list(struct buf *out, const struct browse *b)
{
    if (b->searching && b->hits.count == 0)
        buf_add_c(out, b->hits_done ? " no hit " : " searching ");
    else if (b->searching)
        buf_add_c(out, " hits ");
    else if (!b->sessions_known)
        buf_add_c(out, " reading ");
    else
        buf_add_c(out, b->sessions.count > 0 ? " sessions " : " no session yet ");
}

void browse_title_text(struct buf *out, const struct browse *b)
{
    const struct browse_pane *p = &b->pane;
    struct str id = buf_str(&b->shown.id);

    if (id.n == 0)
        return;
    buf_add_byte(out, ' ');
    vis_add_line(out, utf8_first(id, TITLE), true);
    if (p->thread.count > 0)
        buf_addf(out, "  %zu/%zu", p->at + 1, p->thread.count);
    buf_add_byte(out, ' ');
}

static void add_question(struct buf *out, const struct browse *b)
{
    size_t history, place;
    struct str id;

    if (!browse_chosen(b, &history, &id))
        return;
    buf_add_c(out, "delete '");
    vis_add_line(out, utf8_first(id, TITLE), true);
    buf_add_byte(out, '\'');
    place = browse_sessions_find(&b->sessions, history, id);
    if (place != SIZE_MAX && !b->sessions.partial)
        buf_addf(out, ", %" PRIu64 " message%s", b->sessions.at[place].count,
                 b->sessions.at[place].count == 1 ? "" : "s");
    buf_add_c(out, ", for ever? y or n");
}

void browse_foot(struct buf *out, const struct browse *b)
{
    if (b->mode == BROWSE_ASKING)
        add_question(out, b);
    else if (b->status.len > 0)
        vis_add_line(out, buf_str(&b->status), true);
    else
        browse_hints(out, b->focus);
}
