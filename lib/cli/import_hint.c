#include "chathist/cli/import_hint.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/cli/diagnostics.h"

/* If nothing was found, the next look is that much later. */
#define LOOK_AGAIN ((int64_t)24 * 60 * 60 * TIME_SECOND)

/* Returns whether it is time to look: the user was not told, and has run no scan. `path` is the
 * file that remembers that: it is empty if the last look found nothing. */
static bool is_time(const struct choice *c, const char *path)
{
    char *cache = config_scan_cache(&c->config);
    struct stat st;
    bool looks = stat(path, &st) < 0;

    if (!looks && st.st_size == 0)
        looks = c->config.now - system_mtime(&st) / 1000 > LOOK_AGAIN;
    looks = looks && (!cache || access(cache, F_OK) < 0);
    free(cache);
    return looks;
}

void import_hint(const struct choice *c)
{
    struct buf found = BUF_INIT(BUF_SMALL);
    char *dir, *path;

    if (c->common.quiet || c->remote || !isatty(STDERR_FILENO) || !c->config.state_home ||
        c->histories.count == 0 || c->histories.at[0].kind != HISTORY_REPOSITORY)
        return;
    dir = path_join(c->config.state_home, "chathist");
    path = path_join(dir, "import-hint");
    if (is_time(c, path) && choose_scan(c, "--hint", &found, NULL) == 0) {
        struct str text = str_trim(buf_str(&found));

        if (text.n > 0)
            hintf(false, "%.*s", (int)text.n, text.p);
        if (file_make_dirs(dir, NULL) >= 0)
            (void)file_replace(path, text.n > 0 ? STR("told\n") : STR(""), NULL);
    }
    buf_release(&found);
    free(path);
    free(dir);
}
