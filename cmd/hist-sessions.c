/* hist-sessions - list sessions, the last used first. */
#include <stdint.h>

#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"

#define LIMIT_ON_TERMINAL 50

enum { KEY_ID = OPT_LONG };

static const struct opt options[] = {
    CHOOSE_LIMIT("list at most N sessions, or all (50 on a terminal, else all)"),
    CHOOSE_SESSIONS,
    {KEY_ID, "id", OPT_TEXT, "TEXT", "list only sessions whose id TEXT begins, or else ends"},
    CHOOSE_HISTORIES,
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-sessions", "list sessions, the last used first", "",
                                       OPT_FLAG, options};

/* Lists at most `limit` sessions of a history. Returns how many were listed. */
static size_t list_sessions(struct out *out, struct choice *c, const struct history *h,
                            const char *id, size_t limit)
{
    struct list_form form = {.json = c->common.json, .history = choose_many(c) ? h->path : NULL};
    struct session_list list;
    struct err e = ERR_INIT;
    size_t count;

    if (choose_list(c, &list, h, id, limit, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < list.count; i++)
        list_session(out, &list.at[i], &form);
    start_report_bad(h, list.bad_lines, c->common.quiet);
    count = list.count;
    session_list_release(&list);
    return count;
}

int main(int argc, char **argv)
{
    struct choice choice = {0};
    struct opt_parser args;
    struct out out;
    const char *id = NULL;
    char *value;
    size_t limit;
    int status;

    opt_start(&args, &program, argc, argv);
    while (choose_next(&choice, &args, &value) != 0)
        id = value;
    choose_open(&choice, CHOOSE_ONE, NULL);
    out_start(&out, args.common.color);
    limit = choice.limit > 0 ? choice.limit : out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    for (size_t i = 0; i < choice.count && limit > 0; i++)
        limit -= list_sessions(&out, &choice, &choice.at[i], id, limit);
    status = choose_report(&choice);

    choose_release(&choice);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
