#include "chathist/cli/histories.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/history/session.h"

/* ---- the list ---- */

void histories_add(struct histories *l, struct history h)
{
    l->at = mem_grow(l->at, &l->cap, l->count + 1, sizeof *l->at);
    l->at[l->count++] = h;
}

void histories_add_own(struct histories *l, const struct config *c)
{
    struct locate_from from = start_from(c);
    struct err e = ERR_INIT;
    struct history own;

    from.cwd = "/";
    from.git_dir = from.git_common_dir = NULL;
    if (locate(&own, &from, &e) < 0)
        die_err(&e);
    histories_add(l, own);
}

/* The histories that are being found, and the files of those that were. */
struct finding {
    struct histories *list;
    struct hash_map files;
};

/* Returns whether the history has a file that was not found before. */
static bool is_new_file(struct finding *f, const struct history *h)
{
    struct stat st;

    if (file_stat(h->dir_fd, h->path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;

    uint64_t id[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};

    return hash_map_add(&f->files, (struct str){(const char *)id, sizeof id});
}

static void add_new(void *arg, struct history history)
{
    struct finding *f = arg;

    if (is_new_file(f, &history))
        histories_add(f->list, history);
    else
        history_release(&history);
}

/* Adds all histories of the user that exist and are not in the list. Returns 0 or -1. */
static int find_all(struct histories *l, const struct config *c, struct err *e)
{
    struct locate_from from = start_from(c);
    struct finding f = {.list = l};
    int result;

    for (size_t i = 0; i < l->count; i++)
        (void)is_new_file(&f, &l->at[i]);
    result = locate_all(&from, add_new, &f, e);
    hash_map_release(&f.files);
    return result;
}

static int by_last_write(const void *a, const void *b)
{
    const struct history *x = a, *y = b;
    struct stat s = {0}, t = {0};

    (void)file_stat(x->dir_fd, x->path, &s);
    (void)file_stat(y->dir_fd, y->path, &t);
    if (system_mtime(&s) != system_mtime(&t))
        return system_mtime(&s) < system_mtime(&t) ? 1 : -1;
    return strcmp(x->path, y->path);
}

void histories_add_all(struct histories *l, const struct config *c)
{
    size_t given = l->count;
    struct err e = ERR_INIT;

    if (find_all(l, c, &e) < 0)
        die_err(&e);
    if (l->count > given)
        qsort(l->at + given, l->count - given, sizeof *l->at, by_last_write);
}

void histories_release(struct histories *l)
{
    for (size_t i = 0; i < l->count; i++)
        history_release(&l->at[i]);
    free(l->at);
    *l = (struct histories){0};
}

bool histories_hint_others(const struct history *h, const struct config *c)
{
    struct histories all = {0};
    struct stat st;
    size_t count = 0;

    if (!isatty(STDERR_FILENO) || !c->state_home || h->kind == HISTORY_EXPLICIT ||
        (file_stat(h->dir_fd, h->path, &st) == 0 && st.st_size > 0))
        return false;
    if (find_all(&all, c, NULL) == 0)
        for (size_t i = 0; i < all.count; i++)
            count += file_stat(all.at[i].dir_fd, all.at[i].path, &st) == 0 && st.st_size > 0;
    if (count > 0)
        hintf(false, "there is no session here; --all reads %zu other histor%s of yours", count,
              count == 1 ? "y" : "ies");
    histories_release(&all);
    return count > 0;
}

/* ---- names ---- */

static struct str without_end(struct str path, struct str end)
{
    if (path.n > end.n && str_ends(path, end))
        path.n -= end.n;
    return path;
}

struct str history_place(const struct history *h)
{
    struct str name = str_of(h->kind == HISTORY_EXPLICIT || !h->dir ? h->path : h->dir);

    if (h->kind == HISTORY_REPOSITORY) {
        name = without_end(name, STR("/.aicoder"));
        name = without_end(name, STR("/aicoder"));
        name = without_end(name, STR("/.git"));
    }
    return name;
}

void history_name_add(struct buf *out, const struct history *h)
{
    struct str home = str_of(config_env("HOME"));
    struct str name = history_place(h);

    if (home.n > 1 && str_starts(name, home) && (name.n == home.n || name.p[home.n] == '/')) {
        buf_add_byte(out, '~');
        name = (struct str){name.p + home.n, name.n - home.n};
    }
    buf_add_str(out, name);
}

/* Returns whether the place of another history ends with the same parts of a path. */
static bool is_shared(struct str end, const struct history *all, size_t count, size_t number)
{
    for (size_t i = 0; i < count; i++) {
        struct str place = history_place(&all[i]);

        if (i != number && str_ends(place, end) &&
            (place.n == end.n || place.p[place.n - end.n - 1] == '/'))
            return true;
    }
    return false;
}

void history_name_add_end(struct buf *out, const struct history *all, size_t count, size_t number)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct str end;

    history_name_add(&name, &all[number]);
    end = str_of(path_base(buf_c(&name)));
    while (end.n < name.len && is_shared(end, all, count, number))
        do
            end = (struct str){end.p - 1, end.n + 1};
        while (end.n < name.len && end.p[-1] != '/');
    buf_add_str(out, end);
    buf_release(&name);
}

void histories_restrict(struct histories *l, const char *text)
{
    struct buf folded = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_SMALL), key = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    size_t kept = 0;

    utf8_add_folded(&folded, str_of(text));
    for (size_t i = 0; i < l->count; i++) {
        buf_clear(&name);
        buf_clear(&key);
        history_name_add(&name, &l->at[i]);
        utf8_add_folded(&key, buf_str(&name));
        if (str_find(buf_str(&key), buf_str(&folded)))
            l->at[kept++] = l->at[i];
        else
            history_release(&l->at[i]);
    }
    l->count = kept;
    buf_release(&folded);
    buf_release(&name);
    buf_release(&key);
    if (kept > 0)
        return;
    err_set(&e, ERR_FAILURE, "no history of yours has '%s' in the path of its repository", text);
    die_err(&e);
}

