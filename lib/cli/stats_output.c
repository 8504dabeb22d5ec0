#include "chathist/cli/stats_output.h"

#include <inttypes.h>
#include <stdbool.h>

#include "chathist/base/json.h"
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

/* Blanks between two columns. */
#define GAP 2
/* The narrowest bar that is drawn. */
#define BAR_MIN 4
#define EIGHTHS 8

struct chart {
    struct out *out;
    enum stats_by by;
    size_t label, messages, input, output; /* widths of the columns */
    bool tokens;                           /* some tokens are known */
    uint64_t most;
};

static uint64_t size_of(const struct chart *c, const struct stats_row *row)
{
    return c->by == STATS_TOOL ? row->count.calls : row->count.messages;
}

static size_t digits(uint64_t n)
{
    size_t count = 1;

    for (; n > 9; n /= 10)
        count++;
    return count;
}

static void grow(size_t *width, size_t wanted)
{
    if (wanted > *width)
        *width = wanted;
}

/* ---- charts ---- */

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

static void measure(struct chart *c, const struct stats_row *at, size_t count)
{
    size_t most_label = c->out->columns / 3;

    grow(&c->label, sizeof("session") - 1);
    grow(&c->messages, sizeof("messages") - 1);
    for (size_t i = 0; i < count; i++) {
        const struct stats_row *row = &at[i];
        struct buf label = BUF_INIT(8 * BUF_LINE);

        vis_add_line(&label, key_text(row), true);
        grow(&c->label, wide_columns(buf_str(&label)));
        buf_release(&label);
        grow(&c->messages, digits(size_of(c, row)));
        if (size_of(c, row) > c->most)
            c->most = size_of(c, row);
        c->tokens = c->tokens || row->count.answers > row->count.unknown;
        grow(&c->input, digits(row->count.input));
        grow(&c->output, digits(row->count.output));
    }
    grow(&c->input, sizeof("tokens in") - 1);
    grow(&c->output, sizeof("out") - 1);
    if (c->label > most_label)
        c->label = most_label > 0 ? most_label : 1;
}

static void pad(struct buf *line, size_t columns)
{
    while (columns-- > 0)
        buf_add_byte(line, ' ');
}

static void add_label(struct buf *line, const struct chart *c, struct str text)
{
    struct buf safe = BUF_INIT(8 * BUF_LINE);
    struct str shown;

    vis_add_line(&safe, text, true);
    shown = utf8_fit(buf_str(&safe), c->label);
    buf_add_str(line, shown);
    pad(line, c->label - wide_columns(shown));
    buf_release(&safe);
}

/* Adds the tokens, `-` if no answer reported any. */
static void add_token_columns(struct buf *line, const struct chart *c, const struct stats_count *n)
{
    if (n->answers > n->unknown)
        buf_addf(line, "%*s%*" PRIu64 "%*s%*" PRIu64, GAP, "", (int)c->input, n->input, GAP, "",
                 (int)c->output, n->output);
    else
        buf_addf(line, "%*s%*s%*s%*s", GAP, "", (int)c->input, "-", GAP, "", (int)c->output, "-");
}

/* Prints a bar in eighths of a column, at least one eighth. */
static void print_bar(const struct chart *c, uint64_t size, size_t room)
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
    size_t eighths = (size_t)((double)size / (double)c->most * (double)(room * EIGHTHS));

    if (eighths == 0)
        eighths = 1;
    out_style(c->out, STYLE_PLOT);
    for (size_t i = 0; i < eighths / EIGHTHS; i++)
        out_raw(c->out, STR("\xe2\x96\x88"));
    out_raw(c->out, str_of(parts[eighths % EIGHTHS]));
    out_style(c->out, STYLE_NONE);
}

static void print_row(const struct chart *c, const struct stats_row *row)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t columns = c->out->columns, used;

    add_label(&line, c, key_text(row));
    buf_addf(&line, "%*s%*" PRIu64, GAP, "", (int)c->messages, size_of(c, row));
    if (c->tokens)
        add_token_columns(&line, c, &row->count);
    used = wide_columns(buf_str(&line)) + GAP;
    out_raw(c->out, utf8_fit(buf_str(&line), columns));
    if (columns >= used + BAR_MIN && size_of(c, row) > 0) {
        out_raw(c->out, STR("  "));
        print_bar(c, size_of(c, row), columns - used);
    }
    out_byte(c->out, '\n');
    buf_release(&line);
}

static void print_head(const struct chart *c)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    add_label(&line, c, str_of(stats_by_name(c->by)));
    buf_addf(&line, "%*s%*s", GAP, "", (int)c->messages,
             c->by == STATS_TOOL ? "calls" : "messages");
    if (c->tokens)
        buf_addf(&line, "%*s%*s%*s%*s", GAP, "", (int)c->input, "tokens in", GAP, "",
                 (int)c->output, "out");
    out_style(c->out, STYLE_DIM);
    out_raw(c->out, utf8_fit(buf_str(&line), c->out->columns));
    out_style(c->out, STYLE_NONE);
    out_byte(c->out, '\n');
    buf_release(&line);
}

static void print_chart(struct out *o, const struct stats *s, const struct stats_row *at,
                        size_t count, int64_t now)
{
    struct chart c = {.out = o, .by = s->rows.by};

    print_totals(o, s, now);
    if (count == 0)
        return;
    measure(&c, at, count);
    print_head(&c);
    for (size_t i = 0; i < count; i++)
        print_row(&c, &at[i]);
}

void stats_print(struct out *o, const struct stats *s, const struct stats_form *f)
{
    size_t count = s->rows.count < f->limit ? s->rows.count : f->limit;
    const struct stats_row *at = s->rows.at;

    if (count > 0 && stats_is_time(s->rows.by))
        at += s->rows.count - count;
    if (f->json)
        print_json(o, s, at, count, f->now);
    else if (o->terminal)
        print_chart(o, s, at, count, f->now);
    else
        print_records(o, s, at, count);
}
