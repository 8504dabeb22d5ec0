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

/* Returns true if the tokens of at least one answer are known. */
static bool has_tokens(const struct stats_count *n)
{
    return n->answers > n->unknown || n->input > 0 || n->output > 0;
}

/* ---- records ---- */

static void add_key(struct buf *line, const struct out *o, enum stats_by by, struct str key)
{
    if (by == STATS_SESSION)
        list_add_id(line, key);
    else
        vis_add_line(line, key, o->terminal);
}

/* `key TAB messages TAB sessions TAB input TAB output TAB unknown`; of tools `key TAB calls TAB
 * sessions`. */
static void print_record(struct out *o, enum stats_by by, struct str key,
                         const struct stats_count *n)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    add_key(&line, o, by, key);
    if (by == STATS_TOOL)
        buf_addf(&line, "\t%" PRIu64 "\t%" PRIu64 "\n", n->calls, n->sessions);
    else
        buf_addf(&line, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                 n->messages, n->sessions, n->input, n->output, n->unknown);
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

/* `key TAB currency TAB cost TAB reported TAB computed TAB answers TAB tokens`, a line for each
 * currency; the one of the currency `unknown`, without amounts, is the last. */
static void print_costs(struct out *o, const struct stats *s, struct str key,
                        const struct stats_costs *costs)
{
    struct buf line = BUF_INIT(8 * BUF_LINE);

    for (size_t n = 1; n <= costs->count; n++) {
        size_t i = n % costs->count;
        const struct stats_cost *c = &costs->at[i];

        if (c->answers == 0)
            continue;
        buf_clear(&line);
        add_key(&line, o, s->rows.by, key);
        buf_addf(&line, "\t%s\t", prices_currency(s->prices, i));
        if (i == PRICES_UNKNOWN) {
            buf_add_c(&line, "-\t-\t-");
        } else {
            amount_add_text(&line, stats_cost_sum(c));
            buf_add_byte(&line, '\t');
            amount_add_text(&line, c->reported);
            buf_add_byte(&line, '\t');
            amount_add_text(&line, c->computed);
        }
        buf_addf(&line, "\t%" PRIu64 "\t%" PRIu64 "\n", c->answers, c->tokens);
        out_raw(o, buf_str(&line));
    }
    buf_release(&line);
}

static void print_cost_records(struct out *o, const struct stats *s, const struct stats_row *at,
                               size_t count)
{
    if (s->total_costs.count == 0)
        out_raw(o, STR("total\tunknown\t-\t-\t-\t0\t0\n"));
    print_costs(o, s, STR("total"), &s->total_costs);
    for (size_t i = 0; i < count; i++)
        print_costs(o, s, key_text(&at[i]), &at[i].costs);
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

static void add_amount(struct buf *out, const char *key, struct amount a)
{
    json_add_key(out, key);
    amount_add_text(out, a);
}

/* Adds an array of the known costs, one object for each currency, and the others. */
static void add_costs(struct buf *out, const struct prices *p, const struct stats_costs *costs)
{
    struct stats_cost unknown = {0};

    json_add_key(out, "costs");
    buf_add_byte(out, '[');
    for (size_t i = 0; i < costs->count; i++) {
        const struct stats_cost *c = &costs->at[i];

        if (i == PRICES_UNKNOWN)
            unknown = *c;
        if (i == PRICES_UNKNOWN || c->answers == 0)
            continue;
        buf_add_c(out, str_ends(buf_str(out), STR("[")) ? "{" : ",{");
        json_add_member(out, "currency", str_of(prices_currency(p, i)));
        add_amount(out, "cost", stats_cost_sum(c));
        add_amount(out, "reported", c->reported);
        add_amount(out, "computed", c->computed);
        add_number(out, "answers", c->answers);
        add_number(out, "tokens", c->tokens);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
    add_number(out, "answers_of_unknown_cost", unknown.answers);
    add_number(out, "tokens_of_unknown_cost", unknown.tokens);
}

static void add_row(struct buf *out, const struct stats *s, const struct stats_row *row)
{
    enum stats_by by = s->rows.by;

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
    if (s->prices)
        add_costs(out, s->prices, &row->costs);
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
    if (s->prices)
        add_costs(&line, s->prices, &s->total_costs);
    if (s->timed) {
        add_time(&line, "first", s->first);
        add_time(&line, "last", s->last);
    }
    json_add_member(&line, "time_zone", buf_str(&zone));
    json_add_member(&line, "by", str_of(stats_by_name(s->rows.by)));
    json_add_key(&line, "rows");
    buf_add_byte(&line, '[');
    for (size_t i = 0; i < count; i++)
        add_row(&line, s, &at[i]);
    buf_add_c(&line, "]}");
    out_json_line(o, buf_str(&line));
    buf_release(&zone);
    buf_release(&line);
}

/* ---- charts ---- */

/* The columns of a chart: the label, then numbers. */
enum { LABEL, COLUMNS = 5 };

struct chart_line {
    struct buf cells[COLUMNS];
    double bar; /* its part of the longest bar; 0: none */
};

struct chart {
    struct chart_line *at; /* the first one is the heading */
    size_t count, cap;
    size_t columns; /* that are printed */
};

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
    if (has_tokens(&s->total))
        buf_addf(&line, ", %" PRIu64 " tokens in, %" PRIu64 " out", s->total.input,
                 s->total.output);
    if (s->total.unknown > 0)
        buf_addf(&line, ", tokens unknown of %" PRIu64, s->total.unknown);
    if (s->total.calls > 0) {
        buf_add_c(&line, ", ");
        add_plural(&line, s->total.calls, "tool call");
    }
    print_fitted(o, &line);
    buf_release(&line);
}

/* Prints what the answers cost in each currency, then the answers whose cost is unknown. */
static void print_cost_totals(struct out *o, const struct stats *s)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t n = 1; n <= s->total_costs.count; n++) {
        size_t i = n % s->total_costs.count;
        const struct stats_cost *c = &s->total_costs.at[i];

        if (c->answers == 0)
            continue;
        buf_clear(&line);
        if (i == PRICES_UNKNOWN) {
            buf_add_c(&line, "unknown: ");
            add_plural(&line, c->answers, "answer");
            buf_addf(&line, ", %" PRIu64 " tokens", c->tokens);
        } else {
            amount_add_text(&line, stats_cost_sum(c));
            buf_addf(&line, " %s: ", prices_currency(s->prices, i));
            amount_add_text(&line, c->reported);
            buf_add_c(&line, " reported by servers, ");
            amount_add_text(&line, c->computed);
            buf_add_c(&line, " computed from prices");
        }
        print_fitted(o, &line);
    }
    out_byte(o, '\n');
    buf_release(&line);
}

