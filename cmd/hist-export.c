/* hist-export - write sessions as Markdown, JSON, text and other formats. */
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/path.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/export_run.h"
#include "chathist/cli/output.h"

enum { KEY_MESSAGES = OPT_LONG, KEY_INCREMENTAL, KEY_ALL_SESSIONS, KEY_REDACT, KEY_RAW };

static const struct opt options[] = {
    {'f', "format", OPT_CHOICE, "md|html|json|jsonl|txt|openai|anthropic",
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

static void parse_job(struct export_job *job, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = choose_next(&job->choice, args, &value)) != 0) {
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

static bool is_directory(const char *path)
{
    struct stat st;

    return str_ends(str_of(path), STR("/")) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* Ends the program for a name such as `report.pdf`, because no format has this suffix. */
static void check_ending(const char *path)
{
    const char *name = path_base(path);
    const char *dot = strrchr(name, '.');

    if (dot && dot > name)
        die_usage("no format has the ending '%s': choose one with --format", dot);
}

static void settle_output(struct export_job *job)
{
    if (job->output && !*job->output)
        die_usage("--output needs the name of a file or a directory");
    job->directory = job->output && is_directory(job->output);
    if (!job->format && job->output)
        job->format = export_format_of(job->output);
    if (!job->format && job->output && !job->directory)
        check_ending(job->output);
    if (!job->format)
        job->format = export_formats[0];
}

/* Checks the options that go with --all. */
static void settle_histories(struct export_job *job)
{
    if (job->choice.names.count > 0 || job->messages || job->choice.common.history)
        die_usage("--all cannot be combined with a session, --history or --messages");
    if (job->output && !job->directory)
        die_usage("--all needs a directory for --output");
    if (!job->output && !job->format->grows)
        die_usage("--all needs a directory for --output with the format %s", job->format->name);
    job->all = true;
}

/* Completes the options, and ends the program if they contradict each other. */
static void complete_job(struct export_job *job)
{
    bool json = job->choice.common.json, named = job->choice.names.count > 0;
    bool restricted = choose_restricts(&job->choice) || job->choice.limit > 0;

    if (json && job->format && !job->format->lines)
        die_usage("--json is the same as -f jsonl: it cannot be combined with another format");
    if (json)
        job->format = export_format_named(STR("jsonl"));
    settle_output(job);

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
    if (job->choice.all)
        settle_histories(job);
    if (!named && (job->state || restricted || job->directory))
        job->all = true;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct export_job job = {0};
    struct out out;
    int status;

    opt_start(&args, &program, argc, argv);
    parse_job(&job, &args);
    complete_job(&job);
    choose_open(&job.choice, &(struct choose_want){.use = job.messages ? CHOOSE_STORE : CHOOSE_READ,
                                                   .reach = CHOOSE_ANYWHERE,
                                                   .session = job.all ? NULL : "current"});
    choose_tell_homes(&job.choice);
    out_start(&out, args.common.color);
    status = job.choice.all ? export_run_all(&job, &out)
                            : export_run(&job, choose_home(&job.choice), &out);

    choose_release(&job.choice);
    return out_close(&out, status);
}
