/* hist-browse - look through a history on the terminal, and choose from it. */
#include <stdlib.h>
#include <string.h>

#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/browse/browse.h"
#include "chathist/cli/import_hint.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"
#include "chathist/history/message.h"

/* The exit status of fzf. */
#define CANCELLED 130

enum { KEY_PRINT = OPT_LONG, KEY_NO_MOUSE };

static const struct opt options[] = {
    {KEY_PRINT, "print", OPT_CHOICE, "id|text|json|chat",
     "Enter chooses: print the session's id, the text of the message, its line, or what chat "
     "reads"},
    {KEY_NO_MOUSE, "no-mouse", OPT_FLAG, NULL,
     "leave the mouse to the terminal, which selects text with it"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "the same as --print json"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-browse", "look through a history, full screen",
                                       "[SESSION | QUERY...]", OPT_TEXT, options};

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

/* Prints the choice for the interactive `chat` that has started the browser: the session to
 * continue, or with BROWSE_CHOSEN_TO_PROMPT the message for its prompt. */
static void print_for_chat(struct out *out, const struct browse_outcome *o,
                           const struct history *histories)
{
    bool message = o->end == BROWSE_CHOSEN_TO_PROMPT;
    size_t history = o->marked_count > 0 ? o->marked[0].history : o->history;
    struct buf line = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(BUF_LINE);
    const struct history *h = &histories[history];
    char *path = path_real(h->path, NULL);
    struct message m = MESSAGE_INIT;

    buf_add_byte(&line, '{');
    json_add_member(&line, "action", message ? STR("message") : STR("session"));
    json_add_member(&line, "history", str_of(path ? path : h->path));
    json_add_member(&line, "session_id",
                    buf_str(o->marked_count > 0 ? &o->marked[0].id : &o->session));
    if (o->marked_count > 0)
        json_add_member(&line, "content", buf_str(&o->text));
    else if (message && message_parse(&m, buf_str(&o->line)))
        json_add_member(&line, "content", message_content(&m, &scratch));
    buf_add_byte(&line, '}');
    out_json_line(out, buf_str(&line));
    message_release(&m);
    buf_release(&scratch);
    buf_release(&line);
    free(path);
}

/* The id of a session of another history would mislead the next program: `chat -s ID` begins an
 * empty session here. So it is not printed, and standard error says where the session is. */
static int act_elsewhere(struct str session, bool loaded, const struct history *h, bool quiet)
{
    struct buf id = BUF_INIT(8 * BUF_LINE), name = BUF_INIT(BUF_LINE), file = BUF_INIT(BUF_LINE);

    list_add_id(&id, session);
    history_name_add(&name, h);
    words_quote(&file, h->path);
    if (loaded && !quiet)
        warnf("session '%s' is current in '%s', not here: " PROGRAM_PREFIX
              "chat --history %s -s %s continues it",
              buf_c(&id), buf_c(&name), buf_c(&file), buf_c(&id));
    else if (!loaded)
        warnf("session '%s' is not of this history but of '%s': " PROGRAM_PREFIX
              "chat --history %s -s %s continues it",
              buf_c(&id), buf_c(&name), buf_c(&file), buf_c(&id));
    buf_release(&id);
    buf_release(&name);
    buf_release(&file);
    return loaded ? 0 : exit_code(ERR_FAILURE);
}

/* Prints the marked sessions: their ids, or what they hold. Returns the exit code. */
static int print_marked_sessions(struct out *out, const struct browse_outcome *o,
                                 const struct choice *all, const char *print, bool quiet)
{
    int status = 0;

    if (strcmp(print, "id") != 0) {
        out_text(out, buf_str(&o->text));
        return o->failed.kind != ERR_NONE ? exit_code(ERR_FAILURE) : 0;
    }
    for (size_t i = 0; i < o->marked_count; i++) {
        const struct browse_outcome_session *one = &o->marked[i];

        if (one->history > 0)
            status =
                act_elsewhere(buf_str(&one->id), false, &all->histories.at[one->history], quiet);
        else
            list_id(out, buf_str(&one->id), false);
    }
    return status;
}

static int act(struct out *out, const struct browse_outcome *o, struct choice *all,
               const char *print, bool quiet)
{
    if (o->end == BROWSE_CANCELLED)
        return o->failed.kind != ERR_NONE ? exit_code(ERR_FAILURE) : CANCELLED;
    if (o->nothing && !quiet)
        warnf("nothing was chosen");
    if (o->nothing)
        return exit_code(ERR_ABSENT);
    if (print && strcmp(print, "chat") == 0) {
        print_for_chat(out, o, all->histories.at);
        return 0;
    }
    if (o->marked_count > 0)
        return print_marked_sessions(out, o, all, o->end == BROWSE_CHOSEN && print ? print : "text",
                                     quiet);
    if (o->end == BROWSE_CHOSEN_TO_LOAD)
        choose_make_current(all, &all->histories.at[o->history], buf_str(&o->session));
    if (o->history > 0 && (o->end == BROWSE_CHOSEN_TO_LOAD ||
                           (o->end == BROWSE_CHOSEN && print && strcmp(print, "id") == 0)))
        return act_elsewhere(buf_str(&o->session), o->end == BROWSE_CHOSEN_TO_LOAD,
                             &all->histories.at[o->history], quiet);
    print_chosen(out, o, o->end == BROWSE_CHOSEN_TO_PROMPT ? "text" : print ? print : "id");
    return 0;
}

/* Returns true if a word has the form of a part of a generated id: `sess_...`, or six or more hex
 * digits. */
static bool is_part_of_id(struct str word)
{
    size_t digits = 0;

    while (digits < word.n && strchr("0123456789abcdef", word.p[digits]))
        digits++;
    return str_starts(word, STR("sess_")) || (word.n >= 6 && digits == word.n);
}

static bool has_digit(struct str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] >= '0' && word.p[i] <= '9')
            return true;
    return false;
}

