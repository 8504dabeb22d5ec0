#include "chathist/chat/setup.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/chat/server.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chat/secret_command.h"

/* The most models that are listed. */
#define MODELS_SHOWN 15
/* How long a program that keeps a key may take, in milliseconds: it may ask for a password in a
 * window. */
#define KEEPER_MS ((int64_t)120 * 1000)
#define NONE ((size_t)-1)

/* A dialogue on the terminal. */
struct dialogue {
    const struct config *config;
    int tty, cancel_fd;
    struct buf line; /* the last answer; it may be a key */
};

/* Returns false for another wire of a provider: it has the key of that one. */
static bool names_own_key(const struct provider *p)
{
    return !p->key_name || strcmp(p->key_name, p->name) == 0;
}

/* Returns the provider that has its own key, or ends the program. */
static const struct provider *find_keyed(const struct providers *known, const char *name)
{
    const struct provider *p = provider_find(known, str_of(name));

    if (!p)
        die_usage("unknown provider '%s'", name);
    if (!names_own_key(p))
        die_usage("'%s' has the key of '%s': " PROGRAM_PREFIX "chathist key %s", name, p->key_name,
                  p->key_name);
    if (!p->base_url)
        die_usage("'%s' asks no server and has no key", name);
    return p;
}

/* ---- questions ---- */

/* Prints text and reads a line, `hidden` without echo. Ends the program on a signal and if the
 * terminal is closed. Ctrl-D ends it as Ctrl-C does. */
static struct str ask_line(struct dialogue *d, const char *text, bool hidden)
{
    int came;

    if (hidden) {
        came = confirm_secret(d->tty, d->cancel_fd, text, &d->line);
    } else {
        confirm_say(d->tty, str_of(text));
        came = confirm_line(d->tty, d->cancel_fd, &d->line);
    }
    if (came <= 0) {
        int signo = interrupt_signal();

        confirm_say(d->tty, STR("\n"));
        mem_wipe(d->line.data, d->line.cap);
        interrupt_end();
        die_signal(signo ? signo : SIGINT);
    }
    return str_trim(buf_str(&d->line));
}

static void say(const struct dialogue *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct dialogue *d, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    confirm_say(d->tty, buf_str(&text));
    buf_release(&text);
}

/* Asks for one of the names, by its number or by itself. Returns its index; `usual` (NONE: no name)
 * for an empty line; or NONE for another text if `any_text`, else asks again. */
static size_t ask_choice(struct dialogue *d, const char *question, const struct words *names,
                         size_t usual, bool any_text)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t chosen = NONE;
    bool done = false;

    buf_addf(&text, "%s", question);
    if (usual != NONE)
        buf_addf(&text, " [%zu]", usual + 1);
    buf_add_c(&text, ": ");
    while (!done) {
        struct str typed = ask_line(d, buf_c(&text), false);
        int64_t number;

        chosen = typed.n == 0 ? usual : NONE;
        if (json_int(typed, &number) && number >= 1 && number <= (int64_t)names->count)
            chosen = (size_t)number - 1;
        for (size_t i = 0; chosen == NONE && i < names->count; i++)
            if (str_eq_c(typed, names->at[i]))
                chosen = i;
        done = chosen != NONE || typed.n == 0 || any_text;
        if (!done)
            say(d, "'%.*s' is none of them.\n", (int)typed.n, typed.p);
    }
    buf_release(&text);
    return chosen;
}

static void store_setting(const struct dialogue *d, const char *key, struct str value)
{
    struct err e = ERR_INIT;

    if (config_file_set(key, value, &e) < 0) {
        interrupt_end();
        die_err(&e);
    }
    say(d, "Stored in the configuration: %s = %.*s\n", key, (int)value.n, value.p);
}

/* ---- keys ---- */

/* Stores the key in the provider's file. Returns the path, which the caller frees, or NULL with *e
 * set. */
static char *write_key(const struct config *c, const struct provider *p, struct str key,
                       struct err *e)
{
    char *path = server_key_path(c, p), *dir = path ? path_parent(path) : NULL;
    struct buf line;
    int result = -1;

