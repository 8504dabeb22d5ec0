#include "chathist/history/partial.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/time.h"
#include "chathist/history/scan.h"

/* A file that another process holds at the moment it is made is made again. */
#define TRIES 3

/* ---- of a running turn ---- */

/* Another program that stores something may find the file before it is locked, and removes it. */
static bool make_locked(struct partial *p)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat st;

        p->fd = file_open_regular_at(p->h->dir_fd, p->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND,
                                     0600, &st, NULL, NULL);
        if (p->fd < 0)
            return false;
        if (flock(p->fd, LOCK_EX | LOCK_NB) == 0 && fstat(p->fd, &st) == 0 && st.st_nlink == 1)
            return true;
        (void)file_unlink(p->h->dir_fd, p->path);
        close(p->fd);
    }
    return false;
}

void partial_begin(struct partial *p, const struct history *h, struct draft *line)
{
    struct buf head = BUF_INIT(BUF_LINE), time = BUF_INIT(BUF_SMALL), path = BUF_INIT(BUF_SMALL);

    buf_release(&p->id);
    *p = (struct partial){.h = h, .fd = -1};
    buf_init(&p->id, BUF_SMALL);
    id_add_message(&p->id, time_now() / 1000);
    time_add_iso(&time, time_now());
    draft_set_text(line, FIELD_ID, buf_str(&p->id));
    draft_set_text(line, FIELD_TIMESTAMP, buf_str(&time));
    draft_set_text(line, FIELD_FINISH_REASON, STR("interrupted"));
    buf_addf(&path, "%s" PARTIAL_SUFFIX "%s", h->path, buf_c(&p->id));
    p->path = buf_detach(&path);
    if (draft_format(line, &head, NULL) == 0 && make_locked(p)) {
        p->open = true;
        partial_add(p, buf_str(&head));
    }
    if (!p->open)
        partial_end(p, true);
    buf_release(&head);
    buf_release(&time);
}

void partial_add(struct partial *p, struct str text)
{
    if (p->open && file_write_all(p->fd, text.p, text.n) < 0)
        partial_end(p, true);
}

void partial_end(struct partial *p, bool stored)
{
    if (p->open && stored)
        (void)file_unlink(p->h->dir_fd, p->path);
    if (p->open)
        close(p->fd);
    free(p->path);
    p->path = NULL;
    p->open = false;
}

/* ---- of turns that were killed ---- */

struct partial_file {
    int fd;
    off_t size;
    char *path;
    bool stays; /* its line cannot be made: it is too long, or the history cannot be read */
};

/* `NAME.partial.1719500000000-a1b2c3d4`, where NAME is the history's. */
static bool is_partial_name(const char *name, const char *history)
{
    size_t n = strlen(history);
    struct str id;
    size_t digits = 0;

    if (strncmp(name, history, n) != 0 || !str_starts(str_of(name + n), STR(PARTIAL_SUFFIX)))
        return false;
    id = str_of(name + n + strlen(PARTIAL_SUFFIX));
    while (digits < id.n && id.p[digits] >= '0' && id.p[digits] <= '9')
        digits++;
    return digits >= 13 && id.n == digits + 9 && id.p[digits] == '-' &&
           strspn(id.p + digits + 1, "0123456789abcdef") == 8;
}

/* Opens and locks a file unless its turn is going on, or another user may have written it. */
static void open_left(struct partial_left *left, const char *parent, const char *name)
{
    struct partial_file f = {.path = path_join(parent, name)};
    struct stat st;

    f.fd = file_open_regular_at(left->h->dir_fd, f.path, O_RDWR, 0, &st, NULL, NULL);
    if (f.fd >= 0 && !owner_fault(f.fd, OWNER_USER) && st.st_nlink == 1 &&
        st.st_size <= (off_t)BUF_LINE && flock(f.fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(f.fd, &st) == 0 && st.st_nlink == 1) {
        f.size = st.st_size;
        left->at = mem_grow(left->at, &left->cap, left->count + 1, sizeof *left->at);
        left->at[left->count++] = f;
        return;
    }
    file_close(f.fd);
    free(f.path);
}

void partial_find(struct partial_left *left, const struct history *h)
{
    char *parent = path_parent(h->path);
    DIR *dir = !h->nowhere ? file_open_dir(h->dir_fd, parent) : NULL;
    struct dirent *entry;

    *left = (struct partial_left){.h = h};
    while (dir && (entry = readdir(dir)))
        if (is_partial_name(entry->d_name, path_base(h->path)))
            open_left(left, parent, entry->d_name);
    if (dir)
        closedir(dir);
    free(parent);
}

int partial_is_due(const struct history *h, struct str id, struct str prompt)
{
    const struct str ids[] = {id, prompt};
    struct message m = MESSAGE_INIT;
    struct scan s;
    int result;

    if (scan_open(&s, h->dir_fd, h->path, NULL) < 0)
        return -1;
    result = scan_find(&s, ids, 2, &m, NULL);
    if (result > 0)
        result = str_eq(m.id, prompt);
    message_release(&m);
    scan_close(&s);
    return result;
}

/* Takes the line that a file begins with, and the text after it; STR_NONE for one that does not
 * begin with a line of ours, because the process, or the machine, died before that was written. */
static struct str read_left(const struct partial_file *f, struct draft *d, struct buf *text)
{
    char *room = buf_room(text, (size_t)f->size);
    ssize_t got = room ? file_pread_full(f->fd, room, (size_t)f->size, 0) : 0;
    struct str rest, head;

    buf_grew(text, got > 0 ? (size_t)got : 0);
    rest = buf_str(text);
    head = str_cut(&rest, '\n');
    if (!rest.p || draft_from_json(d, head, NULL) < 0 || draft_check(d, NULL) < 0 ||
        !str_eq_c(buf_str(&d->field[FIELD_ROLE]), "\"assistant\""))
        return STR_NONE;
    return rest;
}

static void add_left(const struct history *h, struct partial_file *f, struct buf *lines)
{
    struct buf text = BUF_INIT(BUF_LINE), id = BUF_INIT(BUF_SMALL), prompt = BUF_INIT(BUF_LINE);
    struct draft d;
    struct str rest;
    int due = 0;

    draft_init(&d);
    rest = read_left(f, &d, &text);
    if (rest.p)
        due = partial_is_due(h, json_text(buf_str(&d.field[FIELD_ID]), &id),
                             json_text(buf_str(&d.field[FIELD_REPLY_TO]), &prompt));
    if (due > 0) {
        draft_set_text(&d, FIELD_CONTENT, rest);
        due = draft_format(&d, lines, NULL);
    }
    f->stays = due < 0;
    draft_release(&d);
    buf_release(&text);
    buf_release(&id);
    buf_release(&prompt);
}

void partial_lines(struct partial_left *left, struct buf *lines)
{
    for (size_t i = 0; i < left->count; i++)
        add_left(left->h, &left->at[i], lines);
}

void partial_remove(struct partial_left *left)
{
    for (size_t i = 0; i < left->count; i++)
        if (!left->at[i].stays)
            (void)file_unlink(left->h->dir_fd, left->at[i].path);
    partial_release(left);
}

void partial_release(struct partial_left *left)
{
    for (size_t i = 0; i < left->count; i++) {
        close(left->at[i].fd);
        free(left->at[i].path);
    }
    free(left->at);
    *left = (struct partial_left){0};
}
