/* hist-export - write sessions as Markdown, JSON, text and other formats. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/path.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/session_match.h"
#include "chathist/cli/show.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/convert/export_page.h"
#include "chathist/convert/export_run.h"

enum { KEY_MESSAGES = OPT_LONG, KEY_INCREMENTAL, KEY_ALL_SESSIONS, KEY_REDACT, KEY_RAW };

static const struct opt options[] = {
    {'f', "format", OPT_CHOICE, "md|html|json|jsonl|txt|openai|anthropic|claude-code|codex|atif",
     "write this format; default: by the name of the output, else md"},
    {'o', "output", OPT_FILE, "FILE", "write to this file, or a file per session to a directory"},
    {CHOOSE_ALL, "all", OPT_FLAG, NULL, "every session of every history of yours"},
    {KEY_ALL_SESSIONS, "all-sessions", OPT_FLAG, NULL,
     "every session of the history, the default for a directory"},
    CHOOSE_SESSIONS,
    CHOOSE_LIMIT("only the N sessions of these that were used last"),
    {KEY_MESSAGES, "messages", OPT_FILE, "FILE",
     "export exactly these history lines; - is standard input"},
    {KEY_INCREMENTAL, "incremental", OPT_FILE, "STATE",
     "export only what is new since the last run with STATE"},
    {KEY_REDACT, "redact", OPT_FLAG, NULL, "replace keys, tokens and passwords"},
    {KEY_RAW, "raw", OPT_FLAG, NULL, "every line, replaced and reset ones too"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "the same as -f jsonl"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-export", "write sessions in other formats",
                                       "[SESSION|-]...", OPT_SESSION, options};

struct run {
    struct choice choice;
    struct export_job job;
    struct export_stdout to; /* the sink of the job */
    struct export_page page; /* the page of all histories, if there is one */
    bool has_page;
    const struct history *history;
    off_t page_size; /* the bytes of the histories whose lines it gets */
    int status;
};

static void parse_job(struct choice *c, struct export_job *job, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = choose_next(c, args, &value)) != 0) {
        switch (key) {
        case 'f':
            job->format = export_format_named(str_of(value));
            break;
        case 'o':
            job->output = strcmp(value, "-") == 0 ? NULL : value;
            break;
        case KEY_ALL_SESSIONS:
            job->all = true;
            break;
        case KEY_MESSAGES:
            job->messages = value;
            break;
        case KEY_INCREMENTAL:
            job->state = value;
            break;
        case KEY_REDACT:
            job->redact = true;
            break;
        case KEY_RAW:
            job->raw = true;
            break;
        }
    }
}

/* Finds out whether the output is a directory, and chooses the format. Ends the program for a name
 * such as `report.pdf`, because no format has this suffix. */
static void set_output(struct export_job *job)
{
    const char *name = job->output ? path_base(job->output) : "", *dot = strrchr(name, '.');
    struct stat st;

    if (job->output && !*job->output)
        die_usage("--output needs the name of a file or a directory");
    job->directory = job->output && (str_ends(str_of(job->output), STR("/")) ||
                                     (stat(job->output, &st) == 0 && S_ISDIR(st.st_mode)));
    if (!job->format && job->output)
        job->format = export_format_of(job->output);
    if (!job->format && !job->directory && dot && dot > name)
        die_usage("no format has the ending '%s': choose one with --format", dot);
    if (!job->format)
        job->format = export_formats[0];
}

/* Completes the options that go with --all, or ends the program. */
static void complete_all(const struct choice *c, struct export_job *job)
{
    if (c->names.count > 0 || job->messages || c->common.history)
        die_usage("--all cannot be combined with a session, --history or --messages");
    job->all = true;
    if (job->format == &export_html) {
        if (job->state)
            die_usage(
                "--incremental cannot be combined with --all and the format html: of a folder, "
                "only files that change are written anyway");
        return;
    }
    if (job->output && !job->directory)
        die_usage("--all needs a directory for --output");
    if (!job->output && !job->format->grows)
        die_usage("--all needs a directory for --output with the format %s", job->format->name);
}

