#include "chathist/cli/stats_output.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/wide.h"

/* Returns the name of a row; borrowed. */
static struct str key_text(const struct stats_row *row)
{
    return row->key ? (struct str){row->key, row->len} : STR("unknown");
}

/* ---- records ---- */

/* `key TAB messages TAB sessions TAB input TAB output TAB unknown`; of tools `key TAB calls TAB
 * sessions`. */
static void print_record(struct out *o, enum stats_by by, struct str key,
                         const struct stats_count *n)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    if (by == STATS_SESSION)
        list_add_id(&line, key);
    else
        vis_add_line(&line, key, o->terminal);
    if (by == STATS_TOOL)
        buf_addf(&line, "\t%" PRIu64 "\t%" PRIu64 "\n", n->calls, n->sessions);
    else
        buf_addf(&line, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                 n->messages, n->sessions, n->input, n->output, n->unknown);
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

static void print_records(struct out *o, const struct stats *s, const struct stats_row *at,
                          size_t count)
{
    print_record(o, s->rows.by, STR("total"), &s->total);
    for (size_t i = 0; i < count; i++)
        print_record(o, s->rows.by, key_text(&at[i]), &at[i].count);
}

/* ---- JSON ---- */

/* A count that JSON readers could not hold is cut to the largest one. */
static void add_number(struct buf *out, const char *key, uint64_t n)
{
    json_add_member_int(out, key, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static void add_tokens(struct buf *out, const struct stats_count *n)
{
    add_number(out, "input_tokens", n->input);
    add_number(out, "output_tokens", n->output);
    add_number(out, "answers_without_usage", n->unknown);
}

static void add_time(struct buf *out, const char *key, int64_t us)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    time_add_iso(&text, us);
    json_add_member(out, key, buf_str(&text));
    buf_release(&text);
}

static void add_row(struct buf *out, enum stats_by by, const struct stats_row *row)
{
    if (!str_ends(buf_str(out), STR("[")))
        buf_add_byte(out, ',');
    buf_add_byte(out, '{');
    if (row->key) {
        json_add_member(out, "key", key_text(row));
    } else {
        json_add_key(out, "key");
        buf_add_c(out, "null");
    }
    add_number(out, by == STATS_TOOL ? "calls" : "messages",
               by == STATS_TOOL ? row->count.calls : row->count.messages);
    add_number(out, "sessions", row->count.sessions);
    if (by != STATS_TOOL)
        add_tokens(out, &row->count);
    buf_add_byte(out, '}');
}

static void print_json(struct out *o, const struct stats *s, const struct stats_row *at,
                       size_t count, int64_t now)
{
    struct buf line = BUF_INIT(SIZE_MAX), zone = BUF_INIT(BUF_SMALL);

    time_add_zone(&zone, now);
    buf_add_byte(&line, '{');
    add_number(&line, "messages", s->total.messages);
    add_number(&line, "sessions", s->total.sessions);
    add_number(&line, "answers", s->total.answers);
    add_number(&line, "tool_calls", s->total.calls);
    add_tokens(&line, &s->total);
    if (s->timed) {
        add_time(&line, "first", s->first);
        add_time(&line, "last", s->last);
    }
    json_add_member(&line, "time_zone", buf_str(&zone));
    json_add_member(&line, "by", str_of(stats_by_name(s->rows.by)));
    json_add_key(&line, "rows");
    buf_add_byte(&line, '[');
    for (size_t i = 0; i < count; i++)
        add_row(&line, s->rows.by, &at[i]);
    buf_add_c(&line, "]}");
    out_json_line(o, buf_str(&line));
    buf_release(&zone);
    buf_release(&line);
}

/* ---- charts ---- */

/* The columns of a chart: label, messages or calls, tokens sent, tokens received. */
enum { LABEL, SIZE, INPUT, OUTPUT, COLUMNS };

/* Blanks between two columns. */
#define GAP 2
/* The narrowest bar that is drawn. */
#define BAR_MIN 4
#define EIGHTHS 8

static void add_plural(struct buf *out, uint64_t n, const char *what)
{
    buf_addf(out, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

/* Prints as much of the line as fits. */
static void print_fitted(struct out *o, const struct buf *line)
{
    struct buf safe = BUF_INIT(8 * BUF_LINE);

    vis_add(&safe, buf_str(line));
    out_raw(o, utf8_fit(buf_str(&safe), o->columns));
    out_byte(o, '\n');
    buf_release(&safe);
}

static void add_date(struct buf *out, int64_t us)
{
    struct buf time = BUF_INIT(BUF_SMALL);

    time_add_local(&time, us);
    buf_add_str(out, utf8_first(buf_str(&time), sizeof("2024-06-27") - 1));
    buf_release(&time);
}

static void print_totals(struct out *o, const struct stats *s, int64_t now)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    add_plural(&line, s->total.messages, "message");
    buf_add_c(&line, " in ");
    add_plural(&line, s->total.sessions, "session");
    if (s->timed) {
        buf_add_c(&line, ", ");
        add_date(&line, s->first);
        buf_add_c(&line, " to ");
        add_date(&line, s->last);
        buf_add_c(&line, " (");
        time_add_zone(&line, now);
        buf_add_byte(&line, ')');
    }
    print_fitted(o, &line);
    buf_clear(&line);
    add_plural(&line, s->total.answers, "answer");
    if (s->total.answers > s->total.unknown)
        buf_addf(&line, ", %" PRIu64 " tokens in, %" PRIu64 " out", s->total.input,
                 s->total.output);
    if (s->total.unknown > 0)
        buf_addf(&line, ", tokens unknown of %" PRIu64, s->total.unknown);
    if (s->total.calls > 0) {
        buf_add_c(&line, ", ");
        add_plural(&line, s->total.calls, "tool call");
    }
    print_fitted(o, &line);
    out_byte(o, '\n');
    buf_release(&line);
}

static uint64_t size_of(enum stats_by by, const struct stats_row *row)
{
    return by == STATS_TOOL ? row->count.calls : row->count.messages;
}

/* Fills the cells of a row; tokens are `-` if no answer reported any. */
static void fill_cells(struct buf *cells, enum stats_by by, const struct stats_row *row)
{
    const struct stats_count *n = &row->count;

    vis_add_line(&cells[LABEL], key_text(row), true);
    buf_add_number(&cells[SIZE], size_of(by, row));
    if (n->answers > n->unknown) {
        buf_add_number(&cells[INPUT], n->input);
        buf_add_number(&cells[OUTPUT], n->output);
    } else {
        buf_add_byte(&cells[INPUT], '-');
        buf_add_byte(&cells[OUTPUT], '-');
    }
}

/* Prints as much of the cells as fits: the label on the left, numbers on the right of their
 * columns. Returns the number of columns after them, for a bar. */
static size_t print_cells(struct out *o, struct buf *cells, const size_t *widths, size_t columns)
{
    struct str label = utf8_fit(buf_str(&cells[LABEL]), widths[LABEL]);
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t used;

    buf_add_str(&line, label);
    buf_addf(&line, "%*s", (int)(widths[LABEL] - wide_columns(label)), "");
    for (size_t i = SIZE; i < columns; i++)
        buf_addf(&line, "%*s%*s", GAP, "", (int)widths[i], buf_c(&cells[i]));
    used = wide_columns(buf_str(&line)) + GAP;
    out_raw(o, utf8_fit(buf_str(&line), o->columns));
    buf_release(&line);
    return o->columns > used ? o->columns - used : 0;
}

/* Prints a bar in eighths of a column, at least one eighth. */
static void print_bar(struct out *o, uint64_t size, uint64_t most, size_t room)
{
    static const char *const parts[EIGHTHS] = {
        "",
        "\xe2\x96\x8f",
        "\xe2\x96\x8e",
        "\xe2\x96\x8d",
        "\xe2\x96\x8c",
        "\xe2\x96\x8b",
        "\xe2\x96\x8a",
        "\xe2\x96\x89",
    };
    size_t eighths = (size_t)((double)size / (double)most * (double)(room * EIGHTHS));

    if (eighths == 0)
        eighths = 1;
    out_style(o, STYLE_PLOT);
    for (size_t i = 0; i < eighths / EIGHTHS; i++)
        out_raw(o, STR("\xe2\x96\x88"));
    out_raw(o, str_of(parts[eighths % EIGHTHS]));
    out_style(o, STYLE_NONE);
}

/* Prints the rows below a heading, whose cells are the first ones. */
static void print_rows(struct out *o, enum stats_by by, const struct stats_row *at, size_t count,
                       struct buf (*cells)[COLUMNS])
{
    size_t widths[COLUMNS] = {0}, columns = SIZE + 1, room;
    uint64_t most = 0;

    for (size_t i = 0; i <= count; i++)
        for (size_t k = 0; k < COLUMNS; k++) {
            size_t width = wide_columns(buf_str(&cells[i][k]));

            widths[k] = width > widths[k] ? width : widths[k];
        }
    if (widths[LABEL] > o->columns / 3)
        widths[LABEL] = o->columns >= 3 ? o->columns / 3 : 1;
    for (size_t i = 0; i < count; i++) {
        most = size_of(by, &at[i]) > most ? size_of(by, &at[i]) : most;
        if (at[i].count.answers > at[i].count.unknown)
            columns = COLUMNS;
    }
    out_style(o, STYLE_DIM);
    print_cells(o, cells[0], widths, columns);
    out_style(o, STYLE_NONE);
    out_byte(o, '\n');
    for (size_t i = 0; i < count; i++) {
        room = print_cells(o, cells[i + 1], widths, columns);
        if (room >= BAR_MIN && size_of(by, &at[i]) > 0) {
            out_raw(o, STR("  "));
            print_bar(o, size_of(by, &at[i]), most, room);
        }
        out_byte(o, '\n');
    }
}

static void print_chart(struct out *o, const struct stats *s, const struct stats_row *at,
                        size_t count, int64_t now)
{
    enum stats_by by = s->rows.by;
    struct buf(*cells)[COLUMNS];

    print_totals(o, s, now);
    if (count == 0)
        return;
    cells = mem_zalloc((count + 1) * sizeof *cells);
    for (size_t i = 0; i <= count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            buf_init(&cells[i][k], 8 * BUF_LINE);
    buf_add_c(&cells[0][LABEL], stats_by_name(by));
    buf_add_c(&cells[0][SIZE], by == STATS_TOOL ? "calls" : "messages");
    buf_add_c(&cells[0][INPUT], "tokens in");
    buf_add_c(&cells[0][OUTPUT], "out");
    for (size_t i = 0; i < count; i++)
        fill_cells(cells[i + 1], by, &at[i]);
    print_rows(o, by, at, count, cells);
    for (size_t i = 0; i <= count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            buf_release(&cells[i][k]);
    free(cells);
}

void stats_print(struct out *o, const struct stats *s, const struct choice *c)
{
    size_t count = c->limit > 0 && c->limit < s->rows.count ? c->limit : s->rows.count;
    const struct stats_row *at = s->rows.at;
    int64_t now = time_now();

    if (c->filter.has_until && c->filter.until < now)
        now = c->filter.until;
    if (count > 0 && stats_is_time(s->rows.by))
        at += s->rows.count - count;
    if (c->common.json)
        print_json(o, s, at, count, now);
    else if (o->terminal)
        print_chart(o, s, at, count, now);
    else
        print_records(o, s, at, count);
}
