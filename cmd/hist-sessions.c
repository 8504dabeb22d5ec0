/* hist-sessions - list sessions, the last used first. */
#include <stdint.h>

#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"

enum { KEY_ID = OPT_LONG, KEY_SINCE, KEY_UNTIL };

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "list at most N sessions, or all (50 on a terminal, else all)"},
    {KEY_SINCE, "since", OPT_TIME, "TIME", "only sessions used then or later: a date, 7d, ..."},
    {KEY_UNTIL, "until", OPT_TIME, "TIME", "only sessions used then or earlier"},
    {KEY_ID, "id", OPT_TEXT, "TEXT", "list only sessions whose id TEXT begins, or else ends"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

#define LIMIT_ON_TERMINAL 50

/* Selects the sessions to list. */
struct chosen {
    const char *id; /* NULL: any */
    int64_t since, until;
    size_t limit; /* 0: the default */
};

static void parse(struct opt_parser *args, struct chosen *c)
{
    int64_t now = time_now(), other;
    char *value;
    size_t operands;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        if (key == KEY_ID)
            c->id = value;
        else if (key == KEY_SINCE)
            opt_when("--since", value, now, &c->since, &other);
        else if (key == KEY_UNTIL)
            opt_when("--until", value, now, &other, &c->until);
        else
            c->limit = opt_count("--limit", value);
    }
    if (opt_operands(args, &operands) && operands > 0)
        die_usage("no argument is expected");
}

static bool has_bounds(const struct chosen *c)
{
    return c->since != INT64_MIN || c->until != INT64_MAX;
}

/* A session whose time cannot be read is within no bounds. */
static bool is_chosen(const struct chosen *c, const struct session *s)
{
    int64_t used;

    if (!has_bounds(c))
        return true;
    return time_parse_iso((struct str){s->last_used, s->last_used_len}, &used) &&
           used >= c->since && used <= c->until;
}

static void load(struct session_list *list, const struct history *h, const struct chosen *c)
{
    size_t limit = has_bounds(c) ? SIZE_MAX : c->limit;
    struct err e = ERR_INIT;

    if ((c->id ? session_list_named(list, h, str_of(c->id), limit, &e)
               : session_list_newest(list, h, limit, &e)) < 0)
        die_err(&e);
}

int main(int argc, char **argv)
{
    struct chosen chosen = {.since = INT64_MIN, .until = INT64_MAX};
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_list list;
    struct out out;
    size_t printed = 0;

    opt_start(&args, &program, argc, argv);
    parse(&args, &chosen);
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);
    if (chosen.limit == 0)
        chosen.limit = out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    load(&list, &history, &chosen);
    for (size_t i = 0; i < list.count && printed < chosen.limit; i++)
        if (is_chosen(&chosen, &list.at[i])) {
            list_session(&out, &list.at[i], args.common.json);
            printed++;
        }
    start_report_bad(&history, list.bad_lines, args.common.quiet);

    session_list_release(&list);
    history_release(&history);
    config_release(&config);
    return out_close(&out, 0, exit_code(ERR_FAILURE));
}
