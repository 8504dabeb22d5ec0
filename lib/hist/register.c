#include "hist/register.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dirs.h"
#include "base/io.h"
#include "base/json.h"
#include "base/keymap.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"

/* As much of a history's beginning as is entered, in the form in which it is compared. */
static void add_beginning(struct buf *out, struct str beginning)
{
    if (beginning.n > REGISTER_BEGINS)
        beginning.n = REGISTER_BEGINS;
    utf8_add_repaired(out, beginning);
}

/* Its own line for a directory. Bytes that are not UTF-8 become U+FFFD; the inode still tells such
 * directories apart. */
static void add_entry(struct buf *out, const char *dir, uint64_t inode, struct str beginning)
{
    struct buf begins = BUF_INIT(BUF_SMALL);

    add_beginning(&begins, beginning);
    buf_add_byte(out, '{');
    json_add_member(out, "path", str_of(dir));
    json_add_key(out, "inode");
    buf_add_number(out, inode);
    json_add_member(out, "begins", buf_str(&begins));
    buf_add_byte(out, '}');
    buf_release(&begins);
}

static void add_becomes(struct buf *entry, struct str next)
{
    struct buf becomes = BUF_INIT(BUF_SMALL);

    add_beginning(&becomes, next);
    buf_truncate(entry, entry->len - 1);
    json_add_member(entry, "becomes", buf_str(&becomes));
    buf_add_byte(entry, '}');
    buf_release(&becomes);
}

/* Does a line name the same directory as an entry that we made? Both numbers are compared as text,
 * which is exact over the whole range. */
static bool same_dir(struct str line, struct str entry)
{
    struct buf a = BUF_INIT(BUF_SMALL);
    struct buf b = BUF_INIT(BUF_SMALL);
    bool same =
        json_type(json_get(line, "path")) == JSON_STRING &&
        str_eq(json_text(json_get(line, "path"), &a), json_text(json_get(entry, "path"), &b)) &&
        str_eq(json_get(line, "inode"), json_get(entry, "inode"));

    buf_release(&a);
    buf_release(&b);
    return same;
}

/* Looks for the last line in an open register that is about the directory of `entry`: 1 and what it
 * says of the history's beginning, and in *becomes (may be NULL; empty: nothing) of the next one;
 * 0,
 * -1. */
static int look_up(int fd, const char *path, struct str entry, struct buf *begins,
                   struct buf *becomes, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest, value;
    int found = 0;

    if (io_read_all(fd, &text) < 0)
        found = err_sys(e, errno, "cannot read '%s'", path);
    rest = buf_str(&text);
    while (found >= 0 && rest.n) {
        if (!json_check(str_cut(&rest, '\n'), &value, NULL) || !same_dir(value, entry))
            continue;
        found = 1;
        buf_clear(begins);
        json_decode(json_get(value, "begins"), begins);
        if (becomes) {
            buf_clear(becomes);
            json_decode(json_get(value, "becomes"), becomes);
        }
    }
    buf_release(&text);
    return found;
}

/* Does a history that begins like `seen` continue like `entered`? */
static bool agrees(struct str seen, struct str entered)
{
    struct buf repaired = BUF_INIT(BUF_SMALL);
    bool agree;

    add_beginning(&repaired, seen);
    agree = seen.n < REGISTER_BEGINS ? str_starts(entered, buf_str(&repaired))
                                     : str_eq(entered, buf_str(&repaired));
    buf_release(&repaired);
    return agree;
}

int register_knows(const char *register_path, const char *dir, uint64_t inode, struct str beginning,
                   struct err *e)
{
    struct buf entry = BUF_INIT(BUF_SMALL);
    struct buf begins = BUF_INIT(BUF_LINE), becomes = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    int reason = 0;
    int result = -1;
    int fd;

    if (!register_path)
        return 0;
    fd = io_open_regular(register_path, O_RDONLY, 0, NULL, &reason, &why);
    add_entry(&entry, dir, inode, STR_NONE);
    if (fd >= 0)
        result = look_up(fd, register_path, buf_str(&entry), &begins, &becomes, e);
    else if (reason == ENOENT)
        result = 0;
    else
        err_set(e, ERR_FAILURE, "%s", err_text(&why));
    if (result > 0)
        result = agrees(beginning, buf_str(&begins)) || agrees(beginning, buf_str(&becomes));
    if (fd >= 0)
        close(fd);
    err_release(&why);
    buf_release(&entry);
    buf_release(&begins);
    buf_release(&becomes);
    return result;
}

/* Opens the register under its lock, made with the directories above it when it is missing. */
static int open_register(struct append *a, const char *register_path, const char *dir,
                         struct append_wait *wait, struct err *e)
{
    struct append_wait usual = APPEND_WAIT_INIT;
    char *parent;
    int result;

    *a = (struct append){.fd = -1};
    if (!register_path)
        return err_set(e, ERR_FAILURE,
                       "cannot remember '%s': neither HOME nor XDG_STATE_HOME is an absolute path",
                       dir);
    parent = path_parent(register_path);
    result = dirs_make(parent, e) < 0 ? -1 : append_open(a, register_path, wait ? wait : &usual, e);
    free(parent);
    return result;
}

