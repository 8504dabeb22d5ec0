#include "chathist/cli/stats_overview.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/stats_output.h"

#define DAYS 14
#define OTHERS 10

/* ---- the calendar ---- */

#define WEEKS 53
#define WEEK 7
#define LEVELS 5
/* 1970-01-01 was a Thursday. */
#define WEEKDAY(day) (((day) % WEEK + WEEK + 3) % WEEK)
#define SECONDS_A_DAY 86400

static const char *const weekdays[WEEK] = {"Mon", "", "Wed", "", "Fri", "", "Sun"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct calendar {
    uint64_t messages[WEEKS * WEEK];
    int64_t first, last; /* days since 1970-01-01; the first is a Monday */
    uint64_t most;
    int64_t most_day;
};

/* The last week is this one, or that of the newest message if the year would be empty. */
static void fill_calendar(struct calendar *c, const struct stats *days)
{
    int64_t newest = INT64_MIN;

    *c = (struct calendar){.most = 0};
    (void)time_local_day(time_now(), &c->last);
    for (size_t i = 0; i < days->rows.count; i++)
        if (days->rows.at[i].key && days->rows.at[i].day <= c->last)
            newest = days->rows.at[i].day;
    if (newest > INT64_MIN && newest <= c->last - (int64_t)(WEEKS - 1) * WEEK)
        c->last = newest;
    c->first = c->last - WEEKDAY(c->last) - (int64_t)(WEEKS - 1) * WEEK;
    for (size_t i = 0; i < days->rows.count; i++) {
        const struct stats_row *row = &days->rows.at[i];

        if (!row->key || row->day < c->first || row->day > c->last)
            continue;
        c->messages[row->day - c->first] = row->count.messages;
        if (row->count.messages > c->most) {
            c->most = row->count.messages;
            c->most_day = row->day;
        }
    }
}

/* Returns 0 for no message, and 1 to 4 by the square root of the number, so that one busy day does
 * not make all others look empty. */
static int level_of(const struct calendar *c, size_t day)
{
    double part = c->most > 0 ? (double)c->messages[day] / (double)c->most : 0;

    return part == 0 ? 0 : part <= 1 / 16.0 ? 1 : part <= 4 / 16.0 ? 2 : part <= 9 / 16.0 ? 3 : 4;
}

static struct tm date_of(int64_t day)
{
    time_t at = (time_t)(day * SECONDS_A_DAY);
    struct tm tm = {0};

    (void)gmtime_r(&at, &tm);
    return tm;
}

static void add_date(struct buf *out, int64_t day)
{
    struct tm tm = date_of(day);

    buf_addf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}

/* Returns the name of the month that begins in a week of the calendar, or NULL. */
static const char *month_in(const struct calendar *c, size_t week)
{
    struct tm tm = date_of(c->first + (int64_t)week * WEEK + WEEK - 1);

    return tm.tm_mday <= WEEK ? months[tm.tm_mon] : NULL;
}

static void add_counted(struct buf *out, uint64_t n, const char *what)
{
    buf_addf(out, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

/* ---- on a terminal ---- */

#define LABEL 5 /* columns before the weeks */

static const char *const shades[LEVELS] = {"\xc2\xb7", "\xe2\x96\x91", "\xe2\x96\x92",
                                           "\xe2\x96\x93", "\xe2\x96\x88"};

/* Prints as much of a text as fits. */
static void print_fitted(struct out *o, enum style style, const struct buf *text)
{
    out_style(o, style);
    out_raw(o, utf8_fit(buf_str(text), o->columns));
    out_style(o, STYLE_NONE);
}

static void print_months(struct out *o, const struct calendar *c, size_t from, size_t cell)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t week = from; week < WEEKS; week++) {
        const char *month = month_in(c, week);
        size_t column = LABEL + (week - from) * cell;

        if (!month || column < line.len || column + strlen(month) > LABEL + (WEEKS - from) * cell)
            continue;
        while (line.len < column)
            buf_add_byte(&line, ' ');
        buf_addf(&line, "%s ", month);
    }
    print_fitted(o, STYLE_DIM, &line);
    out_byte(o, '\n');
    buf_release(&line);
}

static void print_calendar(struct out *o, const struct stats *days)
{
    struct calendar c;
    size_t cell = o->columns >= LABEL + 2 * WEEKS ? 2 : 1, from = 0;
    struct buf line = BUF_INIT(BUF_LINE);

    fill_calendar(&c, days);
    if (o->columns < LABEL + WEEKS)
        from = o->columns > LABEL ? WEEKS + LABEL - o->columns : WEEKS;
    print_months(o, &c, from, cell);
    for (size_t row = 0; row < WEEK; row++) {
        buf_clear(&line);
        buf_addf(&line, "%-*s", LABEL, weekdays[row]);
        print_fitted(o, STYLE_DIM, &line);
        buf_clear(&line);
        for (size_t week = from; week < WEEKS; week++) {
            size_t day = week * WEEK + row;

            for (size_t i = 0; i < cell && c.first + (int64_t)day <= c.last; i++)
                buf_add_c(&line, i > 0 && level_of(&c, day) == 0 ? " " : shades[level_of(&c, day)]);
        }
        if (line.len > 0)
            print_fitted(o, STYLE_PLOT, &line);
        out_byte(o, '\n');
    }
    buf_clear(&line);
    buf_addf(&line, "%*sless ", LABEL, "");
    for (size_t i = 0; i < LEVELS; i++)
        buf_add_c(&line, shades[i]);
    buf_add_c(&line, " more");
    if (c.most > 0) {
        buf_add_c(&line, "; most on ");
        add_date(&line, c.most_day);
        buf_add_c(&line, ": ");
        add_counted(&line, c.most, "message");
    }
    print_fitted(o, STYLE_DIM, &line);
    out_byte(o, '\n');
    buf_release(&line);
}

static void add_totals(struct buf *line, const struct out *o, const struct stats *s,
                       const char *then)
{
    int64_t first, last;

    add_counted(line, s->total.messages, "message");
    buf_add_c(line, " in ");
    add_counted(line, s->total.sessions, "session");
    if (s->timed && time_local_day(s->first, &first) && time_local_day(s->last, &last)) {
        buf_add_c(line, ", ");
        add_date(line, first);
        buf_add_c(line, " to ");
        add_date(line, last);
    }
    buf_add_c(line, then);
    stats_add_figure(line, o, s->total.input);
    buf_add_c(line, " tokens in, ");
    stats_add_figure(line, o, s->total.output);
    buf_add_c(line, " out");
}

/* Returns whether the cost of some answer is known. */
static bool has_costs(const struct stats *s)
{
    for (size_t i = 0; s->prices && i < s->total_costs.count; i++)
        if (i != PRICES_UNKNOWN && s->total_costs.at[i].answers > 0)
            return true;
    return false;
}

static size_t rows_of(const struct stats_overview *v, size_t usual)
{
    return v->limit > 0 ? v->limit : usual;
}

void stats_overview_print(struct out *o, const struct stats_overview *v)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    add_totals(&line, o, &v->days, "\n");
    for (struct str rest = buf_str(&line); rest.p;) {
        out_raw(o, utf8_fit(str_cut(&rest, '\n'), o->columns));
        out_byte(o, '\n');
    }
    buf_release(&line);
    if (v->days.total.messages == 0)
        return;
    out_byte(o, '\n');
    print_calendar(o, &v->days);
    out_byte(o, '\n');
    stats_print_rows(o, &v->days, rows_of(v, DAYS), false);
    if (v->models.rows.count > 0) {
        out_byte(o, '\n');
        stats_print_rows(o, &v->models, rows_of(v, OTHERS), false);
    }
    if (v->tools.rows.count > 0) {
        out_byte(o, '\n');
        stats_print_rows(o, &v->tools, rows_of(v, OTHERS), false);
    }
    if (has_costs(&v->models)) {
        out_byte(o, '\n');
        stats_print_rows(o, &v->models, rows_of(v, OTHERS), true);
    }
}

