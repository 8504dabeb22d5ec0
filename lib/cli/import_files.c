#include "chathist/cli/import_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

/* Directories are searched up to this depth. */
#define DEPTH_MAX 32

static void add_file(struct import_files *f, const char *path, bool named, const struct stat *st)
{
    int64_t last = st ? system_mtime(st) / 1000 : 0;

    f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
    f->at[f->count++] = (struct import_file){mem_text(path), named, last};
}

static bool is_wanted(const char *name)
{
    static const char *const endings[] = {".jsonl", ".json", ".yaml", ".yml", ".db"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (str_ends(str_of(name), str_of(endings[i])))
            return true;
    return false;
}

static void fail_file(struct import_files *f, const char *path, int error)
{
    struct err e = ERR_INIT;

    err_sys(&e, error, "cannot read '%s'", path);
    f->failed(f->arg, &e);
}

static void walk(struct import_files *f, const char *path, const struct stat *at, int depth)
{
    uint64_t id[] = {(uint64_t)at->st_dev, (uint64_t)at->st_ino};
    struct dirent *entry;
    DIR *dir;

    /* Links may lead in circles: no directory is visited twice. */
    if (!hash_map_add(&f->seen, (struct str){(const char *)id, sizeof id}))
        return;
    dir = depth < DEPTH_MAX ? opendir(path) : (errno = ENAMETOOLONG, NULL);
    if (!dir) {
        fail_file(f, path, errno);
        return;
    }
    while ((errno = 0, entry = readdir(dir))) {
        struct stat st;
        char *name;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        name = path_join(path, entry->d_name);
        /* A file that was removed meanwhile is no failure, and neither is a dangling link. */
        if (stat(name, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                walk(f, name, &st, depth + 1);
            else if (S_ISREG(st.st_mode) && is_wanted(entry->d_name))
                add_file(f, name, false, &st);
        }
        free(name);
    }
    if (errno != 0)
        fail_file(f, path, errno);
    closedir(dir);
}

void import_files_add(struct import_files *f, const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        add_file(f, path, true, NULL);
    else if (stat(path, &st) < 0)
        fail_file(f, path, errno);
    else if (S_ISDIR(st.st_mode))
        walk(f, path, &st, 0);
    else
        add_file(f, path, true, &st);
}

static int compare_files(const void *a, const void *b)
{
    const struct import_file *x = a, *y = b;

    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return strcmp(x->path, y->path);
}

void import_files_sort(struct import_files *f)
{
    if (f->count > 1)
        qsort(f->at, f->count, sizeof *f->at, compare_files);
}

void import_files_release(struct import_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->at[i].path);
    free(f->at);
    hash_map_release(&f->seen);
    *f = (struct import_files){0};
}

/* ---- where other programs keep their conversations ---- */

/* Adds dir/name if it exists. dir may be NULL. */
static void add_place(struct import_files *f, const char *dir, const char *name)
{
    char *path = dir ? path_join(dir, name) : NULL;

    if (path && access(path, F_OK) == 0) {
        import_files_add(f, path);
        f->places++;
    }
    free(path);
}

/* Where a program keeps conversations: `names` in the directory that a variable has, or else in
 * these directories. */
struct program_places {
    const char *variable;
    struct {
        const char *home, *name;
    } directories[2];
    const char *names[2];
};

static void add_program(struct import_files *f, const struct program_places *p)
{
    const char *own = config_env(p->variable);

    for (size_t i = 0; i < 4; i++) {
        const char *name = p->names[i / 2], *home = p->directories[i % 2].home;
        char *dir = home ? path_join(home, p->directories[i % 2].name) : NULL;

        if (name && (!own || i % 2 == 0))
            add_place(f, own ? own : dir, name);
        free(dir);
    }
}

bool import_files_scan(struct import_files *f, const struct config *c)
{
    char *mac = c->home ? path_join(c->home, "Library/Application Support") : NULL;
    const struct program_places programs[] = {
        {"CLAUDE_CONFIG_DIR", {{c->home, ".claude"}, {c->config_home, "claude"}}, {"projects"}},
        {"CODEX_HOME", {{c->home, ".codex"}}, {"sessions", "archived_sessions"}},
        {"LLM_USER_PATH",
         {{c->config_home, "io.datasette.llm"}, {mac, "io.datasette.llm"}},
         {"logs.db"}},
        {"AICHAT_CONFIG_DIR",
         {{c->config_home, "aichat"}, {mac, "aichat"}},
         {"sessions", "agents"}},
    };
    const char *sessions = config_env("AICHAT_SESSIONS_DIR");
    size_t before = f->places;

    for (size_t i = 0; i < sizeof programs / sizeof *programs - (sessions ? 1 : 0); i++)
        add_program(f, &programs[i]);
    if (sessions)
        add_place(f, sessions, "");
    free(mac);
    return f->places > before;
}
