#include "chathist/cli/import_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

#define HEAD "chathist-scan"
#define NONE SIZE_MAX
/* A file that was changed within this time before the scan is read again by the next one. */
#define YOUNG (60 * TIME_SECOND)

/* A file of the last scan. */
struct remembered {
    struct import_stamp stamp;
    size_t said, count;          /* in the list of all */
    int64_t offset, number, sum; /* the point (import_point) */
    struct str state;
};

struct import_cache {
    struct import_places *places;
    uint64_t key;
    char *path;            /* NULL without a directory for caches */
    struct buf text;       /* of the last scan */
    struct hash_map files; /* path -> its number */
    struct remembered *at; /* of the last scan */
    size_t at_cap;
    struct import_said *said; /* of these */
    size_t said_count, said_cap;
    struct buf next; /* the lines of files for the next one */
    bool changed;
    size_t remembered; /* these lines */
    /* While it is loaded: the histories of the text, and the numbers of its directories in
     * import_places, or NONE. */
    struct remembered_history {
        struct import_stored then;
        size_t place; /* in import_places, or NONE; once a directory or a file needs it */
        bool found;
    } * histories;
    size_t *dirs;
    size_t histories_count, histories_cap, dirs_count, dirs_cap;
};

/* ---- loading ---- */

static bool read_cached_number(struct str text, int64_t *n)
{
    for (size_t i = 0; i < text.n; i++)
        if (!ascii_is_digit(text.p[i]))
            return false;
    return text.n > 0 && json_int(text, n);
}

static bool cut_member(struct str *rest, char end, int64_t *n)
{
    return read_cached_number(str_cut(rest, end), n);
}

/* Returns the number of a history in import_places, or NONE. A history that was replaced since may
 * lack what was stored in it. */
static size_t place_at(struct import_cache *c, int64_t n)
{
    struct remembered_history *h;

    if (n >= (int64_t)c->histories_count)
        return NONE;
    h = &c->histories[n];
    /* The directory that was read just now may have led to it. */
    if (!h->found)
        h->place = import_places_find(c->places, &h->then);
    h->found = h->found || h->place != NONE || c->files.count > 0;
    return h->place;
}

/* `h INODE BORN SIZE PATH` */
static bool load_history(struct import_cache *c, struct str rest)
{
    struct remembered_history h = {0};

    if (!cut_member(&rest, ' ', &h.then.inode) || !cut_member(&rest, ' ', &h.then.born) ||
        !cut_member(&rest, ' ', &h.then.size))
        return false;
    h.then.path = rest;
    c->histories =
        mem_grow(c->histories, &c->histories_cap, c->histories_count + 1, sizeof *c->histories);
    c->histories[c->histories_count++] = h;
    return true;
}

/* `c HISTORY DIRECTORY`: a directory may have another history since it was made or removed. */
static bool load_dir(struct import_cache *c, struct str rest)
{
    struct str home = str_cut(&rest, ' ');
    bool excluded = str_eq_c(home, "-");
    int64_t n = 0;
    size_t dir;

    if (!rest.p || (!excluded && !read_cached_number(home, &n)))
        return false;
    dir = import_places_dir(c->places, rest);
    if (c->places->homes[dir] != (excluded ? NONE : place_at(c, n)))
        dir = NONE;
    c->dirs = mem_grow(c->dirs, &c->dirs_cap, c->dirs_count + 1, sizeof *c->dirs);
    c->dirs[c->dirs_count++] = dir;
    return true;
}

/* Adds what was said in a file. */
static bool load_said(struct import_cache *c, struct str list)
{
    while (list.p && !str_eq_c(list, "-")) {
        struct str one = str_cut(&list, ',');
        struct import_said said = {.place = NONE, .stored = str_ends(one, STR("+"))};
        int64_t dir, place;

        one.n -= said.stored;
        if (!cut_member(&one, ':', &dir))
            return false;
        said.dir = dir < (int64_t)c->dirs_count ? c->dirs[dir] : NONE;
        if (read_cached_number(one, &place)) {
            said.place = place_at(c, place);
            said.dir = said.place == NONE ? NONE : said.dir;
        } else if (!str_eq_c(one, "-")) {
            return false;
        }
        c->said = mem_grow(c->said, &c->said_cap, c->said_count + 1, sizeof *c->said);
        c->said[c->said_count++] = said;
    }
    return true;
}

/* `f SIZE TIME INODE BESIDE SAID PATH` */
static bool load_file(struct import_cache *c, struct str rest)
{
    struct remembered f = {.said = c->said_count};
    size_t count = c->files.count;

    if (!cut_member(&rest, ' ', &f.stamp.size) || !cut_member(&rest, ' ', &f.stamp.time) ||
        !cut_member(&rest, ' ', &f.stamp.inode) || !cut_member(&rest, ' ', &f.stamp.beside) ||
        !load_said(c, str_cut(&rest, ' ')) || rest.n == 0)
        return false;
    f.count = c->said_count - f.said;
    if (hash_map_number(&c->files, &rest) == count) {
        c->at = mem_grow(c->at, &c->at_cap, count + 1, sizeof *c->at);
        c->at[count] = f;
    }
    return true;
}

/* `p OFFSET NUMBER SUM STATE`, after the file. */
static bool load_point(struct import_cache *c, struct str rest)
{
    struct remembered *f = c->files.count > 0 ? &c->at[c->files.count - 1] : NULL;
    if (!f || !cut_member(&rest, ' ', &f->offset) || !cut_member(&rest, ' ', &f->number) ||
        !cut_member(&rest, ' ', &f->sum))
        return false;
    f->state = rest;
    return true;
}

