#include "chat/repl_complete.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/path.h"
#include "chathist/cli/line_signals.h"
#include "chat/repl_commands.h"
#include "chathist/chat/talk_models.h"
#include "chathist/history/session.h"

/* So many sessions are offered at the most, the newest. */
#define SESSIONS_MAX 40
/* An id's end that names it (hist/session). */
#define SUFFIX_LEAST 4
/* A server that is slow is no reason to hold up the line. */
#define MODELS_MS 2000

static void offer_if(struct line_words *words, struct str typed, struct str word)
{
    if (str_starts(word, typed))
        line_offer(words, word);
}

/* ---- commands ---- */

static void offer_commands(struct line_words *words, struct str typed, const char *before)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (const struct repl_command *c = repl_commands(); c->name; c++) {
        buf_clear(&name);
        buf_addf(&name, "%s%s", before, c->name);
        offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

/* ---- sessions ---- */

static void offer_sessions(const struct dialogue *d, struct line_words *words, struct str typed)
{
    struct session_list list;
    size_t i;

    if (session_list_newest(&list, &d->talk->history, SIZE_MAX, NULL) < 0)
        return;
    for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
        offer_if(words, typed, (struct str){list.at[i].id, list.at[i].id_len});
    if (words->count == 0 && typed.n >= SUFFIX_LEAST)
        for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
            if (str_ends((struct str){list.at[i].id, list.at[i].id_len}, typed))
                line_offer(words, (struct str){list.at[i].id, list.at[i].id_len});
    session_list_release(&list);
}

/* ---- models ---- */

int repl_complete_models(struct repl_complete *c, const struct http_limits *limits, struct err *e)
{
    struct talk *talk = c->dialogue->talk;
    struct http_limits own = *limits;

    if (c->provider == talk->server.provider && c->models.count > 0)
        return 0;
    model_list_release(&c->models);
    c->provider = talk->server.provider;
    own.cancel_fd = line_signals_fd();
    if (talk_load_models(talk, &own, &c->models, e) == 0)
        return 0;
    model_list_release(&c->models);
    c->models = (struct model_list){0};
    return -1;
}

static void offer_models(struct repl_complete *c, struct line_words *words, struct str typed)
{
    struct http_limits limits = {.connect_ms = MODELS_MS, .idle_ms = MODELS_MS};
    struct buf name = BUF_INIT(BUF_SMALL);

    repl_complete_models(c, &limits, NULL);
    for (size_t i = 0; i < c->models.count; i++) {
        struct str bare = str_of(c->models.at[i]);

        buf_clear(&name);
        buf_addf(&name, "%s:%s", c->provider->name, c->models.at[i]);
        if (typed.n > 0 && str_starts(bare, typed))
            line_offer(words, bare);
        else
            offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

void repl_complete_release(struct repl_complete *c)
{
    model_list_release(&c->models);
}

/* ---- files ---- */

char *repl_file_name(const struct dialogue *d, struct str name)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    if (str_starts(name, STR("~/")) && d->talk->config.home) {
        buf_add_c(&path, d->talk->config.home);
        name.p++;
        name.n--;
    }
    buf_add_str(&path, name);
    return buf_detach(&path);
}

static void offer_entry(struct line_words *words, const char *dir, struct str shown,
                        const char *entry)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    char *path = path_join(dir, entry);
    struct stat st;

    buf_add_str(&word, shown);
    buf_add_c(&word, entry);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        buf_add_byte(&word, '/');
    line_offer(words, buf_str(&word));
    buf_release(&word);
    free(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void offer_files(const struct dialogue *d, struct line_words *words, struct str typed)
{
    size_t n = typed.n;
    struct str shown, start;
    struct dirent *entry;
    char *dir;
    DIR *stream;

    while (n > 0 && typed.p[n - 1] != '/')
        n--;
    shown = (struct str){typed.p, n};
    start = (struct str){typed.p + n, typed.n - n};
    dir = repl_file_name(d, n > 0 ? shown : STR("."));
    stream = opendir(dir);
    while (stream && (entry = readdir(stream))) {
        bool hidden = entry->d_name[0] == '.';

        /* Hidden ones when they are asked for. */
        if (str_starts(str_of(entry->d_name), start) && (!hidden || start.n > 0) &&
            strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            offer_entry(words, dir, shown, entry->d_name);
    }
    if (stream)
        closedir(stream);
    if (words->count > 1)
        qsort(words->at, words->count, sizeof *words->at, by_name);
    free(dir);
}

/* ---- all of them ---- */

static void offer_argument(struct repl_complete *c, enum repl_takes takes, struct str typed,
                           struct line_words *words)
{
    switch (takes) {
    case REPL_TAKES_SESSION:
        offer_sessions(c->dialogue, words, typed);
        break;
    case REPL_TAKES_MODEL:
        offer_models(c, words, typed);
        break;
    case REPL_TAKES_FILE:
        offer_files(c->dialogue, words, typed);
        break;
    case REPL_TAKES_COMMAND:
        offer_commands(words, typed, "");
        break;
    case REPL_TAKES_NOTHING:
    case REPL_TAKES_TEXT:
        break;
    }
}

void repl_complete(void *arg, struct str before, struct line_words *words)
{
    struct repl_complete *c = arg;
    const struct repl_command *command;
    struct str typed = before, name;

    if (!str_starts(before, STR("/")) || str_find(before, STR("\n")))
        return;
    name = str_cut(&typed, ' ');
    if (!typed.p) {
        offer_commands(words, before, "/");
        return;
    }
    command = repl_command_find((struct str){name.p + 1, name.n - 1});
    if (!command)
        return;
    while (str_starts(typed, STR(" ")) ||
           (command->does == REPL_SAVE && str_starts(typed, STR("-a ")))) {
        size_t n = typed.p[0] == ' ' ? 1 : 3;

        typed = (struct str){typed.p + n, typed.n - n};
    }
    words->from = (size_t)(typed.p - before.p);
    offer_argument(c, command->takes, typed, words);
}
