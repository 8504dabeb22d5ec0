#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/sync/sync.h"
#include "sync/dir.h"

struct search {
    struct sync_machines *found;
    const struct merge_options *options;
    const char *place;
    struct err fault; /* the first one; the others are warnings */
};

/* Reads the first line of an index. A damaged one is ignored. Returns 0, or -1 with *e
 * set. */
static int read_head(struct sync_machine_entry *m, struct sync_machine_history *h, int dir,
                     const char *path, struct err *e)
{
    struct buf text = BUF_INIT(DIR_INDEX_MOST);
    struct str rest, head, name, host;
    struct stat st;
    int64_t at;
    int fd = file_open_regular_at(dir, path, O_RDONLY, 0, &st, NULL, e), result = 0;

    if (fd < 0)
        return -1;
    if (file_read_all(fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    close(fd);
    rest = buf_str(&text);
    head = str_cut(&rest, '\n');
    at = system_mtime(&st) / 1000;
    if (result == 0 && str_eq_c(str_word(&head), "hist-sync") && str_word(&head).n > 0) {
        name = str_word(&head);
        if (sync_name_valid(name)) {
            free(h->name);
            h->name = mem_copy(name.p, name.n);
        }
        (void)str_word(&head); /* the run */
        (void)time_parse_iso(str_word(&head), &at);
        host = str_word(&head);
        if (at >= m->last_run && host.n > 0) {
            free(m->host);
            m->host = mem_copy(host.p, host.n);
        }
    }
    m->last_run = at > m->last_run ? at : m->last_run;
    buf_release(&text);
    return result;
}

/* Takes the files of a history. */
static int read_copy_files(struct sync_machine_entry *m, int dir, const char *path, struct err *e)
{
    struct sync_machine_history h = {.name = mem_text(path_base(path))};
    DIR *list = file_open_dir(dir, path);
    struct dirent *entry;
    struct stat st;
    int result = list ? 0 : -1;

    for (errno = list ? 0 : errno; list && (entry = readdir(list)); errno = 0) {
        char *file = path_join(path, entry->d_name);
        bool index = strcmp(entry->d_name, DIR_INDEX) == 0;

        if (file_stat(dir, file, &st) < 0) {
            if (errno != ENOENT)
                result = err_sys(e, errno, "cannot read '%s'", file);
        } else if (S_ISREG(st.st_mode) && (index || str_ends(str_of(file), STR(".jsonl")))) {
            h.files++;
            h.bytes += (uint64_t)st.st_size;
            if (index && read_head(m, &h, dir, file, e) < 0)
                result = -1;
        }
        free(file);
    }
    if (errno != 0 && result == 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    else if (!list)
        err_sys(e, errno, "cannot read '%s'", path);
    if (list)
        closedir(list);
    if (h.files == 0) {
        free(h.name);
        return result;
    }
    m->bytes += h.bytes;
    m->histories = mem_grow(m->histories, &m->cap, m->count + 1, sizeof(*m->histories));
    m->histories[m->count++] = h;
    return result;
}

static void release_machine(struct sync_machine_entry *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->histories[i].name);
    free(m->histories);
    free(m->name);
    free(m->host);
}

/* Takes a machine, if its directory has files of a history. If it does not say its host, its name
 * does, which ends with a dash and six digits. */
static void read_machine(struct search *s, int parent, const char *name)
{
    const char *dash = strrchr(name, '-');
    size_t host = dash && dash > name ? (size_t)(dash - name) : strlen(name);
    struct sync_machine_entry m = {.name = mem_text(name), .host = mem_copy(name, host)};
    char *path = path_join(s->place, name);
    struct err why = ERR_INIT;
    struct dirent *entry;
    int fd = dir_open_below(parent, name, s->place, &why);
    DIR *list = fd >= 0 ? file_open_dir(fd, path) : NULL;

    if (fd >= 0 && !list)
        err_sys(&why, errno, "cannot read '%s'", path);
    for (errno = 0; list && (entry = readdir(list)); errno = 0) {
        char *below = path_join(path, entry->d_name);
        int dir = entry->d_name[0] == '.' ? -1 : dir_open_below(fd, entry->d_name, path, &why);

        if (dir >= 0)
            (void)read_copy_files(&m, dir, below, &why);
        file_close(dir);
        free(below);
        if (why.kind != ERR_NONE)
            dir_add_fault(&s->fault, s->options, &why);
    }
    if (list && errno != 0)
        err_sys(&why, errno, "cannot read '%s'", path);
    if (why.kind != ERR_NONE)
        dir_add_fault(&s->fault, s->options, &why);
    if (list)
        closedir(list);
    file_close(fd);
    free(path);
    if (m.count == 0) {
        release_machine(&m);
        return;
    }
    s->found->at = mem_grow(s->found->at, &s->found->cap, s->found->count + 1, sizeof(m));
    s->found->at[s->found->count++] = m;
}

static int by_last_run(const void *a, const void *b)
{
    const struct sync_machine_entry *x = a, *y = b;

    if (x->last_run != y->last_run)
        return x->last_run < y->last_run ? 1 : -1;
    return strcmp(x->name, y->name);
}

int sync_machines_read(struct sync_machines *l, const char *place, const struct history *h,
                       const struct merge_options *o, struct err *e)
{
    struct search s = {.found = l, .options = o, .place = place};
    char *own = sync_machine(h, MACHINE_UNKEPT, NULL, e);
    DIR *list = own ? opendir(place) : NULL;
    struct dirent *entry;
    int result = -1;

    *l = (struct sync_machines){0};
    if (own && !list)
        err_sys(e, errno, "cannot open directory '%s'", place);
    for (errno = 0; list && (entry = readdir(list)); errno = 0)
        if (dir_is_machine(entry->d_name))
            read_machine(&s, dirfd(list), entry->d_name);
    if (list && errno != 0)
        err_sys(e, errno, "cannot read '%s'", place);
    else if (list && s.fault.kind != ERR_NONE)
        err_set(e, s.fault.kind, "%s", err_text(&s.fault));
    else if (list)
        result = 0;
    if (l->count > 1)
        qsort(l->at, l->count, sizeof(*l->at), by_last_run);
    for (size_t i = 0; own && i < l->count; i++)
        l->at[i].own = strcmp(l->at[i].name, own) == 0;
    if (list)
        closedir(list);
    err_release(&s.fault);
    free(own);
    return result;
}

void sync_machines_release(struct sync_machines *l)
{
    for (size_t i = 0; i < l->count; i++)
        release_machine(&l->at[i]);
    free(l->at);
    *l = (struct sync_machines){0};
}