    secret_buf_init(&line);
    buf_add_str(&line, key);
    buf_add_byte(&line, '\n');
    if (!path)
        err_set(e, ERR_FAILURE, "cannot store the key: there is no home directory");
    else if (!secret_valid(key, false))
        err_set(e, ERR_USAGE, "cannot store the key: %s",
                key.n == 0 ? "it is empty" : "white space or a control character in it");
    else if (file_make_dirs(dir, e) >= 0)
        result = file_replace(path, buf_str(&line), e);
    secret_buf_release(&line);
    free(dir);
    if (result < 0) {
        free(path);
        path = NULL;
    }
    return path;
}

void setup_store_key(const struct config *c, const char *provider)
{
    struct dialogue d = {.config = c, .tty = STDIN_FILENO, .cancel_fd = -1};
    struct buf question = BUF_INIT(BUF_SMALL), variable = BUF_INIT(BUF_SMALL);
    struct providers known;
    const struct provider *p;
    struct err e = ERR_INIT;
    struct str rest, key;
    char *path;

    if (server_providers(&known, c, &e) < 0)
        die_err(&e);
    p = find_keyed(&known, provider);
    secret_buf_init(&d.line);
    if (isatty(STDIN_FILENO)) {
        buf_addf(&question, "Key for %s (it is not shown): ", p->name);
        d.cancel_fd = interrupt_begin(&e);
        if (d.cancel_fd < 0)
            die_err(&e);
        ask_line(&d, buf_c(&question), true);
        interrupt_end();
    } else if (file_read_all(STDIN_FILENO, &d.line) < 0) {
        die_usage("cannot read the key from standard input");
    }
    rest = buf_str(&d.line);
    key = str_trim(str_cut(&rest, '\n'));
    path = write_key(c, p, key, &e);
    if (!path)
        die_err(&e);
    notef("the key of %s is in '%s'", p->name, path);
    if (server_key_kind(c, p, &variable) == KEY_VARIABLE)
        warnf("%s is set, and comes first", buf_c(&variable));
    free(path);
    secret_buf_release(&d.line);
    buf_release(&question);
    buf_release(&variable);
    providers_release(&known);
}

/* A program that keeps secrets, and its commands: one stores a secret from its standard input, the
 * other prints it. `@` stands for the provider. */
static const struct keeper {
    const char *program, *shown, *store, *lookup;
} keepers[] = {
    {"secret-tool", "in the keyring of the desktop, by secret-tool",
     "secret-tool store --label='chathist @' service chathist account @",
     "secret-tool lookup service chathist account @"},
    {"pass", "in the password store, by pass", "pass insert -m chathist/@", "pass chathist/@"},
};
#define KEEPERS (sizeof keepers / sizeof *keepers)

static bool is_installed(const char *program)
{
    char shell[] = "/bin/sh", flag[] = "-c", find[] = "command -v \"$0\"",
         *name = mem_text(program);
    char *argv[] = {shell, flag, find, name, NULL};
    struct buf path = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    bool found = process_read(argv, NULL, STR_NONE, &path, -1, &e) == 0;

    err_release(&e);
    buf_release(&path);
    free(name);
    return found;
}

static void add_command(struct buf *out, const char *command, const char *provider)
{
    for (; *command; command++)
        if (*command == '@')
            buf_add_c(out, provider);
        else
            buf_add_byte(out, *command);
}

/* Runs a command of the shell with text on its standard input. Returns its status, or -1 with *e
 * set. */
static int feed_command(const char *command, struct str text, struct err *e)
{
    char shell[] = "/bin/sh", flag[] = "-c", *words = mem_text(command);
    char *argv[] = {shell, flag, words, NULL};
    struct child child = CHILD_INIT;
    int result = child_start(&child, argv, NULL, NULL, e);

    if (result == 0) {
        child_write(&child.in, text);
        child_close(&child.in);
        child_end(&child, KEEPER_MS);
        result = child.status;
    }
    free(words);
    return result;
}

