/* hist-fork - start a session as a copy of another one. */
#include <signal.h>
#include <stdlib.h>

#include "chathist/cli/choose.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"

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
    int key, status;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        if (key == KEY_AT)
            at = value;
        else
            detached = true;
    }
    h = choose_open(&choice, &(struct choose_want){
                                 .reach = CHOOSE_ANYWHERE, .checked = true, .session = "current"});
    out_start(&out, args.common.color);

    status = choose_one(&choice);
    choose_tell_homes(&choice);
    if (status == 0) {
        if (choose_copy(h, choose_home(&choice), choice.filter.sessions.at[0], str_of(at), &id,
                        &copied, args.common.quiet, &e) < 0)
            die_err(&e);
        list_id(&out, buf_str(&id), args.common.json);
        if (out_flush(&out) == 0 && !detached)
            choose_make_current(&choice, h, buf_str(&id));
        if (!args.common.quiet)
            hintf(false, "%zu message%s copied", copied, copied == 1 ? "" : "s");
    }

    buf_release(&id);
    choose_release(&choice);
    return out_close(&out, status);
}
