/* hist-search - search the content of messages. */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/thread_pool.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/search_run.h"

#define LIMIT_ON_TERMINAL 100

enum { KEY_CASE = OPT_LONG, KEY_FILE, KEY_REVERSE };

static const struct opt options[] = {
    {'e', "regexp", OPT_TEXT, "TEXT", "look for this text; may be repeated: any of them"},
    {'E', "extended-regexp", OPT_FLAG, NULL, "texts are regular expressions (Perl's)"},
    {'F', "fixed-strings", OPT_FLAG, NULL, "texts are taken literally, the default"},
    {'i', "ignore-case", OPT_FLAG, NULL, "upper and lower case are the same, the default"},
    {'w', "word-regexp", OPT_FLAG, NULL, "match whole words only"},
    {KEY_CASE, "case-sensitive", OPT_FLAG, NULL, "tell upper and lower case apart"},
    {'v', "invert-match", OPT_FLAG, NULL, "find the messages that do not match"},
    CHOOSE_MESSAGES,
    {KEY_FILE, "file", OPT_FILE, "PATH", "only messages about this file; may be repeated"},
    CHOOSE_LIMIT("print at most N messages, or all (100 on a terminal, else all)"),
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
    CHOOSE_HISTORIES,
    CHOOSE_PAGER,
    {'j', "threads", OPT_NUMBER, "N", "search with N threads (as many as are of use)"},
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "print nothing, tell by the exit code"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {
    "hist-search", "search the content of messages, the newest first", "[TEXT]", OPT_TEXT, options};

#define NOT_GIVEN SIZE_MAX

/* Arguments that are combined after the last option. */
struct raw {
    struct choice_list texts;
    size_t around; /* -C */
};

static void set_what(struct search_run *r, enum search_what what)
{
    if (r->what != SEARCH_MESSAGES && r->what != what)
        die_usage("only one of --sessions, --sessions-without-match and --count can be given");
    r->what = what;
}

static void take_flag(struct search_run *r, int key)
{
    const struct {
        int key;
        bool *flag, to;
    } flags[] = {
        {'E', &r->pattern.regex, true},
        {'F', &r->pattern.regex, false},
        {'w', &r->pattern.words, true},
        {'i', &r->pattern.case_sensitive, false},
        {KEY_CASE, &r->pattern.case_sensitive, true},
        {'v', &r->invert, true},
        {'o', &r->only, true},
        {KEY_REVERSE, &r->reverse, true},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].key == key)
            *flags[i].flag = flags[i].to;
    if (key == 'l')
        set_what(r, SEARCH_SESSIONS);
    if (key == 'L')
        set_what(r, SEARCH_SESSIONS_WITHOUT);
    if (key == 'c')
        set_what(r, SEARCH_COUNT);
}

static void take(struct search_run *r, struct raw *raw, int key, char *value)
{
    switch (key) {
    case 'e':
        choice_add(&raw->texts, value);
        break;
    case KEY_FILE:
        filter_add(&r->choice.filter.files, str_of(value));
        break;
    case 'm':
        r->choice.limit = opt_count("--max-count", value);
        break;
    case 'A':
        r->after = opt_number("--after-context", value);
        break;
    case 'B':
        r->before = opt_number("--before-context", value);
        break;
    case 'C':
        raw->around = opt_number("--context", value);
        break;
    case 'j':
        r->threads = opt_number("--threads", value);
        if (r->threads > THREAD_POOL_MAX)
            r->threads = THREAD_POOL_MAX;
        break;
    default:
        take_flag(r, key);
    }
}

/* Checks which options can be combined, and sets defaults. */
static void combine(struct search_run *r, const struct raw *raw)
{
    bool context = raw->around != NOT_GIVEN || r->before != NOT_GIVEN || r->after != NOT_GIVEN;
    bool json = r->choice.common.json;

    if (json && r->what == SEARCH_SESSIONS_WITHOUT)
        die_usage("--json does not go with --sessions-without-match");
    if (json && r->what != SEARCH_MESSAGES)
        die_usage("--json goes with neither --sessions nor --count");
    if (r->only && (json || r->what != SEARCH_MESSAGES))
        die_usage("--only-matching goes with none of --json, --sessions, "
                  "--sessions-without-match and --count");
    if (context && (r->only || r->what != SEARCH_MESSAGES))
        die_usage("messages of context go with none of --only-matching, --sessions, "
                  "--sessions-without-match and --count");
    if (r->choice.common.quiet)
        r->what = SEARCH_NOTHING;
    if (r->before == NOT_GIVEN)
        r->before = raw->around != NOT_GIVEN ? raw->around : 0;
    if (r->after == NOT_GIVEN)
        r->after = raw->around != NOT_GIVEN ? raw->around : 0;
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

static void parse(struct search_run *r, int argc, char **argv)
{
    struct raw raw = {.around = NOT_GIVEN};
    struct opt_parser args;
    struct err e = ERR_INIT;
    char **words, *value;
    size_t count;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&r->choice, &args, &value)) != 0)
        take(r, &raw, key, value);
    words = opt_operands(&args, &count);
    combine(r, &raw);
    if (raw.texts.count > 0 && count > 0)
        die_usage("TEXT cannot be combined with --regexp");
    if (raw.texts.count == 0 && count != 1)
        expect_text(words, count);
    if (count > 0)
        choice_add(&raw.texts, words[0]);
    for (size_t i = 0; i < raw.texts.count; i++)
        if (pattern_add(&r->pattern, str_of(raw.texts.at[i]), &e) < 0)
            die_usage("%s", err_text(&e));
    free(raw.texts.at);
}

int main(int argc, char **argv)
{
    struct search_run run = {.before = NOT_GIVEN, .after = NOT_GIVEN};
    int status;

    pattern_init(&run.pattern);
    parse(&run, argc, argv);
    choose_open(&run.choice, CHOOSE_FOREIGN, NULL);
    out_start(&run.out, run.choice.common.color);
    if (run.choice.limit == 0)
        run.choice.limit = run.out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    if (!run.choice.unpaged)
        out_page(&run.out);
    status = search_run_histories(&run);

    pattern_release(&run.pattern);
    choose_release(&run.choice);
    return out_close(&run.out, status, exit_code(ERR_FAILURE));
}
