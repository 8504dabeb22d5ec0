#include "chathist/chat/tools.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/cli/palette.h"
#include "chathist/cli/signals.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/provider.h"

/* ---- their environment ---- */

char **clean_env(const char *const *secrets)
{
    struct arg_list names = {0};
    char **env;

    for (const struct provider *const *p = provider_all(); *p; p++) {
        const char *const variables[] = {(*p)->key_variable, (*p)->shared_key_variable,
                                         (*p)->token_variable};

        for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
            if (variables[i])
                arg_list_add(&names, variables[i]);
    }
    arg_list_add(&names, "CHAT_API_KEY");
    arg_list_add(&names, "CHAT_API_KEY_COMMAND");
    env = child_env_without(names.at, STR_NONE);
    free(names.at);
    clean_env_more(env, secrets);
    return env;
}

void clean_env_more(char **env, const char *const *secrets)
{
    for (; secrets && *secrets; secrets++) {
        struct str secret = secret_of(*secrets);
        size_t kept = 0;

        if (secret.n == 0)
            continue;
        for (size_t i = 0; env[i]; i++)
            if (!str_find(str_of(env[i]), secret))
                env[kept++] = env[i];
        env[kept] = NULL;
    }
}

/* ---- which tools ---- */

void toolbox_put(struct toolbox *b, const struct tool *t)
{
    b->at = mem_grow(b->at, &b->cap, b->count + 1, sizeof(const struct tool *));
    b->at[b->count++] = t;
}

/* Returns the path of a tool, which the caller frees. A name is not searched in the working
 * directory, so that a repository cannot supply a program of that name. */
static char *tool_path(const char *name, const struct config *c)
{
    char *dir, *path;

    if (strchr(name, '/'))
        return mem_text(name);
    if (!c->config_home)
        die_usage("cannot find the tool '%s': there is no home directory", name);
    dir = path_join(c->config_home, "chathist/tools");
    path = path_join(dir, name);
    if (access(path, F_OK) < 0)
        die_usage("no tool '%s' in '%s' (a path has a slash in it)", name, dir);
    free(dir);
    return path;
}

/* Loads a tool. `by_user`: the name is a path that the user gave for this run, so the owner of the
 * file does not matter. */
static int load_tool(struct toolbox *b, const char *name, bool by_user, const struct config *c,
                     int cancel_fd, struct err *e)
{
    char *path = tool_path(name, c);
    struct tool_exec *t = mem_zalloc(sizeof *t);
    int result = by_user ? 0 : config_check_owner(path, e);

    if (result == 0)
        result = tool_exec_load(t, path, b->env, cancel_fd, e);

    b->execs = mem_grow(b->execs, &b->execs_cap, b->execs_count + 1, sizeof(struct tool_exec *));
    b->execs[b->execs_count++] = t;
    free(path);
    for (size_t i = 0; result == 0 && i < b->count; i++)
        if (strcmp(b->at[i]->name, t->tool.name) == 0)
            result = err_set(e, ERR_USAGE, "two tools are called '%s'", t->tool.name);
    if (result == 0)
        toolbox_put(b, &t->tool);
    return result;
}

static int load_tools(struct toolbox *b, const char *const *named, const struct config *c,
                      int cancel_fd, struct err *e)
{
    int result = 0;

    for (; result == 0 && *named; named++)
        if (**named)
            result = load_tool(b, *named, strchr(*named, '/'), c, cancel_fd, e);
    return result;
}

/* The configuration is the same in every working directory. A relative path in it could name a file
 * of another user. */
static int load_configured(struct toolbox *b, const struct config *c, int cancel_fd, struct err *e)
{
    struct str rest = str_of(c->value[SETTING_TOOLS]);
    struct str word;
    int result = 0;

    while (result == 0 && (word = str_word(&rest)).p) {
        char *name = mem_copy(word.p, word.n);

        if (name[0] == '@')
            result = 0; /* a tool of the server (chat/request_settings) */
        else if (strchr(name, '/') && name[0] != '/')
            result = err_set(e, ERR_USAGE,
                             "cannot use the tool '%s': 'tools' takes names and paths "
                             "that begin with a slash",
                             name);
        else
            result = load_tool(b, name, false, c, cancel_fd, e);
        free(name);
    }
    return result;
}

