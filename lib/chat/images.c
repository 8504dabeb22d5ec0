#include "chathist/chat/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/sha256.h"
#include "chathist/llm/attachment.h"

/* The directory of the images, beside the history. */
#define FILES "files"

/* Adds FILE, with the number before its suffix unless that is 1. */
static void add_numbered(struct buf *path, const char *out, size_t nth)
{
    const char *base = path_base(out), *dot = strrchr(base, '.');
    size_t n = dot && dot > base ? (size_t)(dot - out) : strlen(out);

    buf_add(path, out, n);
    if (nth > 1)
        buf_addf(path, "-%zu", nth);
    buf_add_c(path, out + n);
}

static int write_out(const char *path, struct str bytes, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    int result = fd < 0 ? -1 : file_write_all(fd, bytes.p, bytes.n);

    /* A pipe or a device cannot be synced. */
    if (result == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
        result = -1;
    if (result < 0)
        err_sys(e, errno, "cannot write '%s'", path);
    file_close(fd);
    return result;
}

/* Makes the directory beside the history if it is missing, and writes a file in it. */
static int write_beside(const char *dir, const char *name, struct str bytes, struct err *e)
{
    const char *why;
    int fd, result = -1;

    if (file_make_dirs(dir, e) < 0)
        return -1;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", dir);
    why = owner_fault(fd, OWNER_USER);
    if (why)
        err_set(e, ERR_FAILURE, "cannot write to '%s': %s", dir, why);
    else
        result = file_replace_at(fd, name, bytes, true, e);
    file_close(fd);
    return result;
}

int image_write(struct str base64, const char *out, size_t nth, const char *history,
                struct buf *path, struct buf *name, struct err *e)
{
    char *parent = out ? NULL : path_parent(history), *dir = out ? NULL : path_join(parent, FILES);
    struct buf bytes = BUF_INIT(SIZE_MAX), base = BUF_INIT(BUF_SMALL);
    const char *type = attachment_decode(base64, &bytes) ? attachment_type(buf_str(&bytes)) : NULL;
    int result = 0;

    if (!type || !str_starts(str_of(type), STR("image/")))
        goto out;
    if (out) {
        add_numbered(path, out, nth);
        buf_add_str(name, buf_str(path));
        result = write_out(buf_c(path), buf_str(&bytes), e);
    } else {
        sha256_add(&base, buf_str(&bytes));
        buf_addf(&base, ".%s", type + strlen("image/"));
        buf_addf(path, "%s/%s", dir, buf_c(&base));
        buf_addf(name, FILES "/%s", buf_c(&base));
        result = write_beside(dir, buf_c(&base), buf_str(&bytes), e);
    }
    result = result < 0 ? -1 : 1;
out:
    buf_release(&bytes);
    buf_release(&base);
    free(parent);
    free(dir);
    return result;
}
