#include "front/start.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "cli/die.h"
#include "cli/progress.h"
#include "hist/session.h"

static void tell_wait(const char *path)
{
    warnf("waiting for another program that writes '%s'", path);
}

static void show_work(int percent)
{
    if (percent >= 0)
        progress_part(percent);
    else
        progress_end();
}

static void start(struct config *c, struct history *h, const struct opt_common *o,
                  bool may_be_nowhere)
{
    struct err e = ERR_INIT;
    struct locate_from from;

    if (config_load(c, &e) < 0)
        die_err(&e);
    config_set(c, SETTING_HISTORY, o->history);
    from = (struct locate_from){.explicit_file = c->value[SETTING_HISTORY],
                                .cwd = c->cwd,
                                .data_home = c->data_home,
                                .state_home = c->state_home,
                                .may_be_nowhere = may_be_nowhere};
    if (locate(h, &from, &e) < 0)
        die_err(&e);
    h->sync = config_fsync(c);
    h->tell = o->quiet ? NULL : tell_wait;
    h->work = !o->quiet && progress_possible() ? show_work : NULL;
}

void start_history(struct config *c, struct history *h, const struct opt_common *o)
{
    start(c, h, o, false);
}

void start_history_if_any(struct config *c, struct history *h, const struct opt_common *o)
{
    start(c, h, o, true);
}

bool start_is_absent(const struct history *h)
{
    struct stat st;

    return h->kind == HISTORY_EXPLICIT && lstat(h->path, &st) < 0 && errno == ENOENT;
}

void start_absent(const struct history *h, bool quiet)
{
    if (!quiet && start_is_absent(h))
        warnf("no history '%s'", h->path);
}

void start_reader(struct config *c, struct history *h, const struct opt_common *o)
{
    start_history(c, h, o);
    start_absent(h, o->quiet);
}

void start_session(struct resume *r, struct resume_wish *wish, const struct config *c,
                   const struct history *h, bool again, bool quiet)
{
    struct err e = ERR_INIT;

    if (!wish->named && !wish->fresh && !wish->last) {
        wish->named = c->value[SETTING_SESSION];
        if (wish->named && !id_session_valid(str_of(wish->named)))
            die_usage("bad value '%s' for CHAT_SESSION: a session id is expected", wish->named);
    }
    if (config_session_timeout(c, &wish->timeout_ms, &e) < 0)
        die_err(&e);
    if (again)
        wish->timeout_ms = -1;
    if (resume_choose(r, h, wish, &e) < 0)
        die_err(&e);
    if (r->distrusted && !quiet)
        warnf("'%s' is not one of your own histories: starting a session of its own", h->dir);
}

void start_make_current(const struct config *c, struct history *h, struct str id, bool quiet)
{
    struct err e = ERR_INIT;

    if (start_try_current(c, h, id, quiet, &e) < 0)
        die_err(&e);
}

int start_try_current(const struct config *c, struct history *h, struct str id, bool quiet,
                      struct err *e)
{
    const char *pinned = c->value[SETTING_SESSION];
    bool accepts = h->dir_exists && !h->trusted;

    if (session_make_current(h, id, e) < 0)
        return -1;
    if (quiet)
        return 0;
    if (accepts)
        warnf("'%s' is one of your histories from now on", h->dir);
    if (pinned && !str_eq_c(id, pinned))
        warnf("CHAT_SESSION is set to '%s' and overrides the current session", pinned);
    return 0;
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
