/* hist-export - write sessions as Markdown, JSON, text and other formats. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/export_run.h"
#include "chathist/cli/output.h"
#include "chathist/cli/start.h"

enum { KEY_SINCE = OPT_LONG, KEY_UNTIL, KEY_MESSAGES, KEY_INCREMENTAL, KEY_REDACT, KEY_RAW };

static const struct opt options[] = {
    {'f', "format", OPT_CHOICE, "md|html|json|jsonl|txt|openai|anthropic",
     "write this format; default: by the name of the output, else md"},
    {'o', "output", OPT_FILE, "FILE", "write to this file, or a file per session to a directory"},
    {'a', "all", OPT_FLAG, NULL, "every session"},
    {KEY_SINCE, "since", OPT_TIME, "TIME", "only sessions used then or later: a date, 7d, ..."},
    {KEY_UNTIL, "until", OPT_TIME, "TIME", "only sessions used then or earlier"},
    {KEY_MESSAGES, "messages", OPT_FILE, "FILE",
     "export exactly these history lines; - is standard input"},
    {KEY_INCREMENTAL, "incremental", OPT_FILE, "STATE",
     "export only what is new since the last run with STATE"},
    {KEY_REDACT, "redact", OPT_FLAG, NULL, "replace keys, tokens and passwords"},
    {KEY_RAW, "raw", OPT_FLAG, NULL, "every line, replaced and reset ones too"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "the same as -f jsonl"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
/* Returns true if sessions are selected by a time. */
static bool has_bounds(const struct export_job *job)
{
    return job->since != INT64_MIN || job->until != INT64_MAX;
}

static const struct program program = {"hist-export", "write sessions in other formats",
                                       "[SESSION|-]...", OPT_SESSION, options};

static const struct export_format *format_named(const char *name)
{
    const struct export_format *format = export_format_named(str_of(name));
    struct buf names = BUF_INIT(BUF_SMALL);

    if (!format) {
        export_format_names(&names);
        die_usage("bad value '%s' for --format: %s is expected", name, buf_c(&names));
    }
    return format;
}

static void parse(struct export_job *job, struct opt_parser *args)
{
    int64_t now = time_now(), other;
    char *value;
    int key;

    while ((key = opt_next(args, &value)) != 0) {
        switch (key) {
        case 'f':
            job->format = format_named(value);
            break;
        case 'o':
            job->output = strcmp(value, "-") == 0 ? NULL : value;
            break;
        case 'a':
            job->all = true;
            break;
        case KEY_SINCE:
            opt_when("--since", value, now, &job->since, &other);
            break;
        case KEY_UNTIL:
            opt_when("--until", value, now, &other, &job->until);
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
    job->names = opt_operands(args, &job->names_count);
    job->quiet = args->common.quiet;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return str_ends(str_of(path), STR("/")) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* Ends the program for a name such as `report.pdf`, because no format has this suffix. */
static void check_ending(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
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

/* Completes the options, and ends the program if they contradict each other. */
static void settle(struct export_job *job, bool json)
{
    if (json && job->format && !job->format->lines)
        die_usage("--json is the same as -f jsonl: it cannot be combined with another format");
    if (json)
        job->format = export_format_named(STR("jsonl"));
    settle_output(job);

    if (job->all && job->names_count > 0)
        die_usage("--all cannot be combined with a session");
    if (job->messages &&
        (job->all || job->names_count > 0 || has_bounds(job) || job->state || job->raw))
        die_usage("--messages cannot be combined with a session, --all, --since, --until, --raw "
                  "or --incremental");
    if (job->messages && job->directory)
        die_usage("--messages cannot be exported to a directory: give a file");
    if (job->state && has_bounds(job))
        die_usage("--incremental cannot be combined with --since or --until");
    if (job->state && job->names_count > 0)
        die_usage("--incremental exports new messages of all sessions: give no session");
    if (job->state && job->output && !job->directory && !job->format->grows)
        die_usage("a file of format %s cannot grow: give --incremental a directory for --output",
                  job->format->name);
    if (job->names_count == 0 && (job->state || has_bounds(job)))
        job->all = true;
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct export_job job = {.since = INT64_MIN, .until = INT64_MAX};
    struct out out;
    int status;

    opt_start(&args, &program, argc, argv);
    parse(&job, &args);
    settle(&job, args.common.json);
    if (job.messages)
        start_history(&config, &history, &args.common);
    else
        start_reader(&config, &history, &args.common);
    out_start(&out, args.common.color);
    status = export_run(&job, &history, &out);

    history_release(&history);
    config_release(&config);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
