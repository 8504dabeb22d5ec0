#include "chathist/cli/stats_print.h"

#include <inttypes.h>

#include "chathist/base/clock.h"
#include "chathist/base/json.h"
#include "chathist/base/vis.h"
#include "chathist/cli/listing.h"
#include "cli/stats_chart.h"

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
        print_record(o, s->rows.by, stats_key(&at[i]), &at[i].count);
}

/* ---- JSON ---- */

/* Beyond what it holds a counter stays at its end. */
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

    clock_add_iso(&text, us);
    json_add_member(out, key, buf_str(&text));
    buf_release(&text);
}

static void add_row(struct buf *out, enum stats_by by, const struct stats_row *row)
{
    if (!str_ends(buf_str(out), STR("[")))
        buf_add_byte(out, ',');
    buf_add_byte(out, '{');
    if (row->key) {
        json_add_member(out, "key", stats_key(row));
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

    clock_add_zone(&zone, now);
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

void stats_print(struct out *o, const struct stats *s, const struct stats_wish *w)
{
    size_t count = s->rows.count < w->limit ? s->rows.count : w->limit;
    const struct stats_row *at = s->rows.at;

    if (count > 0 && stats_is_time(s->rows.by))
        at += s->rows.count - count;
    if (w->json)
        print_json(o, s, at, count, w->now);
    else if (o->terminal)
        stats_chart_print(o, s, at, count, w->now);
    else
        print_records(o, s, at, count);
}
