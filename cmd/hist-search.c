/* hist-search - search messages. */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/cli/import_hint.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/query_offer.h"
#include "chathist/cli/search_run.h"

#define LIMIT_ON_TERMINAL 100
#define LIMIT_LIKE 20

enum {
    KEY_CASE = OPT_LONG,
    KEY_QUERY,
    KEY_IN_SESSION,
    KEY_NEARLY,
    KEY_LIKE,
    KEY_COMPLETE,
    KEY_IN,
    KEY_FILE,
    KEY_SORT,
    KEY_REVERSE
};

/* In the order of the array in read_parts. */
#define PARTS "content|tools|files|title|model|id"

#define SORT_KEYS "newest|best"

static const struct opt options[] = {
    {'e', "regexp", OPT_TEXT, "TEXT", "look for this text; may be repeated: any of them"},
    {'E', "extended-regexp", OPT_FLAG, NULL, "texts are regular expressions (Perl's)"},
    {'F', "fixed-strings", OPT_FLAG, NULL, NULL},
    {'i', "ignore-case", OPT_FLAG, NULL, NULL},
    {'w', "word-regexp", OPT_FLAG, NULL, "match whole words only"},
    {KEY_CASE, "case-sensitive", OPT_FLAG, NULL, "tell upper and lower case apart"},
    {KEY_QUERY, "query", OPT_QUERY, "QUERY", "look for words, \"phrases\", -words and FIELD:VALUE"},
    {KEY_IN_SESSION, "in-session", OPT_FLAG, NULL,
     "the texts may be in different messages of a session"},
    {KEY_NEARLY, "nearly", OPT_FLAG, NULL,
     "with --in-session: if no session has all texts, one may be missing"},
    {KEY_LIKE, "like", OPT_TEXT, "TEXT",
     "find messages about the same, with the model of embed.model"},
    {KEY_IN, "in", OPT_CHOICES, PARTS, "search these, separated by commas (content,tools)"},
    {'v', "invert-match", OPT_FLAG, NULL, "find the messages that do not match"},
    CHOOSE_MESSAGES("only messages of this session; may be repeated"),
    {KEY_FILE, "file", OPT_FILE, "PATH", "only messages about this file; may be repeated"},
    CHOOSE_LIMIT("print at most N messages, or all (100 on a terminal, else all)"),
    {'m', "max-count", OPT_NUMBER, "N", NULL},
    {'l', "sessions", OPT_FLAG, NULL, "print the ids of the sessions with a match"},
    {'L', "sessions-without-match", OPT_FLAG, NULL, "print the ids of the sessions without one"},
    {'c', "count", OPT_FLAG, NULL, "print how many messages match"},
    {'o', "only-matching", OPT_FLAG, NULL, "print each match alone, on a line of its own"},
    {'A', "after-context", OPT_NUMBER, "N",
     "print N messages of the session after each match, too"},
    {'B', "before-context", OPT_NUMBER, "N", "print N messages before each match, too"},
    {'C', "context", OPT_NUMBER, "N", "print N messages before and after each match, too"},
    {KEY_SORT, "sort", OPT_CHOICE, SORT_KEYS, "the newest first, or prompts and answers first"},
    {KEY_REVERSE, "reverse", OPT_FLAG, NULL, "print the oldest first"},
    CHOOSE_HISTORIES,
    CHOOSE_REMOTE,
    CHOOSE_PAGER,
    {'j', "threads", OPT_NUMBER, "N", "search with N threads (as many as are of use)"},
    BRIEF_OPTIONS,
    {OPT_QUIET, "quiet", OPT_FLAG, NULL, "print nothing, tell by the exit code"},
    {KEY_COMPLETE, "complete", OPT_QUERY, "QUERY", NULL}, /* run by the completions */
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-search", "search messages, the newest first",
                                       "[TEXT]...", OPT_TEXT, options};

