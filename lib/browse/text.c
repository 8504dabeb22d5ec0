#include "browse/text.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/usage.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/markdown_layout.h"
#include "chathist/cli/wide.h"

#define ELLIPSIS "\xe2\x80\xa6"

void browse_lines_release(struct browse_lines *l)
{
    buf_release(&l->text);
    free(l->styles);
    free(l->at);
    *l = (struct browse_lines){0};
}

void browse_lines_put(struct browse_lines *l, struct str text, unsigned styles)
{
    l->styles = mem_grow(l->styles, &l->styles_cap, l->text.len + text.n, sizeof *l->styles);
    for (size_t i = 0; i < text.n; i++)
        l->styles[l->text.len + i] = styles;
    buf_add_str(&l->text, text);
    l->at[l->count - 1].n += text.n;
}

/* ---- lines ---- */

static void new_line(struct browse_lines *l, size_t from)
{
    l->text.max = SIZE_MAX;
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count++] = (struct browse_line){.at = l->text.len, .from = from};
}

/* ---- texts ---- */

/* A text while it is laid out in lines. */
struct laying {
    struct browse_lines *lines;
    const struct browse_layout *how;
    bool begun;  /* the last line has text */
    bool placed; /* it is known where the last line begins in the source text */
    size_t last; /* the place of the last text */
    size_t hit;  /* first hit that does not end before the last text */
};

static unsigned hit_here(void *arg, size_t at)
{
    struct laying *l = arg;
    const struct browse_layout *how = l->how;

    while (l->hit < how->hit_count && how->hits[l->hit].at + how->hits[l->hit].n <= at)
        l->hit++;
    if (l->hit == how->hit_count || how->hits[l->hit].at > at)
        return 0;
    return how->has_here && how->hits[l->hit].at == how->here ? BROWSE_HIT | BROWSE_HERE
                                                              : BROWSE_HIT;
}

static void put_text(void *arg, unsigned styles, struct str text, size_t at)
{
    struct laying *l = arg;
    bool in_source = at != SIZE_MAX, newline = text.p[0] == '\n';

    l->last = in_source ? at : l->last;
    if (!l->begun) {
        new_line(l->lines, l->last);
        l->placed = in_source;
    } else if (!l->placed && in_source && !newline) {
        l->lines->at[l->lines->count - 1].from = at;
        l->placed = true;
    }
    l->begun = !newline;
    if (!newline)
        browse_lines_put(l->lines, text, l->how->styles | (styles & ~(unsigned)MARKDOWN_BLOCK));
}

static size_t width_of_lines(void *arg)
{
    const struct laying *l = arg;

    return l->how->width;
}

void browse_lines_add(struct browse_lines *lines, struct str text, const struct browse_layout *how)
{
    struct laying l = {.lines = lines, .how = how};
    struct markdown_layout layout;

    markdown_layout_init(&layout, put_text, &l, width_of_lines);
    layout.also = how->hit_count > 0 ? hit_here : NULL;
    layout.cells = true;
    layout.plain = !how->markdown;
    if (how->state)
        markdown_layout_resume(&layout, how->state);
    markdown_layout_feed(&layout, text);
    (void)markdown_layout_end(&layout);
    markdown_layout_release(&layout);
}

/* ---- one line ---- */

/* A line while cells are appended to it. */
struct row {
    struct browse_lines *lines;
    const struct browse_layout *how;
    bool full;               /* there is more than fits */
    bool begun;              /* a cell was appended */
    size_t column;           /* where the next cell stands */
    size_t last, last_width; /* offset of the last cell in the text, and its columns */
    bool last_blank;
};

static void append_cell(struct row *r, struct str bytes, size_t width, unsigned styles, bool blank)
{
    r->full = r->full || r->column + width > r->how->width;
    if (r->full)
        return;
    r->begun = true;
    r->last = r->lines->text.len;
    r->last_width = width;
    r->last_blank = blank;
    r->column += width;
    browse_lines_put(r->lines, bytes, styles);
}

