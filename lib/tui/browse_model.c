#include "tui/browse_model.h"

#include <string.h>

#include "tui/browse_pane_hits.h"

/* Side by side from so many columns on. */
#define BESIDE 80
#define LIST_MIN 32
#define LIST_MAX 64

void browse_init(struct browse *b, size_t histories)
{
    *b = (struct browse){.histories = histories, .rows = 24, .columns = 80};
    browse_edit_init(&b->query);
    browse_edit_init(&b->name);
    browse_pane_init(&b->pane);
    buf_init(&b->status, BUF_SMALL);
    buf_init(&b->searched, BUF_SMALL);
    buf_init(&b->shown.id, BUF_LINE);
    buf_init(&b->target.id, BUF_LINE);
    buf_init(&b->back.session, BUF_LINE);
    buf_init(&b->back.message, BUF_LINE);
    buf_init(&b->back.top, BUF_LINE);
    buf_init(&b->back.at, BUF_LINE);
    b->wants.sessions = true;
}

void browse_release(struct browse *b)
{
    browse_edit_release(&b->query);
    browse_edit_release(&b->name);
    browse_sessions_release(&b->sessions);
    browse_hits_release(&b->hits);
    browse_hits_release(&b->fresh);
    browse_pane_release(&b->pane);
    buf_release(&b->status);
    buf_release(&b->searched);
    buf_release(&b->shown.id);
    buf_release(&b->target.id);
    buf_release(&b->back.session);
    buf_release(&b->back.message);
    buf_release(&b->back.top);
    buf_release(&b->back.at);
}

static void set(struct buf *to, struct str text)
{
    buf_clear(to);
    buf_add_str(to, text);
}

void browse_say(struct browse *b, const char *text)
{
    set(&b->status, str_of(text));
}

/* ---- the screen ---- */

static size_t less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

struct browse_areas browse_areas(const struct browse *b)
{
    size_t body = less(b->rows, 3), wide = b->columns * 2 / 5;
    struct browse_areas a = {.stacked = b->columns < BESIDE,
                             .box = {0, 0, 1, b->columns},
                             .foot = {less(b->rows, 1), 0, 1, b->columns}};

    if (a.stacked) {
        size_t above = body / 3 > 2 ? body / 3 : body > 4 ? 2 : 1;

        a.list = (struct browse_rect){2, 0, above < body ? above : body, b->columns};
        a.rule = 2 + a.list.rows;
        a.text = (struct browse_rect){a.rule + 1, 0, less(body, a.list.rows + 1), b->columns};
    } else {
        wide = wide < LIST_MIN ? LIST_MIN : wide > LIST_MAX ? LIST_MAX : wide;
        a.list = (struct browse_rect){2, 0, body, wide};
        a.rule = wide;
        a.text = (struct browse_rect){2, wide + 2, body, b->columns - wide - 2};
    }
    return a;
}

/* ---- the list ---- */

size_t browse_list_count(const struct browse *b)
{
    return b->searching ? b->hits.count : b->sessions.count;
}

static struct browse_list *list_of(struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
}

const struct browse_list *browse_list(const struct browse *b)
{
    return b->searching ? &b->hit_list : &b->session_list;
}

static void clamp_list(struct browse *b)
{
    struct browse_list *l = list_of(b);
    size_t count = browse_list_count(b), rows = browse_areas(b).list.rows;

    if (l->at >= count)
        l->at = less(count, 1);
    if (l->top > l->at)
        l->top = l->at;
    if (rows > 0 && l->at >= l->top + rows)
        l->top = l->at - rows + 1;
    if (l->top + rows > count)
        l->top = less(count, rows);
    if (b->searching && !b->hits_done && l->at + 2 * rows >= count)
        b->wants.more = true;
}

void browse_resize(struct browse *b, size_t rows, size_t columns)
{
    struct browse_areas a;

    b->rows = rows;
    b->columns = columns;
    a = browse_areas(b);
    browse_pane_resize(&b->pane, a.text.columns > 2 ? a.text.columns : 2,
                       a.text.rows > 0 ? a.text.rows : 1);
    clamp_list(b);
}

