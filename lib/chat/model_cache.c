#include "chathist/chat/model_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

char *model_cache_path(const char *cache, const char *folder, const struct provider *p,
                       const char *base_url)
{
    struct buf path = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_SMALL);
    char *whole = NULL;

    if (cache && base_url && http_origin(base_url, &origin) &&
        !str_find(buf_str(&origin), STR("/"))) {
        const char *host = strstr(base_url, "://"), *at = host ? strchr(host + 3, '/') : NULL;
        /* One address may have several servers. The query may hold a key. */
        struct str place = at ? (struct str){at, strcspn(at, "?#")} : STR("");

        while (str_ends(place, STR("/")))
            place.n--;
        buf_addf(&path, "%s/%s@%s", folder, p->name, buf_c(&origin));
        for (size_t i = 0; i < place.n; i++)
            buf_add_byte(&path, place.p[i] == '/' ? '%' : place.p[i]);
        whole = path_join(cache, buf_c(&path));
    }
    buf_release(&path);
    buf_release(&origin);
    return whole;
}

bool model_cache_is_fresh(const char *path, int64_t max_age)
{
    struct stat st;
    int64_t age = -1;

    if (path && lstat(path, &st) == 0)
        age = time_now() - (int64_t)st.st_mtime * TIME_SECOND;
    return age >= 0 && age <= max_age;
}

/* Returns whether the name can be in the cache. A file that was damaged may hold anything. */
static bool is_cacheable(struct str name)
{
    return !str_has_control(name) && utf8_valid(name) == name.n;
}

bool model_cache_load(const char *path, int64_t max_age, struct model_list *l)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str rest = STR_NONE;

    *l = (struct model_list){0};
    if (model_cache_is_fresh(path, max_age) && file_read_state(path, &text, NULL) > 0)
        rest = buf_str(&text);
    while (rest.p) {
        struct str window = str_cut(&rest, '\n'), id = str_cut(&window, '\t');
        int64_t tokens = 0;

        if (window.p)
            json_int(window, &tokens);
        if (is_cacheable(id))
            model_list_add(l, id, tokens);
    }
    buf_release(&text);
    return l->count > 0;
}

int model_cache_store(const char *path, const struct model_list *l, struct err *e)
{
    char *dir = path_parent(path);
    struct buf text = BUF_INIT(BUF_SMALL);
    int result = -1;

    for (size_t i = 0; i < l->count; i++) {
        if (!is_cacheable(str_of(l->at[i])))
            continue;
        buf_add_c(&text, l->at[i]);
        if (l->windows[i] > 0)
            buf_addf(&text, "\t%" PRId64, l->windows[i]);
        buf_add_byte(&text, '\n');
    }
    if (text.overflow)
        err_set(e, ERR_FAILURE, "cannot keep the list of models");
    else if (file_make_dirs(dir, e) >= 0)
        result = file_replace(path, buf_str(&text), e);
    free(dir);
    buf_release(&text);
    return result;
}
