#include "history/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/sha256.h"
#include "chathist/base/system.h"

/* Larger than any token. */
#define TOKEN_MAX ((size_t)256)
/* The most bytes of the file of the marks. The oldest lines of other accounts, such as containers,
 * go first. */
#define OWNER_MAX ((size_t)256 << 10)
/* How the line of a mark ends, before and after the HMAC of all that is before it. */
#define MAC_BEGIN ",\"mac\":\""
#define MAC_END "\"}"

/* Opens a file of lines under its lock, and makes the directories above it. */
static int open_state(struct append *a, const char *path, struct append_wait *wait, struct err *e)
{
    char *parent = path_parent(path);
    int result = file_make_dirs(parent, e) < 0 ? -1 : append_open(a, FILE_CWD, path, wait, e);

    free(parent);
    return result;
}

/* ---- the token ---- */

/* Why a file that decides for the user must not be used, or NULL. */
static const char *trust_fault_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && st.st_nlink > 1)
        return "it has another name (a hard link), which an archive may have made";
    return owner_fault(fd, OWNER_USER);
}

/* Reads a token, the first line of an open file. Returns 1; 0 if the file is empty, or with *fault
 * set if the token cannot be trusted; -1 with errno set. */
static int read_token(int fd, struct buf *token, const char **fault)
{
    struct str text, line;

    *fault = trust_fault_of(fd);
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

/* Reads the token without a lock. Returns 1; 0 if no token can be used; -1 with *e set. */
static int find_token(const char *path, struct buf *token, struct err *e)
{
    struct err why = ERR_INIT;
    const char *fault;
    int missing = 0, result;
    int fd = file_open_regular_at(FILE_CWD, path, O_RDONLY, 0, NULL, &missing, &why);

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

/* Reads the token, or makes it under its lock if it is missing. Returns 1; 0 with *e set if none
 * can be made; -1 with *e set if there is one that cannot be used: with a second one, all that the
 * user has stored would seem to be another account's. */
static int need_token(const char *path, struct append_wait *wait, struct buf *token, struct err *e)
{
    struct append a;
    const char *fault;
    int result = path ? find_token(path, token, e) : 0;

    if (!path)
        err_set(e, ERR_FAILURE,
                "cannot tell whose it is: neither HOME nor XDG_STATE_HOME is an absolute path");
    if (!path || result != 0)
        return result;
    if (open_state(&a, path, wait, e) < 0)
        return 0;
    buf_clear(token);
    result = read_token(a.fd, token, &fault);
    if (result < 0) {
        err_sys(e, errno, "cannot read '%s'", path);
    } else if (fault) {
        result = err_set(e, ERR_FAILURE, "cannot use '%s': %s", path, fault);
    } else if (result == 0) {
        buf_clear(token);
        result = id_add_token(token, e);
        buf_add_byte(token, '\n');
        if (result == 0)
            result = append_write(&a, buf_str(token), true, e) == 0;
        buf_truncate(token, token->len - 1);
    }
    append_close(&a);
    return result;
}

int mark_token(const char *path, struct append_wait *wait, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX);
    int result = need_token(path, wait, &token, e);

    buf_release(&token);
    return result;
}

/* ---- the marks ---- */

int mark_set_file(struct owner_mark *m, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -1;
    m->inode = (uint64_t)st.st_ino;
    m->born = system_birth(fd);
    return 0;
}

void mark_name(struct owner_mark *m, struct str id)
{
    if (mark_has_named(m, id))
        return;
    buf_add_str(&m->named, id);
    buf_add_byte(&m->named, '\n');
}

bool mark_has_named(const struct owner_mark *m, struct str id)
{
    struct str rest = buf_str(&m->named);

    while (rest.n > 0)
        if (str_eq(str_cut(&rest, '\n'), id))
            return true;
    return false;
}

static void format_mark(const struct owner_mark *m, struct str token, struct buf *out)
{
    struct str rest = buf_str(&m->named);
    size_t begin = out->len;

    buf_add_byte(out, '{');
    json_add_member_int(out, "from", m->from);
    json_add_member_int(out, "inode", (int64_t)m->inode);
    json_add_member_int(out, "born", m->born);
    json_add_key(out, "named");
    buf_add_byte(out, '[');
    for (bool first = true; rest.n > 0; first = false) {
        buf_add_c(out, first ? "" : ",");
        json_add_string(out, str_cut(&rest, '\n'));
    }
    buf_add_byte(out, ']');

    struct buf mac = BUF_INIT(BUF_SMALL);

    hmac_sha256_add(&mac, token, (struct str){out->data + begin, out->len - begin});
    buf_add_c(out, MAC_BEGIN);
    buf_add_str(out, buf_str(&mac));
    buf_add_c(out, MAC_END "\n");
    buf_release(&mac);
}

/* Returns whether the owner of the token wrote the line. */
static bool is_own_line(struct str line, struct str token)
{
    struct buf mac = BUF_INIT(BUF_SMALL);
    size_t end = strlen(MAC_BEGIN) + SHA256_HEX + strlen(MAC_END);
    bool own = false;

    if (line.n > end) {
        hmac_sha256_add(&mac, token, (struct str){line.p, line.n - end});
        own = str_ends(line, STR(MAC_END)) &&
              memcmp(line.p + line.n - end, MAC_BEGIN, strlen(MAC_BEGIN)) == 0 &&
              memcmp(line.p + line.n - end + strlen(MAC_BEGIN), mac.data, SHA256_HEX) == 0;
    }
    buf_release(&mac);
    return own || str_eq(line, token);
}

/* Takes what an own line says, if it is of the file that is set in *m. */
static enum mark_found read_mark_line(struct owner_mark *m, struct str line, struct str token)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    int64_t from, inode, born;
    struct json_iter named;
    struct str json;
    bool same;

    if (str_eq(line, token)) {
        m->from = 0;
        buf_clear(&m->named);
        return MARK_OLD;
    }
    same = json_check(line, &json, NULL) && json_int(json_get(json, "from"), &from) && from >= 0 &&
           json_int(json_get(json, "inode"), &inode) && (uint64_t)inode == m->inode &&
           json_int(json_get(json, "born"), &born) &&
           (born == m->born || born == 0 || m->born == 0);
    if (!same)
        return MARK_ELSEWHERE;
    m->from = (off_t)from;
    buf_clear(&m->named);
    named = json_iter(json_get(json, "named"));
    while (json_next(&named)) {
        buf_clear(&id);
        if (json_decode(named.value, &id))
            mark_name(m, buf_str(&id));
    }
    buf_release(&id);
    return MARK_FOUND;
}

