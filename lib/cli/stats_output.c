#include "chathist/cli/stats_output.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/wide.h"

/* From here on a terminal shows a rounded number. */
#define FIGURE_LONG 100000

/* ---- records ---- */

/* The records to print. On a terminal the first one is the heading, and rows have bars. */
struct report {
    struct buf text; /* a line for each, its fields separated by tabs */
    double *bars;    /* lengths, as parts of the longest bar; 0: none */
    size_t count, cap;
};

static void end_record(struct report *r, double bar)
{
    buf_add_byte(&r->text, '\n');
    r->bars = mem_grow(r->bars, &r->cap, r->count + 1, sizeof *r->bars);
    r->bars[r->count++] = bar;
}

/* Adds the separator of two keys. On a terminal all of them are one column, the label. */
static void add_column_gap(struct buf *out, const struct out *o)
{
    buf_add_c(out, o->terminal ? "  " : "\t");
}

static void add_heading(struct report *r, const struct out *o, const struct stats *s,
                        const char *fields)
{
    for (size_t i = 0; i < s->rows.by_count; i++) {
        if (i > 0)
            add_column_gap(&r->text, o);
        buf_add_c(&r->text, stats_by_name(s->rows.by[i]));
    }
    buf_addf(&r->text, "\t%s", fields);
    end_record(r, 0);
}

/* Adds the keys of a row; NULL is that of the totals. */
static void add_row_key(struct report *r, const struct out *o, const struct stats *s,
                        const struct stats_row *row)
{
    struct json_iter it = json_iter(row && row->key ? (struct str){row->key, row->len} : STR("[]"));
    struct buf scratch = BUF_INIT(BUF_LINE);

    for (size_t i = 0; i < s->rows.by_count; i++) {
        bool known = json_next(&it) && !json_is_null(it.value);

        if (i > 0)
            add_column_gap(&r->text, o);
        if (!row)
            buf_add_c(&r->text, i == 0 ? "total" : o->terminal ? "" : "-");
        else if (!known)
            buf_add_c(&r->text, "unknown");
        else if (s->rows.by[i] == STATS_SESSION)
            list_add_id(&r->text, json_text(it.value, &scratch));
        else
            vis_add_line(&r->text, json_text(it.value, &scratch), o->terminal);
    }
    buf_release(&scratch);
}

void stats_add_figure(struct buf *out, const struct out *o, uint64_t n)
{
    if (o->terminal && n >= FIGURE_LONG)
        buf_add_scaled(out, n, "");
    else
        buf_add_number(out, n);
}

static void add_figure_field(struct report *r, const struct out *o, uint64_t n)
{
    buf_add_byte(&r->text, '\t');
    stats_add_figure(&r->text, o, n);
}

/* By tool, calls are counted; that is the only key then. */
bool stats_counts_calls(const struct stats *s)
{
    return s->rows.by[0] == STATS_TOOL;
}

static uint64_t bar_size(const struct stats *s, const struct stats_count *n)
{
    return stats_counts_calls(s) ? n->calls : n->messages;
}

/* Adds `key TAB messages TAB sessions TAB input TAB output TAB unknown`; of tools `key TAB calls
 * TAB sessions`. */
static void add_count_row(struct report *r, const struct out *o, const struct stats *s,
                          const struct stats_row *row, double bar)
{
    const struct stats_count *n = row ? &row->count : &s->total;

    add_row_key(r, o, s, row);
    add_figure_field(r, o, bar_size(s, n));
    add_figure_field(r, o, n->sessions);
    if (!stats_counts_calls(s)) {
        add_figure_field(r, o, n->input);
        add_figure_field(r, o, n->output);
        add_figure_field(r, o, n->unknown);
    }
    end_record(r, bar);
}

/* Returns the i-th row to print: with `newest_first` the last one with a time is the first. */
static const struct stats_row *nth_row(const struct stats_row *at, size_t count, bool newest_first,
                                       size_t i)
{
    size_t timed = count > 0 && !at[count - 1].key ? count - 1 : count;

    return !newest_first || i >= timed ? &at[i] : &at[timed - 1 - i];
}

