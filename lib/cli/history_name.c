#include "chathist/cli/history_name.h"

#include "chathist/cli/config.h"

static struct str without_end(struct str path, struct str end)
{
    if (path.n > end.n && str_ends(path, end))
        path.n -= end.n;
    return path;
}

void history_name_add(struct buf *out, const struct history *h)
{
    struct str home = str_of(config_env("HOME"));
    struct str name = str_of(h->kind == HISTORY_EXPLICIT || !h->dir ? h->path : h->dir);

    if (h->kind == HISTORY_REPOSITORY) {
        name = without_end(name, STR("/.aicoder"));
        name = without_end(name, STR("/aicoder"));
        name = without_end(name, STR("/.git"));
    }
    if (home.n > 1 && str_starts(name, home) && (name.n == home.n || name.p[home.n] == '/')) {
        buf_add_byte(out, '~');
        name = (struct str){name.p + home.n, name.n - home.n};
    }
    buf_add_str(out, name);
}
