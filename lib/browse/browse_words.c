#include "browse/browse_words.h"

#include <inttypes.h>

#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"

#define TITLE 60
#define NAME_MAX_BYTES ((size_t)100)

/* Which history it is, where more than one is listed. */
static void add_history(struct buf *out, const struct browse *b, size_t history, const char *before)
{
    if (!b->all || !b->names)
        return;
    buf_add_c(out, before);
    vis_add_line(out, str_of(b->names[history]), true);
}

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
        buf_add_c(out, b->sessions.total > 0 ? " sessions " : " no session yet ");
}

void browse_title_text(struct buf *out, const struct browse *b)
{
    const struct browse_pane *p = &b->pane;
    struct str id = buf_str(&b->shown.id);

    if (id.n == 0)
        return;
    buf_add_byte(out, ' ');
    vis_add_line(out, utf8_first(id, TITLE), true);
    add_history(out, b, b->shown.history, "  ");
    if (p->thread.count > 0)
        buf_addf(out, "  %zu/%zu%s%s", p->at + 1, p->thread.count, b->every ? "  every line" : "",
                 p->seek.going ? "  looking" : "");
    buf_add_byte(out, ' ');
}

void browse_add_file_name(struct buf *out, const struct browse *b)
{
    struct str id = buf_str(&b->subject.id);

    for (size_t i = 0; i < id.n && i < NAME_MAX_BYTES; i++)
        buf_add_byte(out, id.p[i] == '/' ? '_' : id.p[i]);
    buf_add_c(out, ".md");
}

void browse_say(struct browse *b, const char *text)
{
    buf_clear(&b->status);
    buf_add_c(&b->status, text);
}

void browse_ask(struct browse *b, enum browse_command command)
{
    b->asked = command;
    b->mode = BROWSE_ASKING;
}

static void add_deletion(struct buf *out, const struct browse *b)
{
    struct str id = buf_str(&b->subject.id);
    bool chosen = browse_target_is(&b->target, b->subject.history, id);
    bool read = browse_target_is(&b->shown, b->subject.history, id);
    uint64_t count = b->target.last_line < 0 ? b->pane.thread.all : b->target.count;

    buf_add_c(out, "delete '");
    vis_add_line(out, utf8_first(id, TITLE), true);
    buf_add_byte(out, '\'');
    add_history(out, b, b->subject.history, " of ");
    /* Of a part of the file it would be too few. */
    if (chosen && b->target.end < 0 && (read || b->target.last_line >= 0))
        buf_addf(out, ", %" PRIu64 " message%s", count, count == 1 ? "" : "s");
    buf_add_c(out, ", for ever? y or n");
}

static void add_question(struct buf *out, const struct browse *b)
{
    if (b->asked == BROWSE_DELETE) {
        add_deletion(out, b);
        return;
    }
    vis_add_line(out, buf_str(&b->name.text), true);
    buf_add_c(out, " is there: overwrite it? y or n");
}

void browse_foot(struct buf *out, const struct browse *b)
{
    if (b->mode == BROWSE_ASKING)
        add_question(out, b);
    else if (b->status.len > 0)
        vis_add_line(out, buf_str(&b->status), true);
    else
        browse_hints(out, b->focus, b->columns);
}
