#include "history/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"

/* Larger than any token. */
#define TOKEN_MAX ((size_t)256)

/* Opens a file of lines under its lock, and makes the directories above it. */
static int open_state(struct append *a, const char *path, struct append_wait *wait, struct err *e)
{
    char *parent = path_parent(path);
    int result = file_make_dirs(parent, e) < 0 ? -1 : append_open(a, FILE_CWD, path, wait, e);

    free(parent);
    return result;
}

/* ---- the mark ---- */

/* Reads a token, the first line of an open file. Returns 1; 0 if the file is empty, or with *fault
 * set if the token cannot be trusted; -1 with errno set. */
static int read_token(int fd, struct buf *token, const char **fault)
{
    struct str text, line;

    *fault = owner_fault(fd, OWNER_USER);
    if (file_read_all(fd, token) < 0) {
        if (errno != EFBIG)
            return -1;
        *fault = "it is too large";
    }
    text = str_trim(buf_str(token));
    line = str_trim(str_cut(&text, '\n'));
    if (line.n > 0)
        memmove(token->data, line.p, line.n);
    buf_truncate(token, line.n);
    return line.n > 0 && !*fault;
}

static int open_and_read(int dir, const char *path, struct buf *token, struct err *e)
{
    struct err why = ERR_INIT;
    const char *fault;
    int missing = 0, result;
    int fd = file_open_regular_at(dir, path, O_RDONLY, 0, NULL, &missing, &why);

    if (fd < 0) {
        result = missing == ENOENT || missing == ENOTDIR
                     ? 0
                     : err_set(e, ERR_FAILURE, "%s", err_text(&why));
        err_release(&why);
        return result;
    }
    result = read_token(fd, token, &fault);
    if (result < 0)
        err_sys(e, errno, "cannot read '%s'", path);
    close(fd);
    return result;
}

static bool has_token(int dir, struct str token)
{
    struct buf mark = BUF_INIT(TOKEN_MAX);
    bool has = open_and_read(dir, TRUST_OWNER, &mark, NULL) > 0 && str_eq(buf_str(&mark), token);

    buf_release(&mark);
    return has;
}

int trust_marked(int dir, const char *token_path, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX);
    struct stat st;
    int result = 0;

    if (token_path && file_stat(dir, TRUST_OWNER, &st) == 0)
        result = open_and_read(FILE_CWD, token_path, &token, e);
    if (result > 0)
        result = has_token(dir, buf_str(&token));
    buf_release(&token);
    return result;
}

/* Reads the token and keeps its lock in *a; makes the token if the file is empty or missing. If
 * nothing can be written there, an existing token is used without a lock. A token that others could
 * have written is an error: a second one would turn every history of the user into a foreign
 * one. */
static int lock_token(struct append *a, const char *path, struct append_wait *wait,
                      struct buf *token, struct err *e)
{
    const char *fault;
    int result;

    if (open_state(a, path, wait, e) < 0) {
        a->fd = -1;
        result = open_and_read(FILE_CWD, path, token, NULL);
        if (result > 0 && e)
            err_release(e);
        return result > 0 ? 0 : -1;
    }
    result = read_token(a->fd, token, &fault);
    if (result < 0) {
        err_sys(e, errno, "cannot read '%s'", path);
    } else if (fault) {
        result = err_set(e, ERR_FAILURE, "cannot use '%s': %s", path, fault);
    } else if (result == 0) {
        buf_clear(token);
        result = id_add_token(token, e);
        buf_add_byte(token, '\n');
        if (result == 0)
            result = append_write(a, buf_str(token), true, e);
        buf_truncate(token, token->len - 1);
    }
    return result < 0 ? -1 : 0;
}

int trust_mark(int dir, const char *owner_path, const char *token_path, struct append_wait *wait,
               int (*clear)(void *arg, struct err *e), void *arg, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX);
    struct append a = {.fd = -1};
    int result;

    if (!token_path)
        return err_set(e, ERR_FAILURE,
                       "cannot write '%s': neither HOME nor XDG_STATE_HOME is an absolute path",
                       owner_path);
    result = lock_token(&a, token_path, wait, &token, e);
    if (result == 0 && !has_token(dir, buf_str(&token))) {
        result = clear(arg, e);
        buf_add_byte(&token, '\n');
        if (result == 0)
            result = file_replace_at(dir, owner_path, buf_str(&token), true, e);
    }
    append_close(&a);
    buf_release(&token);
    return result;
}

/* ---- the register ---- */

/* Takes the next line that names a directory, and sets *path. */
static bool next_entry(struct str *rest, struct buf *path)
{
    struct str line;

    while (rest->n > 0) {
        buf_clear(path);
        if (json_check(str_cut(rest, '\n'), &line, NULL) &&
            json_decode(json_get(line, "path"), path) && path->len == strlen(buf_c(path)))
            return true;
    }
    return false;
}

static bool is_listed(struct str text, const char *dir)
{
    struct buf path = BUF_INIT(BUF_LINE);
    bool found = false;

    while (!found && next_entry(&text, &path))
        found = str_eq_c(buf_str(&path), dir);
    buf_release(&path);
    return found;
}

int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct append a;
    int result = open_state(&a, register_path, wait, e);

    if (result < 0)
        return -1;
    if (file_read_all(a.fd, &text) < 0) {
        result = err_sys(e, errno, "cannot read '%s'", register_path);
    } else if (!is_listed(buf_str(&text), dir)) {
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

int register_each(const char *register_path, void (*found)(void *arg, const char *dir), void *arg,
                  struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), path = BUF_INIT(BUF_LINE);
    int result = file_read_state(register_path, &text, e);
    struct str rest = buf_str(&text);

    while (result > 0 && next_entry(&rest, &path))
        found(arg, buf_c(&path));
    buf_release(&path);
    buf_release(&text);
    return result < 0 ? -1 : 0;
}
