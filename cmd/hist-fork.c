/* hist-fork - start a session as a copy of another one. */
#include <signal.h>
#include <stdlib.h>

#include "chathist/base/id.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/start.h"
#include "chathist/history/fork.h"

enum { KEY_AT = OPT_LONG, KEY_DETACHED };

static const struct opt options[] = {
    {KEY_AT, "at", OPT_TEXT, "MESSAGE", "copy up to and with this message"},
    {KEY_DETACHED, "detached", OPT_FLAG, NULL, "do not make it the current session"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the id as a JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-fork",
                                       "start a session with the beginning of another one",
                                       "[SESSION|-]", OPT_SESSION, options};

/* Returns the id of the session to copy, or STR_NONE if it does not exist. */
static struct str source(struct session_args *sessions, const struct history *h, char **names,
                         size_t count)
{
    static char current[] = "current";
    char *otherwise[] = {current};

    if (count > 1)
        die_usage("one session is expected");
    session_args_load_named(sessions, h, count > 0 ? names : otherwise, 1);
    if (sessions->count > 1)
        die_usage("one session is expected, %zu were given", sessions->count);
    if (sessions->count == 0 && sessions->status == 0)
        warnf("no session was given");
    return sessions->count == 1 && sessions->status == 0 ? sessions->ids[0] : STR_NONE;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_args sessions;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct out out;
    const char *at = NULL;
    struct str from;
    char *value;
    char **names;
    bool detached = false;
    size_t count, copied;
    uint64_t bad_lines;
    int key, status = 0;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    while ((key = opt_next(&args, &value)) != 0) {
        if (key == KEY_AT)
            at = value;
        else
            detached = true;
    }
    names = opt_operands(&args, &count);
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);

    from = source(&sessions, &history, names, count);
    if (from.p) {
        id_add_session(&id, time_now() / 1000);
        if (history_accept(&history, &e) < 0 ||
            fork_session(&history, from, str_of(at), buf_str(&id), &copied, &bad_lines, &e) < 0)
            die_err(&e);
        list_id(&out, buf_str(&id), args.common.json);
        if (out_flush(&out) == 0 && !detached)
            start_make_current(&config, &history, buf_str(&id), args.common.quiet);
        start_report_bad(&history, bad_lines, args.common.quiet);
        if (!args.common.quiet)
            hintf(false, "%zu message%s copied", copied, copied == 1 ? "" : "s");
    } else {
        status = exit_code(ERR_ABSENT);
    }

    buf_release(&id);
    session_args_release(&sessions);
    history_release(&history);
    config_release(&config);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
