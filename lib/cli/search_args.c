#include "chathist/cli/search_args.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/output.h"

enum {
    KEY_CASE = OPT_LONG,
    KEY_SINCE,
    KEY_UNTIL,
    KEY_MODEL,
    KEY_FILE,
    KEY_REVERSE,
    KEY_ALL,
    KEY_NO_PAGER,
};

static const struct opt options[] = {
    {'e', "regexp", OPT_TEXT, "TEXT", "look for this text; may be repeated: any of them"},
    {'E', "extended-regexp", OPT_FLAG, NULL, "texts are regular expressions (Perl's)"},
    {'F', "fixed-strings", OPT_FLAG, NULL, "texts are taken literally, the default"},
    {'i', "ignore-case", OPT_FLAG, NULL, "upper and lower case are the same, the default"},
    {'w', "word-regexp", OPT_FLAG, NULL, "match whole words only"},
    {KEY_CASE, "case-sensitive", OPT_FLAG, NULL, "tell upper and lower case apart"},
    {'v', "invert-match", OPT_FLAG, NULL, "find the messages that do not match"},
    {'r', "role", OPT_ROLE, "ROLE", "only messages of this role; may be repeated"},
    {'s', "session", OPT_SESSION, "SESSION", "only messages of this session; may be repeated"},
    {KEY_SINCE, "since", OPT_TIME, "TIME", "only messages of this time or later: a date, 7d, ..."},
    {KEY_UNTIL, "until", OPT_TIME, "TIME", "only messages of this time or earlier"},
    {KEY_MODEL, "model", OPT_MODEL, "MODEL", "only answers of this model; may be repeated"},
    {KEY_FILE, "file", OPT_FILE, "PATH", "only messages about this file; may be repeated"},
    {'n', "limit", OPT_NUMBER, "N",
     "print at most N messages, or all (100 on a terminal, else all)"},
    {'m', "max-count", OPT_NUMBER, "N", "print at most N messages, as with -n"},
    {'l', "sessions", OPT_FLAG, NULL, "print the ids of the sessions with a match"},
    {'L', "sessions-without-match", OPT_FLAG, NULL, "print the ids of the sessions without one"},
    {'c', "count", OPT_FLAG, NULL, "print how many messages match"},
    {'o', "only-matching", OPT_FLAG, NULL, "print each match alone, on a line of its own"},
    {'A', "after-context", OPT_NUMBER, "N",
     "print N messages of the session after each match, too"},
    {'B', "before-context", OPT_NUMBER, "N", "print N messages before each match, too"},
    {'C', "context", OPT_NUMBER, "N", "print N messages before and after each match, too"},
    {KEY_REVERSE, "reverse", OPT_FLAG, NULL, "print the oldest first"},
    {KEY_ALL, "all", OPT_FLAG, NULL, "search every history that is registered as yours"},
    PAGER_OPTION(KEY_NO_PAGER),
    {OPT_HISTORY, "history", OPT_FILE, "FILE", "search this history file; may be repeated"},
    {'j', "threads", OPT_NUMBER, "N", "search with N threads (as many as are of use)"},
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "print nothing, tell by the exit code"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {
    "hist-search", "search the content of messages, the newest first", "[TEXT]", OPT_TEXT, options};

#define NOT_GIVEN SIZE_MAX

/* Values that are combined after the last option. */
struct raw {
    struct search_list texts;
    size_t around; /* -C */
    int64_t now;
};

static void push(struct search_list *l, char *value)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count++] = value;
}

static void set_what(struct search_args *a, enum search_what what)
{
    if (a->what != SEARCH_MESSAGES && a->what != what)
        die_usage("only one of --sessions, --sessions-without-match and --count can be given");
    a->what = what;
}

static void take_flag(struct search_args *a, int key)
{
    const struct {
        int key;
        bool *flag, to;
    } flags[] = {
        {'E', &a->pattern.regex, true},
        {'F', &a->pattern.regex, false},
        {'w', &a->pattern.words, true},
        {'i', &a->pattern.case_sensitive, false},
        {KEY_CASE, &a->pattern.case_sensitive, true},
        {'v', &a->invert, true},
        {'o', &a->only, true},
        {KEY_REVERSE, &a->reverse, true},
        {KEY_ALL, &a->all, true},
        {KEY_NO_PAGER, &a->unpaged, true},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].key == key)
            *flags[i].flag = flags[i].to;
    if (key == 'l')
        set_what(a, SEARCH_SESSIONS);
    if (key == 'L')
        set_what(a, SEARCH_SESSIONS_WITHOUT);
    if (key == 'c')
        set_what(a, SEARCH_COUNT);
}