bool browse_chosen(const struct browse *b, size_t *history, struct str *id)
{
    const struct browse_list *l = browse_list(b);

    if (l->at >= browse_list_count(b))
        return false;
    *history = b->searching ? b->hits.at[l->at].history : b->sessions.at[l->at].history;
    *id = b->searching ? b->hits.at[l->at].session : b->sessions.at[l->at].id;
    return true;
}

/* ---- the messages ---- */

static bool is_target(const struct browse_target *t, size_t history, struct str id)
{
    return t->history == history && str_eq(buf_str(&t->id), id);
}

/* The chosen session is in the panel, or to be read for it. */
static void show_chosen(struct browse *b)
{
    struct browse_target *t = &b->target;
    off_t first = 0, end = -1;
    size_t history, place;
    struct str id;

    if (!browse_chosen(b, &history, &id)) {
        struct thread nothing = {0};

        if (t->id.len > 0 || b->shown.id.len > 0) {
            buf_clear(&t->id);
            buf_clear(&b->shown.id);
            b->thread_number++;
            b->wants.thread = false;
            browse_pane_take(&b->pane, &nothing, false);
        }
        return;
    }
    place = browse_sessions_find(&b->sessions, history, id);
    if (place != SIZE_MAX) {
        first = b->sessions.at[place].first;
        end = b->sessions.at[place].end;
    }
    if (!is_target(t, history, id) || t->first != first || t->end != end) {
        t->history = history;
        set(&t->id, id);
        t->first = first;
        t->end = end;
        b->thread_number++;
        b->wants.thread = true;
    }
    /* What is there already need not wait for what is read again. */
    if (b->searching && is_target(&b->shown, history, id)) {
        const struct browse_hit *hit = &b->hits.at[b->hit_list.at];

        (void)browse_pane_show(&b->pane, hit->message, hit->at);
    }
}

/* The list has changed, not by keys: what was chosen stays on its line. */
static void keep_line(struct browse *b, size_t place, size_t row)
{
    struct browse_list *l = list_of(b);

    l->at = place;
    l->top = less(place, row);
    clamp_list(b);
}

void browse_choose(struct browse *b, size_t place)
{
    list_of(b)->at = place;
    b->back.list = b->back.text = false;
    clamp_list(b);
    show_chosen(b);
}

void browse_take_sessions(struct browse *b, struct browse_sessions *s)
{
    struct browse_list *l = &b->session_list;
    size_t row = less(l->at, l->top), history = 0, place = SIZE_MAX;
    bool had = l->at < b->sessions.count;
    bool back = b->back.list && !b->searching && b->back.session.len > 0;
    struct buf id = BUF_INIT(BUF_LINE);

    if (back) {
        set(&id, buf_str(&b->back.session));
        row = b->back.row;
    } else if (had) {
        set(&id, b->sessions.at[l->at].id);
        history = b->sessions.at[l->at].history;
    }
    browse_sessions_release(&b->sessions);
    b->sessions = *s;
    *s = (struct browse_sessions){0};
    b->sessions_known = true;
    if (id.len > 0)
        place = browse_sessions_find(&b->sessions, history, buf_str(&id));
    if (back && (place != SIZE_MAX || !b->sessions.partial))
        b->back.list = false;
    buf_release(&id);
    if (b->searching) {
        l->at = place != SIZE_MAX ? place : l->at;
        l->top = less(l->at, row);
        show_chosen(b);
        return;
    }
    if (place != SIZE_MAX)
        keep_line(b, place, l->top == 0 && !back ? place : row);
    clamp_list(b);
    /* What is looked for may be further back in the file. */
    if (!b->back.list)
        show_chosen(b);
}