/* Finds the session that a word names: a whole id, or a part of a generated one. Returns true with
 * the history and the id in *setup; the id is borrowed from *id. A word without a digit is always a
 * text, because to look for its session may take seconds in a large history without an index. */
static bool find_named_session(struct browse_setup *setup, struct str word, struct buf *id)
{
    if (!has_digit(word) || !id_session_valid(word))
        return false;
    for (size_t i = 0; i < setup->count; i++) {
        const struct history *h = &setup->histories[i];
        bool found = session_exists(h, word, NULL) > 0;

        buf_clear(id);
        if (found)
            buf_add_str(id, word);
        else
            found = is_part_of_id(word) && session_resolve(h, word, id, NULL) == 0;
        if (found) {
            setup->session = buf_str(id);
            setup->session_history = i;
            return true;
        }
    }
    return false;
}

static void report_wait(void)
{
    warnf("waiting for what was to be done; Ctrl-C gives it up");
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct choice all = {0};
    struct browse_outcome outcome;
    struct browse_setup setup = {.self = argv[0], .mouse = true};
    struct buf query = BUF_INIT(BUF_SMALL), session = BUF_INIT(BUF_LINE);
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
        else if (key == KEY_NO_MOUSE)
            setup.mouse = false;
    }
    words = opt_operands(&args, &count);
    if (args.common.json)
        print = "json";
    for (size_t i = 0; i < count; i++)
        buf_addf(&query, "%s%s", i > 0 ? " " : "", words[i]);
    choose_open(&all,
                &(struct choose_want){.use = CHOOSE_CHANGE, .reach = CHOOSE_USERS, .fresh = true});
    out_start(&out, args.common.color);

    setup.histories = all.histories.at;
    setup.count = all.histories.count;
    setup.choosing = print != NULL;
    setup.for_chat = print && strcmp(print, "chat") == 0;
    setup.lines = print && strcmp(print, "json") == 0;
    setup.color = term_wants_color(true, args.common.color);
    setup.tell_wait = args.common.quiet ? NULL : report_wait;
    if (count > 0 && !(count == 1 && find_named_session(&setup, buf_str(&query), &session)))
        setup.query = buf_str(&query);
    if (all.config.state_home)
        setup.state_path = state = path_join(all.config.state_home, "chathist/browse");
    if (browse_loop(&setup, &outcome, &e) < 0)
        die_err(&e);
    if (outcome.forgot.kind != ERR_NONE && !args.common.quiet)
        warn_err(&outcome.forgot);
    if (outcome.failed.kind != ERR_NONE)
        warn_err(&outcome.failed);
    if (outcome.undeleted > 0 && !args.common.quiet)
        warnf("nothing was deleted: %zu session%s to be deleted", outcome.undeleted,
              outcome.undeleted == 1 ? " was" : "s were");
    if (outcome.signal)
        die_signal(outcome.signal);
    start_report_bad(&all.histories.at[0], outcome.bad_lines, args.common.quiet);
    status = act(&out, &outcome, &all, print, args.common.quiet);

    import_hint(&all);
    browse_outcome_release(&outcome);
    choose_release(&all);
    buf_release(&query);
    buf_release(&session);
    free(state);
    return out_close(&out, status);
}