/* The last --since counts, and the last --until. */
static void take_time(struct search_args *a, const struct raw *raw, int key, const char *value)
{
    int64_t first, last;

    if (key == KEY_SINCE) {
        opt_when("--since", value, raw->now, &first, &last);
        a->filter.has_since = true;
        a->filter.since = first;
    } else {
        opt_when("--until", value, raw->now, &first, &last);
        a->filter.has_until = true;
        a->filter.until = last;
    }
}

/* Numbers above THREAD_POOL_MAX mean THREAD_POOL_MAX. */
static size_t take_threads(const char *value)
{
    size_t n = opt_number("--threads", value);

    return n < THREAD_POOL_MAX ? n : THREAD_POOL_MAX;
}

static void take(struct search_args *a, struct raw *raw, int key, char *value)
{
    switch (key) {
    case 'e':
        push(&raw->texts, value);
        break;
    case 'r':
        filter_add(&a->filter.roles, str_of(value));
        break;
    case 's':
        push(&a->names, value);
        break;
    case KEY_SINCE:
    case KEY_UNTIL:
        take_time(a, raw, key, value);
        break;
    case KEY_MODEL:
        filter_add(&a->filter.models, str_of(value));
        break;
    case KEY_FILE:
        filter_add(&a->filter.files, str_of(value));
        break;
    case 'n':
        a->limit = opt_count("--limit", value);
        break;
    case 'm':
        a->limit = opt_count("--max-count", value);
        break;
    case 'A':
        a->after = opt_number("--after-context", value);
        break;
    case 'B':
        a->before = opt_number("--before-context", value);
        break;
    case 'C':
        raw->around = opt_number("--context", value);
        break;
    case 'j':
        a->threads = take_threads(value);
        break;
    case OPT_HISTORY:
        push(&a->files, value);
        break;
    default:
        take_flag(a, key);
    }
}

/* Checks which options can be combined, and sets defaults. */
static void combine(struct search_args *a, const struct raw *raw)
{
    bool context = raw->around != NOT_GIVEN || a->before != NOT_GIVEN || a->after != NOT_GIVEN;

    if (a->common.json && a->what == SEARCH_SESSIONS_WITHOUT)
        die_usage("--json does not go with --sessions-without-match");
    if (a->common.json && a->what != SEARCH_MESSAGES)
        die_usage("--json goes with neither --sessions nor --count");
    if (a->only && (a->common.json || a->what != SEARCH_MESSAGES))
        die_usage("--only-matching goes with none of --json, --sessions, "
                  "--sessions-without-match and --count");
    if (context && (a->only || a->what != SEARCH_MESSAGES))
        die_usage("messages of context go with none of --only-matching, --sessions, "
                  "--sessions-without-match and --count");
    if (a->common.quiet)
        a->what = SEARCH_NOTHING;
    if (a->before == NOT_GIVEN)
        a->before = raw->around != NOT_GIVEN ? raw->around : 0;
    if (a->after == NOT_GIVEN)
        a->after = raw->around != NOT_GIVEN ? raw->around : 0;
}

static void add_text(struct search_args *a, const char *text)
{
    struct err e = ERR_INIT;

    if (pattern_add(&a->pattern, str_of(text), &e) < 0)
        die_usage("%s", err_text(&e));
}

/* Ends the program with an error: there is not exactly one TEXT. */
static void expect_text(char **words, size_t count)
{
    struct buf joined = BUF_INIT(BUF_SMALL);

    if (count == 0)
        die_usage("a text to search for is expected");
    for (size_t i = 0; i < count; i++)
        buf_addf(&joined, "%s%s", i > 0 ? " " : "", words[i]);
    die_usage("one text is expected: quote it, '%s', or give each with -e", buf_c(&joined));
}

void search_args_parse(struct search_args *a, int argc, char **argv)
{
    struct raw raw = {.around = NOT_GIVEN, .now = time_now()};
    struct opt_parser args;
    char **words, *value;
    size_t count;
    int key;

    *a = (struct search_args){.before = NOT_GIVEN, .after = NOT_GIVEN};
    pattern_init(&a->pattern);
    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        take(a, &raw, key, value);
    words = opt_operands(&args, &count);
    a->common = args.common;
    combine(a, &raw);
    if (raw.texts.count > 0 && count > 0)
        die_usage("TEXT cannot be combined with --regexp");
    if (raw.texts.count == 0 && count != 1)
        expect_text(words, count);
    if (raw.texts.count == 0)
        add_text(a, words[0]);
    for (size_t i = 0; i < raw.texts.count; i++)
        add_text(a, raw.texts.at[i]);
    free(raw.texts.at);
}

void search_args_release(struct search_args *a)
{
    pattern_release(&a->pattern);
    filter_release(&a->filter);
    free(a->names.at);
    free(a->files.at);
}
