#include "tui/browse_item.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Of one message; a search for a letter in a long one finds more. */
#define HITS_MAX 10000

#define FOLDED "\xe2\x96\xb8 "
#define UNFOLDED "\xe2\x96\xbe "

/* ---- hits ---- */

void browse_item_look(struct browse_item *item, const struct message *m, struct pattern *pattern)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t at, n;

    if (item->looked)
        return;
    item->looked = true;
    item->hit_count = 0;
    pattern_start(pattern, message_content(m, &scratch));
    while (item->hit_count < HITS_MAX && pattern_next(pattern, &at, &n, NULL) > 0) {
        item->hits = mem_grow(item->hits, &item->hit_cap, item->hit_count + 1, sizeof *item->hits);
        item->hits[item->hit_count++] = (struct browse_place){at, n};
    }
    buf_release(&scratch);
}

size_t browse_item_line(const struct browse_item *item, size_t at)
{
    size_t line = item->body;

    while (line + 1 < item->lines.count && item->lines.at[line + 1].from + item->from <= at &&
           item->lines.at[line + 1].from > 0)
        line++;
    return line < item->lines.count ? line : 0;
}

/* ---- the header ---- */

static void add_field(struct buf *out, const struct message *m, enum field f, const char *before)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_text(m, f, &scratch);

    if (text.n > 0) {
        buf_add_c(out, before);
        buf_add_str(out, utf8_first(text, 60));
    }
    buf_release(&scratch);
}

static void add_header(struct browse_item *item, const struct message *m, size_t width)
{
    struct browse_layout how = {.width = width, .styles = BROWSE_HEAD};
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t time, images;

    browse_lines_add_one(&item->lines, utf8_first(m->role_text, 20), &how);
    how.styles = BROWSE_HEAD | BROWSE_DIM;
    buf_add_c(&text, "  ");
    if (clock_parse_iso(m->timestamp, &time))
        clock_add_local(&text, time);
    add_field(&text, m, FIELD_MODEL, "  ");
    if (json_int(m->field[FIELD_IMAGES], &images) && images > 0)
        buf_addf(&text, "  %" PRId64 " image%s", images, images == 1 ? "" : "s");
    if (m->role == ROLE_ASSISTANT && m->field[FIELD_FINISH_REASON].n > 0 &&
        !str_eq(m->field[FIELD_FINISH_REASON], STR("\"stop\"")) &&
        !str_eq(m->field[FIELD_FINISH_REASON], STR("\"tool_calls\"")))
        add_field(&text, m, FIELD_FINISH_REASON, "  ");
    buf_add_c(&item->lines.text, "  ");
    browse_lines_styled(&item->lines, 2, how.styles);
    browse_lines_append(&item->lines, str_trim(buf_str(&text)), &how);
    buf_release(&text);
}

/* ---- the text ---- */

/* What of a long text is laid out: from some way before the hit that is looked at. */
static struct str window(struct browse_item *item, struct str text, size_t hit)
{
    size_t from = 0;

