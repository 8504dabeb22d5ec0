/* hist-show - print the messages of sessions. */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"
#include "chathist/terminal/markdown_out.h"

static const struct opt options[] = {
    CHOOSE_LIMIT("print only the last N messages of each"),
    SHOW_OPTIONS,
    {SHOW_AROUND, "around", OPT_TEXT, "MESSAGE",
     "with --json: the messages around the one with this id"},
    CHOOSE_MESSAGES("only messages of this session; may be repeated"),
    CHOOSE_HISTORIES,
    CHOOSE_REMOTE,
    CHOOSE_PAGER,
    BRIEF_OPTIONS,
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-show", "print the messages of sessions",
                                       "[SESSION|-]...", OPT_SESSION, options};

int main(int argc, char **argv)
{
    struct choice choice = {0};
    struct opt_parser args;
    struct show show = {.print = markdown_print};
    struct out out;
    uint64_t *bad;
    char *value;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0)
        show_read_option(&show, key, value);
    show_check_options(&show, &choice);
    if (show.around && choice.names.count > 1)
        die_usage("--around needs one session");
    choose_open(&choice, &(struct choose_want){.reach = CHOOSE_ANYWHERE, .session = "current"});
    choose_tell_homes(&choice);
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);

    bad = mem_zalloc(choice.histories.count * sizeof *bad);
    for (size_t i = 0; i < choice.histories.count; i++) {
        const struct history *h = &choice.histories.at[i];

        show.bad_lines = 0;
        if (choose_in(&choice, h))
            for (size_t k = 0; k < choice.filter.sessions.count; k++)
                show_session(&out, h, choice.filter.sessions.at[k], &show);
        bad[i] = show.bad_lines;
    }
    show_end(&out, &show, choose_status(&choice) == 0);
    for (size_t i = 0; i < choice.histories.count; i++)
        start_report_bad(&choice.histories.at[i], bad[i], args.common.quiet);
    status = choose_report(&choice);

    free(bad);
    choose_release(&choice);
    return out_close(&out, status);
}