void toolbox_load(struct toolbox *b, const char *const *named, const struct config *c,
                  const char *const *secrets)
{
    struct err e = ERR_INIT;
    int cancel_fd, signo, result;

    if (named ? !*named : !c->value[SETTING_TOOLS])
        return;
    b->env = clean_env(secrets);
    cancel_fd = interrupt_begin(&e);
    if (cancel_fd < 0)
        die_err(&e);
    result = named ? load_tools(b, named, c, cancel_fd, &e) : load_configured(b, c, cancel_fd, &e);
    signo = interrupt_signal();
    interrupt_end();
    if (signo)
        die_signal(signo);
    if (result < 0)
        die_err(&e);
}

void toolbox_release(struct toolbox *b)
{
    for (size_t i = 0; i < b->execs_count; i++) {
        tool_exec_release(b->execs[i]);
        free(b->execs[i]);
    }
    free(b->execs);
    free(b->at);
    free(b->env);
    *b = (struct toolbox){0};
}

/* How many characters of the arguments are shown at first. */
#define SHOWN 1500

/* ---- consent ---- */

/* Returns whether one of the patterns of consent.allowed matches the name. */
static bool consent_matches(const char *patterns, struct str name)
{
    struct str rest = str_of(patterns);
    struct str pattern;

    while ((pattern = str_word(&rest)).p) {
        bool open = str_ends(pattern, STR("*"));

        if (open ? str_starts(name, (struct str){pattern.p, pattern.n - 1}) : str_eq(pattern, name))
            return true;
    }
    return false;
}

static void add_call_text(struct buf *out, struct str name, struct str args, bool whole)
{
    struct buf text = BUF_INIT(BUF_LINE), visible = BUF_INIT(8 * BUF_LINE);
    struct str shown;

    json_add_compact(&text, args);
    json_add_all_visible(&visible, buf_str(&text));
    shown = whole ? buf_str(&visible) : utf8_first(buf_str(&visible), SHOWN);
    buf_addf(out, "the model calls %.*s\n", (int)name.n, name.p);
    buf_add_str(out, shown);
    if (shown.n < visible.len)
        buf_addf(out, "\n... (%zu more bytes; s shows all)", visible.len - shown.n);
    buf_release(&text);
    buf_release(&visible);
}

/* The line that is answered names the tool. Reverse video sets it off from all output of models,
 * whose control characters are made visible. */
static void add_question(struct buf *out, struct str name)
{
    bool plain = term_is_dumb();

    if (!plain)
        palette_add(out, STYLE_HIT, BACKGROUND_UNKNOWN, 0);
    buf_addf(out, "run '%.*s'?", (int)name.n, name.p);
    if (!plain)
        palette_add(out, STYLE_NONE, BACKGROUND_UNKNOWN, 0);
    buf_add_c(out, " [y]es, [n]o, [a]lways (this tool, this run): ");
}

static enum consent_answer ask_on(struct consent *c, int tty, struct str name, struct str args)
{
    struct buf text = BUF_INIT(9 * BUF_LINE), line = BUF_INIT(CONFIRM_MAX_BYTES);
    enum consent_answer answer = CONSENT_NOBODY;
    bool call = true, whole = false;

    while (answer == CONSENT_NOBODY) {
        int came;

        buf_clear(&text);
        if (call)
            add_call_text(&text, name, args, whole);
        buf_add_c(&text, call ? "\n" : "");
        add_question(&text, name);
        confirm_say(tty, buf_str(&text));
        came = confirm_line(tty, c->cancel_fd, &line);
        call = whole = came > 0 && confirm_letter(&line) == 's';
        if (came < 0)
            answer = CONSENT_CANCELLED;
        else if (came == 0 || confirm_letter(&line) == 'n')
            answer = CONSENT_NO;
        else if (confirm_letter(&line) == 'y' || confirm_letter(&line) == 'a')
            answer = CONSENT_YES;
        if (came <= 0)
            confirm_say(tty, STR("\n"));
        else if (answer == CONSENT_NOBODY && !call)
            confirm_say(tty, STR("the answer is y, n or a, and then Enter\n"));
    }
    if (answer == CONSENT_YES && confirm_letter(&line) == 'a') {
        buf_add_str(&c->always, name);
        buf_add_byte(&c->always, ' ');
    }
    buf_release(&text);
    buf_release(&line);
    return answer;
}

enum consent_answer consent_ask(struct consent *c, struct str name, struct str args)
{
    enum consent_answer answer;
    int tty;

    if (c->all || consent_matches(c->allowed, name) || consent_matches(buf_c(&c->always), name))
        return CONSENT_GIVEN;
    tty = confirm_open();
    if (tty < 0)
        return CONSENT_NOBODY;
    if (c->lend)
        c->lend(c->lend_arg, true);
    answer = ask_on(c, tty, name, args);
    if (c->lend)
        c->lend(c->lend_arg, false);
    close(tty);
    return answer;
}