/* Reads the file of the marks. A file that cannot be used has none. */
static bool read_marks(int dir, const char *path, struct buf *text)
{
    int fd = file_open_regular_at(dir, path, O_RDONLY, 0, NULL, NULL, NULL);
    bool read = fd >= 0 && !trust_fault_of(fd) && file_read_all(fd, text) == 0;

    file_close(fd);
    if (!read)
        buf_clear(text);
    return read;
}

int mark_find(struct owner_mark *m, int dir, const char *owner_path, const char *token_path,
              struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX), text = BUF_INIT(OWNER_MAX);
    enum mark_found found = MARK_NONE, one;
    struct str rest, line;
    int result = 0;

    if (token_path && read_marks(dir, owner_path, &text))
        result = find_token(token_path, &token, e);
    rest = buf_str(&text);
    while (result > 0 && rest.n > 0) {
        line = str_trim(str_cut(&rest, '\n'));
        if (!is_own_line(line, buf_str(&token)))
            continue;
        one = read_mark_line(m, line, buf_str(&token));
        found = one > found ? one : found;
    }
    buf_release(&token);
    buf_release(&text);
    return result < 0 ? -1 : (int)found;
}

/* Adds the lines of other accounts, as many as there is room for. */
static void add_other_accounts(int dir, const char *path, struct str token, struct buf *out)
{
    struct buf text = BUF_INIT(OWNER_MAX), others = BUF_INIT(OWNER_MAX);
    struct str rest;

    (void)read_marks(dir, path, &text);
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');

        if (line.n == 0 || is_own_line(str_trim(line), token))
            continue;
        buf_add_str(&others, line);
        buf_add_byte(&others, '\n');
    }
    rest = buf_str(&others);
    while (rest.n > OWNER_MAX / 2)
        (void)str_cut(&rest, '\n');
    buf_add_str(out, rest);
    buf_release(&others);
    buf_release(&text);
}

int mark_write(const struct owner_mark *marks, size_t count, int dir, const char *owner_path,
               const char *token_path, struct append_wait *wait, struct err *e)
{
    struct buf token = BUF_INIT(TOKEN_MAX), text = BUF_INIT(SIZE_MAX);
    struct stat st;
    int result = need_token(token_path, wait, &token, e);

    if (result > 0) {
        add_other_accounts(dir, owner_path, buf_str(&token), &text);
        for (size_t i = 0; i < count; i++)
            format_mark(&marks[i], buf_str(&token), &text);
        /* A link or a FIFO in its place was not made by these programs. */
        if (file_stat(dir, owner_path, &st) == 0 && !S_ISREG(st.st_mode))
            (void)file_unlink(dir, owner_path);
        if (file_replace_at(dir, owner_path, buf_str(&text), true, e) < 0)
            result = -1;
    }
    buf_release(&token);
    buf_release(&text);
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

int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE), path = BUF_INIT(BUF_LINE);
    bool listed = false;
    struct append a;
    struct str rest;
    int result = open_state(&a, register_path, wait, e);

    if (result < 0)
        return -1;
    if (file_read_all(a.fd, &text) < 0)
        result = err_sys(e, errno, "cannot read '%s'", register_path);
    rest = buf_str(&text);
    while (result == 0 && !listed && next_entry(&rest, &path))
        listed = str_eq_c(buf_str(&path), dir);
    if (result == 0 && !listed) {
        buf_clear(&text);
        buf_add_byte(&text, '{');
        json_add_member(&text, "path", str_of(dir));
        buf_add_c(&text, "}\n");
        result = append_write(&a, buf_str(&text), true, e);
    }
    append_close(&a);
    buf_release(&path);
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
