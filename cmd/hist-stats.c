/* hist-stats - count messages and tokens. */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/output.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/start.h"
#include "chathist/cli/stats_output.h"

enum { KEY_BY = OPT_LONG, KEY_SINCE, KEY_UNTIL, KEY_NEWEST, KEY_ALL, KEY_NO_PAGER };

static const struct opt options[] = {
    {KEY_BY, "by", OPT_GROUP, "WHAT",
     "day, week, month, model, provider, role, tool or session (day)"},
    {'s', "session", OPT_SESSION, "SESSION", "only messages of this session; may be repeated"},
    {KEY_SINCE, "since", OPT_TIME, "TIME", "only messages of this time or later: a date, 7d, ..."},
    {KEY_UNTIL, "until", OPT_TIME, "TIME", "only messages of this time or earlier"},
    {KEY_NEWEST, "newest", OPT_NUMBER, "N", "only the newest N of these messages, or all"},
    {'n', "limit", OPT_NUMBER, "N", "print at most N rows, the newest or the largest, or all"},
    {KEY_ALL, "all", OPT_FLAG, NULL, "count every history that is registered as yours"},
    PAGER_OPTION(KEY_NO_PAGER),
    {OPT_HISTORY, "history", OPT_FILE, "FILE", "count this history file; may be repeated"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print one JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-stats", "count messages and tokens", "", OPT_FLAG,
                                       options};

struct list {
    char **at;
    size_t count, cap;
};

struct wish {
    struct stats_form print;
    struct filter filter;
    struct list names, files;
    enum stats_by by;
    size_t newest;
    bool all, unpaged;
};

static void push(struct list *l, char *value)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count++] = value;
}

static enum stats_by parse_by(const char *value)
{
    for (int by = 0; by < STATS_BY_COUNT; by++)
        if (str_eq_c(str_of(value), stats_by_name((enum stats_by)by)))
            return (enum stats_by)by;
    die_usage("bad value '%s' for --by: day, week, month, model, provider, role, tool or session "
              "is expected",
              value);
}

static void take(struct wish *w, int key, char *value)
{
    int64_t other, now = time_now();

    switch (key) {
    case KEY_BY:
        w->by = parse_by(value);
        break;
    case 's':
        push(&w->names, value);
        break;
    case KEY_SINCE:
        opt_when("--since", value, now, &w->filter.since, &other);
        w->filter.has_since = true;
        break;
    case KEY_UNTIL:
        opt_when("--until", value, now, &other, &w->filter.until);
        w->filter.has_until = true;
        break;
    case KEY_NEWEST:
        w->newest = opt_count("--newest", value);
        break;
    case 'n':
        w->print.limit = opt_count("--limit", value);
        break;
    case KEY_ALL:
        w->all = true;
        break;
    case KEY_NO_PAGER:
        w->unpaged = true;
        break;
    case OPT_HISTORY:
        push(&w->files, value);
        break;
    }
}

/* Each history is searched for a named session. */
static void count_history(struct stats *s, struct wish *w, const struct history *h,
                          struct session_names *names, bool quiet)
{
    struct session_args sessions = {0};
    struct err e = ERR_INIT;
    uint64_t bad = 0;

    session_args_resolve(&sessions, h, names);
    filter_clear(&w->filter.sessions);
    for (size_t i = 0; i < sessions.count; i++)
        filter_add(&w->filter.sessions, sessions.ids[i]);
    if ((names->count == 0 || sessions.count > 0) &&
        stats_scan(s, h->dir_fd, h->path, &w->filter, w->newest, &bad, &e) < 0)
        die_err(&e);
    start_report_bad(h, bad, quiet);
    session_args_release(&sessions);
}

int main(int argc, char **argv)
{
    struct wish wish = {.print = {.limit = SIZE_MAX, .now = time_now()}, .newest = SIZE_MAX};
    struct opt_parser args;
    struct histories histories;
    struct session_names names;
    struct stats stats;
    struct out out;
    char *value;
    size_t operands;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        take(&wish, key, value);
    if (opt_operands(&args, &operands) && operands > 0)
        die_usage("no argument is expected");
    wish.print.json = args.common.json;
    if (wish.filter.has_until && wish.filter.until < wish.print.now)
        wish.print.now = wish.filter.until;
    histories_open(&histories, wish.files.at, wish.files.count, wish.all, args.common.quiet);
    out_start(&out, args.common.color);
    if (!wish.unpaged)
        out_page(&out);

    session_names_read(&names, wish.names.at, wish.names.count);
    stats_init(&stats, wish.by);
    for (size_t i = 0; i < histories.count; i++)
        count_history(&stats, &wish, &histories.at[i], &names, args.common.quiet);
    status = session_names_report(&names);
    stats_sort(&stats);
    if (stats.total.messages > 0 || status == 0)
        stats_print(&out, &stats, &wish.print);

    stats_release(&stats);
    session_names_release(&names);
    histories_release(&histories);
    filter_release(&wish.filter);
    free(wish.names.at);
    free(wish.files.at);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
