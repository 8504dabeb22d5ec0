#include "chathist/history/register.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/dirs.h"
#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/base/keymap.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"

/* Takes the next line that names a directory: true with its path and the line itself. */
static bool next_entry(struct str *rest, struct str *line, struct buf *path)
{
    while (rest->n > 0) {
        buf_clear(path);
        if (json_check(str_cut(rest, '\n'), line, NULL) &&
            json_decode(json_get(*line, "path"), path) && path->len == strlen(buf_c(path)))
            return true;
    }
    return false;
}

/* Does the text of a register list the directory; with an inode, under that inode? */
static bool lists(struct str text, const char *dir, const uint64_t *inode)
{
    struct buf path = BUF_INIT(BUF_LINE), number = BUF_INIT(BUF_SMALL);
    struct str line;
    bool found = false;

    if (inode)
        buf_add_number(&number, *inode);
    while (!found && next_entry(&text, &line, &path))
        found = str_eq_c(buf_str(&path), dir) &&
                (!inode || str_eq(json_get(line, "inode"), buf_str(&number)));
    buf_release(&path);
    buf_release(&number);
    return found;
}

int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct append a;
    char *parent = path_parent(register_path);
    int result = dirs_make(parent, e) < 0 ? -1 : append_open(&a, IO_CWD, register_path, wait, e);

    free(parent);
    if (result < 0)
        return -1;
    if (io_read_all(a.fd, &text) < 0) {
        result = err_sys(e, errno, "cannot read '%s'", register_path);
    } else if (!lists(buf_str(&text), dir, NULL)) {
        buf_clear(&text);
        buf_add_byte(&text, '{');
        json_add_member(&text, "path", str_of(dir));
        buf_add_c(&text, "}\n");
        result = append_write(&a, buf_str(&text), true, e);
    }
    append_close(&a);
    buf_release(&text);
    return result;
}

int register_lists_inode(const char *register_path, const char *dir, uint64_t inode, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int result = register_path ? io_read_state(register_path, &text, e) : 0;

    if (result > 0)
        result = lists(buf_str(&text), dir, &inode);
    buf_release(&text);
    return result;
}

static void add_dir(struct register_dirs *dirs, struct keymap *seen, struct buf *path)
{
    struct stat st;

    if ((seen->size > 0 && keymap_find(seen, buf_str(path))) || stat(buf_c(path), &st) < 0 ||
        !S_ISDIR(st.st_mode))
        return;
    dirs->at = mem_grow(dirs->at, &dirs->cap, dirs->count + 1, sizeof *dirs->at);
    dirs->at[dirs->count] = mem_copy(buf_c(path), path->len);
    keymap_set(seen, str_of(dirs->at[dirs->count]), dirs->count);
    dirs->count++;
}

int register_list(const char *register_path, struct register_dirs *dirs, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), path = BUF_INIT(BUF_LINE);
    struct keymap seen = {0};
    struct str rest, line;
    int result = io_read_state(register_path, &text, e);

    *dirs = (struct register_dirs){0};
    rest = buf_str(&text);
    while (result > 0 && next_entry(&rest, &line, &path))
        add_dir(dirs, &seen, &path);
    keymap_release(&seen);
    buf_release(&path);
    buf_release(&text);
    return result < 0 ? -1 : 0;
}

void register_dirs_release(struct register_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        free(dirs->at[i]);
    free(dirs->at);
}