/* Completes the options, and ends the program if they contradict each other. */
static void complete_job(const struct choice *c, struct export_job *job)
{
    bool json = c->common.json, named = c->names.count > 0;
    bool restricted = choose_restricts(c) || c->limit > 0;

    if (json && job->format && !job->format->lines)
        die_usage("--json is the same as -f jsonl: it cannot be combined with another format");
    if (json)
        job->format = export_format_named(STR("jsonl"));
    set_output(job);

    if (job->all && named)
        die_usage("--all-sessions cannot be combined with a session");
    if (job->messages && (job->all || named || restricted || job->state || job->raw))
        die_usage("--messages cannot be combined with a session, --all-sessions, --since, --until, "
                  "--role, "
                  "--model, --limit, --raw or --incremental");
    if (job->messages && job->directory)
        die_usage("--messages cannot be exported to a directory: give a file");
    if (job->state && restricted)
        die_usage("--incremental cannot be combined with --since, --until, --role, --model or "
                  "--limit");
    if (job->state && named)
        die_usage("--incremental exports new messages of all sessions: give no session");
    if (job->state && job->output && !job->directory && !job->format->grows)
        die_usage("a file of format %s cannot grow: give --incremental a directory for --output",
                  job->format->name);
    if (c->all)
        complete_all(c, job);
    if (!named && (job->state || restricted || job->directory))
        job->all = true;
    job->restricted = restricted;
}

/* ---- one history ---- */

static int list_chosen(void *arg, struct session_list *l, struct err *e)
{
    struct run *r = arg;
    size_t limit = r->choice.limit > 0 ? r->choice.limit : SIZE_MAX;

    return session_match_list(&r->choice, l, r->history, NULL, limit, e);
}

static int print_bytes(void *arg, struct str bytes, struct err *e)
{
    return export_to_stdout(&((struct run *)arg)->to, bytes, e);
}

static int flush_bytes(void *arg)
{
    return out_flush(((struct run *)arg)->to.out);
}

static void report_absent(void *arg, struct str id)
{
    struct run *r = arg;

    warnf("session '%.*s' has no messages", (int)id.n, id.p);
    r->status = exit_code(ERR_ABSENT);
}

static void report_kept(void *arg, const char *path)
{
    struct run *r = arg;

    warnf("'%s' exists with another content, which its program may have added: remove it to export "
          "the session again",
          path);
    r->status = exit_code(ERR_FAILURE);
}

/* Browsers are slow with a larger page, and do not open one that is much larger. */
#define PAGE_LARGE ((off_t)50000000)

/* Warns once, when the histories of the page have more than that. */
static void warn_of_size(void *arg, off_t bytes)
{
    struct run *r = arg;
    struct buf size = BUF_INIT(BUF_SMALL);
    bool small = r->page_size < PAGE_LARGE;

    r->page_size += bytes;
    if (!small || r->page_size < PAGE_LARGE || r->choice.common.quiet ||
        strcmp(r->job.format->name, "html") != 0)
        return;
    buf_add_scaled(&size, (uint64_t)r->page_size, " ");
    warnf("the page has %sB or more, too much for most browsers: --since or -n N takes less, and a "
          "directory for --output gets %s",
          buf_c(&size),
          r->has_page ? "files that are loaded as needed" : "a page for each session");
    buf_release(&size);
}

static int add_to_page(struct export_page *page, const struct history *h, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int rc;

    history_name_add(&name, h);
    rc = export_page_add(page, h, buf_str(&name), e);
    buf_release(&name);
    return rc;
}

/* Ends the program if a file that it is to write is one that it reads. */
static void check_places(const struct run *r)
{
    const struct export_job *job = &r->job;
    const char *file = job->directory ? NULL : job->output;

    choose_check_output(&r->choice, "--output", file);
    choose_check_output(&r->choice, "--incremental", job->state);
    if (file && job->state && path_same(file, job->state))
        die_usage("'%s' cannot be both --output and the state of --incremental", file);
}

/* Returns the directory of the repository of a history, or another one that has it; for the user's
 * own history and one in a file the home directory. */
static struct str directory_of_history(const struct history *h)
{
    bool elsewhere = h->kind == HISTORY_USER || h->kind == HISTORY_EXPLICIT;
    struct str place = elsewhere ? str_of(config_env("HOME")) : history_place(h);

    if (h->kind == HISTORY_HERE)
        place.n = (size_t)(path_base(place.p) - place.p) - 1;
    return place;
}

/* Exports the chosen sessions of a history. A failure ends the program, unless other histories follow
 * (`goes_on`): then it is reported. Returns the exit status. */