void browse_take_thread(struct browse *b, unsigned number, struct thread *t)
{
    bool same = is_target(&b->shown, b->target.history, buf_str(&b->target.id));

    if (number != b->thread_number) {
        thread_release(t);
        return;
    }
    browse_pane_take(&b->pane, t, same);
    b->shown.history = b->target.history;
    set(&b->shown.id, buf_str(&b->target.id));
    if (b->back.text && str_eq(buf_str(&b->shown.id), buf_str(&b->back.session))) {
        browse_pane_return(&b->pane, buf_str(&b->back.top), b->back.top_line, buf_str(&b->back.at));
        b->back.text = false;
    } else if (b->searching && !same && b->hit_list.at < b->hits.count) {
        const struct browse_hit *hit = &b->hits.at[b->hit_list.at];

        (void)browse_pane_show(&b->pane, hit->message, hit->at);
    }
}

const struct message *browse_message(const struct browse *b)
{
    return browse_pane_has(&b->pane) ? &b->pane.thread.at[b->pane.at] : NULL;
}

/* ---- searching ---- */

void browse_search(struct browse *b, bool again)
{
    struct str text = buf_str(&b->query.text);

    b->search_due = 0;
    b->search_number++;
    b->wants.more = false;
    b->refreshing = again && b->searching;
    browse_hits_release(&b->fresh);
    if (!again)
        browse_pane_search(&b->pane, text);
    set(&b->searched, text);
    if (text.n == 0) {
        b->wants.search = true;
        browse_hits_release(&b->hits);
        b->searching = false;
        b->hits_done = true;
        clamp_list(b);
        show_chosen(b);
        return;
    }
    b->wants.search = true;
}

void browse_set_role(struct browse *b, const char *role)
{
    b->role = role;
    browse_pane_set_role(&b->pane, role);
    if (b->query.text.len > 0)
        browse_search(b, false);
}

void browse_set_scope(struct browse *b, bool all)
{
    b->all = all;
    b->wants.sessions = true;
    if (b->query.text.len > 0)
        browse_search(b, false);
}

void browse_tick(struct browse *b, int64_t now)
{
    if (b->search_due != 0 && now >= b->search_due)
        browse_search(b, false);
}

/* The place of a hit, SIZE_MAX: none. */
static size_t find_hit(const struct browse_hits *h, struct str message)
{
    for (size_t i = 0; i < h->count; i++)
        if (str_eq(h->at[i].message, message))
            return i;
    return SIZE_MAX;
}

/* The hits of the same search, read again, are as many as were there. */
static void swap_fresh(struct browse *b)
{
    struct browse_list *l = &b->hit_list;
    size_t row = less(l->at, l->top), place = SIZE_MAX;

    if (l->at < b->hits.count)
        place = find_hit(&b->fresh, b->hits.at[l->at].message);
    browse_hits_release(&b->hits);
    b->hits = b->fresh;
    b->fresh = (struct browse_hits){0};
    b->refreshing = false;
    keep_line(b, place != SIZE_MAX ? place : l->at, l->top == 0 ? l->at : row);
    show_chosen(b);
}

void browse_take_hits(struct browse *b, unsigned number, struct browse_hits *h, bool done)
{
    bool first = number != b->fresh_number;

    if (number != b->search_number) {
        browse_hits_release(h);
        return;
    }
    b->hits_done = done;
    if (b->refreshing) {
        b->fresh_number = number;
        browse_hits_move(&b->fresh, h);
        if (done || b->fresh.count >= b->hits.count)
            swap_fresh(b);
        else
            b->wants.more = true;
        return;
    }
    if (first) {
        browse_hits_release(&b->hits);
        b->fresh_number = number;
        b->searching = true;
        b->hit_list = (struct browse_list){0, 0};
    }
    browse_hits_move(&b->hits, h);
    if (b->back.list && b->back.message.len > 0) {
        size_t place = find_hit(&b->hits, buf_str(&b->back.message));

        if (place != SIZE_MAX)
            keep_line(b, place, b->back.row);
        if (place != SIZE_MAX || done)
            b->back.list = false;
        else
            b->wants.more = true;
    }
    clamp_list(b);
    if (!b->back.list)
        show_chosen(b);
}