/* Stores the key that was typed last in the way that the user chooses. */
static void store_key(struct dialogue *d, const struct provider *p)
{
    struct words names = {0};
    const struct keeper *kept[1 + KEEPERS] = {NULL}, *keeper;
    struct buf key, command = BUF_INIT(BUF_SMALL), setting = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    char *path = NULL;
    int status;

    secret_buf_init(&key);
    buf_add_str(&key, str_trim(buf_str(&d->line)));
    words_add(&names, STR("file"));
    for (size_t i = 0; i < KEEPERS; i++) {
        if (!is_installed(keepers[i].program))
            continue;
        kept[names.count] = &keepers[i];
        words_add(&names, str_of(keepers[i].program));
    }
    if (names.count > 1)
        say(d, "Where is the key kept?\n  1  in a file that only you can read\n");
    for (size_t i = 1; i <= KEEPERS && kept[i]; i++)
        say(d, "  %zu  %s\n", i + 1, kept[i]->shown);
    keeper = names.count > 1 ? kept[ask_choice(d, "Number", &names, 0, false)] : NULL;
    if (!keeper) {
        path = write_key(d->config, p, buf_str(&key), &e);
        status = path ? 0 : -1;
    } else {
        add_command(&command, keeper->store, p->name);
        status = feed_command(buf_c(&command), buf_str(&key), &e);
        if (status > 0)
            err_set(&e, ERR_FAILURE, "cannot store the key: %s ended with status %d",
                    keeper->program, status);
    }
    secret_buf_release(&key);
    if (status != 0) {
        interrupt_end();
        die_err(&e);
    }
    if (path)
        say(d, "The key is in %s\n", path);
    if (keeper) {
        buf_clear(&command);
        add_command(&command, keeper->lookup, p->name);
        buf_addf(&setting, "api_key_command.%s", p->name);
        store_setting(d, buf_c(&setting), buf_str(&command));
    }
    free(path);
    words_release(&names);
    buf_release(&command);
    buf_release(&setting);
}

/* ---- the dialogue ---- */

/* Describes a provider that can be chosen: where its key is, or that it runs here.
 * NULL if it cannot. `text` holds the result. */
static const char *describe_provider(const struct config *c, const struct provider *p,
                                     struct buf *text)
{
    enum key_kind kind = server_key_kind(c, p, text);

    if (!names_own_key(p) || !p->base_url)
        return NULL;
    if (p->probe.path && server_answers(p))
        return "runs on this machine";
    switch (kind) {
    case KEY_VARIABLE:
        buf_add_c(text, " has its key");
        return buf_c(text);
    case KEY_FILE:
        return "its key is in a file";
    case KEY_COMMAND:
        return "a command prints its key";
    case KEY_NONE:
        break;
    }
    return p->needs_key || p->service ? "" : NULL;
}

/* Lists the providers. Returns the one that the user chooses, or NULL for none. */
static const struct provider *ask_provider(struct dialogue *d, const struct providers *known)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct words names = {0};
    const struct provider *chosen = NULL;
    size_t usual = NONE, i;

    say(d, "Which service answers your prompts?\n");
    for (const struct provider *const *p = known->at; *p; p++) {
        const char *about = describe_provider(d->config, *p, &text);

        if (!about)
            continue;
        words_add(&names, str_of((*p)->name));
        if (usual == NONE && *about)
            usual = names.count - 1;
        say(d, "  %2zu  %-12s%s\n", names.count, (*p)->name, about);
    }
    say(d, "A model on this machine needs a running server: Ollama, llama.cpp or LM Studio.\n");
    i = ask_choice(d, "Number or name", &names, usual, false);
    if (i < names.count && names.at)
        chosen = provider_find(known, str_of(names.at[i]));
    words_release(&names);
    buf_release(&text);
    return chosen;
}

/* Lists the provider's models, as `chat --models` prints them. Stores the one that the user chooses
 * or types, else the provider alone. */