static struct chart_line *new_line(struct chart *chart)
{
    struct chart_line *line;

    chart->at = mem_grow(chart->at, &chart->cap, chart->count + 1, sizeof *chart->at);
    line = &chart->at[chart->count++];
    *line = (struct chart_line){0};
    for (size_t i = 0; i < COLUMNS; i++)
        buf_init(&line->cells[i], 8 * BUF_LINE);
    return line;
}

static uint64_t size_of(enum stats_by by, const struct stats_row *row)
{
    return by == STATS_TOOL ? row->count.calls : row->count.messages;
}

/* Fills a chart of messages or calls, tokens sent and tokens received. Tokens are `-` if no answer
 * of a row reported any, and absent if none did. */
static void fill_chart(struct chart *chart, enum stats_by by, const struct stats_row *at,
                       size_t count)
{
    struct chart_line *line = new_line(chart);
    uint64_t most = 1;

    buf_add_c(&line->cells[LABEL], stats_by_name(by));
    buf_add_c(&line->cells[1], by == STATS_TOOL ? "calls" : "messages");
    buf_add_c(&line->cells[2], "tokens in");
    buf_add_c(&line->cells[3], "out");
    for (size_t i = 0; i < count; i++)
        most = size_of(by, &at[i]) > most ? size_of(by, &at[i]) : most;
    chart->columns = 2;
    for (size_t i = 0; i < count; i++) {
        const struct stats_count *n = &at[i].count;

        line = new_line(chart);
        line->bar = (double)size_of(by, &at[i]) / (double)most;
        vis_add_line(&line->cells[LABEL], key_text(&at[i]), true);
        buf_add_number(&line->cells[1], size_of(by, &at[i]));
        if (has_tokens(n)) {
            buf_add_number(&line->cells[2], n->input);
            buf_add_number(&line->cells[3], n->output);
            chart->columns = 4;
        } else {
            buf_add_byte(&line->cells[2], '-');
            buf_add_byte(&line->cells[3], '-');
        }
    }
}

/* For the length of a bar only. */
static double rounded(struct amount a)
{
    return (double)a.whole + (double)a.part / AMOUNT_UNIT;
}

/* Returns the highest cost of a row in each currency. The caller frees the array. */
static double *highest_costs(const struct stats *s, const struct stats_row *at, size_t count)
{
    double *highest = mem_zalloc(prices_currencies(s->prices) * sizeof *highest);

    for (size_t row = 0; row < count; row++)
        for (size_t i = 0; i < at[row].costs.count; i++)
            if (rounded(stats_cost_sum(&at[row].costs.at[i])) > highest[i])
                highest[i] = rounded(stats_cost_sum(&at[row].costs.at[i]));
    return highest;
}