static int export_one(struct run *r, const struct history *h, bool goes_on)
{
    struct export_job *job = &r->job;
    bool quiet = r->choice.common.quiet, absent = false;
    struct err e = ERR_INIT;
    int result = 0;

    r->history = h;
    r->status = 0;
    job->place = directory_of_history(h);
    job->cancel_fd = job->output ? interrupt_begin(&e) : -1;
    if (e.kind != ERR_NONE)
        die_err(&e);
    if (!job->messages) {
        (void)choose_in(&r->choice, h);
        r->status = choose_report(&r->choice);
        absent = r->status != 0 && r->choice.filter.sessions.count == 0;
        if (absent && r->choice.names.count == 0 && !quiet)
            hintf(false, "--all-sessions exports every session of the history");
    }
    if (!absent)
        result = r->has_page ? add_to_page(&r->page, h, &e) : export_run(job, h, &e);
    progress_end();
    start_report_bad(h, job->bad_lines, quiet);
    start_report_entries(job->messages, job->bad_entries, false, quiet);
    if (result < 0 && e.kind == ERR_SIGNAL) {
        if (r->has_page)
            export_page_drop(&r->page);
        die_signal(interrupt_signal());
    }
    if (result < 0 && !goes_on)
        die_err(&e);
    if (result < 0) {
        warn_err(&e);
        r->status = exit_code(e.kind);
        err_release(&e);
    }
    if (job->output)
        interrupt_end();
    if (job->redact && !quiet)
        warnf("%zu redacted; secrets of another form remain", job->redacted);
    return r->status;
}

/* ---- all histories ---- */

/* Returns the path of the entry for a history in a directory: the name of the history with `%` for
 * each slash. The caller frees it. */
static char *entry_path(const char *directory, const struct history *h)
{
    struct buf name = BUF_INIT(BUF_SMALL), path = BUF_INIT(SIZE_MAX);

    history_name_add(&name, h);
    buf_add_c(&path, directory);
    if (!str_ends(buf_str(&path), STR("/")))
        buf_add_byte(&path, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '%')
            buf_add_c(&path, "=25");
        else if (name.data[i] == '=')
            buf_add_c(&path, "=3D");
        else
            buf_add_byte(&path, name.data[i] == '/' ? '%' : name.data[i]);
    }
    buf_release(&name);
    return buf_detach(&path);
}

static void make_directory(const char *path)
{
    struct err e = ERR_INIT;

    if (file_make_dirs(path, &e) < 0)
        die_err(&e);
}

/* Exports every trusted history as one page, in which the last history comes first in a list of
 * sessions of the same time. */
static int export_everything(struct run *r)
{
    struct err e = ERR_INIT;
    int status = 0;

    if (export_page_begin(&r->page, &r->job, &e) < 0)
        die_err(&e);
    r->has_page = true;
    for (size_t i = r->choice.histories.count; i-- > 0;) {
        const struct history *h = &r->choice.histories.at[i];
        int one = h->trusted ? export_one(r, h, true) : 0;

        status = one > status ? one : status;
    }
    if (export_page_end(&r->page, status == 0, &e) < 0)
        die_err(&e);
    return status;
}

/* Exports every trusted history: the output and the state, if they are given, are directories with
 * one entry for each. */
static int export_each(struct run *r)
{
    const char *output = r->job.output, *state = r->job.state;
    int status = 0;

    if (state)
        make_directory(state);
    for (size_t i = 0; i < r->choice.histories.count; i++) {
        const struct history *h = &r->choice.histories.at[i];
        char *own_output, *own_state;
        int one;

        if (!h->trusted)
            continue;
        r->job.output = own_output = output ? entry_path(output, h) : NULL;
        r->job.state = own_state = state ? entry_path(state, h) : NULL;
        if (output)
            make_directory(own_output);
        one = export_one(r, h, true);
        status = one > status ? one : status;
        free(own_output);
        free(own_state);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct run run = {.job = {.arg = &run,
                              .sink = print_bytes,
                              .flush = flush_bytes,
                              .list = list_chosen,
                              .expect = warn_of_size,
                              .absent = report_absent,
                              .kept = report_kept}};
    struct export_job *job = &run.job;
    struct choice *c = &run.choice;
    struct out out;
    int status;

    opt_start(&args, &program, argc, argv);
    parse_job(c, job, &args);
    complete_job(c, job);
    choose_open(c, &(struct choose_want){.use = job->messages ? CHOOSE_STORE : CHOOSE_READ,
                                         .reach = CHOOSE_ANYWHERE,
                                         .session = job->all ? NULL : "current"});
    choose_tell_homes(c);
    out_start(&out, args.common.color);
    run.to = (struct export_stdout){&out, job->format->json};
    job->named = &c->filter.sessions;
    if (!args.common.quiet && !out.terminal && progress_possible())
        job->work = progress_work;
    check_places(&run);
    if (!c->all)
        status = export_one(&run, choose_home(c), false);
    else
        status = job->format == &export_html ? export_everything(&run) : export_each(&run);

    choose_release(c);
    return out_close(&out, status);
}
