/* hist-title - give a session a title, or print it. */
#include <signal.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/history/session.h"

enum { KEY_REMOVE = OPT_LONG };

static const struct opt options[] = {
    {KEY_REMOVE, "remove", OPT_FLAG, NULL, "remove the title"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print the id and the title as a JSON object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-title", "give a session a title, or print it",
                                       "[SESSION|- [TEXT]...]", OPT_SESSION, options};

/* Takes the operands after the session, joined by blanks, as the title. */
static void join_title(struct arg_list *names, struct buf *title)
{
    for (size_t i = 1; i < names->count; i++) {
        buf_add_c(title, i > 1 ? " " : "");
        buf_add_c(title, names->at[i]);
    }
    if (names->count > 1)
        names->count = 1;
}

static void print_title(struct out *out, const struct history *h, struct str id, bool json)
{
    struct buf title = BUF_INIT(BUF_LINE), line = BUF_INIT(8 * BUF_LINE);
    struct err e = ERR_INIT;

    if (session_title(h, id, &title, NULL, &e) < 0)
        die_err(&e);
    if (json) {
        buf_add_byte(&line, '{');
        json_add_member(&line, "session_id", id);
        json_add_member(&line, "title", buf_str(&title));
        buf_add_byte(&line, '}');
        out_json_line(out, buf_str(&line));
    } else if (title.len > 0) {
        vis_add_line(&line, buf_str(&title), out->terminal);
        buf_add_byte(&line, '\n');
        out_raw(out, buf_str(&line));
    }
    buf_release(&title);
    buf_release(&line);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice choice = {0};
    struct buf title = BUF_INIT(BUF_LINE);
    struct history *home;
    struct err e = ERR_INIT;
    struct out out;
    char *value;
    bool set, remove = false;
    int status;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    while (choose_next(&choice, &args, &value) != 0)
        remove = true;
    set = remove || choice.names.count > 1;
    if (remove && choice.names.count > 1)
        die_usage("--remove takes no title");
    join_title(&choice.names, &title);
    choose_open(&choice, &(struct choose_want){
                             .reach = CHOOSE_ANYWHERE, .checked = set, .session = "current"});
    choose_tell_homes(&choice);
    home = choose_home(&choice);
    out_start(&out, args.common.color);

    status = choose_one(&choice);
    if (status == 0 && set &&
        session_set_title(home, choice.filter.sessions.at[0], buf_str(&title), &e) < 0)
        die_err(&e);
    if (status == 0 && !set)
        print_title(&out, home, choice.filter.sessions.at[0], args.common.json);

    buf_release(&title);
    choose_release(&choice);
    return out_close(&out, status);
}
