#include "chathist/chat/chat_args.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/message.h"
#include "chathist/llm/tool.h"

enum {
    KEY_BASE_URL = OPT_LONG,
    KEY_INSECURE,
    KEY_MESSAGES,
    KEY_REGENERATE,
    KEY_EDIT,
    KEY_NO_STREAM,
    KEY_NO_STDIN,
    KEY_NO_STORE,
    KEY_DRY_RUN,
    KEY_CONNECT,
    KEY_FIRST_BYTE,
    KEY_IDLE,
    KEY_RETRIES,
    KEY_YES,
    KEY_ITERATIONS,
    KEY_TOOL_TIMEOUT,
    KEY_MCP,
    KEY_SCHEMA,
    KEY_MODELS,
    KEY_EMBED,
    KEY_CACHED,
    KEY_VAR,
    KEY_PERSONA,
    KEY_NO_MARKDOWN,
    KEY_REASONING,
    KEY_EFFORT,
    KEY_MAX_TOKENS,
    KEY_HEADER,
    KEY_TITLE,
    KEY_SAVE
};

static const struct opt options[] = {
    {'s', "session", OPT_SESSION, "ID", "use this session: its id, or a new name"},
    {'N', "new", OPT_FLAG, NULL, "start a new session"},
    {'c', "continue", OPT_FLAG, NULL, "continue the session used last, however old"},
    {'1', "once", OPT_FLAG, NULL, "ask once: send no earlier message, store nothing"},
    {KEY_TITLE, "title", OPT_TEXT, "TEXT", "give the session this title"},
    {'S', "system", OPT_TEXT, "TEXT", "the session's system prompt from now on"},
    {KEY_PERSONA, "persona", OPT_PERSONA, "NAME",
     "a system prompt from a file: the persona NAME, or a path"},
    {'t', "template", OPT_TEMPLATE, "NAME", "put the prompt into the template NAME, or a path"},
    {KEY_SAVE, "save", OPT_TEXT, "NAME",
     "store these options and the prompt as the template NAME, and ask nothing"},
    {KEY_VAR, "var", OPT_TEXT, "NAME=VALUE",
     "the value of {{NAME}} in the template; may be repeated"},
    {'f', "file", OPT_FILE, "FILE",
     "attach a text file, an image or a PDF; - is standard input; may be repeated"},
    {'O', "output", OPT_FILE, "FILE", "write an image of the answer to FILE"},
    {KEY_MESSAGES, "messages", OPT_FILE, "FILE",
     "send only the messages in FILE as context (-: stdin)"},
    {KEY_REGENERATE, "regenerate", OPT_FLAG, NULL, "answer the last prompt again"},
    {KEY_EDIT, "edit", OPT_FLAG, NULL, "replace the last prompt, or edit it when none is given"},
    {'m', "model", OPT_MODEL, "MODEL", "ask this model: provider:model, or a bare name"},
    {'p', "provider", OPT_PROVIDER, "NAME", "ask this provider"},
    {KEY_BASE_URL, "base-url", OPT_TEXT, "URL", "ask the server at this URL"},
    {KEY_INSECURE, "insecure", OPT_FLAG, NULL, "send a key over plain http, which others can read"},
    {KEY_HEADER, "header", OPT_TEXT, "NAME:VALUE", "send this HTTP header; may be repeated"},
    {KEY_EFFORT, "effort", OPT_CHOICE, EFFORT_WORDS, "how much to reason before the answer"},
    {KEY_MAX_TOKENS, "max-tokens", OPT_NUMBER, "N", "at most N tokens in an answer"},
    {'o', "option", OPT_TEXT, "KEY=VALUE", "set a field of the request; may be repeated"},
    {'T', "tool", OPT_TOOL, "TOOL",
     "let the model call this tool, @NAME of the server, SERVER:NAME of MCP; may be repeated"},
    {KEY_MCP, "mcp", OPT_MCP, "SERVER", "use the tools of this MCP server; may be repeated"},
    {KEY_YES, "yes", OPT_FLAG, NULL, "run the tools that the model calls without asking"},
    {KEY_ITERATIONS, "max-iterations", OPT_NUMBER, "N", NULL},
    {KEY_TOOL_TIMEOUT, "tool-timeout", OPT_TEXT, "TIME", NULL},
    {KEY_NO_STREAM, "no-stream", OPT_FLAG, NULL, "request the answer in one piece"},
    {KEY_NO_STDIN, "no-stdin", OPT_FLAG, NULL, "do not read standard input"},
    {KEY_NO_STORE, "no-store", OPT_FLAG, NULL, "store nothing"},
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "print the request as JSON; send and store nothing"},
    {KEY_CONNECT, "connect-timeout", OPT_TEXT, "TIME", NULL},
    {KEY_FIRST_BYTE, "first-byte-timeout", OPT_TEXT, "TIME", NULL},
    {KEY_IDLE, "idle-timeout", OPT_TEXT, "TIME", NULL},
    {KEY_RETRIES, "retries", OPT_NUMBER, "N", NULL},
    {KEY_EMBED, "embed", OPT_FLAG, NULL, NULL},   /* run by hist-search (chat/embed.h) */
    {KEY_MODELS, "models", OPT_FLAG, NULL, NULL}, /* these two are run by chathist */
    {KEY_CACHED, "cached", OPT_FLAG, NULL, NULL},
    {KEY_SCHEMA, "schema", OPT_FILE, "FILE",
     "ask for JSON that matches this JSON Schema, or a line: 'name, age int'"},
    {'x', "extract", OPT_FLAG, NULL, "print the answer's first code block only"},
    {KEY_NO_MARKDOWN, "no-markdown", OPT_FLAG, NULL, "on a terminal, print Markdown unchanged"},
    {KEY_REASONING, "reasoning", OPT_FLAG, NULL, "show the model's reasoning on standard error"},
    {'u', "usage", OPT_FLAG, NULL, "print the number of tokens on standard error"},
    {'v', "verbose", OPT_FLAG, NULL, "print the session and each message that is sent"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print events as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
_Static_assert(sizeof options / sizeof *options <= 64, "chat_args.given has a bit for each");

static const struct program program = {"chat", "talk to a language model", "[PROMPT]...", OPT_TEXT,
                                       options};

void chat_args_add_option(struct chat_args *a, struct ask_option option)
{
    a->options = mem_grow(a->options, &a->options_cap, a->options_count + 1, sizeof *a->options);
    a->options[a->options_count++] = option;
}

/* The message does not repeat the value, which may hold a key. */
static void add_header(struct chat_args *a, char *text)
{
    char *colon = strchr(text, ':');
    struct err e = ERR_INIT;
    char *value;

    if (!colon)
        die_usage("bad value for --header: 'NAME: VALUE' is expected");
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    if (http_check_header(text, str_of(value), &e) < 0)
        die_err(&e);
    a->headers = mem_grow(a->headers, &a->headers_cap, a->headers_count + 1, sizeof *a->headers);
    a->headers[a->headers_count++] = (struct ask_header){text, value, ASK_FLAG, false};
}

static void choose_tool_argument(struct chat_args *a, const char *name)
{
    size_t server = strcspn(name, "/:");

    if (*name == '@' && !name[1])
        die_usage("bad value '@' for --tool: the name of a tool is expected after it");
    if (*name == '@') {
        arg_list_add(&a->hosted, name + 1);
    } else if (name[server] == ':') {
        if (server == 0 || !name[server + 1])
            die_usage("bad value '%s' for --tool: SERVER:TOOL is expected", name);
        arg_list_add(&a->chosen, name);
    } else {
        arg_list_add(&a->tools, name);
        return;
    }
    /* The tools of the user configuration are replaced in any case. */
    arg_list_add(&a->tools, "");
}

static void set_flag(struct chat_args *a, int key)
{
    const struct {
        int key;
        bool *flag;
        bool to;
    } flags[] = {
        {'N', &a->resume.fresh, true},
        {'c', &a->resume.last, true},
        {KEY_INSECURE, &a->insecure, true},
        {KEY_REGENERATE, &a->regenerate, true},
        {KEY_EDIT, &a->edit, true},
        {KEY_NO_STREAM, &a->stream, false},
        {KEY_NO_STDIN, &a->read_stdin, false},
        {KEY_NO_STORE, &a->store, false},
        {'1', &a->once, true},
        {'1', &a->store, false},
        {'1', &a->resume.fresh, true},
        {KEY_DRY_RUN, &a->dry_run, true},
        {KEY_DRY_RUN, &a->store, false},
        {KEY_MODELS, &a->models, true},
        {KEY_EMBED, &a->embed, true},
        {'x', &a->extract, true},
        {KEY_CACHED, &a->cached, true},
        {'u', &a->usage, true},
        {KEY_NO_MARKDOWN, &a->no_markdown, true},
        {'v', &a->verbose, true},
        {KEY_YES, &a->yes, true},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].key == key)
            *flags[i].flag = flags[i].to;
}

