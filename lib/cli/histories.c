#include "chathist/cli/histories.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/history/register.h"

static void add(struct histories *h, struct history history)
{
    h->at = mem_grow(h->at, &h->cap, h->count + 1, sizeof *h->at);
    h->at[h->count++] = history;
}

static void add_file(struct histories *h, const char *file)
{
    struct locate_from from = start_from(&h->config);
    struct history history;
    struct err e = ERR_INIT;

    from.explicit_file = file;
    if (locate(&history, &from, &e) < 0)
        die_err(&e);
    start_expect(&history);
    add(h, history);
}

/* ---- all histories of the user ---- */

struct candidate {
    struct history history;
    struct timespec written;
};

static bool same_file(const char *path, const struct stat *st)
{
    struct stat other;

    return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* Is it a history, and none that was given already? */
static bool is_new(const struct histories *h, const struct candidate *found, size_t count,
                   struct candidate *c)
{
    struct stat st;

    if (io_stat(c->history.dir_fd, c->history.path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    for (size_t i = 0; i < h->count; i++)
        if (same_file(h->at[i].path, &st))
            return false;
    for (size_t i = 0; i < count; i++)
        if (same_file(found[i].history.path, &st))
            return false;
    c->written = st.st_mtim;
    return true;
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

struct candidates {
    struct candidate *at;
    size_t count, cap;
};

static void consider(struct candidates *found, const struct histories *h, struct history history)
{
    struct candidate c = {.history = history};

    if (is_new(h, found->at, found->count, &c)) {
        found->at = mem_grow(found->at, &found->cap, found->count + 1, sizeof *found->at);
        found->at[found->count++] = c;
    } else {
        history_release(&c.history);
    }
}

/* The directories of the register. */
static void consider_registered(struct candidates *found, const struct histories *h)
{
    struct locate_from from = start_from(&h->config);
    struct err e = ERR_INIT;
    struct register_dirs dirs;
    struct history history;
    char *path;

    if (!h->config.state_home) {
        err_set(&e, ERR_FAILURE,
                "no register is known: neither HOME nor XDG_STATE_HOME is an absolute path");
        die_err(&e);
    }
    path = path_join(h->config.state_home, "chathist/histories");
    if (register_list(path, &dirs, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < dirs.count; i++)
        if (locate_registered(&history, dirs.at[i], &from))
            consider(found, h, history);
    free(path);
    register_dirs_release(&dirs);
}

/* The histories whose repositories are gone: only their second names are left (hist/copy). */
static void consider_kept(struct candidates *found, const struct histories *h)
{
    struct locate_from from = start_from(&h->config);
    struct err e = ERR_INIT;
    struct history history;
    char *dir = h->config.data_home ? path_join(h->config.data_home, "aicoder/repositories") : NULL;
    DIR *list = dir ? opendir(dir) : NULL;
    struct dirent *entry;

    while (list && (entry = readdir(list))) {
        char *file = path_join(dir, entry->d_name);

        from.explicit_file = file;
        if (str_ends(str_of(file), STR(".jsonl")) && locate(&history, &from, &e) == 0)
            consider(found, h, history);
        free(file);
    }
    if (list)
        closedir(list);
    err_release(&e);
    free(dir);
}

/* The user's own history, which belongs to no repository. */
static void consider_own(struct candidates *found, const struct histories *h)
{
    struct locate_from from = start_from(&h->config);
    struct err e = ERR_INIT;
    struct history history;

    if (locate_own(&history, &from, &e) == 0)
        consider(found, h, history);
    err_release(&e);
}

static void add_registered(struct histories *h)
{
    struct candidates found = {0};

    consider_own(&found, h);
    consider_registered(&found, h);
    consider_kept(&found, h);
    if (found.count > 0)
        qsort(found.at, found.count, sizeof *found.at, compare);
    for (size_t i = 0; i < found.count; i++)
        add(h, found.at[i].history);
    free(found.at);
}

void histories_open(struct histories *h, char **files, size_t count, bool all, bool quiet)
{
    *h = (struct histories){0};
    if (count == 0 && !all) {
        struct opt_common common = {.quiet = quiet};
        struct history history;

        start_reader_of_several(&h->config, &history, &common);
        add(h, history);
        if (history.foreign && strcmp(history.foreign, history.path) != 0)
            add_file(h, history.foreign);
        return;
    }

    struct err e = ERR_INIT;

    if (config_load(&h->config, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < count; i++)
        add_file(h, files[i]);
    if (all)
        add_registered(h);
}

void histories_open_beside(struct histories *h, struct history meant, bool registered)
{
    struct err e = ERR_INIT;

    *h = (struct histories){0};
    if (config_load(&h->config, &e) < 0)
        die_err(&e);
    add(h, meant);
    if (registered)
        add_registered(h);
}

void histories_release(struct histories *h)
{
    for (size_t i = 0; i < h->count; i++)
        history_release(&h->at[i]);
    free(h->at);
    config_release(&h->config);
}
