/* hist-sessions - list sessions, the last used first. */
#include "cli/die.h"
#include "cli/term.h"
#include "front/listing.h"
#include "front/start.h"

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "list at most N sessions (50), or all"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

#define LIMIT 50

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_list list;
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    size_t limit = LIMIT, operands;

    opt_start(&args, &program, argc, argv);
    while (opt_next(&args, &value) != 0)
        limit = opt_count("--limit", value);
    if (opt_operands(&args, &operands) && operands > 0)
        die_usage("no argument is expected");
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);

    if (session_list_load(&list, history.path, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < list.count && i < limit; i++)
        list_session(&out, &list.at[i], args.common.json);
    start_report_bad(&history, list.bad_lines, args.common.quiet);

    session_list_release(&list);
    history_release(&history);
    config_release(&config);
    return out_close(&out, 0, exit_code(ERR_FAILURE));
}