/* Stores the argument of an option with a plain text. Returns false if the option is not one. */
static bool set_text_argument(struct chat_args *a, int key, const char *value)
{
    const struct {
        int key;
        const char **to;
    } texts[] = {
        {'s', &a->resume.named},
        {'S', &a->system},
        {KEY_TITLE, &a->title},
        {'O', &a->output},
        {'t', &a->template_name},
        {KEY_SAVE, &a->save},
        {KEY_PERSONA, &a->persona},
        {KEY_MESSAGES, &a->messages},
        {KEY_SCHEMA, &a->schema},
        {'m', &a->setting[SETTING_MODEL]},
        {'p', &a->setting[SETTING_PROVIDER]},
        {KEY_BASE_URL, &a->setting[SETTING_BASE_URL]},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].key == key) {
            *texts[i].to = value;
            return true;
        }
    return false;
}

static bool is_given(const struct chat_args *a, int key)
{
    size_t i = 0;

    while (options[i].key != key)
        i++;
    return a->given >> i & 1;
}

static const char *option_name(int key)
{
    size_t i = 0;

    while (options[i].key != key)
        i++;
    return options[i].name;
}

/* Checks an option whose argument is a number or a time, and stores it for request_limits_load.
 * Returns false if the option is not one. */
static bool set_limit(struct chat_args *a, int key, const char *value)
{
    const struct {
        int key;
        enum setting setting;
        bool time;
    } limits[] = {
        {KEY_CONNECT, SETTING_CONNECT_TIMEOUT, true},
        {KEY_FIRST_BYTE, SETTING_FIRST_BYTE_TIMEOUT, true},
        {KEY_IDLE, SETTING_IDLE_TIMEOUT, true},
        {KEY_TOOL_TIMEOUT, SETTING_TOOL_TIMEOUT, true},
        {KEY_RETRIES, SETTING_RETRIES, false},
        {KEY_ITERATIONS, SETTING_MAX_ITERATIONS, false},
    };
    unsigned number;
    long ms;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].key != key)
            continue;
        if (limits[i].time && !opt_read_milliseconds(str_of(value), &ms))
            die_usage("bad value '%s' for --%s: a time such as 30s or 5min is expected", value,
                      option_name(key));
        if (!limits[i].time && !opt_read_number(str_of(value), &number))
            die_usage("bad value '%s' for --%s: a number is expected", value, option_name(key));
        a->setting[limits[i].setting] = value;
        return true;
    }
    return false;
}