/* Adds a character without width to the cell before it. */
static void append_mark(struct row *r, struct str bytes, unsigned styles)
{
    if (!r->begun)
        append_cell(r, STR(" "), 1, styles, false);
    if (r->full || r->lines->text.len - r->last + bytes.n > MARKDOWN_CELL_MAX)
        return;
    r->last_blank = false;
    browse_lines_put(r->lines, bytes, r->lines->styles[r->last]);
}

static void append_character(struct row *r, struct str bytes, int32_t cp, unsigned styles)
{
    int width = cp < 0 ? 0 : utf8_width(cp);

    if (cp == ' ' || (cp >= '\t' && cp <= '\r')) {
        if (r->begun && !r->last_blank)
            append_cell(r, STR(" "), 1, styles, true);
    } else if (cp < 0 || vis_unsafe(cp)) {
        struct buf visible = BUF_INIT(BUF_SMALL);

        vis_add(&visible, bytes);
        for (size_t i = 0; i < visible.len; i++)
            append_cell(r, (struct str){visible.data + i, 1}, 1, styles ^ BROWSE_DIM, false);
        buf_release(&visible);
    } else if (utf8_joins(cp, r->begun && r->last_width == 2)) {
        return;
    } else if (width == 0) {
        append_mark(r, bytes, styles);
    } else {
        append_cell(r, bytes, (size_t)width, styles, false);
    }
}

/* Returns the beginning of a text that is enough for one line of this width, even if each character
 * has four bytes and two combining marks. */
static struct str enough_for_line(struct str text, size_t width)
{
    size_t most = width * 12 + 64;

    return text.n > most ? (struct str){text.p, most} : text;
}

void browse_lines_append(struct browse_lines *lines, struct str text,
                         const struct browse_layout *how)
{
    struct str part = enough_for_line(text, how->width), rest = part;
    struct row r = {
        .lines = lines, .how = how, .column = browse_line_columns(lines, lines->count - 1)};
    struct laying hits = {.how = how};

    if (r.column >= how->width)
        return;
    while (rest.n > 0 && !r.full) {
        int32_t cp;
        size_t n = utf8_decode(rest, &cp), at = (size_t)(rest.p - part.p);

        n = n > 0 ? n : rest.n;
        append_character(&r, (struct str){rest.p, n}, cp, how->styles | hit_here(&hits, at));
        rest = str_skip(rest, n);
    }
    if (!r.full && part.n == text.n)
        return;
    if (r.column == how->width) {
        lines->at[lines->count - 1].n -= lines->text.len - r.last;
        buf_truncate(&lines->text, r.last);
    }
    browse_lines_put(lines, STR(ELLIPSIS), how->styles);
}

void browse_lines_add_one(struct browse_lines *lines, struct str text,
                          const struct browse_layout *how)
{
    new_line(lines, 0);
    browse_lines_append(lines, text, how);
}

size_t browse_line_columns(const struct browse_lines *l, size_t i)
{
    return wide_columns((struct str){buf_c(&l->text) + l->at[i].at, l->at[i].n});
}

/* The call of a result is looked for in this many messages before it. */
#define CALLS_BEFORE 64

#define REST "[and more: v shows all]"
#define FOLDED "\xe2\x96\xb8 "
#define UNFOLDED "\xe2\x96\xbe "

size_t browse_part_line(const struct browse_part *part, size_t at)
{
    size_t line = part->body;

    while (line + 1 < part->lines.count && part->lines.at[line + 1].from <= at &&
           part->lines.at[line + 1].from > 0)
        line++;
    return line < part->lines.count ? line : 0;
}

/* ---- the header ---- */

static void add_field(struct buf *out, const struct message *m, enum field f)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_text(m, f, &scratch);

    if (text.n > 0) {
        buf_add_c(out, "  ");
        buf_add_str(out, utf8_first(text, 60));
    }
    buf_release(&scratch);
}

