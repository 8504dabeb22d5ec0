#include "chathist/cli/import_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"

/* Directories are searched up to this depth. */
#define DEPTH_MAX 32
/* The beginning of a file that import_file_names examines. */
#define HEAD ((size_t)64 << 10)

/* Sets what changes when a file is written. SQLite writes to a second file first. */
static void set_stamp(struct import_stamp *s, const char *path, const struct stat *st)
{
    char *log = str_ends(str_of(path), STR(".db")) ? path_with_suffix(path, "-wal") : NULL;
    struct stat more;

    *s = (struct import_stamp){.size = (int64_t)st->st_size,
                               .time = system_mtime(st) / 1000,
                               .inode = (int64_t)st->st_ino};
    if (log && stat(log, &more) == 0) {
        s->size += (int64_t)more.st_size;
        if (system_mtime(&more) / 1000 > s->time)
            s->time = system_mtime(&more) / 1000;
    }
    free(log);
}

/* The folders above that of a file in which source_find_beside looks for another one, too. */
#define ABOVE 5

/* Returns a checksum of the files in a directory that an importer reads beside a conversation.
 * `patterns`: of those whose names are patterns, which are looked for only in the folder of the
 * conversation; else of the others. Names with a folder are of other conversations. */
static uint64_t sum_beside(const struct import_files *f, const char *dir, bool patterns,
                           uint64_t sum)
{
    for (size_t i = 0; f->beside && i < f->beside->count; i++) {
        const char *name = f->beside->at[i];
        glob_t files = {0};

        if (!strchr(name, '/') && (strchr(name, '*') != NULL) == patterns)
            (void)path_glob(dir, name, &files);
        for (size_t n = 0; n < files.gl_pathc; n++) {
            struct stat st;
            int64_t facts[2];

            if (stat(files.gl_pathv[n], &st) < 0)
                continue;
            facts[0] = (int64_t)st.st_size;
            facts[1] = system_mtime(&st);
            sum = hash64(str_of(files.gl_pathv[n]), sum);
            sum = hash64((struct str){(const char *)facts, sizeof facts}, sum);
        }
        globfree(&files);
    }
    return sum;
}

/* Returns the checksum of those in the folders above a directory. */
static uint64_t sum_above(const struct import_files *f, const char *dir)
{
    char *above = path_join(dir, "..");
    uint64_t sum = 0;

    for (int up = 0; up < ABOVE; up++) {
        char *next = path_join(above, "..");

        sum = sum_beside(f, above, false, sum);
        free(above);
        above = next;
    }
    free(above);
    return sum;
}

static void add_file(struct import_files *f, const char *path, bool named, const struct stat *st,
                     uint64_t beside)
{
    struct import_file file = {.named = named};

    if (config_excludes(&f->excluded, str_of(path)))
        return;
    if (st)
        set_stamp(&file.stamp, path, st);
    file.stamp.beside = (int64_t)(beside & INT64_MAX);
    file.path = mem_text(path);
    f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
    f->at[f->count++] = file;
}

