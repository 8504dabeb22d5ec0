/* hist-delete - erase sessions by rewriting the history without their lines. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "chathist/base/process.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/delete.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/session_match.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"

enum {
    KEY_OLDER_THAN = OPT_LONG,
    KEY_KEEP,
    KEY_MAX_SIZE,
    KEY_MATCH,
    KEY_OLDEST,
    KEY_DRY_RUN,
    KEY_FORCE
};

static const struct opt options[] = {
    CHOOSE_SESSIONS,
    {KEY_MATCH, "match", OPT_QUERY, "QUERY",
     "only sessions with a message, or a title, that meets QUERY"},
    {KEY_OLDER_THAN, "older-than", OPT_TIME, "TIME",
     "last used longer ago, as 30d, or before a date"},
    {KEY_KEEP, "keep", OPT_NUMBER, "N", "not among the N sessions used last"},
    {KEY_MAX_SIZE, "max-size", OPT_TEXT, "SIZE",
     "the oldest, until the file has at most SIZE, as 10M"},
    {KEY_OLDEST, "oldest", OPT_NUMBER, "N",
     "the N used first, of those that meet the other options"},
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "list what would go, and delete nothing"},
    {KEY_FORCE, "force", OPT_FLAG, NULL, "do not ask"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-delete", "erase sessions", "[SESSION|-]...",
                                       OPT_SESSION, options};

static void set_criterion(struct delete_request *w, int key, const char *value)
{
    int64_t first, last;

    switch (key) {
    case KEY_OLDER_THAN:
        opt_when("--older-than", value, &first, &last);
        /* A session of the day that is given is not older than the day. */
        w->choice.filter.has_until = true;
        w->choice.filter.until = first - 1;
        break;
    case KEY_KEEP:
        w->keeps = true;
        w->keep = opt_number("--keep", value);
        break;
    case KEY_MAX_SIZE:
        w->limited = true;
        w->max_size = opt_size("--max-size", value);
        break;
    case KEY_MATCH:
        session_match_query(&w->choice, value);
        break;
    case KEY_OLDEST:
        w->choice.limit = opt_count("--oldest", value);
        if (w->choice.limit == SIZE_MAX)
            die_usage("bad value '%s' for --oldest: a number from 1 is expected", value);
        break;
    case KEY_DRY_RUN:
        w->dry_run = true;
        break;
    case KEY_FORCE:
        w->force = true;
        break;
    }
}

/* Ends the program if nothing says which sessions are to be deleted. */
static void parse_criteria(struct delete_request *w, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = choose_next(&w->choice, args, &value)) != 0)
        set_criterion(w, key, value);
    w->named = w->choice.names.count > 0;
    if (!w->named && !delete_is_narrow(w))
        die_usage("no session is given, and none of --since, --until, --role, --model, "
                  "--from, --match, --older-than, --keep, --max-size and --oldest");
}

/* Asks the user. Ends the program if no terminal can be asked. */
static bool ask_to_delete(const struct deletion *d)
{
    struct buf question = BUF_INIT(BUF_SMALL);
    size_t sessions = d->list.count;
    int yes;

    buf_addf(&question, "delete %zu session%s (%" PRIu64 " message%s, %" PRIu64 " KiB)? [y/N] ",
             sessions, sessions == 1 ? "" : "s", d->messages, d->messages == 1 ? "" : "s",
             (d->bytes + 1023) / 1024);
    yes = confirm_yes(buf_c(&question));
    buf_release(&question);
    if (yes < 0)
        die_usage("there is no terminal to ask on: nothing is deleted without --force");
    return yes > 0;
}

/* Erases the sessions in the list, unless the list is empty or the user says no. Afterwards the
 * list holds the erased sessions. */
static void erase(struct deletion *d, struct history *h)
{
    struct err e = ERR_INIT;
    int result;

    if (d->list.count == 0)
        return;
    if (!d->request->force && !ask_to_delete(d)) {
        session_list_release(&d->list);
        d->messages = d->bytes = 0;
        return;
    }
    h->cancel_fd = interrupt_begin(&e);
    if (h->cancel_fd < 0)
        die_err(&e);
    result = delete_chosen(d, h, &e);
    if (result < 0 && interrupt_signal() != 0)
        die_signal(interrupt_signal());
    if (result < 0)
        die_err(&e);
    interrupt_end();
}

static void say_rest(const struct deletion *d, const struct history *h)
{
    if (d->gone > 0)
        warnf("another program has deleted %zu of the chosen sessions meanwhile", d->gone);
    if (d->spared > 0)
        warnf("%zu session%s stay%s: used since %s chosen", d->spared, d->spared == 1 ? "" : "s",
              d->spared == 1 ? "s" : "", d->spared == 1 ? "it was" : "they were");
    if (d->current)
        hintf(false, "the current session stays: name it to erase it");
    if (d->request->limited && d->size - d->bytes > d->request->max_size)
        warnf("'%s' is still %" PRIu64 " bytes: the remaining sessions are protected", h->path,
              d->size - d->bytes);
}

/* Ends the program: the sessions are in another history of the user, from which nothing is erased
 * by accident. */
static void refuse_elsewhere(const struct choice *c)
{
    struct buf file = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    choose_tell_homes(c);
    words_quote(&file, choose_home(c)->path);
    err_set(&e, ERR_ABSENT, "nothing is deleted in another history: to do so, give --history %s",
            buf_c(&file));
    buf_release(&file);
    die_err(&e);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct delete_request request = {0};
    struct list_form form = {0};
    struct deletion deletion;
    struct history *h;
    struct out out;
    bool quiet;
    int status;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    parse_criteria(&request, &args);
    quiet = args.common.quiet;
    form.json = args.common.json;
    h = choose_open(&request.choice, &(struct choose_want){.use = CHOOSE_CHANGE,
                                                           .reach = CHOOSE_ANYWHERE,
                                                           .checked = !request.dry_run});
    if (choose_home(&request.choice) != h)
        refuse_elsewhere(&request.choice);
    out_start(&out, args.common.color);

    (void)choose_in(&request.choice, h);
    status = choose_report(&request.choice);
    delete_choose(&deletion, h, &request);
    start_report_bad(h, deletion.list.bad_lines, quiet);
    if (!request.dry_run)
        erase(&deletion, h);
    for (size_t i = 0; i < deletion.list.count; i++)
        list_session(&out, &deletion.list.at[i], &form);
    if (!quiet)
        say_rest(&deletion, h);

    /* The message of out_close alone would sound as if nothing had been erased. */
    if (out_flush(&out) < 0 && errno != EPIPE && !request.dry_run && deletion.list.count > 0)
        warnf("%zu session%s erased", deletion.list.count,
              deletion.list.count == 1 ? " is" : "s are");

    session_list_release(&deletion.list);
    choose_release(&request.choice);
    return out_close(&out, status);
}
