/* hist-load - make a past session current, so that the next chat continues it. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/chat/context_window.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/resume_command.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"
#include "chathist/terminal/markdown_out.h"
#include "chathist/history/scan.h"
#include "chathist/sync/merge.h"

enum { KEY_RESUME = OPT_LONG };

static const struct opt options[] = {
    CHOOSE_LIMIT("print only the last N messages"),
    SHOW_OPTIONS,
    CHOOSE_MESSAGES("the session, like the operand"),
    {KEY_RESUME, "resume-command", OPT_FLAG, NULL,
     "only print the command that continues the session in the program it came from"},
    {'v', "verbose", OPT_FLAG, NULL, "say what the next chat will send, terminal or not"},
    CHOOSE_REMOTE,
    CHOOSE_PAGER,
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-load", "make a past session current and print it",
                                       "[SESSION|-]", OPT_SESSION, options};

/* A problem with the context does not change that the session is current; chat reports it, too. */
static void report_context(const struct config *c, const struct history *h, struct str id,
                           size_t messages, bool verbose)
{
    struct context_estimate f;
    struct err e = ERR_INIT;

    hintf(verbose, "session '%.*s' is current: %zu message%s", (int)id.n, id.p, messages,
          messages == 1 ? "" : "s");
    if (context_estimate(&f, c, h, id, &e) < 0)
        hintf(verbose, "cannot tell what will be sent: %s", err_text(&e));
    else
        hintf(verbose, "%zu message%s, about %zu token%s, will be sent with the next prompt",
              f.messages, f.messages == 1 ? "" : "s", f.tokens, f.tokens == 1 ? "" : "s");
    err_release(&e);
}

/* Copies a session of another history into this one, if the user wants that. Returns false if not,
 * and says how to copy it. */
static bool copy_here(struct history *here, struct history *home, struct str session,
                      struct buf *copy, bool quiet)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int copied = choose_offer_copy(here, home, session, copy, quiet, &e);

    if (copied < 0)
        die_err(&e);
    history_name_add(&name, home);
    if (copied == 0)
        warnf("session '%.*s' is in %s: '" PROGRAM_PREFIX "hist-fork %.*s' copies it here",
              (int)session.n, session.p, buf_c(&name), (int)session.n, session.p);
    buf_release(&name);
    return copied > 0;
}

/* Stores the lines of `far` that the history does not have. */
static int merge_lines_of(struct history *h, const struct history *far, bool quiet, struct err *e)
{
    struct merge_options o = {.mark = "the database", .warn = quiet ? NULL : warn_message};
    struct message m = MESSAGE_INIT;
    struct scan scan;
    struct merge *merge = merge_open(h, &o, e);
    int result;

    if (!merge)
        return -1;
    result = scan_open(&scan, far->dir_fd, far->path, e);
    if (result == 0) {
        while ((result = scan_message(&scan, &m, NULL, e)) > 0)
            if (merge_add(merge, m.line, e) < 0) {
                result = -1;
                break;
            }
        scan_close(&scan);
    }
    if (result == 0)
        result = merge_store(merge, e);
    message_release(&m);
    merge_close(merge);
    return result;
}

/* Copies the named session, or the one used last, from the database into the history of this place,
 * which then is the chosen one. */
static void fetch_remote(struct choice *c)
{
    struct choice far = {.common = c->common, .remote = true, .names = c->names};
    struct buf id = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    choose_open(&far, &(struct choose_want){.reach = CHOOSE_ONE});
    if (choose_one(&far) != 0)
        exit(exit_code(ERR_ABSENT));
    buf_add_str(&id, far.filter.sessions.at[0]);
    c->names = (struct arg_list){0};
    c->remote = false;
    choose_open(c, &(struct choose_want){.use = CHOOSE_STORE, .session = buf_c(&id)});
    if (merge_lines_of(c->histories.at, far.histories.at, c->common.quiet, &e) < 0)
        die_err(&e);
    buf_release(&id);
    choose_release(&far);
}

/* Prints the command that continues the session, and changes nothing. `shows` says that options want
 * messages in some form. Returns the exit status. */
static int print_resume_command(struct choice *c, bool shows, const char *self)
{
    struct buf command = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    struct out out;
    int status;

    if (choose_restricts(c) || c->limit > 0 || c->common.json || shows)
        die_usage("--resume-command prints no messages: it cannot be combined with --role, "
                  "--since, --until, --model, --limit, --format, --raw or --json");
    choose_open(c, &(struct choose_want){.reach = c->remote ? CHOOSE_ONE : CHOOSE_ANYWHERE,
                                         .session = "last"});
    out_start(&out, c->common.color);
    status = choose_one(c);
    if (status == 0) {
        if (resume_command(&command, choose_home(c), c->filter.sessions.at[0], self, &e) < 0)
            die_err(&e);
        buf_add_byte(&command, '\n');
        out_text(&out, buf_str(&command));
    }
    buf_release(&command);
    choose_release(c);
    return out_close(&out, status);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice choice = {0};
    struct history *h;
    struct buf copy = BUF_INIT(BUF_SMALL);
    struct str id = STR_NONE;
    struct show show = {.print = markdown_print};
    struct out out;
    char *value;
    bool verbose = false, resume = false, shows = false;
    size_t messages;
    int key, status = 0;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&choice, &args, &value)) != 0) {
        show_read_option(&show, key, value);
        verbose |= key == 'v';
        resume |= key == KEY_RESUME;
        shows |= key == SHOW_FORMAT || key == SHOW_RAW;
    }
    if (resume)
        return print_resume_command(&choice, shows, argv[0]);
    show_check_options(&show, &choice);
    if (choice.remote)
        fetch_remote(&choice);
    else
        choose_open(&choice, &(struct choose_want){.reach = CHOOSE_ANYWHERE, .session = "last"});
    h = choice.histories.at;
    out_start(&out, args.common.color);
    if (!choice.unpaged)
        out_page(&out);

    status = choose_one(&choice);
    if (status == 0)
        id = choice.filter.sessions.at[0];
    if (status == 0 && choose_home(&choice) != h) {
        status = copy_here(h, choose_home(&choice), id, &copy, args.common.quiet)
                     ? 0
                     : exit_code(ERR_ABSENT);
        id = buf_str(&copy);
        filter_clear(&choice.filter.sessions);
        filter_add(&choice.filter.sessions, id);
    }
    if (status == 0) {
        choose_make_current(&choice, h, id);
        messages = show_session(&out, h, id, &show);
        show_end(&out, &show, true);
        start_report_bad(h, show.bad_lines, args.common.quiet);
        if (!args.common.quiet && (verbose || isatty(STDERR_FILENO)))
            report_context(&choice.config, h, id, messages, verbose);
    }

    buf_release(&copy);
    choose_release(&choice);
    return out_close(&out, status);
}
