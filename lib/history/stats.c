#include "chathist/history/stats.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/time_blocks.h"
#include "chathist/history/scan.h"

#define NONE SIZE_MAX
#define SECONDS_A_DAY 86400

static const char *const names[STATS_BY_COUNT] = {
    [STATS_DAY] = "day",           [STATS_WEEK] = "week",       [STATS_MONTH] = "month",
    [STATS_MODEL] = "model",       [STATS_ROLE] = "role",       [STATS_TOOL] = "tool",
    [STATS_PROVIDER] = "provider", [STATS_SESSION] = "session", [STATS_FROM] = "from",
    [STATS_REPO] = "repo",
};

const char *stats_by_name(enum stats_by by)
{
    return names[by];
}

bool stats_is_time(enum stats_by by)
{
    return by == STATS_DAY || by == STATS_WEEK || by == STATS_MONTH;
}

/* ---- keys ---- */

/* Adds the name of the day, or of its week or month. */
static void add_time_key(struct buf *out, enum stats_by by, int64_t day)
{
    time_t at = (time_t)(day * SECONDS_A_DAY);
    char week[32];
    struct tm tm;

    if (!gmtime_r(&at, &tm))
        return;
    if (by == STATS_WEEK && strftime(week, sizeof week, "%G-W%V", &tm) > 0)
        buf_add_c(out, week);
    else if (by == STATS_DAY)
        buf_addf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    else if (by == STATS_MONTH)
        buf_addf(out, "%04d-%02d", tm.tm_year + 1900, tm.tm_mon + 1);
}

/* Returns the place of the row with that key, made if it is missing. Messages without a key share a
 * row. */
static size_t row_place(struct stats_table *t, struct str key, int64_t day)
{
    const size_t *place = key.p ? hash_map_find(&t->places, key) : NULL;
    struct stats_row row = {.key = NULL, .len = key.n, .day = day};

    if (place)
        return *place;
    if (!key.p && t->unknown != NONE)
        return t->unknown;
    if (key.p) {
        row.key = mem_copy(key.p, key.n);
        hash_map_set(&t->places, (struct str){row.key, row.len}, t->count);
    } else {
        t->unknown = t->count;
    }
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof *t->at);
    t->at[t->count] = row;
    return t->count++;
}

/* ---- counting ---- */

/* The counts of one message. */
struct facts {
    struct stats_count count;
    size_t currency;        /* a place of history/prices */
    struct stats_cost cost; /* the cost in this currency; no answers unless costs are counted */
    size_t session;
    int64_t day;
    bool timed;
};

static void add_to(uint64_t *sum, uint64_t n)
{
    *sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

static void sum_count(struct stats_count *sum, const struct stats_count *n)
{
    sum->messages += n->messages;
    sum->calls += n->calls;
    sum->answers += n->answers;
    sum->unknown += n->unknown;
    add_to(&sum->input, n->input);
    add_to(&sum->output, n->output);
}

static void sum_cost(struct stats_costs *sum, const struct facts *f)
{
    struct stats_cost *at;

    if (f->cost.answers == 0)
        return;
    while (sum->count <= f->currency) {
        sum->at = mem_grow(sum->at, &sum->cap, sum->count + 1, sizeof *sum->at);
        sum->at[sum->count++] = (struct stats_cost){0};
    }
    at = &sum->at[f->currency];
    amount_add(&at->reported, f->cost.reported);
    amount_add(&at->computed, f->cost.computed);
    at->answers += f->cost.answers;
    add_to(&at->tokens, f->cost.tokens);
}

struct amount stats_cost_sum(const struct stats_cost *c)
{
    struct amount sum = c->reported;

    amount_add(&sum, c->computed);
    return sum;
}

/* Returns whether the response that the message is a part of counts in an earlier session: some
 * programs copy a conversation when it is continued elsewhere. */
static bool is_repeated(struct stats *s, const struct message *m, size_t session)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str response = message_text(m, FIELD_RESPONSE, &scratch);
    size_t count = s->responses.count, n = count;

    if (response.n > 0) {
        n = hash_map_number(&s->responses, &response);
        s->response_session =
            hash_map_values(&s->responses, s->response_session, sizeof *s->response_session);
        if (n == count)
            s->response_session[n] = session;
    }
    buf_release(&scratch);
    return n < count && s->response_session[n] != session;
}