const struct stats_row *stats_row_shown(const struct stats *s, size_t i)
{
    return nth_row(s->rows.at, s->rows.count, stats_is_time(s->rows.by[0]), i);
}

static void add_counts(struct report *r, const struct out *o, const struct stats *s,
                       const struct stats_row *at, size_t count, bool totals)
{
    bool turned = o->terminal && stats_is_time(s->rows.by[0]);
    uint64_t most = 1;

    for (size_t i = 0; i < count; i++)
        most = bar_size(s, &at[i].count) > most ? bar_size(s, &at[i].count) : most;
    if (o->terminal)
        add_heading(r, o, s,
                    stats_counts_calls(s) ? "calls\tsessions"
                                          : "messages\tsessions\ttokens in\tout\tunreported");
    if (totals)
        add_count_row(r, o, s, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        const struct stats_row *row = nth_row(at, count, turned, i);

        add_count_row(r, o, s, row, (double)bar_size(s, &row->count) / (double)most);
    }
}

static double rounded(struct amount a)
{
    return (double)a.whole + (double)a.part / AMOUNT_UNIT;
}

double stats_row_cost(const struct stats_row *row, size_t currency)
{
    return currency < row->costs.count ? rounded(stats_cost_sum(&row->costs.at[currency])) : 0;
}

/* Adds `key TAB currency TAB cost TAB reported TAB computed TAB answers TAB tokens`, a line for
 * each currency; the one of the currency `unknown`, without amounts, is the last. `highest` has the
 * cost of the longest bar in each currency, or is NULL. With `brief` only the rounded costs that are
 * known: `key TAB currency TAB cost TAB answers`. */
static void add_cost(struct report *r, const struct out *o, const struct stats *s,
                     const struct stats_row *row, const double *highest, bool brief)
{
    const struct stats_costs *costs = row ? &row->costs : &s->total_costs;

    for (size_t n = 1; n <= costs->count; n++) {
        size_t i = n % costs->count;
        const struct stats_cost *c = &costs->at[i];
        struct amount sum = stats_cost_sum(c);

        if (c->answers == 0 || (brief && i == PRICES_UNKNOWN))
            continue;
        add_row_key(r, o, s, row);
        buf_addf(&r->text, "\t%s\t", prices_currency(s->prices, i));
        if (brief && rounded(sum) >= 0.01) {
            buf_addf(&r->text, "%.2f", rounded(sum));
        } else if (brief) {
            amount_add_text(&r->text, sum);
        } else if (i == PRICES_UNKNOWN) {
            buf_add_c(&r->text, "-\t-\t-");
        } else {
            amount_add_text(&r->text, sum);
            buf_add_byte(&r->text, '\t');
            amount_add_text(&r->text, c->reported);
            buf_add_byte(&r->text, '\t');
            amount_add_text(&r->text, c->computed);
        }
        add_figure_field(r, o, c->answers);
        if (!brief)
            add_figure_field(r, o, c->tokens);
        end_record(r, highest && highest[i] > 0 ? rounded(sum) / highest[i] : 0);
    }
}

/* Each currency has its own longest bar. */
static void add_costs(struct report *r, const struct out *o, const struct stats *s,
                      const struct stats_row *at, size_t count, bool totals)
{
    bool turned = o->terminal && stats_is_time(s->rows.by[0]);
    double *highest = mem_zalloc(prices_currencies(s->prices) * sizeof *highest);

    for (size_t row = 0; row < count; row++)
        for (size_t i = 0; i < at[row].costs.count; i++) {
            double cost = stats_row_cost(&at[row], i);

            highest[i] = cost > highest[i] ? cost : highest[i];
        }
    if (o->terminal)
        add_heading(r, o, s,
                    totals ? "\tcost\treported\tcomputed\tanswers\ttokens" : "\tcost\tanswers");
    if (totals && s->total_costs.count == 0) {
        add_row_key(r, o, s, NULL);
        buf_add_c(&r->text, "\tunknown\t-\t-\t-\t0\t0");
        end_record(r, 0);
    }
    if (totals)
        add_cost(r, o, s, NULL, NULL, false);
    for (size_t row = 0; row < count; row++)
        add_cost(r, o, s, nth_row(at, count, turned, row), highest, !totals);
    free(highest);
}

