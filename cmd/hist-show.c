/* hist-show - print the messages of sessions. */
#include <stdint.h>

#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"

enum { KEY_RAW = OPT_LONG, KEY_NO_PAGER };

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "print only the last N messages of each"},
    SHOW_FORMAT_OPTION,
    {'r', "role", OPT_ROLE, "ROLE", "print only messages of this role; may be repeated"},
    {KEY_RAW, "raw", OPT_FLAG, NULL, "print every line, replaced and reset ones too"},
    PAGER_OPTION(KEY_NO_PAGER),
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-show", "print the messages of sessions",
                                       "[SESSION|-]...", OPT_SESSION, options};

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
    size_t count;
    bool paged = true, document;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0) {
        switch (key) {
        case 'n':
            show.last = opt_count("--limit", value);
            break;
        case 'r':
            filter_add(&show.filter.roles, str_of(value));
            break;
        case 'f':
            show_set_format(&show, value);
            break;
        case KEY_RAW:
            show.raw = true;
            break;
        case KEY_NO_PAGER:
            paged = false;
            break;
        }
    }
    names = opt_operands(&args, &count);
    show_settle(&show, args.common.json);
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);
    if (paged)
        out_page(&out);

    session_args_load(&sessions, &history, names, count, "current");
    document = sessions.count > 0 || sessions.status == 0;
    if (document)
        show_begin(&out, &show);
    for (size_t i = 0; i < sessions.count; i++)
        show_session(&out, &history, sessions.ids[i], &show);
    if (document)
        show_end(&show);
    out_page_end(&out);
    start_report_bad(&history, show.bad_lines, args.common.quiet);

    filter_release(&show.filter);
    session_args_release(&sessions);
    history_release(&history);
    config_release(&config);
    return out_close(&out, sessions.status, exit_code(ERR_FAILURE));
}
