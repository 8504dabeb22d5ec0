/* hist-load - make a past session current, so that the next chat continues it. */
#include <stdint.h>
#include <unistd.h>

#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/chat/context_window.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"

enum { KEY_RAW = OPT_LONG, KEY_NO_PAGER };

static const struct opt options[] = {
    {'n', "limit", OPT_NUMBER, "N", "print only the last N messages"},
    SHOW_FORMAT_OPTION,
    {'r', "role", OPT_ROLE, "ROLE", "print only messages of this role; may be repeated"},
    {KEY_RAW, "raw", OPT_FLAG, NULL, "print every line, replaced and reset ones too"},
    {'v', "verbose", OPT_FLAG, NULL, "say what the next chat will send, terminal or not"},
    PAGER_OPTION(KEY_NO_PAGER),
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-load", "make a past session current and print it",
                                       "[SESSION|-]", OPT_SESSION, options};

struct wish {
    struct show show;
    bool verbose, unpaged;
};

static void take(struct wish *w, int key, const char *value)
{
    switch (key) {
    case 'n':
        w->show.last = opt_count("--limit", value);
        break;
    case 'r':
        filter_add(&w->show.filter.roles, str_of(value));
        break;
    case 'f':
        show_set_format(&w->show, value);
        break;
    case KEY_RAW:
        w->show.raw = true;
        break;
    case 'v':
        w->verbose = true;
        break;
    case KEY_NO_PAGER:
        w->unpaged = true;
        break;
    }
}

/* A problem with the context does not change that the session is current; chat reports it, too. */
static void tell(const struct config *c, const struct history *h, struct str id, size_t messages,
                 bool verbose)
{
    struct context_estimate f;
    struct err e = ERR_INIT;

    if (messages == SHOW_NOT_COUNTED)
        hintf(verbose, "session '%.*s' is current", (int)id.n, id.p);
    else
        hintf(verbose, "session '%.*s' is current: %zu message%s", (int)id.n, id.p, messages,
              messages == 1 ? "" : "s");
    if (context_estimate(&f, c, h, id, &e) < 0)
        hintf(verbose, "cannot tell what will be sent: %s", err_text(&e));
    else
        hintf(verbose, "%zu message%s, about %zu token%s, will be sent with the next prompt",
              f.messages, f.messages == 1 ? "" : "s", f.tokens, f.tokens == 1 ? "" : "s");
    err_release(&e);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct session_args sessions;
    struct wish wish = {.show = {.last = SIZE_MAX}};
    struct out out;
    char *value;
    char **names;
    size_t count, messages;
    int key, status = 0;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        take(&wish, key, value);
    names = opt_operands(&args, &count);
    if (count > 1)
        die_usage("one session is expected");
    show_settle(&wish.show, args.common.json);
    start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);
    if (!wish.unpaged)
        out_page(&out);

    session_args_load_named(&sessions, &history, names, count);
    if (sessions.count > 1)
        die_usage("one session is expected, %zu were given", sessions.count);
    if (sessions.count == 0 && sessions.status == 0)
        warnf("no session was given");
    if (sessions.count == 0 || sessions.status != 0) {
        status = exit_code(ERR_ABSENT);
        goto out;
    }
    start_make_current(&config, &history, sessions.ids[0], args.common.quiet);
    show_begin(&out, &wish.show);
    messages = show_session(&out, &history, sessions.ids[0], &wish.show);
    show_end(&wish.show);
    out_page_end(&out);
    start_report_bad(&history, wish.show.bad_lines, args.common.quiet);
    if (!args.common.quiet && (wish.verbose || isatty(STDERR_FILENO)))
        tell(&config, &history, sessions.ids[0], messages, wish.verbose);

out:
    filter_release(&wish.show.filter);
    session_args_release(&sessions);
    history_release(&history);
    config_release(&config);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