/* ---- JSON ---- */

/* A count that JSON readers could not hold is cut to the largest one. */
static void add_number(struct buf *out, const char *key, uint64_t n)
{
    json_add_member_int(out, key, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static void add_token_columns(struct buf *out, const struct stats_count *n)
{
    add_number(out, "input_tokens", n->input);
    add_number(out, "output_tokens", n->output);
    add_number(out, "answers_without_usage", n->unknown);
}

static void add_time_member(struct buf *out, const char *key, int64_t us)
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
static void add_cost_array(struct buf *out, const struct prices *p, const struct stats_costs *costs)
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
    struct str keys = row->key ? (struct str){row->key, row->len} : STR("null");

    if (!str_ends(buf_str(out), STR("[")))
        buf_add_byte(out, ',');
    buf_add_byte(out, '{');
    json_add_key(out, "key");
    buf_add_str(out, row->key && s->rows.by_count == 1 ? json_at(keys, 0) : keys);
    add_number(out, stats_counts_calls(s) ? "calls" : "messages", bar_size(s, &row->count));
    add_number(out, "sessions", row->count.sessions);
    if (!stats_counts_calls(s))
        add_token_columns(out, &row->count);
    if (s->prices)
        add_cost_array(out, s->prices, &row->costs);
    buf_add_byte(out, '}');
}

static void print_json_object(struct out *o, const struct stats *s, const struct stats_row *at,
                              size_t count, int64_t until)
{
    struct buf line = BUF_INIT(SIZE_MAX), zone = BUF_INIT(BUF_SMALL), by = BUF_INIT(BUF_SMALL);
    int64_t now = time_now();

    time_add_zone(&zone, until < now ? until : now);
    buf_add_byte(&line, '{');
    add_number(&line, "messages", s->total.messages);
    add_number(&line, "sessions", s->total.sessions);
    add_number(&line, "answers", s->total.answers);
    add_number(&line, "tool_calls", s->total.calls);
    add_token_columns(&line, &s->total);
    if (s->prices)
        add_cost_array(&line, s->prices, &s->total_costs);
    if (s->timed) {
        add_time_member(&line, "first", s->first);
        add_time_member(&line, "last", s->last);
    }
    json_add_member(&line, "time_zone", buf_str(&zone));
    for (size_t i = 0; i < s->rows.by_count; i++)
        buf_addf(&by, "%s%s", i > 0 ? "," : "", stats_by_name(s->rows.by[i]));
    json_add_member(&line, "by", buf_str(&by));
    json_add_key(&line, "rows");
    buf_add_byte(&line, '[');
    for (size_t i = 0; i < count; i++)
        add_row(&line, s, &at[i]);
    buf_add_c(&line, "]}");
    out_json_line(o, buf_str(&line));
    buf_release(&zone);
    buf_release(&line);
    buf_release(&by);
}

/* ---- columns for a terminal ---- */

/* The fields of a record, of which the first one is the label. */
enum { LABEL, COLUMNS = 7 };

/* Blanks between two columns. */
#define GAP 2
/* The narrowest bar that is drawn. */
#define BAR_MIN 4
#define EIGHTHS 8

/* Prints a bar in eighths of a column, at least one eighth. */
static void print_bar(struct out *o, double part, size_t room)
{
    size_t eighths = (size_t)(part * (double)(room * EIGHTHS));
    struct buf bar = BUF_INIT(BUF_LINE);

    if (eighths == 0)
        eighths = 1;
    /* U+2588 is a full block, U+2589 seven eighths of it, U+258F one. */
    for (; eighths >= EIGHTHS; eighths -= EIGHTHS)
        buf_add_c(&bar, "\xe2\x96\x88");
    if (eighths > 0)
        buf_addf(&bar, "\xe2\x96%c", (char)(0x88 + EIGHTHS - (int)eighths));
    out_style(o, STYLE_PLOT);
    out_raw(o, buf_str(&bar));
    out_style(o, STYLE_NONE);
    buf_release(&bar);
}

/* Prints as much of the fields as fits: the label on the left, the others on the right of their
 * columns. Returns the number of columns after them, for a bar. */
static size_t print_table_row(struct out *o, struct str record, const size_t *widths)
{
    struct buf text = BUF_INIT(8 * BUF_LINE);
    size_t used;

    for (size_t i = 0; record.p; i++) {
        struct str field = str_cut(&record, '\t');
        int pad;

        field = i == LABEL ? utf8_fit(field, widths[LABEL]) : field;
        pad = (int)(widths[i] - wide_columns(field));
        buf_addf(&text, "%*s", i == LABEL ? 0 : GAP + pad, "");
        buf_add_str(&text, field);
        buf_addf(&text, "%*s", i == LABEL ? pad : 0, "");
    }
    used = wide_columns(buf_str(&text)) + GAP;
    out_raw(o, utf8_fit(buf_str(&text), o->columns));
    buf_release(&text);
    return o->columns > used ? o->columns - used : 0;
}

/* The label has at most one `part` of the columns. */
static void print_table(struct out *o, const struct report *r, size_t part)
{
    size_t widths[COLUMNS] = {0};
    struct str rest = buf_str(&r->text);

    for (size_t line = 0; line < r->count; line++) {
        struct str record = str_cut(&rest, '\n');

        for (size_t i = 0; record.p; i++) {
            size_t width = wide_columns(str_cut(&record, '\t'));

            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (widths[LABEL] > o->columns / part)
        widths[LABEL] = o->columns >= part ? o->columns / part : 1;
    rest = buf_str(&r->text);
    for (size_t line = 0; line < r->count; line++) {
        size_t room;

        if (line == 0)
            out_style(o, STYLE_DIM);
        room = print_table_row(o, str_cut(&rest, '\n'), widths);
        if (line == 0)
            out_style(o, STYLE_NONE);
        if (room >= BAR_MIN && r->bars[line] > 0) {
            out_raw(o, STR("  "));
            print_bar(o, r->bars[line], room);
        }
        out_byte(o, '\n');
    }
}

/* Prints the rows as records, or on a terminal in columns. */
static void print_records(struct out *o, const struct stats *s, const struct stats_row *at,
                          size_t count, bool costs, bool totals)
{
    struct report report = {.text = BUF_INIT(SIZE_MAX)};

    if (costs)
        add_costs(&report, o, s, at, count, totals);
    else
        add_counts(&report, o, s, at, count, totals);
    if (o->terminal)
        print_table(o, &report, s->rows.by_count > 1 ? 2 : 3);
    else
        out_raw(o, buf_str(&report.text));
    buf_release(&report.text);
    free(report.bars);
}

/* Returns the first of the newest or the largest rows, *count or fewer. */
static const struct stats_row *first_row(const struct stats *s, size_t *count)
{
    const struct stats_row *at = s->rows.at;

    if (*count > s->rows.count)
        *count = s->rows.count;
    if (*count > 0 && stats_is_time(s->rows.by[0]))
        at += s->rows.count - *count;
    return at;
}

void stats_print_rows(struct out *o, const struct stats *s, size_t limit, bool costs)
{
    const struct stats_row *at = first_row(s, &limit);

    print_records(o, s, at, limit, costs, false);
}

void stats_print(struct out *o, const struct stats *s, const struct choice *c)
{
    size_t count = c->limit > 0 ? c->limit : SIZE_MAX;
    const struct stats_row *at = first_row(s, &count);

    if (c->common.json)
        print_json_object(o, s, at, count, c->filter.has_until ? c->filter.until : INT64_MAX);
    else
        print_records(o, s, at, count, s->prices != NULL, true);
}
