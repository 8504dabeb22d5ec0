#include "chathist/cli/import_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"

/* Directories are searched up to this depth. */
#define DEPTH_MAX 32
/* This many bytes at the end of a file are searched for its last time. */
#define TAIL ((off_t)64 << 10)

/* Finds the last member `timestamp` that is a time. Returns false if no member is. */
static bool last_time(struct str text, int64_t *us)
{
    static const struct str key = {"\"timestamp\":", sizeof "\"timestamp\":" - 1};
    const char *at;
    bool found = false;

    while ((at = str_find(text, key))) {
        struct str value;

        text.n -= (size_t)(at - text.p) + key.n;
        text.p = at + key.n;
        value = str_trim((struct str){text.p, text.n < 64 ? text.n : 64});
        (void)str_cut(&value, '"');
        found = time_parse_iso(str_cut(&value, '"'), us) || found;
    }
    return found;
}

/* Returns the time of the last message of a file of JSON lines, else the modification time. */
static int64_t time_of(const char *path, const struct stat *st)
{
    int64_t last = (int64_t)st->st_mtim.tv_sec * TIME_SECOND + st->st_mtim.tv_nsec / 1000;
    struct buf tail = BUF_INIT((size_t)TAIL);
    size_t size = (size_t)(st->st_size < TAIL ? st->st_size : TAIL);
    int fd = S_ISREG(st->st_mode) && str_ends(str_of(path), STR(".jsonl"))
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                 : -1;

    if (fd >= 0) {
        ssize_t got = file_pread_full(fd, buf_room(&tail, size), size, st->st_size - (off_t)size);

        buf_grew(&tail, got > 0 ? (size_t)got : 0);
        last_time(buf_str(&tail), &last);
        close(fd);
    }
    buf_release(&tail);
    return last;
}

static void add_file(struct import_files *f, const char *path, bool named, const struct stat *st)
{
    f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
    f->at[f->count++] =
        (struct import_file){mem_copy(path, strlen(path)), named, st ? time_of(path, st) : 0};
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

/* Returns false if the directory was visited before: links may lead in circles. */
static bool visit_once(struct import_files *f, const struct stat *st)
{
    uint64_t id[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    struct str key = {(const char *)id, sizeof id};

    if (hash_map_find(&f->seen, key))
        return false;
    f->keys = mem_grow(f->keys, &f->keys_cap, f->keys_count + 1, sizeof *f->keys);
    key.p = f->keys[f->keys_count++] = mem_copy(key.p, key.n);
    hash_map_set(&f->seen, key, 0);
    return true;
}

static void walk(struct import_files *f, const char *path, const struct stat *at, int depth)
{
    struct dirent *entry;
    DIR *dir;

    if (!visit_once(f, at))
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
    for (size_t i = 0; i < f->keys_count; i++)
        free(f->keys[i]);
    free(f->keys);
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

/* Adds names in the directory of a program: `own`, which a variable has set, else `directory` in
 * the two `homes`. */
static void add_program(struct import_files *f, const char *own, const char *const *homes,
                        const char *directory, const char *const *names)
{
    for (; *names; names++) {
        if (own)
            add_place(f, own, *names);
        for (size_t i = 0; !own && i < 2; i++) {
            char *dir = homes[i] ? path_join(homes[i], directory) : NULL;

            add_place(f, dir, *names);
            free(dir);
        }
    }
}

bool import_files_scan(struct import_files *f, const struct config *c)
{
    static const char *const projects[] = {"projects", NULL};
    static const char *const codex[] = {"sessions", "archived_sessions", NULL};
    static const char *const logs[] = {"logs.db", NULL};
    static const char *const aichat[] = {"sessions", "agents", NULL};
    size_t before = f->places;
    const char *claude_dir = config_env("CLAUDE_CONFIG_DIR");
    const char *sessions = config_env("AICHAT_SESSIONS_DIR");
    char *mac = c->home ? path_join(c->home, "Library/Application Support") : NULL;
    const char *homes[] = {c->home, NULL}, *configs[] = {c->config_home, mac};
    const char *config[] = {c->config_home, NULL};

    add_program(f, claude_dir, homes, ".claude", projects);
    if (!claude_dir)
        add_program(f, NULL, config, "claude", projects);
    add_program(f, config_env("CODEX_HOME"), homes, ".codex", codex);
    add_program(f, config_env("LLM_USER_PATH"), configs, "io.datasette.llm", logs);
    if (sessions)
        add_place(f, sessions, "");
    else
        add_program(f, config_env("AICHAT_CONFIG_DIR"), configs, "aichat", aichat);
    free(mac);
    return f->places > before;
}