static bool is_wanted(const char *name)
{
    static const char *const endings[] = {".jsonl", ".json", ".yaml", ".yml", ".db", ".zst"};

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

/* Adds the files in a directory and below. `above` is the checksum of the files that importers read
 * beside them, in the folders above. */
static void walk(struct import_files *f, const char *path, const struct stat *at, int depth,
                 uint64_t above)
{
    uint64_t beside, id[] = {(uint64_t)at->st_dev, (uint64_t)at->st_ino};
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
    above = sum_beside(f, path, false, above);
    beside = sum_beside(f, path, true, above);
    while ((errno = 0, entry = readdir(dir))) {
        struct stat st;
        char *name;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        name = path_join(path, entry->d_name);
        /* A file that was removed meanwhile is no failure, and neither is a dangling link. */
        if (stat(name, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                walk(f, name, &st, depth + 1, above);
            else if (S_ISREG(st.st_mode) && is_wanted(entry->d_name))
                add_file(f, name, false, &st, beside);
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
        add_file(f, path, true, NULL, 0);
    else if (stat(path, &st) < 0)
        fail_file(f, path, errno);
    else if (S_ISDIR(st.st_mode))
        walk(f, path, &st, 0, sum_above(f, path));
    else
        add_file(f, path, true, &st, 0);
}

bool import_file_names(const struct import_file *file, struct str dir)
{
    struct buf quoted = BUF_INIT(BUF_LINE), head = BUF_INIT(HEAD);
    int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *room = buf_room(&head, HEAD - 1);
    ssize_t n = fd >= 0 && room ? file_pread_full(fd, room, HEAD - 1, 0) : -1;
    struct str text = {room, n > 0 ? (size_t)n : 0};
    const char *at;
    bool names = false;

    json_add_string(&quoted, dir);
    buf_truncate(&quoted, quoted.len - 1);
    while (!names && (at = str_find(text, buf_str(&quoted)))) {
        text = str_skip(text, (size_t)(at - text.p) + quoted.len);
        names = str_starts(text, STR("\"")) || str_starts(text, STR("/"));
    }
    file_close(fd);
    buf_release(&quoted);
    buf_release(&head);
    return names;
}

static int compare_files(const void *a, const void *b)
{
    const struct import_file *x = a, *y = b;

    if (x->stamp.time != y->stamp.time)
        return x->stamp.time < y->stamp.time ? -1 : 1;
    return strcmp(x->path, y->path);
}

void import_files_sort(struct import_files *f)
{
    if (f->count > 1)
        qsort(f->at, f->count, sizeof *f->at, compare_files);
}

void import_files_release(struct import_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->at[i].path);
        buf_release(&f->at[i].point.state);
    }
    free(f->at);
    hash_map_release(&f->seen);
    words_release(&f->excluded);
    *f = (struct import_files){0};
}

/* ---- where other programs keep their conversations ---- */

/* Appends a place with its variables: `${NAME:-default}`, where a default may have some, too.
 * *rest is what follows; `end` is the character that ends this part, or NUL. Returns false if the
 * place cannot exist, because there is no home directory. */
static bool expand(const struct config *c, const char **rest, char end, struct buf *out)
{
    const char *p = *rest;
    bool possible = true;

    if (p[0] == '~' && p[1] == '/') {
        possible = c->home != NULL;
        buf_add_c(out, c->home ? c->home : "");
        p++;
    }
    while (*p != '\0' && *p != end) {
        const char *name_end = strstr(p, ":-"), *value;
        struct buf name = BUF_INIT(BUF_SMALL), standard = BUF_INIT(BUF_SMALL);

        if (p[0] != '$' || p[1] != '{' || !name_end) {
            buf_add_byte(out, *p++);
            continue;
        }
        buf_add(&name, p + 2, (size_t)(name_end - p - 2));
        value = config_env(buf_c(&name));
        p = name_end + 2;
        possible = expand(c, &p, '}', &standard) || value;
        buf_add_c(out, value ? value : buf_c(&standard));
        p += *p == '}';
        buf_release(&name);
        buf_release(&standard);
    }
    *rest = p;
    return possible;
}

/* Adds a place that exists, unless it is there. Several places are one if a variable is set. */
static void add_place(struct import_files *f, struct hash_map *done, const char *path)
{
    if (hash_map_add(done, str_of(path)) && access(path, F_OK) == 0) {
        import_files_add(f, path);
        f->places++;
    }
}

bool import_files_scan(struct import_files *f, const struct config *c, const struct importers *all,
                       const struct import_format *only, const struct words *dirs)
{
    struct hash_map done = {0};
    size_t before = f->places;
    const char *place;
    struct err e = ERR_INIT;

    if (config_excluded(c, &f->excluded, &e) < 0)
        die_err(&e);
    for (size_t n = 0; (place = importers_place(all, only, n, &f->beside)); n++) {
        struct buf path = BUF_INIT(BUF_SMALL);
        bool relative = !strchr("/~$", *place);

        if (expand(c, &place, '\0', &path) && path.len > 0) {
            for (size_t i = 0; relative && i < dirs->count; i++) {
                char *whole = path_join(dirs->at[i], buf_c(&path));

                add_place(f, &done, whole);
                free(whole);
            }
            if (!relative)
                add_place(f, &done, buf_c(&path));
        }
        buf_release(&path);
    }
    f->beside = NULL;
    hash_map_release(&done);
    return f->places > before;
}

/* ---- importers ---- */

/* Adds the scripts of a directory, which need not exist, or the one that is named `only`. */
static void add_importers(struct import_files *f, struct importers *all, const char *dir,
                          const char *only)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        struct str name = str_of(entries[i]->d_name), base = name;
        struct buf text = BUF_INIT(BUF_SMALL);
        struct err e = ERR_INIT;
        char *path = path_join(dir, entries[i]->d_name);
        int fd = -1;

        base.n -= str_ends(name, STR(".lua")) ? 4 : 0;
        if (entries[i]->d_name[0] != '.' && base.n < name.n && (!only || str_eq_c(base, only))) {
            fd = config_open(path, &e);
            entries[i]->d_name[base.n] = '\0';
            if (fd >= 0 && file_read_all(fd, &text) < 0)
                (void)err_sys(&e, errno, "cannot read '%s'", path);
            f->key = hash64(buf_str(&text), f->key);
            if (fd >= 0 && *err_text(&e) == '\0')
                (void)importers_add(all, entries[i]->d_name, path, buf_str(&text), &e);
            file_close(fd);
            if (*err_text(&e) != '\0')
                f->failed(f->arg, &e);
        }
        free(path);
        buf_release(&text);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

uint64_t import_files_key(const struct import_files *f)
{
    return f->key;
}

/* Returns the path of the program that was started as `self`, or NULL. */
static char *program_path(const char *self)
{
    struct str path = strchr(self, '/') ? STR_NONE : str_of(config_env("PATH"));
    char *found = strchr(self, '/') ? mem_text(self) : NULL;

    while (!found && path.p) {
        struct str part = str_cut(&path, ':');
        char *dir = mem_copy(part.p, part.n);

        found = path_join(dir, self);
        if (access(found, X_OK) < 0) {
            free(found);
            found = NULL;
        }
        free(dir);
    }
    return found;
}

/* Adds the scripts that came with a program: in the folder of a build they are beside it, and
 * `make install` puts them into share. */
static void add_shared(struct import_files *f, struct importers *all, const char *program,
                       const char *only)
{
    static const char *const places[] = {"importers",
                                         "../share/" PROGRAM_PREFIX "chathist/importers"};
    char *dir = path_parent(program);

    for (size_t i = 0; i < sizeof places / sizeof(char *); i++) {
        char *path = path_join(dir, places[i]);

        add_importers(f, all, path, only);
        free(path);
    }
    free(dir);
}

struct importers *import_files_load(struct import_files *f, const char *self, const char *only)
{
    struct importers *all = importers_new();
    char *own = config_user_file("importers"), *program = program_path(self), *real;

    if (own)
        add_importers(f, all, own, only);
    if (program)
        add_shared(f, all, program, only);
    /* The program may have been started through a link. */
    real = program ? path_real(program, NULL) : NULL;
    if (real && strcmp(real, program) != 0)
        add_shared(f, all, real, only);
    free(own);
    free(program);
    free(real);
    return all;
}
