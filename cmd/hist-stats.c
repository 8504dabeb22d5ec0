/* hist-stats - count messages and tokens. */
#include <stdint.h>

#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"
#include "chathist/cli/stats_output.h"

enum { KEY_BY = OPT_LONG, KEY_NEWEST };

static const struct opt options[] = {
    {KEY_BY, "by", OPT_GROUP, "WHAT",
     "day, week, month, model, provider, role, tool or session (day)"},
    CHOOSE_MESSAGES,
    {KEY_NEWEST, "newest", OPT_NUMBER, "N", "only the newest N of these messages, or all"},
    CHOOSE_LIMIT("print at most N rows, the newest or the largest, or all"),
    CHOOSE_HISTORIES,
    CHOOSE_PAGER,
    {OPT_JSON, "json", OPT_FLAG, NULL, "print one JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-stats", "count messages and tokens", "", OPT_FLAG,
                                       options};

static enum stats_by parse_by(const char *value)
{
    struct nearest meant = {.typed = value};

    for (int by = 0; by < STATS_BY_COUNT; by++) {
        nearest_offer(&meant, stats_by_name((enum stats_by)by));
        if (str_eq_c(str_of(value), stats_by_name((enum stats_by)by)))
            return (enum stats_by)by;
    }
    if (meant.name)
        die_usage("bad value '%s' for --by: did you mean %s?", value, meant.name);
    die_usage("bad value '%s' for --by: day, week, month, model, provider, role, tool or session "
              "is expected",
              value);
}

static void count_history(struct stats *s, struct choice *c, const struct history *h, size_t newest)
{
    struct err e = ERR_INIT;
    uint64_t bad = 0;

    if (choose_in(c, h) && stats_scan(s, h->dir_fd, h->path, &c->filter, newest, &bad, &e) < 0)
        die_err(&e);
    start_report_bad(h, bad, c->common.quiet);
}

int main(int argc, char **argv)
{
    enum stats_by by = STATS_DAY;
    struct choice choice = {0};
    struct opt_parser args;
    struct stats stats;
    struct out out;
    char *value;
    size_t newest = SIZE_MAX;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        if (key == KEY_BY)
            by = parse_by(value);
        else
            newest = opt_count("--newest", value);
    }
    choose_open(&choice, CHOOSE_FOREIGN, NULL);
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);

    stats_init(&stats, by);
    for (size_t i = 0; i < choice.count; i++)
        count_history(&stats, &choice, &choice.at[i], newest);
    status = choose_report(&choice);
    stats_sort(&stats);
    if (stats.total.messages > 0 || status == 0)
        stats_print(&out, &stats, &choice);

    stats_release(&stats);
    choose_release(&choice);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