static void add_cost_line(struct chart *chart, const struct prices *p, const struct stats_row *row,
                          size_t currency, double highest)
{
    const struct stats_cost *c = &row->costs.at[currency];
    struct chart_line *line = new_line(chart);

    vis_add_line(&line->cells[LABEL], key_text(row), true);
    if (currency != PRICES_UNKNOWN) {
        amount_add_text(&line->cells[1], stats_cost_sum(c));
        buf_addf(&line->cells[1], " %s", prices_currency(p, currency));
        amount_add_text(&line->cells[2], c->reported);
        amount_add_text(&line->cells[3], c->computed);
        line->bar = highest > 0 ? rounded(stats_cost_sum(c)) / highest : 0;
    } else {
        buf_add_c(&line->cells[1], prices_currency(p, currency));
        buf_add_byte(&line->cells[2], '-');
        buf_add_byte(&line->cells[3], '-');
    }
    buf_add_number(&line->cells[4], c->answers);
}

/* Fills a chart of costs: reported, computed, and of how many answers. Each currency has its own
 * lines, and its own longest bar. */
static void fill_cost_chart(struct chart *chart, const struct stats *s, const struct stats_row *at,
                            size_t count)
{
    double *highest = highest_costs(s, at, count);
    struct chart_line *line = new_line(chart);

    buf_add_c(&line->cells[LABEL], stats_by_name(s->rows.by));
    buf_add_c(&line->cells[1], "cost");
    buf_add_c(&line->cells[2], "reported");
    buf_add_c(&line->cells[3], "computed");
    buf_add_c(&line->cells[4], "answers");
    chart->columns = COLUMNS;
    for (size_t row = 0; row < count; row++)
        for (size_t n = 1; n <= at[row].costs.count; n++) {
            size_t i = n % at[row].costs.count;

            if (at[row].costs.at[i].answers > 0)
                add_cost_line(chart, s->prices, &at[row], i, highest[i]);
        }
    free(highest);
}

/* Prints as much of the cells as fits: the label on the left, numbers on the right of their
 * columns. Returns the number of columns after them, for a bar. */
static size_t print_cells(struct out *o, const struct chart_line *line, const size_t *widths,
                          size_t columns)
{
    struct str label = utf8_fit(buf_str(&line->cells[LABEL]), widths[LABEL]);
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t used;

    buf_add_str(&text, label);
    buf_addf(&text, "%*s", (int)(widths[LABEL] - wide_columns(label)), "");
    for (size_t i = 1; i < columns; i++)
        buf_addf(&text, "%*s%*s", GAP, "", (int)widths[i], buf_c(&line->cells[i]));
    used = wide_columns(buf_str(&text)) + GAP;
    out_raw(o, utf8_fit(buf_str(&text), o->columns));
    buf_release(&text);
    return o->columns > used ? o->columns - used : 0;
}

/* Prints a bar in eighths of a column, at least one eighth. */
static void print_bar(struct out *o, double part, size_t room)
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
    size_t eighths = (size_t)(part * (double)(room * EIGHTHS));

    if (eighths == 0)
        eighths = 1;
    out_style(o, STYLE_PLOT);
    for (size_t i = 0; i < eighths / EIGHTHS; i++)
        out_raw(o, STR("\xe2\x96\x88"));
    out_raw(o, str_of(parts[eighths % EIGHTHS]));
    out_style(o, STYLE_NONE);
}

static void print_lines(struct out *o, const struct chart *chart)
{
    size_t widths[COLUMNS] = {0}, room;

    for (size_t i = 0; i < chart->count; i++)
        for (size_t k = 0; k < COLUMNS; k++) {
            size_t width = wide_columns(buf_str(&chart->at[i].cells[k]));

            widths[k] = width > widths[k] ? width : widths[k];
        }
    if (widths[LABEL] > o->columns / 3)
        widths[LABEL] = o->columns >= 3 ? o->columns / 3 : 1;
    out_style(o, STYLE_DIM);
    print_cells(o, &chart->at[0], widths, chart->columns);
    out_style(o, STYLE_NONE);
    out_byte(o, '\n');
    for (size_t i = 1; i < chart->count; i++) {
        room = print_cells(o, &chart->at[i], widths, chart->columns);
        if (room >= BAR_MIN && chart->at[i].bar > 0) {
            out_raw(o, STR("  "));
            print_bar(o, chart->at[i].bar, room);
        }
        out_byte(o, '\n');
    }
}

static void print_chart(struct out *o, const struct stats *s, const struct stats_row *at,
                        size_t count, int64_t now)
{
    struct chart chart = {0};

    print_totals(o, s, now);
    if (s->prices)
        print_cost_totals(o, s);
    else
        out_byte(o, '\n');
    if (count == 0)
        return;
    if (s->prices)
        fill_cost_chart(&chart, s, at, count);
    else
        fill_chart(&chart, s->rows.by, at, count);
    print_lines(o, &chart);
    for (size_t i = 0; i < chart.count; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            buf_release(&chart.at[i].cells[k]);
    free(chart.at);
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
    else if (s->prices)
        print_cost_records(o, s, at, count);
    else
        print_records(o, s, at, count);
}