static struct stats_count count_message(struct stats *s, const struct message *m, size_t session)
{
    struct stats_count n = {.messages = 1};
    struct json_iter calls = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct usage usage;

    while (!calls.object && json_next(&calls))
        n.calls++;
    if (m->role != ROLE_ASSISTANT || m->field[FIELD_FORKED_FROM].p || is_repeated(s, m, session))
        return n;
    n.answers = 1;
    usage_init(&usage);
    usage_read_members(&usage, m->field[FIELD_USAGE]);
    n.input = usage.at[USAGE_INPUT] > 0 ? (uint64_t)usage.at[USAGE_INPUT] : 0;
    n.output = usage.at[USAGE_OUTPUT] > 0 ? (uint64_t)usage.at[USAGE_OUTPUT] : 0;
    n.unknown = !usage_complete(&usage);
    return n;
}

/* Finds out the cost of an answer. */
static void set_cost(struct prices *p, const struct message *m, struct facts *f)
{
    struct buf provider = BUF_INIT(BUF_LINE), model = BUF_INIT(BUF_LINE);
    struct cost cost;

    cost = prices_cost(p, message_text(m, FIELD_PROVIDER, &provider),
                       message_text(m, FIELD_MODEL, &model), m->field[FIELD_USAGE]);
    f->currency = cost.currency;
    f->cost.answers = 1;
    *(cost.reported ? &f->cost.reported : &f->cost.computed) = cost.amount;
    f->cost.tokens = f->count.input;
    add_to(&f->cost.tokens, f->count.output);
    buf_release(&provider);
    buf_release(&model);
}

static void add_to_row(struct stats *s, size_t place, const struct facts *f)
{
    size_t pair[2] = {place, f->session};
    struct stats_row *row = &s->rows.at[place];

    sum_count(&row->count, &f->count);
    sum_cost(&row->costs, f);
    row->count.sessions += hash_map_add(&s->pairs, (struct str){(const char *)pair, sizeof pair});
}

/* Returns the property of a message, borrowed from it or from scratch, or STR_NONE. */
static struct str group_key(const struct stats *s, enum stats_by by, const struct message *m,
                            const struct facts *f, struct buf *scratch)
{
    buf_clear(scratch);
    switch (by) {
    case STATS_MODEL:
        return message_text(m, FIELD_MODEL, scratch);
    case STATS_PROVIDER:
        return message_text(m, FIELD_PROVIDER, scratch);
    case STATS_ROLE:
        return m->role_text;
    case STATS_SESSION:
        return m->session_id;
    case STATS_FROM:
        return message_tool(m, scratch);
    case STATS_REPO:
        return s->place;
    default:
        if (f->timed)
            add_time_key(scratch, by, f->day);
        return scratch->len > 0 ? buf_str(scratch) : STR_NONE;
    }
}

static void count_calls(struct stats *s, const struct message *m, const struct facts *f)
{
    struct json_iter it = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(8 * BUF_LINE);
    struct facts call = {.count = {.calls = 1}, .session = f->session};

    while (!it.object && json_next(&it)) {
        struct str name = json_text(json_get(it.value, "name"), &scratch);

        buf_set(&key, STR("["));
        json_add_string(&key, name);
        buf_add_byte(&key, ']');
        add_to_row(s, row_place(&s->rows, name.p ? buf_str(&key) : STR_NONE, 0), &call);
    }
    buf_release(&scratch);
    buf_release(&key);
}

static void count_by_key(struct stats *s, const struct message *m, const struct facts *f)
{
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(SIZE_MAX);
    bool known = false;

    for (size_t i = 0; i < s->rows.by_count; i++) {
        struct str part = group_key(s, s->rows.by[i], m, f, &scratch);

        buf_add_byte(&key, i > 0 ? ',' : '[');
        if (part.p)
            json_add_string(&key, part);
        else
            buf_add_c(&key, "null");
        known |= part.p != NULL;
    }
    buf_add_byte(&key, ']');
    add_to_row(s, row_place(&s->rows, known ? buf_str(&key) : STR_NONE, f->day), f);
    buf_release(&scratch);
    buf_release(&key);
}

static bool is_in_group(const struct stats *s, enum stats_by by)
{
    size_t i = 0;

    while (i < s->rows.by_count && s->rows.by[i] != by)
        i++;
    return i < s->rows.by_count;
}