#define NOT_GIVEN SIZE_MAX
/* The most words of --like that are looked for. */
#define WORDS_LIKE ((size_t)8)

/* Prints what a query can be completed to, and ends the program. */
static _Noreturn void complete_query(struct search_run *r, const char *query)
{
    struct words offers = {0};

    out_start(&r->out, r->choice.common.color);
    choose_open(&r->choice, &(struct choose_want){.reach = CHOOSE_USERS});
    query_offer(&offers, str_of(query), r->choice.histories.at, r->choice.histories.count);
    for (size_t i = 0; i < offers.count; i++) {
        out_text(&r->out, str_of(offers.at[i]));
        out_byte(&r->out, '\n');
    }
    exit(out_close(&r->out, 0));
}

static void set_what(struct search_run *r, enum search_what what)
{
    if (r->what != SEARCH_MESSAGES && r->what != what)
        die_usage("only one of --sessions, --sessions-without-match and --count can be given");
    r->what = what;
}

static void set_search_flag(struct search_run *r, int key)
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
        {KEY_IN_SESSION, &r->in_session, true},
        {KEY_NEARLY, &r->nearly, true},
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

/* Reads names of parts that are separated by commas. */
static void read_parts(struct search_run *r, const char *names)
{
    static const enum search_in parts[] = {SEARCH_CONTENT, SEARCH_TOOLS, SEARCH_FILES,
                                           SEARCH_TITLE,   SEARCH_MODEL, SEARCH_ID};
    struct str rest = str_of(names);

    r->in = 0;
    while (rest.p)
        r->in |= parts[opt_choice(PARTS, str_cut(&rest, ','))];
}

static void read_option(struct search_run *r, size_t *around, int key, char *value)
{
    switch (key) {
    case 'e':
        arg_list_add(&r->texts, value);
        break;
    case KEY_QUERY:
        r->query_text = value;
        break;
    case KEY_COMPLETE:
        r->complete = value;
        break;
    case KEY_LIKE:
        r->like = value;
        break;
    case KEY_IN:
        read_parts(r, value);
        break;
    case KEY_FILE:
        filter_add(&r->choice.filter.files, str_of(value));
        break;
    case KEY_SORT:
        r->best = opt_choice(SORT_KEYS, str_of(value)) > 0;
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
        *around = opt_number("--context", value);
        break;
    case 'j':
        r->threads = opt_number("--threads", value);
        if (r->threads > THREAD_POOL_MAX)
            r->threads = THREAD_POOL_MAX;
        break;
    default:
        if (!brief_read_option(&r->brief, key, value))
            set_search_flag(r, key);
    }
}

/* --like is a search of its own; `context`: messages around its hits are asked for. */
static void check_like(const struct search_run *r, bool context)
{
    const struct pattern *p = &r->pattern;
    bool texts = r->texts.count > 0 || r->query_text || p->regex || p->words || p->case_sensitive;
    bool forms = r->in_session || r->best || r->reverse || r->only || r->what != SEARCH_MESSAGES;
    bool others = r->choice.remote || r->in != SEARCH_IN_DEFAULT || r->choice.common.quiet;

    if (texts || forms || others || r->invert || context)
        die_usage(
            "--like goes only with --json, --limit, --threads and options that choose messages "
            "or histories");
}

/* Checks which options can be combined, and sets defaults; `around` is the value of -C. */
static void combine(struct search_run *r, size_t around)
{
    bool context = around != NOT_GIVEN || r->before != NOT_GIVEN || r->after != NOT_GIVEN;
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
    if (r->in_session && (r->invert || r->what == SEARCH_SESSIONS_WITHOUT))
        die_usage("--in-session goes with neither --invert-match nor --sessions-without-match");
    if (r->best && (context || r->what == SEARCH_SESSIONS_WITHOUT))
        die_usage("--sort=best goes with neither context nor --sessions-without-match");
    if (r->like)
        check_like(r, context);
    if (r->nearly && !r->in_session)
        die_usage("--nearly needs --in-session");
    brief_check_options(&r->brief, json, true);
    r->brief.config = &r->choice.config;
    if (r->choice.common.quiet)
        r->what = SEARCH_NOTHING;
    around = around != NOT_GIVEN ? around : 0;
    if (r->before == NOT_GIVEN)
        r->before = around;
    if (r->after == NOT_GIVEN)
        r->after = around;
}

