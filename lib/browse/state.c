#include "browse/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"

/* ---- a line ---- */

static void add_current_place(struct buf *out, const struct browse *b)
{
    const struct browse_list *l = browse_list(b);
    struct browse_position at;
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id))
        return;
    json_add_member(out, "session", id);
    json_add_member_int(out, "row", (int64_t)(l->at - l->top));
    if (b->searching)
        json_add_member(out, "message", browse_chosen_hit(b));
    if (browse_message(b) && browse_shows(b, history, id) && browse_pane_position(&b->pane, &at)) {
        json_add_member(out, "top", at.top);
        if (at.part > 0)
            json_add_member_int(out, "top_part", (int64_t)at.part);
        json_add_member_int(out, "top_line", (int64_t)at.line);
        json_add_member(out, "at", at.at);
    }
}

/* Appends the line for a history, with its newline. */
static void add_state(struct buf *out, const struct browse *b, struct str history)
{
    struct buf line = BUF_INIT(SIZE_MAX);

    buf_add_c(&line, "{");
    json_add_member(&line, "history", history);
    json_add_member(&line, "query", buf_str(&b->query.text));
    if (b->role)
        json_add_member(&line, "role", str_of(b->role));
    json_add_key(&line, "all");
    buf_add_c(&line, b->all ? "true" : "false");
    if (b->order != BROWSE_NEWEST)
        json_add_member_int(&line, "order", (int64_t)b->order);
    if (b->most_hits)
        json_add_member_int(&line, "most_hits", 1);
    add_current_place(&line, b);
    buf_add_c(&line, "}\n");
    buf_add_str(out, buf_str(&line));
    buf_release(&line);
}

static void read_state_text(struct str object, const char *key, struct buf *to)
{
    buf_clear(to);
    (void)json_decode(json_get(object, key), to);
}

static size_t read_state_number(struct str object, const char *key)
{
    int64_t n;

    return json_int(json_get(object, key), &n) && n > 0 && n < INT32_MAX ? (size_t)n : 0;
}

static bool is_of(struct str line, struct str history)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str value;
    bool is = json_check(line, &value, NULL) && json_type(line) == JSON_OBJECT &&
              str_eq(json_text(json_get(line, "history"), &scratch), history);

    buf_release(&scratch);
    return is;
}

/* Applies a line to a new state. Returns false if the line is malformed or for another history. */
static bool read_state(struct browse *b, struct str line, struct str history)
{
    struct buf text = BUF_INIT(BUF_LINE);

    if (!is_of(line, history))
        return false;
    read_state_text(line, "query", &text);
    browse_edit_set(&b->query, buf_str(&text));
    b->query.chosen = text.len > 0;
    read_state_text(line, "role", &text);
    b->role = role_name(role_of(buf_str(&text)));
    browse_pane_set_role(&b->pane, b->role);
    b->all = json_is_true(json_get(line, "all")) && b->histories > 1;
    b->order = (enum browse_order)read_state_number(line, "order") % BROWSE_ORDERS;
    b->most_hits = read_state_number(line, "most_hits") > 0;
    read_state_text(line, "session", &b->back.session);
    read_state_text(line, "message", &b->back.message);
    read_state_text(line, "top", &b->back.top);
    read_state_text(line, "at", &b->back.at);
    b->back.row = read_state_number(line, "row");
    b->back.top_part = read_state_number(line, "top_part");
    b->back.top_line = read_state_number(line, "top_line");
    b->back.list = b->back.session.len > 0;
    b->back.text = b->back.list && b->back.top.len > 0;
    buf_release(&text);
    return true;
}

/* ---- the file ---- */

int browse_state_load(struct browse *b, const char *path, struct str history, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int result = file_read_state(path, &text, e) < 0 ? -1 : 0;
    struct str rest = buf_str(&text);

    while (rest.p && rest.n > 0)
        if (read_state(b, str_cut(&rest, '\n'), history))
            break;
    buf_release(&text);
    return result;
}

int browse_state_save(const struct browse *b, const char *path, struct str history, struct err *e)
{
    struct buf old = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE);
    char *dir = path_parent(path);
    size_t lines;
    int result = file_make_dirs(dir, e);
    struct str rest;

    if (result >= 0)
        result = 0;
    (void)file_read_state(path, &old, NULL);
    rest = buf_str(&old);
    lines = str_count(rest, '\n');
    while (rest.p && rest.n > 0) {
        struct str line = str_cut(&rest, '\n'), value;

        if (lines-- >= BROWSE_KEPT || is_of(line, history) || !json_check(line, &value, NULL))
            continue;
        buf_add_str(&text, line);
        buf_add_byte(&text, '\n');
    }
    add_state(&text, b, history);
    if (result == 0)
        result = file_replace(path, buf_str(&text), e);
    free(dir);
    buf_release(&old);
    buf_release(&text);
    return result;
}