static void ask_model(struct dialogue *d, const struct provider *p, const char *self)
{
    char *chat = path_beside(self, PROGRAM_PREFIX "chat");
    struct buf printed = BUF_INIT(BUF_LINE), value = BUF_INIT(BUF_SMALL);
    char list[] = "--models", quiet[] = "-q", option[] = "-p", *name = mem_text(p->name);
    char *argv[] = {chat, list, quiet, option, name, NULL};
    struct words models = {0};
    struct err e = ERR_INIT;
    struct str rest;
    size_t i, prefix = strlen(p->name) + 1; /* `PROVIDER:` */

    if (process_read(argv, NULL, STR_NONE, &printed, d->cancel_fd, &e) < 0)
        warn_err(&e);
    rest = buf_str(&printed);
    for (struct str line = str_cut(&rest, '\n'); line.n > 0; line = str_cut(&rest, '\n'))
        words_add(&models, str_skip(line, prefix));
    for (i = 0; i < models.count && i < MODELS_SHOWN; i++)
        say(d, "  %2zu  %s\n", i + 1, models.at[i]);
    if (models.count > i)
        say(d, "  and %zu more: chathist models -p %s\n", models.count - i, p->name);
    i = ask_choice(d, "Model, number or name", &models, models.count == 1 ? 0 : NONE, true);
    buf_addf(&value, "%s:", p->name);
    if (i < models.count && models.at)
        buf_add_c(&value, models.at[i]);
    else
        buf_add_str(&value, str_trim(buf_str(&d->line)));
    if (str_ends(buf_str(&value), STR(":")))
        store_setting(d, "provider", str_of(p->name));
    else
        store_setting(d, "model", buf_str(&value));
    words_release(&models);
    buf_release(&printed);
    buf_release(&value);
    err_release(&e);
    free(chat);
    free(name);
}

static void offer_import(struct dialogue *d, const char *self)
{
    char *import = path_beside(self, PROGRAM_PREFIX "hist-import"), scan[] = "--scan";
    char *argv[] = {import, scan, NULL};
    struct err e = ERR_INIT;

    ask_line(d, "Copy what was said here to other programs, as Claude Code? [y/N] ", false);
    if (confirm_letter(&d->line) == 'y' && process_run(argv, -1, &e) < 0)
        warn_err(&e);
    err_release(&e);
    free(import);
}

void setup_run(const struct config *c, const char *self)
{
    struct dialogue d = {.config = c, .tty = confirm_open()};
    struct buf variable = BUF_INIT(BUF_SMALL);
    const struct provider *p;
    struct providers known;
    struct err e = ERR_INIT;

    if (d.tty < 0)
        die_usage("setup asks questions and needs a terminal; '" PROGRAM_PREFIX
                  "chathist key PROVIDER' reads a key "
                  "from standard input");
    if (server_providers(&known, c, &e) < 0)
        die_err(&e);
    d.cancel_fd = interrupt_begin(&e);
    if (d.cancel_fd < 0)
        die_err(&e);
    secret_buf_init(&d.line);
    say(&d, "An empty answer leaves a setting as it is, and Ctrl-C ends this.\n\n");
    p = ask_provider(&d, &known);
    if (p && p->needs_key && server_key_kind(c, p, &variable) == KEY_NONE) {
        struct str key;

        buf_addf(&variable, "Key for %s (it is not shown): ", p->name);
        while ((key = ask_line(&d, buf_c(&variable), true)).n > 0 && !secret_valid(key, false))
            say(&d, "A key has no white space and no control characters.\n");
        if (key.n > 0)
            store_key(&d, p);
    }
    if (p)
        ask_model(&d, p, self);
    offer_import(&d, self);
    say(&d, p ? "\nTry: " PROGRAM_PREFIX "chat hello\n" : "\nNo service was chosen.\n");
    interrupt_end();
    close(d.tty);
    secret_buf_release(&d.line);
    buf_release(&variable);
    providers_release(&known);
}
