/* hist-load - make a past session current, so that the next chat continues it. */
#include <stdint.h>

#include "cli/die.h"
#include "cli/term.h"
#include "front/sessions.h"
#include "front/show.h"
#include "front/start.h"

static const struct opt options[] = {
    {'n', "last", OPT_NUMBER, "N", "print only the last N messages"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-load", "make a past session current and print it",
                                       "[SESSION|-]", OPT_SESSION, options};

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_args sessions;
    struct show show = {.last = SIZE_MAX};
    struct out out;
    char *value;
    char **names;
    size_t count, messages;
    int status = 0;

    opt_start(&args, &program, argc, argv);
    while (opt_next(&args, &value) != 0)
        show.last = opt_count("--last", value);
    names = opt_operands(&args, &count);
    if (count > 1)
        die_usage("one session is expected");
    show.json = args.common.json;
    start_history(&config, &history, &args.common);
    out_start(&out, args.common.color);

    session_args_load_named(&sessions, &history, names, count);
    if (sessions.count > 1)
        die_usage("one session is expected, %zu were given", sessions.count);
    if (sessions.count == 0 && sessions.status == 0)
        warnf("no session was given");
    if (sessions.count == 0 || sessions.status != 0) {
        status = exit_code(ERR_ABSENT);
        goto out;
    }
    start_make_current(&config, &history, str_of(sessions.ids[0]), args.common.quiet);
    messages = show_session(&out, &history, sessions.ids[0], &show);
    start_report_bad(&history, show.bad_lines, args.common.quiet);
    if (!args.common.quiet)
        hintf(false, "session '%s' is current: %zu message%s", sessions.ids[0], messages,
              messages == 1 ? "" : "s");

out:
    session_args_release(&sessions);
    history_release(&history);
    config_release(&config);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