/* ---- the page ---- */

/* The columns of the calendar and of its text, in pixels. */
#define PITCH 13
#define MARGIN 34

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<title>Conversations</title>\n<style>\n"
    ":root{color-scheme:light dark;--b:#fff;--t:#1f2328;--d:#59636e;--p:#1a7f37;"
    "--l0:#ebedf0;--l1:#9be9a8;--l2:#40c463;--l3:#30a14e;--l4:#216e39}\n"
    "@media(prefers-color-scheme:dark){:root{--b:#0d1117;--t:#e6edf3;--d:#9198a1;--p:#3fb950;"
    "--l0:#21262d;--l1:#0e4429;--l2:#006d32;--l3:#26a641;--l4:#39d353}}\n"
    "body{background:var(--b);color:var(--t);font:16px/1.5 system-ui,sans-serif;max-width:60rem;"
    "margin:auto;padding:1rem}\n"
    "h1{font-size:1.5rem}p,th{color:var(--d)}svg text{fill:var(--d);font-size:10px}\n"
    ".l0{fill:var(--l0)}.l1{fill:var(--l1)}.l2{fill:var(--l2)}.l3{fill:var(--l3)}"
    ".l4{fill:var(--l4)}.p{fill:var(--p)}\n"
    "table{border-collapse:collapse;width:100%;margin:1.5rem 0;font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;font-weight:600;font-size:1.1rem}th,td{padding:.1rem .5rem .1rem 0;"
    "text-align:right;font-weight:400;white-space:nowrap}\n"
    "tbody th,thead th:first-child{text-align:left;overflow-wrap:anywhere;white-space:normal}"
    "td:last-child{width:40%}td svg{display:block;width:100%;height:.8rem}\n"
    "@media(max-width:40rem){.w :is(th,td):nth-child(n+4):nth-child(-n+6){display:none}}\n"
    "</style>\n</head>\n<body>\n<main>\n<h1>Conversations</h1>\n";