unsigned browse_role_styles(enum role role)
{
    return role == ROLE_USER   ? BROWSE_HEAD | BROWSE_USER
           : role == ROLE_TOOL ? BROWSE_TOOL
                               : BROWSE_HEAD;
}

static void add_message_head(struct browse_lines *lines, const struct message *m, size_t width)
{
    struct browse_layout how = {.width = width, .styles = browse_role_styles(m->role)};
    struct buf text = BUF_INIT(BUF_SMALL);
    struct usage u;
    int64_t time, images;

    browse_lines_add_one(lines, utf8_first(m->role_text, 20), &how);
    how.styles = BROWSE_DIM;
    buf_add_c(&text, "  ");
    if (time_parse_iso(m->timestamp, &time))
        time_add_local(&text, time);
    add_field(&text, m, FIELD_MODEL);
    if (json_int(m->field[FIELD_IMAGES], &images) && images > 0)
        buf_addf(&text, "  %" PRId64 " image%s", images, images == 1 ? "" : "s");
    if (m->role == ROLE_ASSISTANT && m->field[FIELD_FINISH_REASON].n > 0 &&
        !str_eq(m->field[FIELD_FINISH_REASON], STR("\"stop\"")) &&
        !str_eq(m->field[FIELD_FINISH_REASON], STR("\"tool_calls\"")))
        add_field(&text, m, FIELD_FINISH_REASON);
    usage_init(&u);
    usage_read_members(&u, m->field[FIELD_USAGE]);
    if (u.at[USAGE_INPUT] > 0)
        buf_addf(&text, "  %" PRId64 " tokens in", u.at[USAGE_INPUT]);
    if (u.at[USAGE_OUTPUT] > 0)
        buf_addf(&text, "%s%" PRId64 " out",
                 u.at[USAGE_INPUT] > 0 ? ", " : "  tokens: ", u.at[USAGE_OUTPUT]);
    browse_lines_put(lines, STR("  "), BROWSE_DIM);
    browse_lines_append(lines, str_trim(buf_str(&text)), &how);
    buf_release(&text);
}

/* ---- the text ---- */

/* Has the layout mark the matches that overlap a part, as ranges of the part. Returns them, or NULL
 * without any. The caller frees them. */
static struct browse_place *find_hits(const struct browse_part_view *view, struct str text,
                                      struct str part, struct browse_layout *how)
{
    size_t from = part.n > 0 ? (size_t)(part.p - text.p) : 0, end = from + part.n, cap = 0, at, n;
    size_t start = from > BROWSE_OVERLAP ? from - BROWSE_OVERLAP : 0;
    size_t stop = text.n - end > BROWSE_OVERLAP ? end + BROWSE_OVERLAP : text.n;
    struct browse_place *hits = NULL;

    if (!view->pattern || part.n == 0)
        return NULL;
    while (utf8_inside(text, start))
        start--;
    while (utf8_inside(text, stop))
        stop++;
    pattern_start(view->pattern, (struct str){text.p + start, stop - start});
    while (pattern_next(view->pattern, &at, &n, NULL) > 0 && start + at < end) {
        size_t begin = start + at > from ? start + at - from : 0;

        if (start + at + n <= from)
            continue;
        hits = mem_grow(hits, &cap, how->hit_count + 1, sizeof *hits);
        hits[how->hit_count++] = (struct browse_place){begin, start + at + n - from - begin};
    }
    how->hits = hits;
    return hits;
}

static void lay_content(struct browse_lines *lines, struct str text, const struct browse_part *part,
                        const struct browse_part_view *view, unsigned styles)
{
    size_t left = text.n - part->at;
    struct str own = {text.p + part->at, part->n < left ? part->n : left};
    struct browse_layout how = {
        .width = view->width, .markdown = styles == 0, .state = &part->state, .styles = styles};
    struct browse_place *hits = find_hits(view, text, own, &how);

    if (view->here.n > 0 && view->here.at < part->at + own.n) {
        how.has_here = view->here.at + view->here.n > part->at;
        how.here = view->here.at > part->at ? view->here.at - part->at : 0;
    }
    browse_lines_add(lines, own, &how);
    free(hits);
}

