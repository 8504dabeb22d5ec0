#include "history/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/dirs.h"
#include "chathist/base/id.h"
#include "chathist/base/io.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/history/append.h"

/* Larger than any token. */
#define TOKEN_MAX ((size_t)256)

/* Reads a token from an open file that only the user can write: 1, 0 if the file is empty or not trusted, -1 with
 * errno set. */
static int read_token(int fd, struct buf *token)
{
    struct str text;

    if (io_read_all(fd, token) < 0)
        return errno == EFBIG ? 0 : -1;
    text = str_trim(buf_str(token));
    buf_truncate(token, text.n);
    return text.n > 0 && !owner_fault(fd, OWNER_USER);
}

static int open_and_read(int dir, const char *path, struct buf *token, struct err *e)
{
    struct err why = ERR_INIT;
    int missing = 0, result;
    int fd = io_open_regular_at(dir, path, O_RDONLY, 0, NULL, &missing, &why);

    if (fd < 0) {
        result = missing == ENOENT || missing == ENOTDIR
                     ? 0
                     : err_set(e, ERR_FAILURE, "%s", err_text(&why));
        err_release(&why);
        return result;
    }
    result = read_token(fd, token);
    if (result < 0)
        err_sys(e, errno, "cannot read '%s'", path);
    close(fd);
    return result;
}

/* Two programs that make the token at once agree on one: the second finds it under the lock. */
static int make_token(const char *path, struct buf *token, struct err *e)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct append a;
    char *parent = path_parent(path);
    int result = dirs_make(parent, e) < 0 ? -1 : append_open(&a, IO_CWD, path, &wait, e);

    free(parent);
    if (result < 0)
        return -1;
    result = read_token(a.fd, token);
    if (result < 0) {
        err_sys(e, errno, "cannot read '%s'", path);
    } else if (result == 0) {
        buf_clear(token);
        id_add_token(token);
        buf_add_byte(token, '\n');
        result = append_write(&a, buf_str(token), true, e);
        buf_truncate(token, token->len - 1);
    }
    append_close(&a);
    return result < 0 ? -1 : 0;
}

int trust_has(int dir, const char *token_path, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX), mark = BUF_INIT(TOKEN_MAX);
    int result = 0;

    if (token_path && dir >= 0)
        result = open_and_read(dir, TRUST_OWNER, &mark, NULL) > 0;
    if (result > 0)
        result = open_and_read(IO_CWD, token_path, &token, e);
    if (result > 0)
        result = str_eq(buf_str(&token), buf_str(&mark));
    buf_release(&token);
    buf_release(&mark);
    return result;
}

int trust_put(int dir, const char *owner_path, const char *token_path, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX);
    int result;

    if (!token_path)
        return err_set(e, ERR_FAILURE,
                       "cannot write '%s': neither HOME nor XDG_STATE_HOME is an absolute path",
                       owner_path);
    result = open_and_read(IO_CWD, token_path, &token, e);
    if (result == 0) {
        buf_clear(&token);
        result = make_token(token_path, &token, e);
    }
    if (result >= 0) {
        buf_add_byte(&token, '\n');
        result = io_replace_file_at(dir, owner_path, buf_str(&token), true, e);
    }
    buf_release(&token);
    return result;
}
