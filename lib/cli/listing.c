#include "chathist/cli/listing.h"

#include <inttypes.h>
#include <stdint.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/wide.h"
#include "chathist/history/message.h"

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

/* Prints the id in its colour. Returns its length. */
static size_t print_id(struct out *out, const struct session *s, struct buf *scratch)
{
    buf_clear(scratch);
    list_add_id(scratch, s->id);
    out_style(out, STYLE_ID);
    out_raw(out, buf_str(scratch));
    out_style(out, STYLE_NONE);
    return scratch->len;
}

/* Prints `id TAB last-used TAB count TAB label`, and `TAB history`. */
static void print_fields_of(struct out *out, const struct session *s, const char *history)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    buf_room(&line, 4 * MESSAGE_PREVIEW);
    print_id(out, s, &line);
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
    size_t used = print_id(out, s, &middle);
    int64_t us;

    buf_set(&middle, STR("  "));
    if (time_parse_iso(s->last_used, &us))
        time_add_local(&middle, us);
    else
        vis_add_line(&middle, s->last_used, true);
    buf_addf(&middle, "  %4" PRIu64 "  ", s->count);
    used += middle.len + (form->name ? form->name_width + 2 : 0);
    if (form->name) {
        vis_add_line(&name, str_of(form->name), true);
        wide_add_end(&middle, buf_str(&name), form->name_width);
        buf_add_c(&middle, "  ");
    }
    out_raw(out, buf_str(&middle));
    buf_add_c(&label, s->came ? "(came with the repository) " : "");
    vis_add_line(&label, session_label(s), true);
    out_raw(out, utf8_fit(buf_str(&label), out->columns > used ? out->columns - used : 1));
    out_byte(out, '\n');
    buf_release(&middle);
    buf_release(&label);
    buf_release(&name);
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
