#include "chathist/cli/listing.h"

#include <inttypes.h>
#include <stdint.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"
#include "chathist/history/message.h"

/* The columns of a local time, and those that an id gets in any case if it needs them. */
#define TIME_COLUMNS 16
#define ID_COLUMNS ((size_t)26)

static bool reads_back(struct str id)
{
    bool safe = id.n > 0 && id.p[0] != '"' && id.p[0] != ' ' && id.p[id.n - 1] != ' ' &&
                !str_eq_c(id, "-") && !str_eq_c(id, "current") && !str_eq_c(id, "last");

    while (safe && id.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(id, &cp);

        safe = n > 0 && cp >= 0 && cp != '\n' && cp != '\t' && !vis_unsafe(cp);
        id = str_skip(id, n);
    }
    return safe;
}

void list_add_id(struct buf *line, struct str id)
{
    struct buf json = BUF_INIT(8 * BUF_LINE);

    if (reads_back(id)) {
        buf_add_str(line, id);
        return;
    }
    json_add_string(&json, id);
    json_add_visible(line, buf_str(&json));
    buf_release(&json);
}

size_t list_id_most(const struct out *out)
{
    return out->columns / 3 > ID_COLUMNS ? out->columns / 3 : ID_COLUMNS;
}

/* Adds a text in exactly this number of columns. */
static void add_column(struct buf *line, struct str text, size_t columns)
{
    size_t used = wide_columns(text);

    wide_add_fitted(line, text, columns);
    for (; used < columns; used++)
        buf_add_byte(line, ' ');
}

/* Prints the id in its colour, in this number of columns unless that is 0. Returns its columns. */
static size_t print_id(struct out *out, const struct session *s, struct buf *scratch,
                       size_t columns)
{
    struct buf column = BUF_INIT(8 * BUF_LINE);

    buf_clear(scratch);
    list_add_id(scratch, s->id);
    add_column(&column, buf_str(scratch), columns > 0 ? columns : wide_columns(buf_str(scratch)));
    out_style(out, STYLE_ID);
    out_raw(out, buf_str(&column));
    out_style(out, STYLE_NONE);
    columns = wide_columns(buf_str(&column));
    buf_release(&column);
    return columns;
}

/* Prints `id TAB last-used TAB count TAB label`, and `TAB history`. */
static void print_fields_of(struct out *out, const struct session *s, const char *history)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    buf_room(&line, 4 * MESSAGE_PREVIEW);
    print_id(out, s, &line, 0);
    buf_clear(&line);
    buf_add_byte(&line, '\t');
    vis_add_line(&line, s->last_used, false);
    buf_add_byte(&line, '\t');
    buf_add_number(&line, s->count);
    buf_add_byte(&line, '\t');
    vis_add_line(&line, session_label(s), false);
    if (history) {
        buf_add_byte(&line, '\t');
        vis_add_line(&line, str_of(history), false);
    }
    buf_add_byte(&line, '\n');
    out_raw(out, buf_str(&line));
    buf_release(&line);
}

/* Prints the same for a terminal: local time, columns, a label that fits. */
static void print_columns(struct out *out, const struct session *s, const struct list_form *form)
{
    struct buf middle = BUF_INIT(8 * BUF_LINE), label = BUF_INIT(BUF_SMALL),
               name = BUF_INIT(BUF_SMALL);
    size_t used = print_id(out, s, &middle, form->id_width);
    int64_t us;

    buf_set(&middle, STR("  "));
    if (time_parse_iso(s->last_used, &us))
        time_add_local(&middle, us);
    else
        vis_add_line(&middle, s->last_used, true);
    while (middle.len < 2 + TIME_COLUMNS)
        buf_add_byte(&middle, ' ');
    buf_addf(&middle, "  %5" PRIu64 "  ", s->count);
    if (form->name) {
        vis_add_line(&name, str_of(form->name), true);
        wide_add_end(&middle, buf_str(&name), form->name_width);
        buf_add_c(&middle, "  ");
    }
    out_raw(out, utf8_fit(buf_str(&middle), out->columns > used ? out->columns - used : 0));
    used += wide_columns(buf_str(&middle));
    buf_add_c(&label, s->came ? "(came with the repository) " : "");
    vis_add_line(&label, session_label(s), true);
    out_raw(out, utf8_fit(buf_str(&label), out->columns > used ? out->columns - used : 0));
    out_byte(out, '\n');
    buf_release(&middle);
    buf_release(&label);
    buf_release(&name);
}

void list_heading(struct out *out, const struct list_form *form)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    add_column(&line, STR("session"), form->id_width);
    buf_add_c(&line, "  last used         count  ");
    if (form->name_width > 0) {
        add_column(&line, STR("repository"), form->name_width);
        buf_add_c(&line, "  ");
    }
    buf_add_c(&line, "title");
    out_style(out, STYLE_DIM);
    out_raw(out, utf8_fit(buf_str(&line), out->columns));
    out_style(out, STYLE_NONE);
    out_byte(out, '\n');
    buf_release(&line);
}

void list_add_json(struct buf *line, const struct session *s, const char *history)
{
    session_add_json(line, s);
    if (!history)
        return;
    buf_truncate(line, line->len - 1);
    json_add_member(line, "history", str_of(history));
    buf_add_byte(line, '}');
}

void list_history(struct out *out, const char *history, bool *headed)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    if (!out->terminal || !history || *headed)
        return;
    *headed = true;
    vis_add_line(&line, str_of(history), true);
    out_style(out, STYLE_ID);
    out_raw(out, buf_str(&line));
    out_style(out, STYLE_NONE);
    out_byte(out, '\n');
    buf_release(&line);
}

void list_session(struct out *out, const struct session *s, struct list_form *form)
{
    if (form->json) {
        struct buf line = BUF_INIT(SIZE_MAX);

        list_add_json(&line, s, form->history);
        out_json_line(out, buf_str(&line));
        buf_release(&line);
    } else if (out->terminal) {
        print_columns(out, s, form);
    } else {
        print_fields_of(out, s, form->history);
    }
}

void list_id(struct out *out, struct str id, bool json)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    if (json) {
        buf_add_byte(&line, '{');
        json_add_member(&line, "session_id", id);
        buf_add_byte(&line, '}');
    } else {
        list_add_id(&line, id);
    }
    buf_add_byte(&line, '\n');
    out_raw(out, buf_str(&line));
    buf_release(&line);
}
