/* chathist - list the programs of the suite, or print where everything is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/chat/suite.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/start.h"

static const struct opt options[] = {
    {OPT_JSON, "json", OPT_FLAG, NULL, "print JSON: a line for each program, or one object"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {
    "chathist", "list the programs, or print where everything is", "[info]", OPT_CHOICE, options};

/* Ends the program unless the word is `info`. */
static void check_word(const char *word)
{
    struct nearest meant = {.typed = word};

    if (strcmp(word, "info") == 0)
        return;
    nearest_offer(&meant, "info");
    if (meant.name)
        die_usage("unknown command '%s': did you mean %s?", word, meant.name);
    die_usage("unknown command '%s': the only one is info", word);
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

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct config config;
    struct history history;
    struct out out;
    char **words, *value;
    size_t count;

    opt_start(&args, &program, argc, argv);
    while (opt_next(&args, &value) != 0)
        continue;
    words = opt_operands(&args, &count);
    if (count > 0)
        check_word(words[0]);
    if (count > 1)
        die_usage("'%s' is one argument too many", words[1]);
    out_start(&out, args.common.color);
    if (count == 0) {
        suite_list(&out, args.common.json);
    } else {
        start_history_if_any(&config, &history, &args.common);
        if (!history.nowhere)
            check_history(&history);
        suite_report(&out, &config, &history, args.common.json);
        history_release(&history);
        config_release(&config);
    }
    return out_close(&out, 0);
}