/* ---- tools ---- */

/* Appends a text to the last line, with its matches marked. */
static void append_marked(struct browse_lines *lines, struct str text, unsigned styles,
                          const struct browse_part_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = styles};
    struct str shown = enough_for_line(text, view->width);
    struct browse_place *hits = find_hits(view, shown, shown, &how);

    browse_lines_append(lines, text, &how);
    free(hits);
}

/* Adds a line with the name of a tool or the word for a result, and with the text if it is
 * folded. */
static void add_folded(struct browse_lines *lines, struct str word, struct str name,
                       struct str text, const struct browse_part_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = BROWSE_TOOL};

    browse_lines_add_one(lines, STR_NONE, &how);
    browse_lines_put(lines, view->unfolded ? STR(UNFOLDED) : STR(FOLDED), BROWSE_TOOL);
    browse_lines_append(lines, word, &how);
    append_marked(lines, name, BROWSE_TOOL, view);
    if (view->unfolded)
        return;
    if (name.n > 0 || word.n > 0)
        browse_lines_put(lines, STR(" "), 0);
    append_marked(lines, text, BROWSE_DIM, view);
}

/* Appends the arguments of a call, one member to a line, with strings decoded. */
static void add_argument_members(struct buf *out, struct str args)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct json_iter it = json_iter(args);

    if (json_type(args) != JSON_OBJECT) {
        struct str plain = json_text(args, &scratch);

        buf_add_str(out, plain.p ? plain : args);
    }
    while (it.object && json_next(&it)) {
        struct str value = json_text(it.value, &scratch);

        buf_add_str(out, it.key);
        buf_add_c(out, ": ");
        buf_add_str(out, value.p ? value : it.value);
        buf_add_byte(out, '\n');
    }
    buf_release(&scratch);
}

/* Adds a line like add_folded, and below it the arguments if they are unfolded. */
static void add_arguments(struct browse_lines *lines, struct str word, struct str name,
                          struct str args, const struct browse_part_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = BROWSE_CODE};
    struct browse_place *hits;
    struct buf text = BUF_INIT(SIZE_MAX);
    struct str shown;

    add_folded(lines, word, name, args, view);
    if (!view->unfolded)
        return;
    add_argument_members(&text, args);
    shown = utf8_first(buf_str(&text), BROWSE_SHOWN);
    hits = find_hits(view, shown, shown, &how);
    browse_lines_add(lines, shown, &how);
    how.hit_count = 0;
    if (shown.n < text.len)
        browse_lines_add_one(lines, STR(REST), &how);
    free(hits);
    buf_release(&text);
}

/* Adds the stored reasoning of an answer, in one line unless it is unfolded. */
static void add_reasoning(struct browse_lines *lines, const struct message *m,
                          const struct browse_part_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = BROWSE_DIM};
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_text(m, FIELD_REASONING, &scratch);
    struct str shown = utf8_first(text, BROWSE_SHOWN);

    if (text.n > 0)
        add_folded(lines, STR("reasoning"), STR_NONE, shown, view);
    if (text.n > 0 && view->unfolded) {
        browse_lines_add(lines, shown, &how);
        if (shown.n < text.n)
            browse_lines_add_one(lines, STR(REST), &how);
        browse_lines_add_one(lines, STR_NONE, &how);
    }
    buf_release(&scratch);
}

bool browse_calls_match(const struct message *m, struct pattern *pattern)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE), text = BUF_INIT(SIZE_MAX);
    struct message_call call;
    size_t at, n;
    bool found = false;

    while (!found && message_next_call(&it, &call, &args)) {
        buf_clear(&text);
        add_argument_members(&text, call.args);
        found = pattern_find(pattern, json_text(call.name, &scratch), &at, &n, NULL) > 0 ||
                pattern_find(pattern, buf_str(&text), &at, &n, NULL) > 0;
    }
    buf_release(&scratch);
    buf_release(&args);
    buf_release(&text);
    return found;
}

