/* hist-delete - erase sessions. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "chathist/base/time.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/delete.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"

enum { KEY_OLDER_THAN = OPT_LONG, KEY_KEEP, KEY_MAX_SIZE, KEY_MATCH, KEY_DRY_RUN, KEY_FORCE };

static const struct opt options[] = {
    {KEY_OLDER_THAN, "older-than", OPT_TEXT, "TIME",
     "last used longer ago, as 30d, or before a date"},
    {KEY_KEEP, "keep", OPT_NUMBER, "N", "not among the N sessions used last"},
    {KEY_MAX_SIZE, "max-size", OPT_TEXT, "SIZE",
     "the oldest, until the file has at most SIZE, as 10M"},
    {KEY_MATCH, "match", OPT_TEXT, "TEXT", "with a message that holds TEXT"},
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "list what would go, and delete nothing"},
    {KEY_FORCE, "force", OPT_FLAG, NULL, "do not ask"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-delete", "erase sessions", "[SESSION|-]...",
                                       OPT_SESSION, options};

struct wish {
    struct delete_criteria what;
    bool dry_run, force;
};

/* Returns the first moment of the given time: a session of that day is not older than the day. */
static int64_t parse_age(const char *value)
{
    int64_t first, last;

    opt_when("--older-than", value, time_now(), &first, &last);
    return first;
}

static void parse(struct opt_parser *args, struct wish *w)
{
    char *value;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        switch (key) {
        case KEY_OLDER_THAN:
            w->what.aged = true;
            w->what.before = parse_age(value);
            break;
        case KEY_KEEP:
            w->what.keeps = true;
            w->what.keep = opt_number("--keep", value);
            break;
        case KEY_MAX_SIZE:
            w->what.limited = true;
            w->what.max_size = opt_size("--max-size", value);
            break;
        case KEY_MATCH:
            if (*value == '\0')
                die_usage("bad value '' for --match: a text is expected");
            w->what.match = str_of(value);
            break;
        case KEY_DRY_RUN:
            w->dry_run = true;
            break;
        case KEY_FORCE:
            w->force = true;
            break;
        }
    }
}

/* Asks the user. Ends the program if no terminal can be asked. */
static bool confirmed(const struct deletion *x)
{
    struct buf question = BUF_INIT(BUF_SMALL);
    size_t sessions = x->list.count;
    int yes;

    buf_addf(&question, "delete %zu session%s (%" PRIu64 " message%s, %" PRIu64 " KiB)? [y/N] ",
             sessions, sessions == 1 ? "" : "s", x->messages, x->messages == 1 ? "" : "s",
             (x->bytes + 1023) / 1024);
    yes = confirm_yes(buf_c(&question));
    buf_release(&question);
    if (yes < 0)
        die_usage("there is no terminal to ask on: nothing is deleted without --force");
    return yes > 0;
}

/* Erases the sessions in the list, unless the list is empty or the user says no. Afterwards the
 * list holds the erased sessions. */
static void erase(struct deletion *x, struct history *h, bool force)
{
    struct err e = ERR_INIT;
    int result;

    if (x->list.count == 0)
        return;
    if (!force && !confirmed(x)) {
        deletion_clear(x);
        return;
    }
    h->cancel_fd = interrupt_begin(&e);
    if (h->cancel_fd < 0)
        die_err(&e);
    result = deletion_run(x, h, &e);
    if (result < 0 && interrupt_signal() != 0)
        die_signal(interrupt_signal());
    if (result < 0)
        die_err(&e);
    interrupt_end();
}

static void say_rest(const struct deletion *x, const struct delete_criteria *w,
                     const struct history *h)
{
    if (x->spared > 0)
        warnf("%zu session%s stay%s: used since %s chosen", x->spared, x->spared == 1 ? "" : "s",
              x->spared == 1 ? "s" : "", x->spared == 1 ? "it was" : "they were");
    if (x->current)
        hintf(false, "the current session stays: name it to erase it");
    if (w->limited && x->size - x->bytes > w->max_size)
        warnf("'%s' keeps %" PRIu64 " bytes: nothing else may go", h->path, x->size - x->bytes);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_args sessions = {0};
    struct wish wish = {0};
    struct deletion x;
    struct err e = ERR_INIT;
    struct out out;
    char **names;
    size_t count;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    parse(&args, &wish);
    names = opt_operands(&args, &count);
    wish.what.named = count > 0;
    if (count == 0 && !delete_criteria_narrow(&wish.what))
        die_usage("no session is given, and none of --older-than, --keep, --max-size and --match");
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);

    if (count > 0)
        session_args_load(&sessions, &history, names, count, NULL);
    wish.what.ids = sessions.ids;
    wish.what.ids_count = sessions.count;
    if (deletion_choose(&x, &history, &wish.what, &e) < 0)
        die_err(&e);
    start_report_bad(&history, x.list.bad_lines, args.common.quiet);
    if (!wish.dry_run)
        erase(&x, &history, wish.force);
    for (size_t i = 0; i < x.list.count; i++)
        list_session(&out, &x.list.at[i], args.common.json);
    if (!args.common.quiet)
        say_rest(&x, &wish.what, &history);

    /* The message of out_close alone would sound as if nothing had been erased. */
    if (out_flush(&out) < 0 && errno != EPIPE && !wish.dry_run && x.list.count > 0)
        warnf("%zu session%s erased", x.list.count, x.list.count == 1 ? " is" : "s are");

    deletion_release(&x);
    session_args_release(&sessions);
    history_release(&history);
    config_release(&config);
    return out_close(&out, sessions.status, exit_code(ERR_FAILURE));
}
