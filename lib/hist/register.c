#include "hist/register.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "base/utf8.h"
#include "hist/append.h"

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
    buf_addf(out, "%" PRIu64, inode);
    json_add_member(out, "begins", buf_str(&begins));
    buf_add_byte(out, '}');
    buf_release(&begins);
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
 * says of the history's beginning, 0, -1. */
static int look_up(int fd, const char *path, struct str entry, struct buf *begins, struct err *e)
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
    struct buf begins = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    int reason = 0;
    int result = -1;
    int fd;

    if (!register_path)
        return 0;
    fd = io_open_regular(register_path, O_RDONLY, 0, NULL, &reason, &why);
    add_entry(&entry, dir, inode, STR_NONE);
    if (fd >= 0)
        result = look_up(fd, register_path, buf_str(&entry), &begins, e);
    else if (reason == ENOENT)
        result = 0;
    else
        err_set(e, ERR_FAILURE, "%s", err_text(&why));
    if (result > 0)
        result = agrees(beginning, buf_str(&begins));
    if (fd >= 0)
        close(fd);
    err_release(&why);
    buf_release(&entry);
    buf_release(&begins);
    return result;
}

int register_enter(const char *register_path, const char *dir, uint64_t inode, struct str beginning,
                   struct err *e)
{
    struct append a = {.fd = -1};
    struct buf entry = BUF_INIT(BUF_SMALL);
    struct buf wanted = BUF_INIT(BUF_SMALL);
    struct buf begins = BUF_INIT(BUF_LINE);
    char *parent;
    int result = -1;

    if (!register_path)
        return err_set(e, ERR_FAILURE,
                       "cannot remember '%s': neither HOME nor XDG_STATE_HOME is set", dir);
    parent = path_parent(register_path);
    add_entry(&entry, dir, inode, beginning);
    add_beginning(&wanted, beginning);
    if (io_make_dirs(parent, e) < 0 || append_open(&a, register_path, -1, e) < 0)
        goto out;
    result = look_up(a.fd, register_path, buf_str(&entry), &begins, e);
    if (result == 0 ||
        (result > 0 && beginning.n > 0 && !str_eq(buf_str(&begins), buf_str(&wanted)))) {
        buf_add_byte(&entry, '\n');
        result = append_write(&a, buf_str(&entry), true, e);
    } else if (result > 0) {
        result = 0;
    }

out:
    append_close(&a);
    buf_release(&entry);
    buf_release(&wanted);
    buf_release(&begins);
    free(parent);
    return result;
}
