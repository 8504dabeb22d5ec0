#include "chathist/cli/start.h"

#include <inttypes.h>
#include <string.h>

#include "chathist/cli/diagnostics.h"

struct locate_from start_from(const struct config *c)
{
    struct err e = ERR_INIT;
    bool copies = true;

    if (config_switch(c, SETTING_HISTORY_COPY, &copies, &e) < 0)
        die_err(&e);
    return (struct locate_from){.cwd = c->cwd,
                                .data_home = c->data_home,
                                .state_home = c->state_home,
                                .now = c->now,
                                .git_dir = config_env("GIT_DIR"),
                                .git_common_dir = config_env("GIT_COMMON_DIR"),
                                .no_copies = !copies};
}

void start_report_bad(const struct history *h, uint64_t bad_lines, bool quiet)
{
    if (bad_lines > 0 && !quiet)
        warnf("skipped %" PRIu64 " bad line%s in '%s'", bad_lines, bad_lines == 1 ? "" : "s",
              h->path);
}

void start_report_entries(const char *file, size_t bad, bool too_deep, bool quiet)
{
    const char *ending = bad == 1 ? "y" : "ies";
    const char *why = too_deep ? ": nested too deeply" : "";

    if (bad == 0 || quiet)
        return;
    if (strcmp(file, "-") == 0)
        warnf("skipped %zu bad entr%s on standard input%s", bad, ending, why);
    else
        warnf("skipped %zu bad entr%s in '%s'%s", bad, ending, file, why);
}