static void add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '&' || c == '<' || c == '>' || c == '"')
            buf_addf(out, "&#%d;", c);
        else
            buf_add_byte(out, c);
    }
}

static void add_calendar(struct buf *out, const struct stats *days)
{
    struct calendar c;

    fill_calendar(&c, days);
    buf_addf(out,
             "<svg role=\"img\" aria-labelledby=\"year\" viewBox=\"0 0 %d %d\">\n"
             "<title id=\"year\">Messages a day, ",
             MARGIN + WEEKS * PITCH, (WEEK + 1) * PITCH + 2);
    add_date(out, c.first);
    buf_add_c(out, " to ");
    add_date(out, c.last);
    buf_add_c(out, "; most on ");
    add_date(out, c.most_day);
    buf_add_c(out, ": ");
    add_counted(out, c.most, "message");
    buf_add_c(out, "</title>\n");
    for (int row = 0; row < WEEK; row++)
        buf_addf(out, "<text x=\"0\" y=\"%d\">%s</text>\n", (row + 2) * PITCH - 3, weekdays[row]);
    for (int week = 0; week < WEEKS; week++) {
        const char *month = month_in(&c, (size_t)week);

        if (month && week < WEEKS - 1)
            buf_addf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", MARGIN + week * PITCH, PITCH - 3,
                     month);
        for (int row = 0; row < WEEK && c.first + week * WEEK + row <= c.last; row++) {
            size_t day = (size_t)week * WEEK + (size_t)row;

            buf_addf(out,
                     "<rect class=\"l%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\">"
                     "<title>",
                     level_of(&c, day), MARGIN + week * PITCH, (row + 1) * PITCH, PITCH - 2,
                     PITCH - 2);
            add_date(out, c.first + (int64_t)day);
            buf_add_c(out, ": ");
            add_counted(out, c.messages[day], "message");
            buf_add_c(out, "</title></rect>\n");
        }
    }
    buf_add_c(out, "</svg>\n");
}

/* In a small window a table of the class `w` has no columns of tokens. */
static void begin_table(struct buf *out, const struct stats *s, const char *class,
                        const char *caption, const char *columns)
{
    buf_addf(out,
             "<table class=\"%s\">\n<caption>%s</caption>\n<thead><tr><th scope=\"col\">%s</th>",
             class, caption, stats_by_name(s->rows.by[0]));
    for (struct str rest = str_of(columns); rest.p;) {
        buf_add_c(out, "<th scope=\"col\">");
        buf_add_str(out, str_cut(&rest, '\t'));
        buf_add_c(out, "</th>");
    }
    buf_add_c(out, "<td></td></tr></thead>\n<tbody>\n");
}

static void begin_bar(struct buf *out, const struct stats_row *row)
{
    struct str key = row->key ? json_at((struct str){row->key, row->len}, 0) : STR_NONE;
    struct buf scratch = BUF_INIT(BUF_LINE), shown = BUF_INIT(BUF_LINE);

    if (key.p)
        vis_add_line(&shown, json_text(key, &scratch), true);
    buf_add_c(out, "<tr><th scope=\"row\">");
    add_escaped(out, key.p ? buf_str(&shown) : STR("unknown"));
    buf_add_c(out, "</th>");
    buf_release(&scratch);
    buf_release(&shown);
}

