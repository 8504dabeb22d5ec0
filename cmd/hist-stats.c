/* hist-stats - count messages, tokens and costs. */
#include <stdint.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/start.h"
#include "chathist/cli/stats_output.h"

enum { KEY_BY = OPT_LONG, KEY_NEWEST, KEY_COST, KEY_PRICES };

/* In the order of enum stats_by. */
#define GROUPS "day|week|month|model|provider|role|tool|session|from|repo"

static const struct opt options[] = {
    {KEY_BY, "by", OPT_CHOICES, GROUPS, "count by these, separated by commas (day)"},
    {KEY_COST, "cost", OPT_FLAG, NULL, "what the answers cost, instead of messages and tokens"},
    {KEY_PRICES, "prices", OPT_FILE, "FILE",
     "like --cost, with the prices of this file, which may be LiteLLM's"},
    CHOOSE_MESSAGES("only messages of this session; may be repeated"),
    {KEY_NEWEST, "newest", OPT_NUMBER, "N", "only the newest N of these messages, or all"},
    CHOOSE_LIMIT("print at most N rows, the newest or the largest, or all"),
    CHOOSE_HISTORIES,
    CHOOSE_PAGER,
    {OPT_JSON, "json", OPT_FLAG, NULL, "print one JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-stats", "count messages and tokens", "", OPT_FLAG,
                                       options};

static void count_history(struct stats *s, struct choice *c, const struct history *h, size_t newest)
{
    struct err e = ERR_INIT;
    struct buf name = BUF_INIT(BUF_SMALL);
    uint64_t bad = 0;

    history_name_add(&name, h);
    s->place = buf_str(&name);
    if (choose_in(c, h) && stats_scan(s, h, &c->filter, newest, &bad, &e) < 0)
        die_err(&e);
    start_report_bad(h, bad, c->common.quiet);
    buf_release(&name);
}

static uint64_t size_of(const struct histories *all)
{
    uint64_t sum = 0;
    struct stat st;

    for (size_t i = 0; i < all->count; i++)
        if (file_stat(all->at[i].dir_fd, all->at[i].path, &st) == 0)
            sum += (uint64_t)st.st_size;
    return sum;
}

/* Groups by the words, which may not be repeated. */
static void group(struct stats *s, const char *words, bool cost)
{
    bool by_tool = false;

    for (struct str rest = str_of(words); rest.p;) {
        enum stats_by by = (enum stats_by)opt_choice(GROUPS, str_cut(&rest, ','));

        if (!stats_group(s, by))
            die_usage("--by has '%s' twice", stats_by_name(by));
        by_tool |= by == STATS_TOOL;
    }
    if (by_tool && s->rows.by_count > 1)
        die_usage("--by tool counts calls: it cannot be combined with other keys");
    if (cost && by_tool)
        die_usage("--cost counts answers, and --by tool counts calls");
}

int main(int argc, char **argv)
{
    struct prices prices = PRICES_INIT;
    const char *file = NULL, *by = "day";
    bool cost = false;
    struct choice choice = {0};
    struct opt_parser args;
    struct stats stats;
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    size_t newest = SIZE_MAX;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        if (key == KEY_BY)
            by = value;
        else if (key == KEY_COST)
            cost = true;
        else if (key == KEY_PRICES)
            cost = (file = value) != NULL;
        else
            newest = opt_count("--newest", value);
    }
    stats_init(&stats);
    group(&stats, by, cost);
    choose_open(&choice, &(struct choose_want){.reach = CHOOSE_BESIDE});
    if (cost && config_prices(&choice.config, file, &prices, &e) < 0)
        die_err(&e);
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);

    progress_parts(STATS_TASK, size_of(&choice.histories));
    stats.several = choice.histories.count > 1;
    stats.prices = cost ? &prices : NULL;
    for (size_t i = 0; i < choice.histories.count; i++)
        count_history(&stats, &choice, &choice.histories.at[i], newest);
    status = choose_report(&choice);
    if (stats.total.messages == 0)
        choose_hint_others(&choice);
    stats_sort(&stats);
    if (stats.total.messages > 0 || status == 0)
        stats_print(&out, &stats, &choice);

    stats_release(&stats);
    prices_release(&prices);
    choose_release(&choice);
    return out_close(&out, status);
}
