/* The lines of text round the panels: beside the search box, above the panels, and at the foot. */
#include <inttypes.h>

#include "chathist/base/utf8.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/wide.h"
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
    size_t count = b->searching ? b->hits.count : b->sessions.count, at = browse_list(b)->at;
    bool more = b->searching && !b->hits_done;

    if (b->role)
        buf_addf(out, "role %s  ", b->role);
    if (b->all)
        buf_add_c(out, "all histories  ");
    if (count > 0)
        buf_addf(out, "%zu/", (b->searching ? b->hits.rows[at].hit : at) + 1);
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
    [BROWSE_FIT_LIKE] = "by meaning",
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
    if (b->marks.marked > 0)
        buf_addf(out, " %zu marked ", b->marks.marked);
    if (b->marks.deleted > 0)
        buf_addf(out, " %zu to delete ", b->marks.deleted);
    if (bad > 0)
        buf_addf(out, " %" PRIu64 " bad line%s ", bad, bad == 1 ? "" : "s");
}

void browse_title_text(struct buf *out, struct browse *b)
{
    struct buf id = BUF_INIT(BUF_LINE), rest = BUF_INIT(BUF_LINE);
    size_t number, total, columns = browse_areas(b).text.columns, used;
    struct browse_pane *p = &b->pane;

    if (b->shown.id.len == 0)
        return;
    if (p->thread.count > 0)
        buf_addf(&rest, "  %zu/%zu%s%s", p->at + 1, p->thread.count, b->every ? "  every line" : "",
                 browse_is_looking(b) ? "  looking" : "");
    if (browse_pane_hit_number(p, &number, &total) && total > 0)
        buf_addf(&rest, "  hit %zu of %zu", number, total);
    if (p->unseen > 0)
        buf_addf(&rest, "  %zu new below", p->unseen);
    if (b->following)
        buf_add_c(&rest, "  following");
    buf_add_byte(&rest, ' ');
    /* What changes is seen; the name is cut. */
    vis_add_line(&id, utf8_first(buf_str(&b->shown.id), TITLE), true);
    add_history_name(&id, b, b->shown.history, "  ");
    buf_add_byte(out, ' ');
    used = rest.len + 1;
    wide_add_fitted(out, buf_str(&id), used < columns ? columns - used : 1);
    buf_add_str(out, buf_str(&rest));
    buf_release(&id);
    buf_release(&rest);
}

/* Adds a text in lines that fit into the narrowest list. */
static void add_wrapped(struct buf *out, struct str text)
{
    size_t begin = out->len;

    while (text.p && text.n > 0) {
        struct str word = str_cut(&text, ' ');
        bool fits = out->len - begin + word.n < BROWSE_LIST_MIN - 1;

        if (out->len > begin)
            buf_add_byte(out, fits ? ' ' : '\n');
        begin = fits ? begin : out->len;
        buf_add_str(out, word);
    }
    buf_add_byte(out, '\n');
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
    if (b->searching && browse_asks_meaning(b))
        add_wrapped(out, buf_str(&b->said));
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

/* Adds the question about the sessions that are to be deleted, the title of a single one cut so
 * that the rest fits. */
static void add_deletion(struct buf *out, const struct browse *b)
{
    struct buf rest = BUF_INIT(BUF_LINE), title = BUF_INIT(BUF_LINE);
    const struct row *one;
    uint64_t messages = browse_deleted_messages(b, &one);
    size_t used;

    if (one)
        add_history_name(&rest, b, one->history, " of ");
    if (b->marks.deleted > 1)
        buf_clear(&rest);
    if (messages > 0)
        buf_addf(&rest, ", %" PRIu64 " message%s", messages, messages == 1 ? "" : "s");
    buf_add_c(&rest, "? y: for ever  n: keep  Esc: back");
    buf_add_c(out, "delete ");
    if (b->marks.deleted == 1 && one) {
        used = out->len + 2 + wide_columns(buf_str(&rest));
        vis_add_line(&title, session_label(one->session), true);
        buf_add_byte(out, '\'');
        wide_add_fitted(out, buf_str(&title), used < b->columns ? b->columns - used : 1);
        buf_add_byte(out, '\'');
    } else {
        buf_addf(out, "%zu session%s", b->marks.deleted, b->marks.deleted == 1 ? "" : "s");
    }
    buf_add_str(out, buf_str(&rest));
    buf_release(&rest);
    buf_release(&title);
}

/* Adds a report; of one that is too wide the beginning and the end, where the reason is. */
static void add_status(struct buf *out, const struct browse *b)
{
    struct buf text = BUF_INIT(BUF_LINE);
    size_t half = b->columns / 2;

    vis_add_line(&text, buf_str(&b->status), true);
    if (wide_columns(buf_str(&text)) <= b->columns) {
        buf_add_str(out, buf_str(&text));
    } else {
        buf_add_str(out, utf8_fit(buf_str(&text), half));
        wide_add_end(out, buf_str(&text), b->columns - half);
    }
    buf_release(&text);
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
        add_status(out, b);
    } else {
        browse_hints(out, b->focus, browse_conditions(b), browse_can_go_back(b), b->columns);
    }
}
