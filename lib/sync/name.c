#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/sync/sync.h"

#define NAME_MOST 200
#define CONFIG_MOST ((size_t)1 << 20)

bool sync_name_valid(struct str name)
{
    struct str rest = name;

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!ascii_is_letter(c) && !ascii_is_digit(c) && (!c || !strchr("._:/+~@-", c)))
            return false;
    }
    while (rest.p) {
        struct str part = str_cut(&rest, '/');

        if (part.n == 0 || str_eq_c(part, ".") || str_eq_c(part, ".."))
            return false;
    }
    return name.n > 0 && name.n <= NAME_MOST;
}

/* ---- the configuration of git (git-config(1), "Syntax") ---- */

/* Reads the name of a remote from a line `[remote "NAME"]`. */
static bool is_remote(struct str line, struct str *name)
{
    struct str inner;

    if (!str_starts(line, STR("[")) || !str_ends(line, STR("\"]")))
        return false;
    inner = (struct str){line.p + 1, line.n - 3};
    if (!str_eq_c(str_trim(str_cut(&inner, '"')), "remote") || !inner.p)
        return false;
    *name = inner;
    return true;
}

/* Adds the value of `url = VALUE`, without quotes and comments. Returns whether the line is one. */
static bool add_url(struct buf *out, struct str line)
{
    struct str value = line, key = str_trim(str_cut(&value, '='));
    bool quoted = false;

    if (key.n != 3 || ascii_lower(key.p[0]) != 'u' || ascii_lower(key.p[1]) != 'r' ||
        ascii_lower(key.p[2]) != 'l' || !value.p)
        return false;
    value = str_trim(value);
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];

        if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '#' || c == ';'))
            break;
        else if (c == '\\' && i + 1 < value.n)
            buf_add_byte(out, value.p[++i]);
        else
            buf_add_byte(out, c);
    }
    return true;
}

/* Finds the URL of `origin`, or of the only remote. Returns how many remotes have a URL, or 1. */
static size_t find_url(struct str text, struct buf *url)
{
    struct str remote = STR_NONE;
    bool origin = false;
    size_t count = 0;

    while (text.p && !origin) {
        struct str line = str_trim(str_cut(&text, '\n'));
        struct buf one = BUF_INIT(BUF_SMALL);

        if (str_starts(line, STR("["))) {
            if (!is_remote(line, &remote))
                remote = STR_NONE;
        } else if (remote.p && add_url(&one, line)) {
            origin = str_eq_c(remote, "origin");
            count++;
            buf_set(url, str_trim(buf_str(&one)));
            /* The first URL of a remote is the one from which git fetches. */
            remote = STR_NONE;
        }
        buf_release(&one);
    }
    return origin ? 1 : count;
}

/* Reads git's configuration, which stands in the common directory of the repository, beside the
 * directory of the history. Returns 0, or -1 with *e set. */
static int read_config(const struct history *h, struct buf *text, struct err *e)
{
    int common = history_git_dir(h), missing = 0, fd, result = -1;
    char *path = path_join(h->dir, "../config");
    const char *fault;

    if (common < 0) {
        free(path);
        return err_sys(e, errno, "cannot open '%s/..'", h->dir);
    }
    fd = file_open_regular_at(common, path, O_RDONLY, 0, NULL, &missing, e);
    fault = fd >= 0 ? owner_fault(fd, OWNER_USER) : NULL;
    if (fault || missing == ENOENT)
        err_set(e, ERR_USAGE, "cannot read git's configuration beside '%s': %s", h->dir,
                fault ? fault : strerror(ENOENT));
    else if (fd >= 0 && file_read_all(fd, text) < 0)
        err_sys(e, errno, "cannot read '%s'", path);
    else if (fd >= 0)
        result = 0;
    file_close(fd);
    close(common);
    free(path);
    return result;
}

/* ---- the URL ---- */

/* Splits `[scheme://][user[:password]@]host[:port]/path` or `[user@]host:path` into host, with a
 * port, and path. Returns false for a path of this machine. */
static bool split_url(struct str url, struct str *host, struct str *path)
{
    const char *scheme = str_find(url, STR("://"));
    struct str rest = url;
    bool scp = !scheme;

    if (scheme && str_starts(url, STR("file:")))
        return false;
    if (scheme)
        rest = str_skip(url, (size_t)(scheme - url.p) + 3);
    *path = rest;
    *host = str_cut(path, scp ? ':' : '/');
    /* git takes a text with a slash before the first colon as a path (git-fetch(1), "GIT URLS"). */
    if (!path->p || (scp && memchr(host->p, '/', host->n)))
        return false;
    for (struct str user = *host; user.p;) {
        struct str after = user;

        (void)str_cut(&after, '@');
        if (!after.p)
            break;
        *host = user = after;
    }
    while (path->n > 0 && path->p[0] == '/')
        *path = str_skip(*path, 1);
    while (path->n > 0 && path->p[path->n - 1] == '/')
        path->n--;
    if (path->n > 4 && str_ends(*path, STR(".git")))
        path->n -= 4;
    return host->n > 0 && path->n > 0;
}

int sync_name(struct buf *name, const struct history *h, struct err *e)
{
    struct buf text = BUF_INIT(CONFIG_MOST), url = BUF_INIT(BUF_SMALL);
    struct str host, path;
    size_t count;
    int result = -1;

    buf_clear(name);
    if (h->kind == HISTORY_USER) {
        buf_add_c(name, "own");
        return 0;
    }
    if (h->kind != HISTORY_REPOSITORY)
        return err_set(e, ERR_USAGE, "'%s' has no name on other machines: give it one with --name",
                       h->path);
    if (read_config(h, &text, e) < 0)
        goto out;
    count = find_url(buf_str(&text), &url);
    if (count == 1 && split_url(buf_str(&url), &host, &path)) {
        for (size_t i = 0; i < host.n; i++)
            buf_add_byte(name, ascii_lower(host.p[i]));
        buf_addf(name, "/%.*s", (int)path.n, path.p);
    }
    if (sync_name_valid(buf_str(name)))
        result = 0;
    else
        err_set(
            e, ERR_USAGE,
            "the repository of '%s' has no remote by which it could be known on other machines: "
            "give its history a name with --name",
            h->path);
out:
    buf_release(&text);
    buf_release(&url);
    return result;
}