int register_enter(const char *register_path, const char *dir, uint64_t inode, struct str beginning,
                   struct append_wait *wait, struct err *e)
{
    struct append a;
    struct buf entry = BUF_INIT(BUF_SMALL);
    struct buf wanted = BUF_INIT(BUF_SMALL);
    struct buf begins = BUF_INIT(BUF_LINE), becomes = BUF_INIT(BUF_LINE);
    int result;

    if (open_register(&a, register_path, dir, wait, e) < 0)
        return -1;
    add_entry(&entry, dir, inode, beginning);
    add_beginning(&wanted, beginning);
    result = look_up(a.fd, register_path, buf_str(&entry), &begins, &becomes, e);
    if (result == 0 || (result > 0 && beginning.n > 0 &&
                        (becomes.len > 0 || !str_eq(buf_str(&begins), buf_str(&wanted))))) {
        buf_add_byte(&entry, '\n');
        result = append_write(&a, buf_str(&entry), true, e);
    } else if (result > 0) {
        result = 0;
    }
    append_close(&a);
    buf_release(&entry);
    buf_release(&wanted);
    buf_release(&begins);
    buf_release(&becomes);
    return result;
}

int register_enter_both(const char *register_path, const char *dir, uint64_t inode, struct str now,
                        struct str next, struct append_wait *wait, struct err *e)
{
    struct append a;
    struct buf entry = BUF_INIT(BUF_SMALL);
    int result;

    if (open_register(&a, register_path, dir, wait, e) < 0)
        return -1;
    add_entry(&entry, dir, inode, now);
    add_becomes(&entry, next);
    buf_add_byte(&entry, '\n');
    result = append_write(&a, buf_str(&entry), true, e);
    append_close(&a);
    buf_release(&entry);
    return result;
}

/* The lines of an open register that are about other directories, byte for byte. 0, -1. */
static int copy_others(int fd, const char *path, struct str entry, struct buf *out, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str rest, value;

    if (io_read_all(fd, &text) < 0) {
        buf_release(&text);
        return err_sys(e, errno, "cannot read '%s'", path);
    }
    rest = buf_str(&text);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        if (json_check(line, &value, NULL) && same_dir(value, entry))
            continue;
        buf_add_str(out, line);
        buf_add_byte(out, '\n');
    }
    buf_release(&text);
    return 0;
}

int register_enter_only(const char *register_path, const char *dir, uint64_t inode,
                        struct str beginning, struct append_wait *wait, struct err *e)
{
    struct append a;
    struct buf entry = BUF_INIT(BUF_SMALL);
    struct buf text = BUF_INIT(SIZE_MAX);
    int result;

    if (open_register(&a, register_path, dir, wait, e) < 0)
        return -1;
    add_entry(&entry, dir, inode, beginning);
    result = copy_others(a.fd, register_path, buf_str(&entry), &text, e);
    if (result == 0) {
        buf_add_str(&text, buf_str(&entry));
        buf_add_byte(&text, '\n');
        result = io_replace_file(register_path, buf_str(&text), e);
    }
    append_close(&a);
    buf_release(&entry);
    buf_release(&text);
    return result;
}

/* ---- all of them ---- */

/* Does the directory of an entry still lie there? */
static bool is_there(const char *dir, struct str inode)
{
    struct buf number = BUF_INIT(BUF_SMALL);
    struct stat st;
    bool there = false;

    if (lstat(dir, &st) == 0 && S_ISDIR(st.st_mode)) {
        buf_add_number(&number, (uint64_t)st.st_ino);
        there = str_eq(buf_str(&number), inode);
    }
    buf_release(&number);
    return there;
}

static void add_dir(struct register_dirs *dirs, struct keymap *seen, struct str line)
{
    struct buf path = BUF_INIT(BUF_LINE);

    if (json_decode(json_get(line, "path"), &path) && path.len == strlen(buf_c(&path)) &&
        !(seen->size > 0 && keymap_find(seen, buf_str(&path))) &&
        is_there(buf_c(&path), json_get(line, "inode"))) {
        dirs->at = mem_grow(dirs->at, &dirs->cap, dirs->count + 1, sizeof *dirs->at);
        dirs->at[dirs->count] = buf_detach(&path);
        keymap_set(seen, str_of(dirs->at[dirs->count]), dirs->count);
        dirs->count++;
    }
    buf_release(&path);
}

int register_list(const char *register_path, struct register_dirs *dirs, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct keymap seen = {0};
    struct err why = ERR_INIT;
    struct str rest, value;
    int reason = 0, result = 0;
    int fd = io_open_regular(register_path, O_RDONLY, 0, NULL, &reason, &why);

    *dirs = (struct register_dirs){0};
    if (fd < 0 && reason != ENOENT)
        result = err_set(e, ERR_FAILURE, "%s", err_text(&why));
    else if (fd >= 0 && io_read_all(fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", register_path);
    rest = buf_str(&text);
    while (result == 0 && rest.n)
        if (json_check(str_cut(&rest, '\n'), &value, NULL))
            add_dir(dirs, &seen, value);
    if (fd >= 0)
        close(fd);
    keymap_release(&seen);
    err_release(&why);
    buf_release(&text);
    return result;
}

void register_dirs_release(struct register_dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        free(dirs->at[i]);
    free(dirs->at);
}
