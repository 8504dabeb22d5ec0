/* hist-fork - start a session as a copy of another one. */
#include <signal.h>
#include <stdlib.h>

#include "chathist/base/id.h"
#include "chathist/base/time.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
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

/* Gives the copy the title of the session. */
static void copy_title(struct history *h, struct str session, struct str copy)
{
    struct buf title = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    if (session_title(h, session, &title, &e) < 0 ||
        (title.len > 0 && session_set_title(h, copy, buf_str(&title), &e) < 0))
        die_err(&e);
    buf_release(&title);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice choice = {0};
    struct history *h;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct out out;
    const char *at = NULL;
    char *value;
    bool detached = false;
    size_t copied;
    uint64_t bad_lines;
    int key, status;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        if (key == KEY_AT)
            at = value;
        else
            detached = true;
    }
    choose_open(&choice, CHOOSE_ONE, "current");
    h = choice.at;
    out_start(&out, args.common.color);

    status = choose_one(&choice);
    if (status == 0) {
        id_add_session(&id, time_now() / 1000);
        if (history_accept(h, &e) < 0 ||
            fork_session(h, h, choice.filter.sessions.at[0], str_of(at), buf_str(&id), &copied,
                         &bad_lines, &e) < 0)
            die_err(&e);
        copy_title(h, choice.filter.sessions.at[0], buf_str(&id));
        list_id(&out, buf_str(&id), args.common.json);
        if (out_flush(&out) == 0 && !detached)
            start_make_current(&choice.config, h, buf_str(&id), args.common.quiet);
        start_report_bad(h, bad_lines, args.common.quiet);
        if (!args.common.quiet)
            hintf(false, "%zu message%s copied", copied, copied == 1 ? "" : "s");
    }

    buf_release(&id);
    choose_release(&choice);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
