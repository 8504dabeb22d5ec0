#include "chathist/history/location.h"

#include <errno.h>
#include <stdlib.h>

#include "chathist/base/path.h"
#include "test.h"
#include "scratch.h"

/* The scratch directory without links, and places in it. */
static char *real_dir, *state, *data;

static void enter(void)
{
    scratch_enter();
    real_dir = path_real(".", NULL);
    state = path_join(real_dir, "home/state");
    data = path_join(real_dir, "home/data");
}

static void leave(void)
{
    free(real_dir);
    free(state);
    free(data);
    scratch_leave();
}

static int locate_from_dir(struct history *h, const char *dir, const char *git_dir, bool reader,
                           struct err *e)
{
    char *cwd = path_join(real_dir, dir);
    struct locate_from from = {
        .cwd = cwd, .data_home = data, .state_home = state, .git_dir = git_dir, .reader = reader};
    int result = locate(h, &from, e);

    free(cwd);
    return result;
}

static int locate_in(struct history *h, const char *dir, struct err *e)
{
    return locate_from_dir(h, dir, NULL, false, e);
}

static void check_path(const char *got, const char *want)
{
    char *path = path_join(real_dir, want);

    CHECK_STR(got, path);
    free(path);
}

/* Which history is found from a directory? */
static void check_found(const char *dir, enum history_kind kind, const char *path,
                        const char *pointer)
{
    struct history h;

    CHECK_INT(locate_in(&h, dir, NULL), 0);
    CHECK_INT(h.kind, kind);
    check_path(h.path, path);
    check_path(h.pointer, pointer);
    history_release(&h);
}

static void check_user(const char *dir)
{
    check_found(dir, HISTORY_USER, "home/data/aicoder/history.jsonl", "home/data/aicoder/session");
}

static void make_dirs(const char *const *paths)
{
    for (; *paths; paths++)
        CHECK_INT(mkdir(*paths, 0755), 0);
}

#define DIRS(...) make_dirs((const char *const[]){__VA_ARGS__, NULL})

TEST(a_repository_is_found_from_below)
{
    enter();
    DIRS("r", "r/a", "r/a/b", "r/a/b/.git");
    make_repository("r");
    /* A .git that is no git directory is passed over, as git does it. */
    check_found("r/a/b", HISTORY_REPOSITORY, "r/.git/aicoder/history.jsonl",
                "r/.git/aicoder/session");
    check_found("r/.git/refs", HISTORY_REPOSITORY, "r/.git/aicoder/history.jsonl",
                "r/.git/aicoder/session");
    check_user(".");
    leave();
}

static void check_notice(const char *dir, const char *git_dir, const char *want)
{
    struct history h;

    CHECK_INT(locate_from_dir(&h, dir, git_dir, false, NULL), 0);
    CHECK_INT(h.kind, HISTORY_USER);
    CHECK(h.notice && strstr(h.notice, want));
    if (h.notice && !strstr(h.notice, want))
        CHECK_STR(h.notice, want);
    history_release(&h);
}

TEST(a_repository_that_cannot_be_used_is_named)
{
    enter();
    DIRS("w", "r");
    scratch_put("w/.git", "gitdir: /no/such/place\n");
    check_notice("w", NULL, "'/no/such/place' does not exist");
    scratch_put("w/.git", "something else\n");
    check_notice("w", NULL, "/w/.git' names no git directory");
    scratch_put("w/.git", "gitdir: ../r\n");
    check_notice("w", NULL, "/w/../r' is not a git directory");
    check_notice("w", "../r", "/w/../r' is not a git directory");
    check_notice(".", "absent", "/absent' does not exist");
    if (geteuid() == 0) {
        DIRS("theirs");
        make_repository("theirs");
        CHECK_INT(chown("theirs/.git", 65534, 65534), 0);
        check_notice("theirs", NULL, "/theirs/.git' belongs to another user");
        check_notice(".", "theirs/.git", "/theirs/.git' belongs to another user");
        CHECK_INT(chown("theirs/.git", geteuid(), getegid()), 0);
        CHECK_INT(chown("theirs", 65534, 65534), 0);
        check_user("theirs"); /* passed over */
    }
    leave();
}