static void stats_add(struct stats *s, const struct message *m)
{
    struct str session = m->session_id;
    struct facts f = {.session = hash_map_number(&s->sessions, &session)};
    bool of_answers = is_in_group(s, STATS_MODEL) || is_in_group(s, STATS_PROVIDER);
    int64_t us;

    f.count = count_message(s, m, f.session);
    s->total.sessions = s->sessions.count;
    if (s->prices && f.count.answers > 0)
        set_cost(s->prices, m, &f);
    sum_count(&s->total, &f.count);
    sum_cost(&s->total_costs, &f);
    if (time_parse_iso(m->timestamp, &us)) {
        s->first = s->timed && s->first < us ? s->first : us;
        s->last = s->timed && s->last > us ? s->last : us;
        s->timed = true;
        f.timed = time_local_day(us, &f.day);
    }
    if (is_in_group(s, STATS_TOOL))
        count_calls(s, m, &f);
    else if (s->rows.by_count > 0 && (!of_answers || m->role == ROLE_ASSISTANT))
        count_by_key(s, m, &f);
}

static void add_to_all(struct stats *s, const struct message *m)
{
    for (; s; s = s->also)
        stats_add(s, m);
}

/* Returns whether a history before this one had the message; `before` is the number of lines in
 * those. */
static bool is_of_earlier(struct stats *s, const struct message *m, size_t before)
{
    struct str key;
    uint64_t hash;

    if (!s->several)
        return false;
    hash = hash64(m->id, hash64(m->session_id, 0));
    key = (struct str){(const char *)&hash, sizeof hash};
    return hash_map_number(&s->lines, &key) < before;
}

/* ---- reading ---- */

/* The newest messages of the blocks that were read. */
struct newest {
    struct newest_line {
        int64_t time;
        off_t at;
        size_t n;
    } * at;
    size_t count, cap;
    size_t wanted;
    int64_t least; /* no message that is older is among them */
};

static int by_time_and_place(const void *a, const void *b)
{
    const struct newest_line *x = a, *y = b;

    return line_compare(x->time, x->at, y->time, y->at);
}

static void drop_older(struct newest *n)
{
    if (n->count == 0 || n->count < n->wanted)
        return;
    qsort(n->at, n->count, sizeof *n->at, by_time_and_place);
    n->count = n->wanted;
    n->least = n->at[n->count - 1].time;
}

static int latest_first(const void *a, const void *b)
{
    const struct time_block *x = a, *y = b;

    return (x->latest < y->latest) - (x->latest > y->latest);
}

/* Adds the messages of a part of the history that the filter lets through. Returns 0 or -1. */
static int find_in(struct newest *n, struct scan *part, struct line_clock clock,
                   const struct filter *f, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct line l;
    int result;

    while ((result = scan_message(part, &m, &l, e)) > 0) {
        int64_t time = line_clock_time(&clock, m.timestamp);

        if (message_is_title(&m) || !filter_match(f, &m))
            continue;
        n->at = mem_grow(n->at, &n->cap, n->count + 1, sizeof *n->at);
        n->at[n->count++] = (struct newest_line){time, l.at, l.text.n};
    }
    message_release(&m);
    return result;
}

/* Finds the newest messages: the blocks with the latest ones are read first. Returns 0 or -1. */
static int find_newest(struct newest *n, const struct history *h, struct scan *s,
                       const struct filter *f, struct err *e)
{
    struct time_blocks blocks;
    int result = time_blocks_load(&blocks, h, s, e);

    if (result == 0 && blocks.count > 0)
        qsort(blocks.at, blocks.count, sizeof *blocks.at, latest_first);
    for (size_t i = 0; result == 0 && i < blocks.count && blocks.at[i].latest >= n->least; i++) {
        struct scan part;

        scan_share(&part, s, blocks.at[i].from, blocks.at[i].to);
        result = find_in(n, &part, line_clock_at(h->now, blocks.at[i].before), f, e);
        s->bad += part.bad;
        scan_close(&part);
        if (n->least == LINE_OLDEST || n->count / 2 >= n->wanted)
            drop_older(n);
    }
    if (result == 0)
        time_blocks_release(&blocks);
    drop_older(n);
    return result;
}

