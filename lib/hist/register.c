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
#include "hist/append.h"

/* Its own line for a directory. Bytes that are not UTF-8 become U+FFFD; the inode still tells such
 * directories apart. */
static void add_entry(struct buf *out, const char *dir, uint64_t inode)
{
    buf_add_byte(out, '{');
    json_add_member(out, "path", str_of(dir));
    json_add_key(out, "inode");
    buf_addf(out, "%" PRIu64 "}", inode);
}

/* Does a line name the same directory as an entry that we made? Both numbers are compared as text,
 * which is exact over the whole range. */
static bool same_entry(struct str line, struct str entry)
{
    struct buf a = BUF_INIT(BUF_SMALL);
    struct buf b = BUF_INIT(BUF_SMALL);
    struct str value;
    bool same = false;

    if (json_check(line, &value, NULL))
        same = json_type(json_get(value, "path")) == JSON_STRING &&
               str_eq(json_text(json_get(value, "path"), &a),
                      json_text(json_get(entry, "path"), &b)) &&
               str_eq(json_get(value, "inode"), json_get(entry, "inode"));
    buf_release(&a);
    buf_release(&b);
    return same;
}

static bool has_entry(struct str text, struct str entry)
{
    while (text.n) {
        if (same_entry(str_cut(&text, '\n'), entry))
            return true;
    }
    return false;
}

/* 1, 0, -1: what an open register says. */
static int look_up(int fd, const char *path, struct str entry, struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int result;

    if (io_read_all(fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", path);
    else
        result = has_entry(buf_str(&text), entry);
    buf_release(&text);
    return result;
}

int register_knows(const char *register_path, const char *dir, uint64_t inode, struct err *e)
{
    struct buf entry = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    int reason = 0;
    int result = -1;
    int fd = io_open_regular(register_path, O_RDONLY, 0, NULL, &reason, &why);

    add_entry(&entry, dir, inode);
    if (fd >= 0)
        result = look_up(fd, register_path, buf_str(&entry), e);
    else if (reason == ENOENT)
        result = 0;
    else
        err_set(e, ERR_FAILURE, "%s", err_text(&why));
    if (fd >= 0)
        close(fd);
    err_release(&why);
    buf_release(&entry);
    return result;
}

int register_enter(const char *register_path, const char *dir, uint64_t inode, struct err *e)
{
    struct append a = {.fd = -1};
    struct buf entry = BUF_INIT(BUF_SMALL);
    char *parent = path_parent(register_path);
    int result = -1;

    add_entry(&entry, dir, inode);
    if (io_make_dirs(parent, e) < 0 || append_open(&a, register_path, -1, e) < 0)
        goto out;
    result = look_up(a.fd, register_path, buf_str(&entry), e);
    if (result == 0) {
        buf_add_byte(&entry, '\n');
        result = append_write(&a, buf_str(&entry), true, e);
    } else if (result > 0) {
        result = 0;
    }

out:
    append_close(&a);
    buf_release(&entry);
    free(parent);
    return result;
}
