#include "front/histories.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/path.h"
#include "cli/die.h"
#include "front/start.h"
#include "hist/register.h"

static void add(struct histories *h, struct history history)
{
    h->at = mem_grow(h->at, &h->cap, h->count + 1, sizeof *h->at);
    h->at[h->count++] = history;
}

static struct locate_from places(const struct config *c)
{
    return (struct locate_from){
        .cwd = c->cwd, .data_home = c->data_home, .state_home = c->state_home};
}

static void add_file(struct histories *h, const char *file, bool quiet)
{
    struct locate_from from = places(&h->config);
    struct history history;
    struct err e = ERR_INIT;

    from.explicit_file = file;
    if (locate(&history, &from, &e) < 0)
        die_err(&e);
    start_absent(&history, quiet);
    add(h, history);
}

/* ---- those of the register ---- */

struct candidate {
    struct history history;
    struct timespec written;
};

static bool same_file(const char *path, const struct stat *st)
{
    struct stat other;

    return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* Is there a history in the directory, and none that was given already? */
static bool look_at(const struct histories *h, const char *dir, struct candidate *c)
{
    struct locate_from from = places(&h->config);
    char *path = path_join(dir, "history.jsonl");
    char *parent = path_parent(dir);
    struct err e = ERR_INIT;
    struct stat st;
    bool taken = stat(path, &st) == 0;

    for (size_t i = 0; i < h->count && taken; i++)
        taken = !same_file(h->at[i].path, &st);
    from.cwd = parent;
    if (taken && locate(&c->history, &from, &e) < 0)
        taken = false;
    if (taken && strcmp(c->history.path, path) != 0) {
        history_release(&c->history);
        taken = false;
    }
    if (taken)
        c->written = st.st_mtim;
    err_release(&e);
    free(path);
    free(parent);
    return taken;
}

static int compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->written.tv_sec != y->written.tv_sec)
        return x->written.tv_sec < y->written.tv_sec ? 1 : -1;
    if (x->written.tv_nsec != y->written.tv_nsec)
        return x->written.tv_nsec < y->written.tv_nsec ? 1 : -1;
    return strcmp(x->history.path, y->history.path);
}

static void add_registered(struct histories *h)
{
    struct err e = ERR_INIT;
    struct register_dirs dirs;
    struct candidate *found;
    size_t count = 0;
    char *path;

    if (!h->config.state_home) {
        err_set(&e, ERR_FAILURE,
                "no register is known: neither HOME nor XDG_STATE_HOME is an absolute path");
        die_err(&e);
    }
    path = path_join(h->config.state_home, "chathist/histories");
    if (register_list(path, &dirs, &e) < 0)
        die_err(&e);
    found = mem_resize(NULL, dirs.count, sizeof *found);
    for (size_t i = 0; i < dirs.count; i++)
        count += look_at(h, dirs.at[i], &found[count]);
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 0; i < count; i++)
        add(h, found[i].history);
    free(found);
    free(path);
    register_dirs_release(&dirs);
}

void histories_open(struct histories *h, char **files, size_t count, bool all, bool quiet)
{
    *h = (struct histories){0};
    if (count == 0 && !all) {
        struct opt_common common = {.quiet = quiet};
        struct history history;

        start_reader(&h->config, &history, &common);
        add(h, history);
        return;
    }

    struct err e = ERR_INIT;

    if (config_load(&h->config, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < count; i++)
        add_file(h, files[i], quiet);
    if (all)
        add_registered(h);
}

void histories_release(struct histories *h)
{
    for (size_t i = 0; i < h->count; i++)
        history_release(&h->at[i]);
    free(h->at);
    config_release(&h->config);
}
