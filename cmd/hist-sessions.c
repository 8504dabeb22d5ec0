/* hist-sessions - list sessions, the last used first. */
#include <stdint.h>

#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/start.h"

enum { KEY_ID = OPT_LONG };

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "list at most N sessions, or all (50 on a terminal, else all)"},
    {KEY_ID, "id", OPT_TEXT, "TEXT", "list only sessions whose id TEXT begins, or else ends"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

#define LIMIT_ON_TERMINAL 50

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_list list;
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    const char *id = NULL;
    size_t limit = 0, operands;
    int key, result;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0) {
        if (key == KEY_ID)
            id = value;
        else
            limit = opt_count("--limit", value);
    }
    if (opt_operands(&args, &operands) && operands > 0)
        die_usage("no argument is expected");
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);

    if (limit == 0)
        limit = out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    if (id)
        result = session_list_named(&list, &history, str_of(id), limit, &e);
    else
        result = session_list_newest(&list, &history, limit, &e);
    if (result < 0)
        die_err(&e);
    for (size_t i = 0; i < list.count; i++)
        list_session(&out, &list.at[i], args.common.json);
    start_report_bad(&history, list.bad_lines, args.common.quiet);

    session_list_release(&list);
    history_release(&history);
    config_release(&config);
    return out_close(&out, 0, exit_code(ERR_FAILURE));
}
