#include "browse/browse_item.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"

#define REST "[and more: v shows all]"
#define FOLDED "\xe2\x96\xb8 "
#define UNFOLDED "\xe2\x96\xbe "

size_t browse_item_line(const struct browse_item *item, size_t at)
{
    size_t line = item->body;

    while (line + 1 < item->lines.count && item->lines.at[line + 1].from <= at &&
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

/* The hits that a part has a piece of, by their places in it. The caller frees them. */
static struct browse_place *find_hits(struct pattern *pattern, struct str text, struct str part,
                                      size_t *count)
{
    size_t from = (size_t)(part.p - text.p), end = from + part.n, cap = 0, at, n;
    size_t start = from > BROWSE_OVERLAP ? from - BROWSE_OVERLAP : 0;
    size_t stop = text.n - end > BROWSE_OVERLAP ? end + BROWSE_OVERLAP : text.n;
    struct browse_place *hits = NULL;

    *count = 0;
    while (utf8_inside(text, start))
        start--;
    while (utf8_inside(text, stop))
        stop++;
    pattern_start(pattern, (struct str){text.p + start, stop - start});
    while (pattern_next(pattern, &at, &n, NULL) > 0 && start + at < end) {
        size_t begin = start + at > from ? start + at - from : 0;

        if (start + at + n <= from)
            continue;
        hits = mem_grow(hits, &cap, *count + 1, sizeof *hits);
        hits[(*count)++] = (struct browse_place){begin, start + at + n - from - begin};
    }
    return hits;
}

static void add_text(struct browse_item *item, struct str text, const struct browse_part *part,
                     const struct browse_item_view *view, unsigned styles)
{
    size_t left = text.n - part->at;
    struct str own = {text.p + part->at, part->n < left ? part->n : left};
    struct browse_layout how = {
        .width = view->width, .markdown = styles == 0, .state = &part->state, .styles = styles};
    struct browse_place *hits = NULL;

    if (view->pattern && own.n > 0)
        how.hits = hits = find_hits(view->pattern, text, own, &how.hit_count);
    if (view->here.n > 0 && view->here.at < part->at + own.n) {
        how.has_here = view->here.at + view->here.n > part->at;
        how.here = view->here.at > part->at ? view->here.at - part->at : 0;
    }
    browse_lines_add(&item->lines, own, &how);
    free(hits);
}

/* ---- tools ---- */

static void add_folded(struct browse_item *item, struct str name, struct str text,
                       const struct browse_item_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = BROWSE_TOOL};

    browse_lines_add_one(&item->lines, STR_NONE, &how);
    buf_add_c(&item->lines.text, view->unfolded ? UNFOLDED : FOLDED);
    browse_lines_styled(&item->lines, sizeof FOLDED - 1, BROWSE_TOOL);
    browse_lines_append(&item->lines, name, &how);
    if (view->unfolded)
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
    struct str shown;

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
    shown = utf8_first(buf_str(&text), BROWSE_SHOWN);
    browse_lines_add(&item->lines, shown, &how);
    if (shown.n < text.len)
        browse_lines_add_one(&item->lines, STR(REST), &how);
    buf_release(&text);
    buf_release(&scratch);
}

static void add_calls(struct browse_item *item, const struct message *m,
                      const struct browse_item_view *view)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct message_call call;

    while (message_next_call(&it, &call, &args)) {
        add_folded(item, json_text(call.name, &scratch), call.args, view);
        if (view->unfolded)
            add_arguments(item, call.args, view->width);
    }
    buf_release(&scratch);
    buf_release(&args);
}

void browse_item_lay(struct browse_item *item, const struct message *m, struct str text,
                     const struct browse_part *part, const struct browse_item_view *view)
{
    browse_lines_init(&item->lines);
    if (view->first)
        add_header(item, m, view->width);
    if (m->role == ROLE_TOOL && view->first)
        add_folded(item, STR("result"), text, view);
    item->body = m->role == ROLE_TOOL && !view->unfolded ? 0 : item->lines.count;
    if (m->role != ROLE_TOOL || view->unfolded)
        add_text(item, text, part, view, m->role == ROLE_TOOL ? BROWSE_CODE : 0);
    if (view->last) {
        add_calls(item, m, view);
        browse_lines_add_one(&item->lines, STR_NONE, &(struct browse_layout){.width = view->width});
    }
    item->laid = true;
}