static int add_newest(struct stats *s, const struct history *h, struct scan *scan,
                      const struct filter *f, size_t wanted, struct err *e)
{
    struct newest n = {.wanted = wanted, .least = LINE_OLDEST};
    size_t before = s->lines.count;
    struct message m = MESSAGE_INIT;
    struct buf line = BUF_INIT(BUF_LINE);
    int result = find_newest(&n, h, scan, f, e);

    for (size_t i = 0; i < n.count && result == 0; i++) {
        result = scan_again(scan, n.at[i].at, n.at[i].n, &line, e);
        if (result == 0 && message_parse(&m, buf_str(&line)) && !is_of_earlier(s, &m, before))
            add_to_all(s, &m);
    }
    free(n.at);
    buf_release(&line);
    message_release(&m);
    return result;
}

int stats_scan(struct stats *s, const struct history *h, const struct filter *f, size_t newest,
               uint64_t *bad, struct err *e)
{
    struct message m = MESSAGE_INIT;
    size_t before = s->lines.count;
    struct scan scan;
    int result = 0;

    if (scan_open(&scan, h->dir_fd, h->path, e) < 0)
        return -1;
    scan.work = h->work;
    scan.task = STATS_TASK;
    if (newest < SIZE_MAX)
        result = add_newest(s, h, &scan, f, newest, e);
    else
        while ((result = scan_message(&scan, &m, NULL, e)) > 0)
            if (!message_is_title(&m) && filter_match(f, &m) && !is_of_earlier(s, &m, before))
                add_to_all(s, &m);
    if (bad)
        *bad += scan.bad;
    message_release(&m);
    scan_close(&scan);
    return result;
}

/* ---- order ---- */

static uint64_t row_size(const struct stats_row *row)
{
    /* A row of a tool has calls and no messages. */
    return row->count.messages > 0 ? row->count.messages : row->count.calls;
}

static int by_size(const void *a, const void *b)
{
    const struct stats_row *x = a, *y = b;

    if (!x->key || !y->key)
        return !x->key - !y->key;
    if (row_size(x) != row_size(y))
        return row_size(x) < row_size(y) ? 1 : -1;
    return str_compare((struct str){x->key, x->len}, (struct str){y->key, y->len});
}

static struct amount sum_at(const struct stats_row *row, size_t currency)
{
    return currency < row->costs.count ? stats_cost_sum(&row->costs.at[currency])
                                       : (struct amount){0, 0};
}

/* Amounts of different currencies cannot be compared, so each currency counts before the next. */
static int by_cost(const void *a, const void *b)
{
    const struct stats_row *x = a, *y = b;

    if (!x->key || !y->key)
        return !x->key - !y->key;
    for (size_t i = PRICES_REPORTED; i < x->costs.count || i < y->costs.count; i++) {
        int order = amount_compare(sum_at(y, i), sum_at(x, i));

        if (order)
            return order;
    }
    return by_size(a, b);
}

static int by_time(const void *a, const void *b)
{
    const struct stats_row *x = a, *y = b;

    if (!x->key || !y->key)
        return !x->key - !y->key;
    return x->day != y->day ? (x->day > y->day ? 1 : -1) : by_cost(a, b);
}

/* Removes the rows of messages that are no answers. */
static void drop_rows_without_answers(struct stats_table *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->count; i++)
        if (t->at[i].count.answers > 0)
            t->at[kept++] = t->at[i];
        else
            free(t->at[i].key);
    t->count = kept;
}

void stats_sort(struct stats *s)
{
    if (s->prices)
        drop_rows_without_answers(&s->rows);
    if (s->rows.count > 0)
        qsort(s->rows.at, s->rows.count, sizeof *s->rows.at,
              s->rows.by_count > 0 && stats_is_time(s->rows.by[0]) ? by_time
              : s->prices                                          ? by_cost
                                                                   : by_size);
}

/* ---- memory ---- */

void stats_init(struct stats *s)
{
    *s = (struct stats){.rows = {.unknown = NONE}};
}

bool stats_group(struct stats *s, enum stats_by by)
{
    if (is_in_group(s, by))
        return false;
    s->rows.by[s->rows.by_count++] = by;
    return true;
}

void stats_release(struct stats *s)
{
    for (size_t i = 0; i < s->rows.count; i++) {
        free(s->rows.at[i].key);
        free(s->rows.at[i].costs.at);
    }
    free(s->rows.at);
    hash_map_release(&s->rows.places);
    free(s->total_costs.at);
    hash_map_release(&s->sessions);
    hash_map_release(&s->pairs);
    hash_map_release(&s->responses);
    free(s->response_session);
    hash_map_release(&s->lines);
    *s = (struct stats){0};
}
