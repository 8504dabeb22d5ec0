#include "chathist/convert/import_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"

int source_open(struct source *s, const char *path, struct err *e)
{
    struct stat st;

    *s = (struct source){.name = path, .fd = STDIN_FILENO, .time = clock_now()};
    buf_init(&s->block, SOURCE_VALUE_MAX);
    if (strcmp(path, "-") == 0)
        return 0;
    s->path = path;
    s->fd = io_open_input(path, e);
    if (s->fd < 0)
        return -1;
    if (fstat(s->fd, &st) == 0)
        s->time = (int64_t)st.st_mtim.tv_sec * CLOCK_SECOND + st.st_mtim.tv_nsec / 1000;
    return 0;
}

void source_of_text(struct source *s, const char *name, struct str text)
{
    *s = (struct source){.name = name, .fd = -1, .ended = true};
    buf_init(&s->block, SOURCE_VALUE_MAX);
    buf_add_str(&s->block, text);
}

void source_close(struct source *s)
{
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    buf_release(&s->block);
}

/* Reads on: 1, 0 at the end, -1. Values that were given before become invalid. */
static int more(struct source *s, struct err *e)
{
    int got;

    if (s->ended)
        return 0;
    buf_consume(&s->block, s->from);
    s->seen = s->seen > s->from ? s->seen - s->from : 0;
    s->from = 0;
    got = io_read_some(s->fd, &s->block);
    if (got < 0 && errno == EFBIG)
        return err_set(e, ERR_FAILURE, "cannot read '%s': a value is longer than %zu MiB", s->name,
                       SOURCE_VALUE_MAX >> 20);
    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", s->name);
    s->ended = got == 0;
    return got;
}

int source_head(struct source *s, struct str *head, struct err *e)
{
    int got = 1;

    while (got > 0 && s->block.len - s->from < SOURCE_HEAD)
        got = more(s, e);
    if (got < 0)
        return -1;
    *head = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    if (head->n > SOURCE_HEAD)
        head->n = SOURCE_HEAD;
    return 0;
}

void source_skip(struct source *s, size_t n)
{
    s->from += n;
    s->seen = s->from;
}

/* ---- lines ---- */

/* Skips the rest of a line that is too long. */
static int pass_line(struct source *s, struct str *line, struct err *e)
{
    *line = STR_NONE;
    for (;;) {
        const char *end = memchr(s->block.data + s->from, '\n', s->block.len - s->from);
        int got;

        s->terminated = end != NULL;
        s->from = end ? (size_t)(end - s->block.data) + 1 : s->block.len;
        s->seen = s->from;
        if (end)
            return 1;
        got = more(s, e);
        if (got <= 0)
            return got < 0 ? -1 : 1;
    }
}

int source_line(struct source *s, struct str *line, struct err *e)
{
    int got = 1;

    while (got > 0) {
        const char *data = buf_c(&s->block), *end = NULL;

        if (s->seen < s->block.len)
            end = memchr(data + s->seen, '\n', s->block.len - s->seen);
        if (end || (s->ended && s->from < s->block.len)) {
            size_t to = end ? (size_t)(end - data) : s->block.len;

            *line = (struct str){data + s->from, to - s->from};
            s->terminated = end != NULL;
            s->from = s->seen = to + s->terminated;
            s->number++;
            if (line->n > BUF_LINE)
                *line = STR_NONE;
            return 1;
        }
        s->seen = s->block.len;
        if (s->block.len - s->from > BUF_LINE) {
            s->number++;
            return pass_line(s, line, e);
        }
        got = more(s, e);
        if (got == 0 && s->from < s->block.len)
            got = 1;
    }
    return got;
}

/* ---- values ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next byte that is neither white space nor `besides`, not taken: 1, 0, -1. */
static int peek(struct source *s, char besides, char *c, struct err *e)
{
    for (;;) {
        int got;

        for (; s->from < s->block.len; s->from++) {
            *c = s->block.data[s->from];
            if (!is_space(*c) && *c != besides)
                return 1;
        }
        s->seen = s->from;
        got = more(s, e);
        if (got <= 0)
            return got;
    }
}

/* How far a value was followed. */
struct follow {
    size_t depth;
    bool string, escape;
};

/* Takes one byte: does the value end before it? */
static bool ends_before(struct follow *f, char c)
{
    if (f->string) {
        if (f->escape)
            f->escape = false;
        else if (c == '\\')
            f->escape = true;
        else if (c == '"')
            f->string = false;
        return false;
    }
    if (f->depth == 0 && (c == ',' || c == ']'))
        return true;
    if (c == '"')
        f->string = true;
    else if (c == '{' || c == '[')
        f->depth++;
    else if ((c == '}' || c == ']') && f->depth > 0)
        f->depth--;
    return false;
}

static int take_element(struct source *s, struct str *value, struct err *e)
{
    struct follow f = {0};
    int got = 1;

    s->seen = s->from;
    while (got > 0) {
        for (; s->seen < s->block.len; s->seen++)
            if (ends_before(&f, s->block.data[s->seen]))
                goto found;
        got = more(s, e);
    }
    if (got < 0)
        return -1;
found:
    *value = (struct str){buf_c(&s->block) + s->from, s->seen - s->from};
    s->from = s->seen;
    s->number++;
    return 1;
}