void browse_add_tool_name(struct buf *out, const struct thread *t, size_t message)
{
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE), id = BUF_INIT(BUF_LINE);
    struct str wanted = message_text(&t->at[message], FIELD_TOOL_CALL_ID, &id);
    struct message_call call;

    for (size_t i = message; wanted.n > 0 && i > 0 && message - i < CALLS_BEFORE; i--) {
        struct json_iter it = json_iter(t->at[i - 1].field[FIELD_TOOL_CALLS]);

        while (message_next_call(&it, &call, &args)) {
            if (!str_eq(json_text(call.id, &scratch), wanted))
                continue;
            buf_add_str(out, json_text(call.name, &scratch));
            wanted = STR_NONE;
            break;
        }
    }
    buf_release(&scratch);
    buf_release(&args);
    buf_release(&id);
}

/* ---- files ---- */

/* Adds a line with the texts of an array, if it has any. */
static void add_names(struct browse_lines *lines, const struct message *m, enum field f,
                      const char *before, const struct browse_part_view *view)
{
    struct browse_layout how = {.width = view->width, .styles = BROWSE_DIM};
    struct json_iter it = json_iter(m->field[f]);
    struct buf text = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(BUF_LINE);

    while (m->field[f].n > 0 && !it.object && json_next(&it)) {
        struct str name = json_text(it.value, &scratch);

        if (name.n > 0)
            buf_addf(&text, "%s%.*s", text.len > 0 ? ", " : "", (int)name.n, name.p);
    }
    if (text.len > 0) {
        browse_lines_add_one(lines, str_of(before), &how);
        append_marked(lines, buf_str(&text), 0, view);
    }
    buf_release(&text);
    buf_release(&scratch);
}

/* Adds what a message did beside its text: its calls, the pages that it cites, the files that it
 * read and changed, and the results of its edits. */
static void add_part_details(struct browse_part *part, const struct message *m,
                             const struct browse_part_view *view)
{
    struct browse_lines *lines = &part->lines;
    struct browse_layout how = {.width = view->width, .styles = BROWSE_DIM};
    struct hash_map sources = {0};
    struct str edits = m->field[FIELD_EDIT_RESULTS];
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct message_call call;
    size_t from = lines->count;

    while (message_next_call(&it, &call, &args))
        add_arguments(lines, STR_NONE, json_text(call.name, &scratch), call.args, view);
    buf_release(&scratch);
    buf_release(&args);
    for (size_t i = from; i < lines->count && part->call == 0; i++)
        for (size_t k = 0; k < lines->at[i].n; k++)
            if (lines->styles[lines->at[i].at + k] & BROWSE_HIT)
                part->call = i;
    message_sources(m->field[FIELD_CITATIONS], &sources);
    for (size_t i = 0; i < sources.count; i++) {
        browse_lines_add_one(lines, STR("source: "), &how);
        append_marked(lines, sources.entries[i].key, 0, view);
    }
    hash_map_release(&sources);
    add_names(lines, m, FIELD_FILES, "files: ", view);
    add_names(lines, m, FIELD_FILES_MODIFIED, "changed: ", view);
    if (json_type(edits) == JSON_ARRAY && edits.n > 2)
        add_arguments(lines, STR("edits"), STR_NONE, edits, view);
}

void browse_part_unlay(struct browse_part *part)
{
    browse_lines_release(&part->lines);
    part->laid = false;
}

void browse_part_lay(struct browse_part *part, const struct message *m, struct str text,
                     const struct browse_part_view *view)
{
    struct browse_lines *lines = &part->lines;

    browse_part_unlay(part);
    if (view->first)
        add_message_head(lines, m, view->width);
    if (view->first)
        add_reasoning(lines, m, view);
    if (m->role == ROLE_TOOL && view->first)
        add_folded(lines, view->tool.n > 0 ? STR("result of ") : STR("result"), view->tool, text,
                   view);
    part->call = 0;
    part->body = m->role == ROLE_TOOL && !view->unfolded ? 0 : lines->count;
    if (m->role != ROLE_TOOL || view->unfolded)
        lay_content(lines, text, part, view, m->role == ROLE_TOOL ? BROWSE_CODE : 0);
    if (view->last) {
        add_part_details(part, m, view);
        browse_lines_add_one(lines, STR_NONE, &(struct browse_layout){.width = view->width});
    }
    part->laid = true;
}

