/* hist-stats - count messages, tokens and costs. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/start.h"
#include "chathist/cli/stats_output.h"
#include "chathist/cli/stats_overview.h"

enum { KEY_BY = OPT_LONG, KEY_NEWEST, KEY_COST, KEY_PRICES };

/* In the order of enum stats_by. */
#define GROUPS "day|week|month|model|provider|role|tool|session|from|repo"

static const struct opt options[] = {
    {KEY_BY, "by", OPT_CHOICES, GROUPS,
     "count by these, separated by commas (day, on a terminal also model and tool)"},
    {'f', "format", OPT_CHOICE, "text|html",
     "html: a page with plots by day, model, tool and cost"},
    {'o', "output", OPT_FILE, "FILE", "write the page to this file"},
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

/* The options of the command line. */
struct asked {
    const char *by, *output, *prices_file;
    bool cost, html;
    size_t newest;
};

static void parse_options(struct asked *w, struct choice *c, struct opt_parser *args)
{
    char *value;
    int key;

    *w = (struct asked){.newest = SIZE_MAX};
    while ((key = choose_next(c, args, &value)) != 0) {
        if (key == KEY_BY)
            w->by = value;
        else if (key == KEY_COST)
            w->cost = true;
        else if (key == KEY_PRICES)
            w->prices_file = value;
        else if (key == 'f')
            w->html = strcmp(value, "html") == 0;
        else if (key == 'o')
            w->output = strcmp(value, "-") == 0 ? NULL : value;
        else
            w->newest = opt_count("--newest", value);
    }
    if (w->html && (w->by || w->cost || c->common.json))
        die_usage("a page has all plots: -f html goes with none of --by, --cost and --json");
    if (w->output && !w->html)
        die_usage("--output is for a page: give -f html");
}

/* Prints the page, or writes it to the file. */
static void put_page(struct out *out, const struct stats_overview *v, const struct choice *c,
                     const char *file)
{
    struct buf html = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;

    choose_check_output(c, "--output", file);
    stats_overview_add_html(&html, v);
    if (!file)
        out_raw(out, buf_str(&html));
    else if (file_replace(file, buf_str(&html), &e) < 0)
        die_err(&e);
    buf_release(&html);
}

int main(int argc, char **argv)
{
    struct prices prices = PRICES_INIT;
    struct stats_overview view;
    struct choice choice = {0};
    struct opt_parser args;
    struct err e = ERR_INIT;
    struct asked asked;
    struct out out;
    bool overview, costs;
    int status;

    opt_start(&args, &program, argc, argv);
    parse_options(&asked, &choice, &args);
    out_start(&out, args.common.color);
    costs = asked.cost || asked.prices_file;
    overview = asked.html || (out.terminal && !asked.by && !costs && !args.common.json);
    stats_init(&view.days);
    stats_init(&view.models);
    stats_init(&view.tools);
    group(&view.days, asked.by ? asked.by : "day", costs && !overview);
    if (overview) {
        group(&view.models, "model", false);
        group(&view.tools, "tool", false);
        view.days.also = &view.models;
        view.models.also = &view.tools;
    }
    choose_open(&choice, &(struct choose_want){.reach = CHOOSE_BESIDE});
    if ((overview || costs) && config_prices(&choice.config, asked.prices_file, &prices, &e) < 0)
        die_err(&e);
    if (!choice.unpaged && !asked.html)
        out_page(&out);

    progress_parts(STATS_TASK, size_of(&choice.histories));
    view.days.several = choice.histories.count > 1;
    view.limit = choice.limit;
    if (overview)
        view.models.prices = &prices;
    else if (costs)
        view.days.prices = &prices;
    for (size_t i = 0; i < choice.histories.count; i++)
        count_history(&view.days, &choice, &choice.histories.at[i], asked.newest);
    status = choose_report(&choice);
    if (view.days.total.messages == 0)
        choose_hint_others(&choice);
    stats_sort(&view.days);
    stats_sort(&view.models);
    stats_sort(&view.tools);
    if (asked.html)
        put_page(&out, &view, &choice, asked.output);
    else if (overview && (view.days.total.messages > 0 || status == 0))
        stats_overview_print(&out, &view);
    else if (view.days.total.messages > 0 || status == 0)
        stats_print(&out, &view.days, &choice);

    stats_release(&view.days);
    stats_release(&view.models);
    stats_release(&view.tools);
    prices_release(&prices);
    choose_release(&choice);
    return out_close(&out, status);
}
