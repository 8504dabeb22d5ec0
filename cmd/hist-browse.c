/* hist-browse - look through a history on the terminal, and choose from it. */
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/browse/browse.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"
#include "chathist/history/message.h"

/* The exit status of fzf. */
#define CANCELLED 130

enum { KEY_PRINT = OPT_LONG };

static const struct opt options[] = {
    {KEY_PRINT, "print", OPT_CHOICE, "id|text|json",
     "Enter chooses: print the session's id, the text of the message, or its line"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "the same as --print json"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-browse", "look through a history, full screen",
                                       "[QUERY...]", OPT_TEXT, options};

/* Prints text as one word of a shell command. */
static void add_quoted(struct buf *out, const char *word)
{
    buf_add_byte(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            buf_add_c(out, "'\\''");
        else
            buf_add_byte(out, *word);
    buf_add_byte(out, '\'');
}

static void print_chosen(struct out *out, const struct browse_outcome *o, const char *what)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;

    if (strcmp(what, "id") == 0) {
        list_id(out, buf_str(&o->session), false);
        return;
    } else if (strcmp(what, "json") == 0) {
        out_json_line(out, buf_str(&o->line));
        return;
    } else if (message_parse(&m, buf_str(&o->line))) {
        out_text(out, message_content(&m, &scratch));
        out_text_end(out);
    }
    out_byte(out, '\n');
    message_release(&m);
    buf_release(&scratch);
}

/* The id of a session of another history would mislead the next program: `chat -s ID` begins an
 * empty session here. So it is not printed, and standard error says where the session is. */
static int act_elsewhere(const struct browse_outcome *o, const struct history *h, bool quiet)
{
    struct buf id = BUF_INIT(8 * BUF_LINE), name = BUF_INIT(BUF_LINE), file = BUF_INIT(BUF_LINE);
    bool loaded = o->command == BROWSE_LOAD;

    list_add_id(&id, buf_str(&o->session));
    history_name_add(&name, h);
    add_quoted(&file, h->path);
    if (loaded && !quiet)
        warnf("session '%s' is current in '%s', not here: chat --history %s -s %s continues it",
              buf_c(&id), buf_c(&name), buf_c(&file), buf_c(&id));
    else if (!loaded)
        warnf(
            "session '%s' is not of this history but of '%s': chat --history %s -s %s continues it",
            buf_c(&id), buf_c(&name), buf_c(&file), buf_c(&id));
    buf_release(&id);
    buf_release(&name);
    buf_release(&file);
    return loaded ? 0 : exit_code(ERR_FAILURE);
}

static int act(struct out *out, const struct browse_outcome *o, struct choice *all,
               const char *print, bool quiet)
{
    if (o->command == BROWSE_CLOSE)
        return o->failed.kind != ERR_NONE ? exit_code(ERR_FAILURE) : CANCELLED;
    if (o->nothing && !quiet)
        warnf("nothing was chosen");
    if (o->nothing)
        return exit_code(ERR_ABSENT);
    if (o->command == BROWSE_LOAD)
        start_make_current(&all->config, &all->at[o->history], buf_str(&o->session), quiet);
    if (o->history > 0 && (o->command == BROWSE_LOAD ||
                           (o->command == BROWSE_ENTER && print && strcmp(print, "id") == 0)))
        return act_elsewhere(o, &all->at[o->history], quiet);
    print_chosen(out, o, o->command == BROWSE_PROMPT ? "text" : print ? print : "id");
    return 0;
}

static void tell_wait(void)
{
    warnf("waiting for what was to be done; Ctrl-C gives it up");
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice all = {0};
    struct browse_outcome outcome;
    struct browse_setup setup = {.self = argv[0]};
    struct buf query = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct out out;
    const char *print = NULL;
    char *value, *state = NULL;
    char **words;
    size_t count;
    int key, status;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&all, &args, &value)) != 0) {
        if (key == KEY_PRINT)
            print = value;
    }
    words = opt_operands(&args, &count);
    if (args.common.json)
        print = "json";
    for (size_t i = 0; i < count; i++)
        buf_addf(&query, "%s%s", i > 0 ? " " : "", words[i]);
    choose_open(&all, CHOOSE_USERS, NULL);
    out_start(&out, args.common.color);

    setup.histories = all.at;
    setup.count = all.count;
    setup.choosing = print != NULL;
    setup.color = term_wants_color(true, args.common.color);
    setup.tell_wait = args.common.quiet ? NULL : tell_wait;
    if (count > 0)
        setup.query = buf_str(&query);
    if (all.config.state_home)
        setup.state_path = state = path_join(all.config.state_home, "chathist/browse");
    if (browse_loop(&setup, &outcome, &e) < 0)
        die_err(&e);
    if (outcome.forgot.kind != ERR_NONE && !args.common.quiet)
        warn_err(&outcome.forgot);
    if (outcome.failed.kind != ERR_NONE)
        warn_err(&outcome.failed);
    if (outcome.signal)
        die_signal(outcome.signal);
    start_report_bad(&all.at[0], outcome.bad_lines, args.common.quiet);
    status = act(&out, &outcome, &all, print, args.common.quiet);

    browse_outcome_release(&outcome);
    choose_release(&all);
    buf_release(&query);
    free(state);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