/* A message whose line is not longer than this is decoded whenever it is needed. */
#define SHORT BROWSE_PART

static void push_part(struct browse_parts *p, size_t message, size_t at, size_t n,
                      struct markdown state)
{
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
    p->at[p->count++] = (struct browse_part){.message = message, .at = at, .n = n, .state = state};
}

/* Returns the end of the first part of a text: after a line that is not in a table, else after a line, else after a blank, else after a
 * character. */
static size_t part_end(struct str text)
{
    size_t n = BROWSE_PART;

    if (text.n <= BROWSE_PART + BROWSE_PART / 2)
        return text.n;
    for (size_t i = n; i > BROWSE_PART / 2; i--)
        if (text.p[i - 1] == '\n' && text.p[i] != '|')
            return i;
    for (size_t i = n; i > BROWSE_PART / 2; i--)
        if (text.p[i - 1] == '\n')
            return i;
    for (size_t i = n; i > BROWSE_PART / 2; i--)
        if (text.p[i - 1] == ' ')
            return i;
    for (size_t i = n; i > n - 4; i--)
        if (!utf8_inside(text, i))
            return i;
    return n;
}

static void cut_parts(struct browse_parts *p, size_t message, struct str text)
{
    struct markdown state = {0};
    size_t at = 0;

    while (text.n - at > BROWSE_PART) {
        size_t n = part_end(str_skip(text, at));

        push_part(p, message, at, n, state);
        markdown_feed(&state, (struct str){text.p + at, n});
        at += n;
    }
    if (at < text.n || at == 0)
        push_part(p, message, at, text.n - at, state);
}

void browse_parts_make(struct browse_parts *p, const struct thread *t)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    *p = (struct browse_parts){.messages = t->count};
    p->first = mem_zalloc((t->count + 1) * sizeof *p->first);
    p->contents = mem_zalloc(t->count * sizeof *p->contents);
    p->texts = mem_zalloc(t->count * sizeof *p->texts);
    for (size_t i = 0; i < t->count; i++) {
        const struct message *m = &t->at[i];

        p->first[i] = p->count;
        buf_init(&p->texts[i], BUF_LINE);
        if (m->line.n <= SHORT) {
            push_part(p, i, 0, SIZE_MAX, (struct markdown){0});
            continue;
        }
        p->contents[i] = message_content(m, &scratch);
        cut_parts(p, i, p->contents[i]);
        /* Content without escapes is used directly from the line; only decoded content is kept. */
        if (scratch.len > 0) {
            p->texts[i] = scratch;
            buf_init(&scratch, BUF_LINE);
        }
    }
    p->first[t->count] = p->count;
    buf_release(&scratch);
}

void browse_parts_release(struct browse_parts *p)
{
    for (size_t i = 0; i < p->count; i++)
        browse_lines_release(&p->at[i].lines);
    for (size_t i = 0; i < p->messages; i++)
        buf_release(&p->texts[i]);
    free(p->texts);
    free(p->contents);
    free(p->first);
    free(p->at);
    *p = (struct browse_parts){0};
}

size_t browse_parts_last(const struct browse_parts *p, size_t message)
{
    return p->first[message + 1] - 1;
}

size_t browse_parts_find(const struct browse_parts *p, size_t message, size_t at)
{
    size_t i = p->first[message];

    while (i < browse_parts_last(p, message) && p->at[i + 1].at <= at)
        i++;
    return i;
}

struct str browse_parts_text(const struct browse_parts *p, const struct thread *t, size_t message,
                             struct buf *scratch)
{
    return p->contents[message].p ? p->contents[message]
                                  : message_content(&t->at[message], scratch);
}