/* Opens the histories. The database finds texts in the content and the tool calls of a message;
 * other searches in it need whole sessions. */
static void open_searched(struct search_run *r)
{
    struct choice *c = &r->choice;
    bool all = r->what != SEARCH_MESSAGES || r->reverse || r->best || r->pattern.words ||
               r->pattern.case_sensitive || !filter_is_empty(&c->filter) || c->limit == SIZE_MAX;

    if (c->remote && c->names.count == 0 &&
        (r->pattern.regex || r->query_text || r->texts.count > 1 || r->in_session || r->invert ||
         r->what == SEARCH_SESSIONS_WITHOUT || r->before + r->after > 0 ||
         r->in != SEARCH_IN_DEFAULT))
        die_usage("with --remote, only --session SESSION goes with expressions, queries, several "
                  "--regexp, --in, --in-session, --invert-match and context");
    /* One more shows whether the limit leaves any out. */
    choose_open(c, &(struct choose_want){.reach = r->brief.own ? CHOOSE_ONE : CHOOSE_BESIDE,
                                         .texts = r->texts.count > 0 ? &r->texts : &r->operands,
                                         .limit = all ? SIZE_MAX : c->limit + 1});
}

/* The words of --like are looked for, too. */
static void add_like_words(struct search_run *r)
{
    struct str rest = str_of(r->like);

    while (rest.p && r->like_words.count < WORDS_LIKE) {
        struct str word = str_cut(&rest, ' ');

        if (word.n > 0)
            words_add(&r->like_words, word);
    }
    for (size_t i = 0; i < r->like_words.count; i++)
        arg_list_add(&r->operands, r->like_words.at[i]);
    if (r->operands.count == 0)
        die_usage("--like needs a text");
}

static void parse_search(struct search_run *r, int argc, char **argv)
{
    struct opt_parser args;
    char **words, *value;
    size_t count, around = NOT_GIVEN;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = choose_next(&r->choice, &args, &value)) != 0)
        read_option(r, &around, key, value);
    words = opt_operands(&args, &count);
    if (r->complete)
        complete_query(r, r->complete);
    combine(r, around);
    if (r->texts.count > 0 && count > 0)
        die_usage("TEXT cannot be combined with --regexp");
    if (r->like && count > 0)
        die_usage("TEXT cannot be combined with --like");
    if (r->like)
        add_like_words(r);
    if (r->texts.count == 0 && count == 0 && !r->query_text && !r->like)
        die_usage("a text to search for is expected");
    for (size_t i = 0; i < count; i++)
        arg_list_add(&r->operands, words[i]);
    search_run_set_texts(r, r->query_text);
}

int main(int argc, char **argv)
{
    struct search_run run = {.in = SEARCH_IN_DEFAULT, .before = NOT_GIVEN, .after = NOT_GIVEN};
    int status;

    pattern_init(&run.pattern);
    parse_search(&run, argc, argv);
    out_start(&run.out, run.choice.common.color);
    if (run.choice.limit == 0 && run.like)
        run.choice.limit = LIMIT_LIKE;
    if (run.choice.limit == 0)
        run.choice.limit = run.out.terminal ? LIMIT_ON_TERMINAL : SIZE_MAX;
    open_searched(&run);
    if (!run.choice.unpaged)
        out_page(&run.out);
    status = search_run_histories(&run);
    import_hint(&run.choice);

    search_run_release(&run);
    return out_close(&run.out, status);
}