/* `part` of the longest bar. */
static void end_bar(struct buf *out, double part)
{
    buf_addf(out,
             "<td><svg aria-hidden=\"true\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\">"
             "<rect class=\"p\" width=\"%.1f\" height=\"10\"/></svg></td></tr>\n",
             part * 100);
}

static void add_number_cell(struct buf *out, uint64_t n)
{
    buf_addf(out, "<td>%" PRIu64 "</td>", n);
}

static void add_count_table(struct buf *out, const struct stats *s, const char *caption,
                            size_t limit)
{
    bool calls = stats_counts_calls(s);
    uint64_t most = 1;

    if (s->rows.count == 0)
        return;
    begin_table(out, s, calls ? "" : "w", caption,
                calls ? "calls\tsessions"
                      : "messages\tsessions\ttokens in\ttokens out\tunreported");
    for (size_t i = 0; i < s->rows.count && i < limit; i++) {
        const struct stats_count *n = &stats_row_shown(s, i)->count;

        most = (calls ? n->calls : n->messages) > most ? (calls ? n->calls : n->messages) : most;
    }
    for (size_t i = 0; i < s->rows.count && i < limit; i++) {
        const struct stats_row *row = stats_row_shown(s, i);
        uint64_t size = calls ? row->count.calls : row->count.messages;

        begin_bar(out, row);
        add_number_cell(out, size);
        add_number_cell(out, row->count.sessions);
        if (!calls) {
            add_number_cell(out, row->count.input);
            add_number_cell(out, row->count.output);
            add_number_cell(out, row->count.unknown);
        }
        end_bar(out, (double)size / (double)most);
    }
    buf_add_c(out, "</tbody>\n</table>\n");
}

/* A table for each currency, because amounts of two cannot be compared. */
static void add_cost_table(struct buf *out, const struct stats *s, size_t currency, size_t limit)
{
    struct buf caption = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    double most = 0;

    for (size_t i = 0; i < s->rows.count; i++)
        most = stats_row_cost(&s->rows.at[i], currency) > most
                   ? stats_row_cost(&s->rows.at[i], currency)
                   : most;
    add_escaped(&name, str_of(prices_currency(s->prices, currency)));
    buf_addf(&caption, "Cost in %s", buf_c(&name));
    begin_table(out, s, "", buf_c(&caption), "cost\tanswers\ttokens");
    for (size_t i = 0; i < s->rows.count && i < limit; i++) {
        const struct stats_row *row = &s->rows.at[i];
        const struct stats_cost *c = row->costs.at + currency;

        if (currency >= row->costs.count || c->answers == 0)
            continue;
        begin_bar(out, row);
        buf_add_c(out, "<td>");
        amount_add_text(out, stats_cost_sum(c));
        buf_add_c(out, "</td>");
        add_number_cell(out, c->answers);
        add_number_cell(out, c->tokens);
        end_bar(out, most > 0 ? stats_row_cost(row, currency) / most : 0);
    }
    buf_add_c(out, "</tbody>\n</table>\n");
    buf_release(&caption);
    buf_release(&name);
}

void stats_overview_add_html(struct buf *html, const struct stats_overview *v)
{
    const struct stats_costs *costs = &v->models.total_costs;

    buf_add_c(html, head);
    buf_add_c(html, "<p>");
    add_totals(html, &(struct out){.terminal = true}, &v->days, "; ");
    buf_add_c(html, "</p>\n");
    if (v->days.total.messages > 0)
        add_calendar(html, &v->days);
    add_count_table(html, &v->days, "Days", rows_of(v, DAYS));
    add_count_table(html, &v->models, "Models", rows_of(v, OTHERS));
    add_count_table(html, &v->tools, "Tools", rows_of(v, OTHERS));
    for (size_t i = 0; v->models.prices && i < costs->count; i++)
        if (i != PRICES_UNKNOWN && costs->at[i].answers > 0)
            add_cost_table(html, &v->models, i, rows_of(v, OTHERS));
    buf_add_c(html, "</main>\n</body>\n</html>\n");
}