    if (hit < item->hit_count && item->hits[hit].at > BROWSE_SHOWN / 2)
        from = item->hits[hit].at - BROWSE_SHOWN / 4;
    while (from > 0 && from < text.n && ((unsigned char)text.p[from] & 0xc0) == 0x80)
        from--;
    item->from = from;
    text = (struct str){text.p + from, text.n - from};
    if (text.n > BROWSE_SHOWN) {
        text.n = BROWSE_SHOWN;
        while (text.n > 0 && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
            text.n--;
    }
    return text;
}

static void tell_rest(struct browse_item *item, size_t bytes, const char *where, size_t width)
{
    struct browse_layout how = {.width = width, .styles = BROWSE_DIM};
    struct buf text = BUF_INIT(BUF_SMALL);

    if (bytes > 0) {
        buf_addf(&text, "[%zu bytes %s: v shows all]", bytes, where);
        browse_lines_add_one(&item->lines, buf_str(&text), &how);
    }
    buf_release(&text);
}

static void add_text(struct browse_item *item, struct str text, const struct browse_item_view *view,
                     unsigned styles)
{
    struct str part = window(item, text, view->hit);
    struct browse_layout how = {.width = view->width, .markdown = styles == 0, .styles = styles};
    struct browse_place *hits = mem_zalloc((item->hit_count + 1) * sizeof *hits);

    for (size_t i = 0; view->pattern && i < item->hit_count; i++)
        if (item->hits[i].at >= item->from)
            hits[how.hit_count++] =
                (struct browse_place){item->hits[i].at - item->from, item->hits[i].n};
    how.hits = hits;
    if (view->hit < item->hit_count) {
        how.has_here = true;
        how.here = item->hits[view->hit].at - item->from;
    }
    tell_rest(item, item->from, "before this", view->width);
    item->body = item->lines.count;
    browse_lines_add(&item->lines, part, &how);
    tell_rest(item, text.n - item->from - part.n, "more", view->width);
    free(hits);
}

/* ---- tools ---- */

static void add_folded(struct browse_item *item, struct str name, struct str text, size_t width)
{
    struct browse_layout how = {.width = width, .styles = BROWSE_TOOL};

    browse_lines_add_one(&item->lines, STR_NONE, &how);
    buf_add_c(&item->lines.text, item->unfolded ? UNFOLDED : FOLDED);
    browse_lines_styled(&item->lines, sizeof FOLDED - 1, BROWSE_TOOL);
    browse_lines_append(&item->lines, name, &how);
    if (item->unfolded)
        return;
    how.styles = BROWSE_DIM;
    if (name.n > 0) {
        buf_add_c(&item->lines.text, " ");
        browse_lines_styled(&item->lines, 1, 0);
    }
    browse_lines_append(&item->lines, text, &how);
}

/* The arguments of a call, a member after the other; what is a string decoded. */
static void add_arguments(struct browse_item *item, struct str args, size_t width)
{
    struct browse_layout how = {.width = width, .styles = BROWSE_CODE};
    struct buf text = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(args);

    if (json_type(args) != JSON_OBJECT) {
        struct str plain = json_text(args, &scratch);

        buf_add_str(&text, plain.p ? plain : args);
    }
    while (it.object && json_next(&it)) {
        struct str value = json_text(it.value, &scratch);

        buf_add_str(&text, it.key);
        buf_add_c(&text, ": ");
        buf_add_str(&text, value.p ? value : it.value);
        buf_add_byte(&text, '\n');
    }
    browse_lines_add(&item->lines, utf8_first(buf_str(&text), BROWSE_SHOWN), &how);
    buf_release(&text);
    buf_release(&scratch);
}

static void add_calls(struct browse_item *item, const struct message *m, size_t width)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE);

    while (!it.object && json_next(&it)) {
        struct str args = json_get(it.value, "args");
        struct str name = json_text(json_get(it.value, "name"), &scratch);

        add_folded(item, name, args, width);
        if (item->unfolded)
            add_arguments(item, args, width);
    }
    buf_release(&scratch);
}

void browse_item_lay(struct browse_item *item, const struct message *m,
                     const struct browse_item_view *view)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_content(m, &scratch);

    browse_lines_init(&item->lines);
    if (view->pattern)
        browse_item_look(item, m, view->pattern);
    add_header(item, m, view->width);
    item->from = 0;
    item->body = item->lines.count;
    if (m->role == ROLE_TOOL) {
        add_folded(item, STR("result"), text, view->width);
        item->body = item->unfolded ? item->lines.count : item->body;
    }
    if (m->role != ROLE_TOOL || item->unfolded)
        add_text(item, text, view, m->role == ROLE_TOOL ? BROWSE_CODE : 0);
    add_calls(item, m, view->width);
    browse_lines_add_one(&item->lines, STR_NONE, &(struct browse_layout){.width = view->width});
    item->laid = true;
    buf_release(&scratch);
}
