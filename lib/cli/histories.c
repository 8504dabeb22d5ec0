#include "chathist/cli/histories.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"

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

/* Is it a history that was not found before? */
static bool is_new(const struct histories *h, const struct candidate *found, size_t count,
                   struct candidate *c)
{
    struct stat st;

    if (file_stat(c->history.dir_fd, c->history.path, &st) < 0 || !S_ISREG(st.st_mode))
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
    const struct histories *given;
    struct candidate *at;
    size_t count, cap;
};

/* For locate_all: keeps a history unless it was found before. */
static void consider(void *arg, struct history history)
{
    struct candidates *found = arg;
    struct candidate c = {.history = history};

    if (is_new(found->given, found->at, found->count, &c)) {
        found->at = mem_grow(found->at, &found->cap, found->count + 1, sizeof *found->at);
        found->at[found->count++] = c;
    } else {
        history_release(&c.history);
    }
}

static void add_all(struct histories *h)
{
    struct candidates found = {.given = h};
    struct locate_from from = start_from(&h->config);
    struct err e = ERR_INIT;

    if (locate_all(&from, consider, &found, &e) < 0)
        die_err(&e);
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
        for (size_t i = 0; i < history.foreign_count; i++)
            if (strcmp(history.foreign[i], history.path) != 0)
                add_file(h, history.foreign[i]);
        return;
    }

    struct err e = ERR_INIT;

    if (config_load(&h->config, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < count; i++)
        add_file(h, files[i]);
    if (all)
        add_all(h);
}

void histories_open_beside(struct histories *h, struct history first, bool all)
{
    struct err e = ERR_INIT;

    *h = (struct histories){0};
    if (config_load(&h->config, &e) < 0)
        die_err(&e);
    add(h, first);
    if (all)
        add_all(h);
}

void histories_release(struct histories *h)
{
    for (size_t i = 0; i < h->count; i++)
        history_release(&h->at[i]);
    free(h->at);
    config_release(&h->config);
}

/* ---- names ---- */

static struct str without_end(struct str path, struct str end)
{
    if (path.n > end.n && str_ends(path, end))
        path.n -= end.n;
    return path;
}

void history_name_add(struct buf *out, const struct history *h)
{
    struct str home = str_of(config_env("HOME"));
    struct str name = str_of(h->kind == HISTORY_EXPLICIT || !h->dir ? h->path : h->dir);

    if (h->kind == HISTORY_REPOSITORY) {
        name = without_end(name, STR("/.aicoder"));
        name = without_end(name, STR("/aicoder"));
        name = without_end(name, STR("/.git"));
    }
    if (home.n > 1 && str_starts(name, home) && (name.n == home.n || name.p[home.n] == '/')) {
        buf_add_byte(out, '~');
        name = (struct str){name.p + home.n, name.n - home.n};
    }
    buf_add_str(out, name);
}