/* ---- sessions of other histories ---- */

int history_find_session(const struct history *h, struct str name, bool exact, struct buf *id,
                         struct err *e)
{
    int found;

    if (!exact)
        return session_resolve(h, name, id, e);
    found = session_exists(h, name, e);
    if (found == 0)
        return err_set(e, ERR_ABSENT, "no session '%.*s'", ERR_SHOWN(name));
    if (found > 0)
        buf_set(id, name);
    return found > 0 ? 0 : -1;
}

/* Looks a name up in all histories from `first` on. Returns in how many it was found, and their
 * names; or -1 with *e set. */
static int find_session_in_all(const struct histories *l, size_t first, struct str name, bool exact,
                               size_t *place, struct buf *id, struct buf *names, struct err *e)
{
    struct buf one = BUF_INIT(BUF_LINE);
    int count = 0;

    for (size_t i = first; i < l->count && count >= 0; i++) {
        if (!l->at[i].trusted)
            continue;
        if (history_find_session(&l->at[i], name, exact, &one, e) == 0) {
            buf_add_c(names, count++ > 0 ? ", " : "");
            history_name_add(names, &l->at[i]);
            buf_set(id, buf_str(&one));
            *place = i;
        } else if (e->kind == ERR_ABSENT) {
            err_release(e);
        } else {
            count = -1;
        }
    }
    buf_release(&one);
    return count;
}

int histories_find(const struct histories *l, size_t first, struct str name, bool exact,
                   size_t *place, struct buf *id, struct err *e)
{
    struct buf names = BUF_INIT(BUF_SMALL);
    int count = find_session_in_all(l, first, name, true, place, id, &names, e);

    if (count == 0 && !exact && name.n > 0)
        count = find_session_in_all(l, first, name, false, place, id, &names, e);
    if (count > 1)
        count = err_set(e, ERR_FAILURE, "session '%.*s' is in several histories: %s",
                        ERR_SHOWN(name), buf_c(&names));
    buf_release(&names);
    return count;
}
