/* chathist - list the programs of the suite, what can be used with them, or where everything is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/chat/setup.h"
#include "chathist/chat/suite.h"
#include "chathist/chat/template.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"

enum { KEY_BASE_URL = OPT_LONG, KEY_INSECURE, KEY_HEADER, KEY_CACHED };

static const struct opt options[] = {
    {'p', "provider", OPT_PROVIDER, "NAME", "with models: those of this provider"},
    {KEY_BASE_URL, "base-url", OPT_TEXT, "URL", "with models: those of the server at this URL"},
    {KEY_INSECURE, "insecure", OPT_FLAG, NULL, "with models: send a key over plain http"},
    {KEY_HEADER, "header", OPT_TEXT, "NAME:VALUE",
     "with models: send this HTTP header; may be repeated"},
    {KEY_CACHED, "cached", OPT_FLAG, NULL, "with models: accept a list up to a day old"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print JSON: a line for each, or one object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
#define COMMANDS "info|models|templates|personas|key|setup"
static const struct program program = {"chathist",
                                       "list the programs, say where everything is, set up a model",
                                       "[" COMMANDS "] [PROVIDER]", OPT_CHOICE, options};

/* In the order of COMMANDS; LIST is without one. */
enum command { INFO, MODELS, TEMPLATES, PERSONAS, KEY, SETUP, LIST };

/* Adds an option of `models` for chat, as one word. */
static void add_for_chat(struct words *given, int key, const char *value)
{
    const struct opt *o = options;
    struct buf word = BUF_INIT(SIZE_MAX);

    while (o->key != key)
        o++;
    buf_addf(&word, "--%s%s%s", o->name, value ? "=" : "", value ? value : "");
    words_add(given, buf_str(&word));
    buf_release(&word);
}

/* Runs chat with --models in place of this program. */
static void run_chat(const char *self, const struct opt_common *common, const struct words *given)
{
    static const char *const when[] = {"--color=auto", "--color=always", "--color=never"};
    char *path = path_beside(self, PROGRAM_PREFIX "chat");
    struct words words = {0};
    struct err e = ERR_INIT;

    words_add(&words, str_of(path));
    words_add(&words, STR("--models"));
    words_add(&words, str_of(when[common->color]));
    if (common->json)
        words_add(&words, STR("--json"));
    if (common->quiet)
        words_add(&words, STR("--quiet"));
    for (size_t i = 0; i < given->count; i++)
        words_add(&words, str_of(given->at[i]));
    execvp(path, words.at);
    /* Beside a link to this program there may be no other one. */
    if (errno == ENOENT)
        execvp(PROGRAM_PREFIX "chat", words.at);
    err_set(&e, ERR_FAILURE, "cannot run '%s': %s", path, strerror(errno));
    die_err(&e);
}

/* Ends the program if there is something in the place of the history that no program takes for
 * one. */
static void check_history(const struct history *h)
{
    struct err e = ERR_INIT;
    int reason = 0;
    int fd = file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, NULL, &reason, &e);

    if (fd < 0 && reason != ENOENT && reason != EACCES)
        die_err(&e);
    if (fd >= 0)
        close(fd);
    err_release(&e);
}

/* Stores the key of a provider, or asks for all first settings if that is NULL. */
static int run_setup(const char *self, const char *provider)
{
    struct config config;
    struct err e = ERR_INIT;

    if (config_load(&config, &e) < 0)
        die_err(&e);
    if (provider)
        setup_store_key(&config, provider);
    else
        setup_run(&config, self);
    config_release(&config);
    return 0;
}

int main(int argc, char **argv)
{
    struct words given = {0}; /* options of `models` */
    struct opt_parser args;
    struct choice choice = {0};
    struct history *h;
    struct out out;
    struct err e = ERR_INIT;
    enum command command;
    char **words, *value;
    size_t count;
    int key;

    opt_start(&args, &program, argc, argv);
    while ((key = opt_next(&args, &value)) != 0)
        add_for_chat(&given, key, value);
    words = opt_operands(&args, &count);
    command = count > 0 ? (enum command)opt_choice(COMMANDS, str_of(words[0])) : LIST;
    if (given.count > 0 && command != MODELS)
        die_usage("%.*s is only for models", (int)strcspn(given.at[0], "="), given.at[0]);
    if (count > (command == KEY ? 2 : 1))
        die_usage("'%s' is one argument too many", words[command == KEY ? 2 : 1]);
    if (command == KEY && count < 2)
        die_usage("the name of a provider is expected after key");
    if (args.common.json && command != INFO && command != LIST && command != MODELS)
        die_usage("--json is not for %s", words[0]);
    if (command == KEY || command == SETUP)
        return run_setup(argv[0], command == KEY ? words[1] : NULL);
    if (command == MODELS)
        run_chat(argv[0], &args.common, &given);
    out_start(&out, args.common.color);
    if (command == LIST) {
        suite_list(&out, args.common.json);
    } else if (command != INFO) {
        if (presets_list(words[0], &out, &e) < 0)
            die_err(&e);
    } else {
        choice.common = args.common;
        h = choose_open(&choice, &(struct choose_want){.use = CHOOSE_STORE_IF_ANY});
        if (!h->nowhere)
            check_history(h);
        suite_report(&out, &choice.config, h, args.common.json);
        choose_release(&choice);
    }
    return out_close(&out, 0);
}