static void set_argument(struct chat_args *a, int key, char *value)
{
    char *equals;

    for (size_t i = 0; options[i].key; i++)
        if (options[i].key == key)
            a->given |= UINT64_C(1) << i;
    switch (key) {
    case 'f':
        arg_list_add(&a->files, strcmp(value, "-") == 0 ? ATTACH_STDIN : value);
        break;
    case KEY_VAR:
        if (!strchr(value, '='))
            die_usage("bad value '%s' for --var: NAME=VALUE is expected", value);
        arg_list_add(&a->vars, value);
        break;
    case 'T':
        choose_tool_argument(a, value);
        break;
    case KEY_HEADER:
        add_header(a, value);
        break;
    case KEY_EFFORT:
        a->setting[SETTING_EFFORT] = value;
        break;
    case KEY_REASONING:
        a->setting[SETTING_REASONING] = "on";
        break;
    case KEY_MAX_TOKENS:
        if (opt_number("--max-tokens", value) == 0)
            die_usage("bad value '0' for --max-tokens: at least 1 is expected");
        a->setting[SETTING_MAX_TOKENS] = value;
        break;
    case KEY_MCP:
        arg_list_add(&a->mcp, value);
        break;
    case 'o':
        equals = strchr(value, '=');
        if (!equals || equals == value)
            die_usage("bad value '%s' for --option: KEY=VALUE is expected", value);
        *equals = '\0';
        chat_args_add_option(a, (struct ask_option){value, str_of(equals + 1), ASK_FLAG});
        break;
    default:
        if (!set_limit(a, key, value) && !set_text_argument(a, key, value))
            set_flag(a, key);
    }
}

/* Ends the program if there is an option that has no effect with --models, --embed or --save, which
 * is `what`, or a prompt for the first two. `by` names the allowed options and ends with 0. */
static void check_alone(const struct chat_args *a, const char *what, const int *by)
{
    if (a->words_count > 0 && !a->save)
        die_usage("--%s takes no prompt", what);
    for (size_t i = 0; options[i].key; i++) {
        const int *key = by;

        while (*key && *key != options[i].key)
            key++;
        if (!*key && a->given >> i & 1)
            die_usage("--%s cannot be given with --%s", options[i].name, what);
    }
}

