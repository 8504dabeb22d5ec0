/* The lines of text round the panels: beside the search box, above the panels, and at the foot. */
#include <inttypes.h>

#include "chathist/base/utf8.h"
#include "chathist/cli/choose.h"
#include "browse/view.h"

#define TITLE 60

/* Adds the name of the history if several are listed. */
static void add_history_name(struct buf *out, const struct browse *b, size_t history,
                             const char *before)
{
    struct buf name = BUF_INIT(BUF_LINE);

    if (!b->all || !b->places)
        return;
    history_name_add(&name, &b->places[history]);
    buf_add_c(out, before);
    vis_add_line(out, buf_str(&name), true);
    buf_release(&name);
}

void browse_title_box(struct buf *out, const struct browse *b)
{
    size_t count = browse_list_count(b);
    bool more = b->searching && !b->hits_done;

    if (b->role)
        buf_addf(out, "role %s  ", b->role);
    if (b->all)
        buf_add_c(out, "all histories  ");
    if (count > 0)
        buf_addf(out, "%zu/", browse_list(b)->at + 1);
    if (more && b->hits_total > 0)
        buf_addf(out, "%" PRIu64, b->hits_total);
    else
        buf_addf(out, "%zu%s", count, more ? "+" : "");
}

static uint64_t bad_lines(const struct browse *b)
{
    uint64_t count = 0;

    for (size_t i = 0; i < (b->all ? b->histories : 1); i++)
        count += b->sessions.lists[i].bad_lines;
    return count;
}

/* The titles of a list of hits. */
static const char *const hit_titles[] = {
    [BROWSE_FIT_MESSAGE] = "hits",
    [BROWSE_FIT_SESSION] = "sessions with all words",
    [BROWSE_FIT_NEARLY] = "all words but one",
};

void browse_title_list(struct buf *out, const struct browse *b)
{
    uint64_t bad = bad_lines(b);

    if (b->wrong.len > 0) {
        buf_add_byte(out, ' ');
        vis_add_line(out, buf_str(&b->wrong), true);
        buf_add_byte(out, ' ');
        return;
    }
    if (b->search_due != 0 || browse_is_searching(b))
        buf_add_c(out, b->searching ? " hits, searching\xe2\x80\xa6 " : " searching\xe2\x80\xa6 ");
    else if (b->searching && b->hits.count == 0)
        buf_add_c(out, b->hits_done ? " no hit " : " searching\xe2\x80\xa6 ");
    else if (b->searching)
        buf_addf(out, " %s%s ", hit_titles[b->fit], b->most_hits ? ", most hits first" : "");
    else if (b->sessions.count > 0)
        buf_addf(out, " sessions%s%s ", b->order != BROWSE_NEWEST ? ", " : "",
                 b->order != BROWSE_NEWEST ? browse_order_name(b->order) : "");
    else
        buf_add_c(out, b->wants.sessions ? " reading " : " no session yet ");
    if (bad > 0)
        buf_addf(out, " %" PRIu64 " bad line%s ", bad, bad == 1 ? "" : "s");
}

void browse_title_text(struct buf *out, struct browse *b)
{
    struct browse_pane *p = &b->pane;
    struct str id = buf_str(&b->shown.id);
    size_t number, total;

    if (id.n == 0)
        return;
    buf_add_byte(out, ' ');
    vis_add_line(out, utf8_first(id, TITLE), true);
    add_history_name(out, b, b->shown.history, "  ");
    if (p->thread.count > 0)
        buf_addf(out, "  %zu/%zu%s%s", p->at + 1, p->thread.count, b->every ? "  every line" : "",
                 browse_is_looking(b) ? "  looking" : "");
    if (browse_pane_hit_number(p, &number, &total))
        buf_addf(out, "  hit %zu of %zu", number, total);
    if (p->unseen > 0)
        buf_addf(out, "  %zu new below", p->unseen);
    if (b->following)
        buf_add_c(out, "  following");
    buf_add_byte(out, ' ');
}

void browse_advice_list(struct buf *out, const struct browse *b)
{
    if (browse_list_count(b) > 0 || browse_awaits_list(b))
        return;
    if (!b->searching)
        buf_add_c(out, "No conversation is stored here.\n\n" PROGRAM_PREFIX
                       "chat 'a question'\n    begins one\n" PROGRAM_PREFIX
                       "hist-import\n    brings in those of other programs\n"
                       "Ctrl-S\n    lists all your histories\n");
    if (b->searching && b->role)
        buf_addf(out, "Only role %s: Ctrl-R, next role\n", b->role);
    if (b->searching && !b->all && b->histories > 1)
        buf_add_c(out, "Ctrl-S: search all histories\n");
}

void browse_advice_text(struct buf *out, const struct browse *b)
{
    if (b->role && b->pane.thread.count > 0 && !browse_pane_has(&b->pane))
        buf_addf(out, "No %s message in this session; Ctrl-R: next role", b->role);
}

static void add_deletion(struct buf *out, const struct browse *b)
{
    struct str id = buf_str(&b->subject.id);
    size_t place = browse_sessions_find(&b->sessions, b->subject.history, id);
    uint64_t count = place == SIZE_MAX ? 0 : b->sessions.at[place].session->count;

    buf_add_c(out, "delete '");
    vis_add_line(out, utf8_first(id, TITLE), true);
    buf_add_byte(out, '\'');
    add_history_name(out, b, b->subject.history, " of ");
    if (count > 0)
        buf_addf(out, ", %" PRIu64 " message%s", count, count == 1 ? "" : "s");
    buf_add_c(out, ", for ever? y or n");
}

void browse_foot(struct buf *out, const struct browse *b)
{
    if (b->mode == BROWSE_ASKING && b->asked == BROWSE_DELETE) {
        add_deletion(out, b);
    } else if (b->mode == BROWSE_ASKING) {
        vis_add_line(out, buf_str(&b->name.text), true);
        buf_add_c(out, " is there: overwrite it? y or n");
    } else if (b->mode == BROWSE_COPYING) {
        buf_add_c(out, "copy: m message  c its first code block  i id of the session  s session");
    } else if (b->status.len > 0) {
        vis_add_line(out, buf_str(&b->status), true);
    } else {
        browse_hints(out, b->focus, b->choosing, browse_can_go_back(b), b->columns);
    }
}
