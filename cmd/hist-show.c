/* hist-show - print the messages of sessions. */
#include <stdint.h>

#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"

static const struct opt options[] = {
    CHOOSE_LIMIT("print only the last N messages of each"),
    SHOW_OPTIONS,
    CHOOSE_MESSAGES,
    CHOOSE_HISTORIES,
    CHOOSE_PAGER,
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-show", "print the messages of sessions",
                                       "[SESSION|-]...", OPT_SESSION, options};

static void show_history(struct out *out, struct choice *c, const struct history *h, struct show *s)
{
    if (!choose_in(c, h))
        return;
    s->bad_lines = 0;
    for (size_t i = 0; i < c->filter.sessions.count; i++)
        show_session(out, h, c->filter.sessions.at[i], s);
    start_report_bad(h, s->bad_lines, c->common.quiet);
}

int main(int argc, char **argv)
{
    struct choice choice = {0};
    struct opt_parser args;
    struct show show = {0};
    struct out out;
    char *value;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0)
        show_take(&show, key, value);
    show_settle(&show, &choice);
    choose_open(&choice, CHOOSE_ONE, "current");
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);

    for (size_t i = 0; i < choice.count; i++)
        show_history(&out, &choice, &choice.at[i], &show);
    status = choose_report(&choice);
    show_end(&out, &show, status == 0);

    choose_release(&choice);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
