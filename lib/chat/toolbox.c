#include "chathist/chat/toolbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/mem.h"
#include "chathist/base/path.h"
#include "chathist/cli/diagnostics.h"
#include "chat/clean_env.h"
#include "chathist/cli/signals.h"

/* ---- one of them ---- */

static int add(struct toolbox *b, const struct tool *t, struct err *e)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->at[i]->name, t->name) == 0)
            return err_set(e, ERR_USAGE, "two tools are called '%s'", t->name);
    b->at = mem_grow(b->at, &b->cap, b->count + 1, sizeof(const struct tool *));
    b->at[b->count++] = t;
    return 0;
}

int toolbox_add_all(struct toolbox *b, const struct tool *const *tools, size_t count, struct err *e)
{
    b->count = b->execs_count;
    for (size_t i = 0; i < count; i++)
        if (add(b, tools[i], e) < 0)
            return -1;
    return 0;
}

/* A name is never looked for in the working directory: what came with a repository is not run
 * because it has the right name. */
static char *tool_path(const char *name, const struct config *c)
{
    char *dir, *path;

    if (strchr(name, '/'))
        return mem_copy(name, strlen(name));
    if (!c->config_home)
        die_usage("cannot find the tool '%s': there is no home directory", name);
    dir = path_join(c->config_home, "chathist/tools");
    path = path_join(dir, name);
    if (access(path, F_OK) < 0)
        die_usage("no tool '%s' in '%s' (a path has a slash in it)", name, dir);
    free(dir);
    return path;
}

/* `by_user`: the name is a path that the user gave for this run, so whose file it is does not matter. */
static int load(struct toolbox *b, const char *name, bool by_user, const struct config *c,
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
    return result < 0 ? -1 : add(b, &t->tool, e);
}

/* ---- all of them ---- */

static int load_named(struct toolbox *b, const char *const *named, const struct config *c,
                      int cancel_fd, struct err *e)
{
    int result = 0;

    for (; result == 0 && *named; named++)
        if (**named)
            result = load(b, *named, strchr(*named, '/'), c, cancel_fd, e);
    return result;
}

/* The configuration counts wherever the program is started: a path in it that depends on that would
 * mean a file of somebody else's. */
static int load_configured(struct toolbox *b, const struct config *c, int cancel_fd, struct err *e)
{
    struct str rest = str_of(c->value[SETTING_TOOLS]);
    struct str word;
    int result = 0;

    while (result == 0 && (word = str_word(&rest)).p) {
        char *name = mem_copy(word.p, word.n);

        if (strchr(name, '/') && name[0] != '/')
            result = err_set(e, ERR_USAGE,
                             "cannot use the tool '%s': 'tools' takes names and paths "
                             "that begin with a slash",
                             name);
        else
            result = load(b, name, false, c, cancel_fd, e);
        free(name);
    }
    return result;
}

void toolbox_load(struct toolbox *b, const char *const *named, const struct config *c,
                  const char *key)
{
    struct err e = ERR_INIT;
    int cancel_fd, signo, result;

    if (named ? !*named : !c->value[SETTING_TOOLS])
        return;
    b->env = clean_env(key);
    cancel_fd = interrupt_begin(&e);
    if (cancel_fd < 0)
        die_err(&e);
    result = named ? load_named(b, named, c, cancel_fd, &e) : load_configured(b, c, cancel_fd, &e);
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