static bool load_line(struct import_cache *c, struct str line)
{
    struct str kind = str_cut(&line, ' ');

    return line.p && (str_eq_c(kind, "f")   ? load_file(c, line)
                      : str_eq_c(kind, "p") ? load_point(c, line)
                      : str_eq_c(kind, "c") ? load_dir(c, line)
                                            : str_eq_c(kind, "h") && load_history(c, line));
}

struct import_cache *import_cache_load(struct import_places *p, uint64_t key)
{
    struct import_cache *c = mem_zalloc(sizeof *c);
    struct buf head = BUF_INIT(BUF_SMALL);
    struct str rest;
    bool good;

    c->places = p;
    c->key = key;
    c->path = config_scan_cache(&p->choice->config);
    buf_init(&c->text, SIZE_MAX);
    buf_init(&c->next, SIZE_MAX);
    if (c->path && file_read_state(c->path, &c->text, NULL) < 0)
        buf_clear(&c->text);
    buf_addf(&head, HEAD " %016" PRIx64, key);
    rest = buf_str(&c->text);
    good = str_eq(str_cut(&rest, '\n'), buf_str(&head));
    while (good && rest.n > 0)
        good = load_line(c, str_cut(&rest, '\n'));
    if (!good)
        hash_map_release(&c->files);
    c->changed = !good;
    buf_release(&head);
    return c;
}

/* ---- files ---- */

/* Writes the lines of a file. `young`: they say only where it can be read on. */
static void remember(struct import_cache *c, const struct import_file *file, bool young,
                     const struct import_said *said, size_t count)
{
    const struct import_stamp *s = &file->stamp;
    const struct import_point *p = &file->point;

    buf_addf(&c->next, "f %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s", s->size,
             young ? 0 : s->time, s->inode, s->beside, count == 0 ? "-" : "");
    for (size_t i = 0; i < count; i++) {
        buf_addf(&c->next, "%s%zu:", i > 0 ? "," : "", said[i].dir);
        if (said[i].place == NONE)
            buf_add_byte(&c->next, '-');
        else
            buf_addf(&c->next, "%zu%s", said[i].place, said[i].stored ? "+" : "");
    }
    buf_addf(&c->next, " %s\n", file->path);
    if (p->offset > 0)
        buf_addf(&c->next, "p %" PRId64 " %" PRId64 " %" PRId64 " %s\n", p->offset, p->number,
                 p->sum, buf_c(&p->state));
    c->remembered++;
}

bool import_cache_knows(struct import_cache *c, struct import_file *file)
{
    size_t *number = hash_map_find(&c->files, str_of(file->path));
    const struct remembered *f = number ? &c->at[*number] : NULL;
    const struct import_said *said = f ? c->said + f->said : NULL;

    if (!f || f->stamp.inode != file->stamp.inode)
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (said[i].dir == NONE || (!said[i].stored && import_places_wants(c->places, &said[i])))
            return false;
    file->point = (struct import_point){f->offset, f->number, f->sum, BUF_INIT(BUF_LINE)};
    buf_add_str(&file->point.state, f->state);
    if (f->stamp.size != file->stamp.size || f->stamp.time != file->stamp.time ||
        f->stamp.beside != file->stamp.beside)
        return false;
    remember(c, file, false, said, f->count);
    return true;
}

static bool has_newline(struct str path)
{
    return memchr(path.p, '\n', path.n) != NULL;
}

void import_cache_add(struct import_cache *c, const struct import_file *file)
{
    bool young = file->stamp.time >= c->places->choice->config.now - YOUNG;

    c->changed = true;
    if ((!young || file->point.offset > 0) && !has_newline(str_of(file->path)))
        remember(c, file, young, c->places->said, c->places->said_count);
}

/* ---- storing ---- */

/* In the place of a path with a newline stands none: what belongs to it is read again. */
static void add_places(const struct import_cache *c, struct buf *out)
{
    const struct import_places *p = c->places;

    for (size_t i = 0; i < p->count; i++) {
        struct import_stored now = import_places_stored(p, i);

        buf_addf(out, "h %" PRId64 " %" PRId64 " %" PRId64 " ", now.inode, now.born, now.size);
        buf_add_str(out, has_newline(now.path) ? STR("") : now.path);
        buf_add_byte(out, '\n');
    }
    for (size_t i = 0; i < p->cwds.count; i++) {
        struct str dir = p->cwds.entries[i].key;

        if (p->homes[i] == NONE || has_newline(dir))
            buf_add_c(out, "c - ");
        else
            buf_addf(out, "c %zu ", p->homes[i]);
        buf_add_str(out, has_newline(dir) ? STR("") : dir);
        buf_add_byte(out, '\n');
    }
}

void import_cache_store(struct import_cache *c, bool all)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    struct stat st;
    char *dir;
    bool was = c->path && stat(c->path, &st) == 0;

    if (!c->path)
        return;
    c->changed = c->changed || c->remembered != c->files.count;
    if (c->changed) {
        buf_addf(&text, HEAD " %016" PRIx64 "\n", c->key);
        add_places(c, &text);
        buf_add_str(&text, buf_str(&c->next));
        dir = path_parent(c->path);
        if (file_make_dirs(dir, NULL) >= 0)
            (void)file_replace_at(AT_FDCWD, c->path, buf_str(&text), false, NULL);
        free(dir);
        buf_release(&text);
    }
    if (!all) {
        times[1].tv_sec = was ? st.st_mtime : 0;
        times[1].tv_nsec = 0;
    }
    if (all || c->changed)
        (void)utimensat(AT_FDCWD, c->path, times, 0);
}

void import_cache_free(struct import_cache *c)
{
    if (!c)
        return;
    free(c->path);
    free(c->at);
    free(c->said);
    free(c->histories);
    free(c->dirs);
    hash_map_release(&c->files);
    buf_release(&c->text);
    buf_release(&c->next);
    free(c);
}
