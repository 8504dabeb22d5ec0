/* hist-search - search the content of messages. */
#include <stdint.h>

#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/search_args.h"
#include "chathist/cli/search_run.h"
#include "chathist/cli/sessions.h"

#define LIMIT_ON_TERMINAL 100

int main(int argc, char **argv)
{
    struct search_args args;
    struct histories histories;
    struct search_run run = {.args = &args};
    int status;

    search_args_parse(&args, argc, argv);
    histories_open(&histories, args.files.at, args.files.count, args.all, args.common.quiet);
    session_names_read(&run.names, args.names.at, args.names.count);
    run.many = args.all || histories.count > 1;
    out_start(&run.out, args.common.color);
    if (args.limit == 0)
        args.limit = run.out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    if (!args.unpaged)
        out_page(&run.out);
    for (size_t i = 0; i < histories.count; i++)
        search_run_history(&run, &histories.at[i]);
    status = search_run_finish(&run);

    session_names_release(&run.names);
    histories_release(&histories);
    search_args_release(&args);
    return out_close(&run.out, status, exit_code(ERR_FAILURE));
}