/* One of several values in a row: it ends with its last bracket. What begins with none is all that
 * is left. */
static int take_next(struct source *s, struct str *value, struct err *e)
{
    struct follow f = {0};
    int got = 1;

    s->number++;
    s->seen = s->from;
    while (got > 0) {
        while (s->seen < s->block.len) {
            (void)ends_before(&f, s->block.data[s->seen]);
            if (f.depth == 0 && s->seen == s->from)
                return source_rest(s, value, e) < 0 ? -1 : 1;
            s->seen++;
            if (f.depth == 0)
                goto found;
        }
        got = more(s, e);
    }
    if (got < 0)
        return -1;
found:
    *value = (struct str){buf_c(&s->block) + s->from, s->seen - s->from};
    s->from = s->seen;
    return 1;
}

int source_value(struct source *s, struct str *value, struct err *e)
{
    char c;
    int got;

    if (s->number == 0) {
        struct str head, bom = STR("\xef\xbb\xbf");

        if (source_head(s, &head, e) < 0)
            return -1;
        if (str_starts(head, bom))
            s->from += bom.n;
        got = peek(s, ' ', &c, e);
        if (got <= 0)
            return got;
        s->in_array = c == '[';
        s->in_row = !s->in_array;
        s->from += s->in_array;
    }
    if (!s->in_array && !s->in_row)
        return 0;
    got = peek(s, s->in_array ? ',' : ' ', &c, e);
    if (got <= 0)
        return got;
    if (s->in_row)
        return take_next(s, value, e);
    if (c == ']') {
        s->in_array = false;
        return 0;
    }
    return take_element(s, value, e);
}

int source_rest(struct source *s, struct str *text, struct err *e)
{
    int got;

    do
        got = more(s, e);
    while (got > 0);
    if (got < 0)
        return -1;
    *text = (struct str){buf_c(&s->block) + s->from, s->block.len - s->from};
    s->from = s->seen = s->block.len;
    return 0;
}

/* ---- the files that a name stands for ---- */

/* Directories within directories. */
#define DEPTH_MAX 32
/* How many bytes at the end of a file are searched for its last time. */
#define TAIL ((off_t)64 << 10)

/* The last member `timestamp` that is a time. */
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
        found = clock_parse_iso(str_cut(&value, '"'), us) || found;
    }
    return found;
}

static int64_t time_of(const char *path, const struct stat *st)
{
    int64_t last = (int64_t)st->st_mtim.tv_sec * CLOCK_SECOND + st->st_mtim.tv_nsec / 1000;
    struct buf tail = BUF_INIT((size_t)TAIL);
    size_t size = (size_t)(st->st_size < TAIL ? st->st_size : TAIL);
    int fd = S_ISREG(st->st_mode) && str_ends(str_of(path), STR(".jsonl"))
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                 : -1;

    if (fd >= 0) {
        ssize_t got = io_pread_full(fd, buf_room(&tail, size), size, st->st_size - (off_t)size);

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

static void fail(struct import_files *f, const char *path, int error)
{
    struct err e = ERR_INIT;

    err_sys(&e, error, "cannot read '%s'", path);
    f->failed(f->arg, &e);
}

/* Is it another one than all before? Links may lead in circles. */
static bool is_first(struct import_files *f, const struct stat *st)
{
    uint64_t id[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    struct str key = {(const char *)id, sizeof id};

    if (keymap_find(&f->seen, key))
        return false;
    f->keys = mem_grow(f->keys, &f->keys_cap, f->keys_count + 1, sizeof *f->keys);
    key.p = f->keys[f->keys_count++] = mem_copy(key.p, key.n);
    keymap_set(&f->seen, key, 0);
    return true;
}

static void walk(struct import_files *f, const char *path, const struct stat *at, int depth)
{
    struct dirent *entry;
    DIR *dir;

    if (!is_first(f, at))
        return;
    dir = depth < DEPTH_MAX ? opendir(path) : (errno = ENAMETOOLONG, NULL);
    if (!dir) {
        fail(f, path, errno);
        return;
    }
    while ((errno = 0, entry = readdir(dir))) {
        struct stat st;
        char *name;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        name = path_join(path, entry->d_name);
        /* A file that has been removed is no failure, nor a link to nothing. */
        if (stat(name, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                walk(f, name, &st, depth + 1);
            else if (S_ISREG(st.st_mode) && is_wanted(entry->d_name))
                add_file(f, name, false, &st);
        }
        free(name);
    }
    if (errno != 0)
        fail(f, path, errno);
    closedir(dir);
}

void import_files_add(struct import_files *f, const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        add_file(f, path, true, NULL);
    else if (stat(path, &st) < 0)
        fail(f, path, errno);
    else if (S_ISDIR(st.st_mode))
        walk(f, path, &st, 0);
    else
        add_file(f, path, true, &st);
}

static int compare(const void *a, const void *b)
{
    const struct import_file *x = a, *y = b;

    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return strcmp(x->path, y->path);
}

void import_files_sort(struct import_files *f)
{
    if (f->count > 1)
        qsort(f->at, f->count, sizeof *f->at, compare);
}

void import_files_release(struct import_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->at[i].path);
    free(f->at);
    for (size_t i = 0; i < f->keys_count; i++)
        free(f->keys[i]);
    free(f->keys);
    keymap_release(&f->seen);
    *f = (struct import_files){0};
}
