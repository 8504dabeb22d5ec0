#include "chathist/llm/model_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/clock.h"
#include "chathist/base/dirs.h"
#include "chathist/base/io.h"
#include "chathist/base/path.h"

/* The path of the URL, for there may be several servers at one address; in a name of a file. */
static void add_place(struct buf *name, const char *base_url)
{
    const char *host = strstr(base_url, "://"), *p = host ? strchr(host + 3, '/') : NULL;
    /* A query may be a key. */
    struct str place = p ? (struct str){p, strcspn(p, "?#")} : STR("");

    while (str_ends(place, STR("/")))
        place.n--;
    for (size_t i = 0; i < place.n; i++)
        buf_add_byte(name, place.p[i] == '/' ? '%' : place.p[i]);
}

/* `provider@host:port%path`; NULL when the URL is none. */
static char *path_of(const char *dir, const struct provider *p, const char *base_url)
{
    struct buf name = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);
    char *path = NULL;

    if (http_origin(base_url, &origin) && !str_find(buf_str(&origin), STR("/"))) {
        buf_addf(&name, "%s@%s", p->name, buf_c(&origin));
        add_place(&name, base_url);
        path = path_join(dir, buf_c(&name));
    }
    buf_release(&name);
    buf_release(&origin);
    return path;
}

bool model_cache_load(const char *dir, const struct provider *p, const char *base_url,
                      int64_t max_age, struct model_list *l)
{
    char *path = path_of(dir, p, base_url);
    struct buf text = BUF_INIT(BUF_SMALL);
    struct stat st;
    bool found = false;
    int fd = path ? io_open_regular(path, O_RDONLY, 0, &st, NULL, NULL) : -1;

    *l = (struct model_list){0};
    free(path);
    if (fd < 0)
        return false;
    int64_t age = clock_now() - (int64_t)st.st_mtime * CLOCK_SECOND;

    if (age >= 0 && age <= max_age && io_read_all(fd, &text) == 0) {
        struct str rest = buf_str(&text);

        while (rest.p)
            model_list_add(l, str_cut(&rest, '\n'));
        found = l->count > 0;
    }
    close(fd);
    buf_release(&text);
    return found;
}

static bool is_plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == '\x7f')
            return false;
    return true;
}

int model_cache_store(const char *dir, const struct provider *p, const char *base_url,
                      const struct model_list *l, struct err *e)
{
    char *path = path_of(dir, p, base_url);
    struct buf text = BUF_INIT(BUF_SMALL);
    int result = -1;

    for (size_t i = 0; i < l->count; i++)
        if (is_plain(l->at[i]))
            buf_addf(&text, "%s\n", l->at[i]);
    if (!path || text.overflow)
        err_set(e, ERR_FAILURE, "cannot keep the list of models");
    else if (dirs_make(dir, e) >= 0)
        result = io_replace_file(path, buf_str(&text), e);
    free(path);
    buf_release(&text);
    return result;
}