/* Ends the program if two options exclude each other. */
static void check_pairs(const struct chat_args *a)
{
    static const int only_one[][2] = {
        {KEY_REGENERATE, KEY_EDIT}, {'S', KEY_PERSONA}, {'s', 'c'}, {'N', 'c'}, {'x', KEY_SCHEMA},
    };
    static const int about_sessions[] = {'s', 'N', 'c', KEY_MESSAGES, KEY_REGENERATE, KEY_EDIT};

    for (size_t i = 0; a->once && i < sizeof about_sessions / sizeof *about_sessions; i++)
        if (is_given(a, about_sessions[i]))
            die_usage("--once sends no context: it cannot be given with --%s",
                      option_name(about_sessions[i]));
    for (size_t i = 0; i < sizeof only_one / sizeof *only_one; i++)
        if (is_given(a, only_one[i][0]) && is_given(a, only_one[i][1]))
            die_usage("only one of --%s and --%s can be given", option_name(only_one[i][0]),
                      option_name(only_one[i][1]));
}

/* Checks --regenerate and --edit. */
static void check_again(struct chat_args *a)
{
    if (a->resume.fresh || a->messages)
        die_usage("--%s cannot be given with --new or --messages",
                  a->regenerate ? "regenerate" : "edit");
    if (a->regenerate && (a->words_count > 0 || a->template_name))
        die_usage("--regenerate takes no prompt");
    if (a->regenerate)
        a->read_stdin = false;
}

/* Standard input can be read only once: as --messages, as a file, or as the prompt. */
static void check_stdin(struct chat_args *a)
{
    size_t uses = chat_args_messages_stdin(a);

    for (size_t i = 0; i < a->files.count; i++)
        uses += strcmp(a->files.at[i], ATTACH_STDIN) == 0;
    if (uses + prompt_is_dash(a->words, a->words_count) > 1)
        die_usage("only one of '--messages -', '--file -' and the prompt '-' can be given");
    if (uses > 0)
        a->read_stdin = false;
}

/* Checks --title. */
static void check_title(const struct chat_args *a)
{
    if (!a->store || a->once || (a->messages && !a->resume.named))
        die_usage("--title is for a session that is stored: it cannot be given with --once, "
                  "--no-store or --messages");
    if (utf8_count(str_of(a->title)) > MESSAGE_TITLE)
        die_usage("bad value for --title: a title has at most %d characters", MESSAGE_TITLE);
}

/* Checks which options go together. */
static void check_combination(struct chat_args *a)
{
    static const int of_models[] = {
        KEY_BASE_URL, KEY_INSECURE, KEY_HEADER, KEY_CONNECT, KEY_FIRST_BYTE,
        KEY_IDLE,     KEY_MODELS,   KEY_EMBED,  KEY_CACHED,  KEY_PERSONA,
        KEY_NO_STDIN, 'm',          'p',        'v',         0};

    static const int of_save[] = {KEY_SAVE,       'S', 'm',          'p', KEY_EFFORT,
                                  KEY_MAX_TOKENS, 'o', KEY_NO_STDIN, 0};

    if (a->extract && a->common.json)
        die_usage("only one of --extract and --json can be given");
    check_pairs(a);
    if (a->models)
        check_alone(a, "models", of_models);
    if (a->embed)
        check_alone(a, "embed", of_models);
    if (a->save)
        check_alone(a, "save", of_save);
    if (a->regenerate || a->edit)
        check_again(a);
    if (a->vars.count > 0 && !a->template_name && !a->persona)
        die_usage("--var goes with --template or --persona");
    if (a->title)
        check_title(a);
    if (a->cached && !a->models)
        die_usage("--cached can only be given with --models");
    if (a->messages && (a->resume.fresh || a->resume.last))
        die_usage("--messages cannot be given with --new or --continue");
    if (a->messages && !a->resume.named) {
        a->resume.fresh = true;
        a->store = false;
    }
    check_stdin(a);
}

bool chat_args_messages_stdin(const struct chat_args *a)
{
    return a->messages && strcmp(a->messages, "-") == 0;
}

void chat_args_parse(struct chat_args *a, int argc, char **argv)
{
    struct opt_parser args;
    char *value;
    int key;

    *a = (struct chat_args){
        .self = argv[0],
        .resume = {.by_digits = true},
        .stream = true,
        .read_stdin = true,
        .store = true,
    };
    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        set_argument(a, key, value);
    a->words = opt_operands(&args, &a->words_count);
    a->common = args.common;
    check_combination(a);
}

bool chat_args_want_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

void chat_args_release(struct chat_args *a)
{
    free(a->files.at);
    free(a->options);
    free(a->headers);
    free(a->hosted.at);
    free(a->chosen.at);
    free(a->tools.at);
    free(a->mcp.at);
    free(a->vars.at);
}
