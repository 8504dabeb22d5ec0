#include "front/chat_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/die.h"
#include "llm/retry.h"

enum {
    KEY_BASE_URL = OPT_LONG,
    KEY_MESSAGES,
    KEY_REGENERATE,
    KEY_EDIT,
    KEY_NO_STREAM,
    KEY_NO_STDIN,
    KEY_DRY_RUN,
    KEY_CONNECT,
    KEY_IDLE,
    KEY_RETRIES,
    KEY_MODELS
};

static const struct opt options[] = {
    {'s', "session", OPT_SESSION, "ID", "talk in this session, taken literally"},
    {'N', "new", OPT_FLAG, NULL, "start a new session"},
    {'c', "continue", OPT_FLAG, NULL, "continue the session used last, however old"},
    {'S', "system", OPT_TEXT, "TEXT", "the session's system prompt from now on"},
    {'f', "file", OPT_FILE, "FILE", "attach a text file; may be repeated"},
    {KEY_MESSAGES, "messages", OPT_FILE, "FILE", "go by the messages in FILE (-: stdin) alone"},
    {KEY_REGENERATE, "regenerate", OPT_FLAG, NULL, "answer the last prompt again"},
    {KEY_EDIT, "edit", OPT_FLAG, NULL, "replace the last prompt, or edit it when none is given"},
    {'m', "model", OPT_MODEL, "MODEL", "ask this model: provider:model, or a bare name"},
    {'p', "provider", OPT_PROVIDER, "NAME", "ask this provider"},
    {KEY_BASE_URL, "base-url", OPT_TEXT, "URL", "ask the server at this URL"},
    {'o', "option", OPT_TEXT, "KEY=VALUE", "set a field of the request; may be repeated"},
    {KEY_NO_STREAM, "no-stream", OPT_FLAG, NULL, "ask for the answer in one piece"},
    {KEY_NO_STDIN, "no-stdin", OPT_FLAG, NULL, "leave standard input alone"},
    {'n', "no-store", OPT_FLAG, NULL, "store nothing"},
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "print the request as JSON; send and store nothing"},
    {KEY_CONNECT, "connect-timeout", OPT_TEXT, "TIME", "give up connecting after this time (10s)"},
    {KEY_IDLE, "idle-timeout", OPT_TEXT, "TIME", "give up when nothing comes for this time (5m)"},
    {KEY_RETRIES, "retries", OPT_NUMBER, "N", "try again so often when the server is busy (2)"},
    {KEY_MODELS, "models", OPT_FLAG, NULL, "list the models that the server offers"},
    {'x', "extract", OPT_FLAG, NULL, "print the answer's first code block only"},
    {'u', "usage", OPT_FLAG, NULL, "tell how many tokens it took, on standard error"},
    {'v', "verbose", OPT_FLAG, NULL, "tell the session and each message that is sent"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print events as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"chat", "talk to a language model", "[PROMPT]...", OPT_TEXT,
                                       options};

static void add_file(struct chat_args *a, const char *file)
{
    a->files = mem_grow(a->files, &a->files_cap, a->files_count + 2, sizeof *a->files);
    a->files[a->files_count++] = file;
    a->files[a->files_count] = NULL;
}

static void add_option(struct chat_args *a, char *text)
{
    char *equals = strchr(text, '=');

    if (!equals || equals == text)
        die_usage("bad value '%s' for --option: KEY=VALUE is expected", text);
    *equals = '\0';
    a->options = mem_grow(a->options, &a->options_cap, a->options_count + 1, sizeof *a->options);
    a->options[a->options_count++] = (struct ask_option){text, str_of(equals + 1)};
}

static void take_flag(struct chat_args *a, int key)
{
    const struct {
        int key;
        bool *flag;
        bool to;
    } flags[] = {
        {'N', &a->wish.fresh, true},
        {'c', &a->wish.last, true},
        {KEY_REGENERATE, &a->regenerate, true},
        {KEY_EDIT, &a->edit, true},
        {KEY_NO_STREAM, &a->stream, false},
        {KEY_NO_STDIN, &a->read_stdin, false},
        {'n', &a->store, false},
        {KEY_DRY_RUN, &a->dry_run, true},
        {KEY_DRY_RUN, &a->store, false},
        {KEY_MODELS, &a->models, true},
        {'x', &a->extract, true},
        {'u', &a->usage, true},
        {'v', &a->verbose, true},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].key == key)
            *flags[i].flag = flags[i].to;
}

static void take(struct chat_args *a, int key, char *value)
{
    switch (key) {
    case 's':
        a->wish.named = value;
        break;
    case 'S':
        a->system = value;
        break;
    case 'f':
        add_file(a, value);
        break;
    case KEY_MESSAGES:
        a->messages = value;
        break;
    case 'm':
        a->setting[SETTING_MODEL] = value;
        break;
    case 'p':
        a->setting[SETTING_PROVIDER] = value;
        break;
    case KEY_BASE_URL:
        a->setting[SETTING_BASE_URL] = value;
        break;
    case 'o':
        add_option(a, value);
        break;
    case KEY_CONNECT:
        a->limits.connect_ms = opt_milliseconds("--connect-timeout", value);
        break;
    case KEY_IDLE:
        a->limits.idle_ms = opt_milliseconds("--idle-timeout", value);
        break;
    case KEY_RETRIES:
        a->retries = opt_number("--retries", value);
        break;
    default:
        take_flag(a, key);
    }
}

/* A turn that takes the place of the last one. */
static void combine_again(struct chat_args *a)
{
    const char *name = a->regenerate ? "--regenerate" : "--edit";

    if (a->regenerate && a->edit)
        die_usage("only one of --regenerate and --edit can be given");
    if (a->wish.fresh || a->messages || a->models)
        die_usage("%s cannot be given with --new, --messages or --models", name);
    if (a->edit)
        return;
    if (a->words_count > 0 || a->files_count > 0)
        die_usage("--regenerate takes no prompt");
    a->read_stdin = false;
}

/* What the options mean together. */
static void combine(struct chat_args *a)
{
    if (a->regenerate || a->edit)
        combine_again(a);
    if (a->models && (a->words_count > 0 || a->messages))
        die_usage("--models takes no prompt");
    if ((a->wish.named != NULL) + a->wish.fresh + a->wish.last > 1)
        die_usage("only one of --session, --new and --continue can be given");
    if (a->extract && a->common.json)
        die_usage("only one of --extract and --json can be given");
    if (a->messages && (a->wish.fresh || a->wish.last))
        die_usage("--messages cannot be given with --new or --continue");
    if (a->messages && !a->wish.named) {
        a->wish.fresh = true;
        a->store = false;
    }
    if (chat_args_messages_stdin(a))
        a->read_stdin = false;
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
        .limits = {.connect_ms = HTTP_CONNECT_MS, .idle_ms = HTTP_IDLE_MS, .cancel_fd = -1},
        .retries = RETRY_TIMES,
        .stream = true,
        .read_stdin = true,
        .store = true,
    };
    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        take(a, key, value);
    a->words = opt_operands(&args, &a->words_count);
    a->common = args.common;
    combine(a);
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
    free(a->files);
    free(a->options);
}
