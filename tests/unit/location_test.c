#include "chathist/history/location.h"

#include <errno.h>
#include <stdlib.h>

#include "chathist/base/file.h"
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

static void begin(const char *dir)
{
    struct history h;

    CHECK_INT(locate_in(&h, dir, NULL), 0);
    CHECK_INT(history_enter(&h, NULL), 0);
    scratch_put(h.path, "mine\n");
    history_release(&h);
}

static bool is_trusted(const char *dir)
{
    struct history h;
    bool trusted;

    CHECK_INT(locate_in(&h, dir, NULL), 0);
    trusted = h.trusted;
    history_release(&h);
    return trusted;
}

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

TEST(a_worktree_shares_the_history_and_has_its_own_pointer)
{
    struct history h;

    enter();
    DIRS("r", "w", "w/sub");
    make_repository("r");
    DIRS("r/.git/worktrees", "r/.git/worktrees/w");
    scratch_put("r/.git/worktrees/w/HEAD", "ref: x\n");
    scratch_put("r/.git/worktrees/w/commondir", "../..\n");
    scratch_put("w/.git", "gitdir: ../r/.git/worktrees/w\n");
    begin("w/sub");
    scratch_check("r/.git/aicoder/history.jsonl", "mine\n");
    CHECK_INT(locate_in(&h, "w", NULL), 0);
    CHECK(h.trusted && history_has_worktrees(&h));
    CHECK_INT(file_replace_at(h.pointer_fd, h.pointer, STR("s\n"), false, NULL), 0);
    history_release(&h);
    scratch_check("r/.git/worktrees/w/aicoder/session", "s\n");
    CHECK_INT(scratch_mode("r/.git/worktrees/w/aicoder"), 0700);
    CHECK_INT(scratch_mode("r/.git/aicoder/session"), -1);
    CHECK_INT(scratch_mode("w/.aicoder"), -1);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted && history_has_worktrees(&h));
    history_release(&h);
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

TEST(git_dir_is_obeyed_and_a_bare_repository_needs_it)
{
    struct history h;

    enter();
    DIRS("r", "bare", "bare/objects", "bare/refs");
    make_repository("r");
    scratch_put("bare/HEAD", "ref: x\n");
    check_user("bare");
    CHECK_INT(locate_from_dir(&h, "r", "../bare", false, NULL), 0);
    CHECK_INT(h.kind, HISTORY_REPOSITORY);
    check_path(h.path, "bare/aicoder/history.jsonl");
    CHECK_INT(history_enter(&h, NULL), 0);
    history_release(&h);
    CHECK_INT(scratch_mode("r/.aicoder"), -1); /* the work tree is not known */
    leave();
}

TEST(an_explicit_file_has_no_directory_of_ours)
{
    struct history h;
    struct locate_from from = {.explicit_file = "x/f.jsonl", .cwd = "/"};

    enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK_INT(h.kind, HISTORY_EXPLICIT);
    CHECK_STR(h.path, "x/f.jsonl");
    CHECK_STR(h.pointer, "x/f.jsonl.session");
    CHECK(h.dir == NULL);
    CHECK(h.trusted && h.sync && h.dir_exists);
    CHECK_INT(history_enter(&h, NULL), 0);
    history_release(&h);
    CHECK_INT(scratch_mode("x"), -1);
    leave();
}

TEST(an_explicit_file_is_trusted_if_nobody_else_can_write_it)
{
    struct history h;
    struct locate_from from = {.explicit_file = "f", .cwd = "/"};

    enter();
    scratch_put("f", "");
    CHECK_INT(chmod("f", 0644), 0);
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    CHECK_INT(chmod("f", 0646), 0);
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK(!h.trusted);
    history_release(&h);
    leave();
}

TEST(without_a_repository_the_history_is_the_users)
{
    struct history h;

    enter();
    umask(077);
    check_user(".");
    CHECK_INT(locate_in(&h, ".", NULL), 0);
    CHECK(h.trusted && !h.dir_exists && !h.notice);
    CHECK_INT(scratch_mode("home"), -1); /* locate makes nothing */
    umask(0777);
    CHECK_INT(history_enter(&h, NULL), 0);
    umask(022);
    CHECK(h.trusted && h.dir_exists);
    CHECK_INT(scratch_mode("home"), 0700);
    CHECK_INT(scratch_mode("home/data/aicoder"), 0700);
    scratch_check("home/data/aicoder/.gitignore", "*\n");
    CHECK_INT(scratch_mode("home/state"), -1);
    history_release(&h);
    CHECK(is_trusted("."));
    leave();
}

TEST(without_a_home_there_is_no_place)
{
    struct history h;
    struct err e = ERR_INIT;
    struct locate_from from = {.cwd = "/"};

    CHECK_INT(locate(&h, &from, &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e),
              "no place for a history: neither HOME nor XDG_DATA_HOME is an absolute path");
    err_release(&e);
}

TEST(without_a_working_directory_only_an_explicit_file_is_found)
{
    struct history h;
    struct err e = ERR_INIT;
    struct locate_from from = {
        .explicit_file = "x/f.jsonl", .data_home = "/data", .state_home = "/state"};

    CHECK_INT(locate(&h, &from, &e), 0);
    CHECK_STR(h.path, "x/f.jsonl");
    history_release(&h);
    from.explicit_file = NULL;
    CHECK_INT(locate(&h, &from, &e), -1);
    CHECK_STR(err_text(&e), "cannot tell the working directory");
    err_release(&e);
}

TEST(the_directory_is_made_marked_and_listed)
{
    struct history h;

    enter();
    DIRS("r");
    make_repository("r");
    DIRS("r/.git/info");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted && !h.dir_exists);
    umask(0777);
    CHECK_INT(history_enter(&h, NULL), 0);
    umask(022);
    CHECK(h.trusted && h.dir_exists);
    history_release(&h);
    CHECK_INT(scratch_mode("r/.git/aicoder"), 0700);
    CHECK_INT(scratch_mode("r/.git/aicoder/owner"), 0600);
    CHECK_INT(scratch_mode("home/state/chathist/token"), 0600);
    CHECK_INT(scratch_mode("home/state/chathist/histories"), 0600);
    scratch_check("r/.git/info/exclude", "/.aicoder\n");
    CHECK_INT(scratch_mode("r/.aicoder/owner"), 0600); /* through the link */
    leave();
}

TEST(a_directory_without_the_mark_is_not_trusted)
{
    struct history h;

    enter();
    DIRS("r", "q");
    make_repository("r");
    make_repository("q");
    begin("r");
    CHECK(is_trusted("r"));
    scratch_put("r/.git/aicoder/owner", "guessed\n");
    CHECK(!is_trusted("r"));
    CHECK_INT(unlink("r/.git/aicoder/owner"), 0);
    CHECK(!is_trusted("r"));
    scratch_put("r/.git/aicoder/session", "theirs\n");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK_INT(history_enter(&h, NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    CHECK(is_trusted("r"));
    CHECK_INT(scratch_mode("r/.git/aicoder/session"), -1);
    CHECK_INT(scratch_mode("r/.git/aicoder/history.jsonl"), -1);
    scratch_check("r/.git/aicoder/foreign.jsonl", "mine\n");
    /* Nothing can be continued in an empty one. */
    DIRS("q/.git/aicoder");
    CHECK(is_trusted("q"));
    scratch_put("q/.git/aicoder/session", "theirs\n");
    CHECK(!is_trusted("q"));
    leave();
}

TEST(a_history_that_the_user_accepts_stays_in_its_place)
{
    struct history h;

    enter();
    DIRS("r");
    make_repository("r");
    DIRS("r/.git/aicoder");
    scratch_put("r/.git/aicoder/history.jsonl", "theirs\n");
    scratch_put("r/.git/aicoder/session", "theirs\n");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(!h.trusted);
    CHECK_INT(history_accept(&h, NULL), 0);
    CHECK_INT(history_enter(&h, NULL), 0);
    CHECK(h.trusted && h.foreign_count == 0);
    history_release(&h);
    CHECK(is_trusted("r"));
    scratch_check("r/.git/aicoder/history.jsonl", "theirs\n");
    CHECK_INT(scratch_mode("r/.git/aicoder/session"), -1);
    leave();
}

TEST(a_directory_that_others_can_write_is_not_trusted)
{
    enter();
    DIRS("r");
    make_repository("r");
    begin("r");
    CHECK_INT(chmod("r/.git/aicoder", 0707), 0);
    CHECK(!is_trusted("r"));
    CHECK_INT(chmod("r/.git/aicoder", 0755), 0);
    CHECK(is_trusted("r"));
    CHECK_INT(chmod("r/.git/aicoder/history.jsonl", 0602), 0);
    CHECK(!is_trusted("r"));
    leave();
}

TEST(a_link_or_a_file_in_the_place_is_not_used)
{
    struct history h;

    enter();
    DIRS("r", "other");
    make_repository("r");
    CHECK_INT(symlink("../../other", "r/.git/aicoder"), 0);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK_INT(h.kind, HISTORY_USER);
    CHECK(strstr(h.notice, "/r/.git/aicoder' is a symbolic link"));
    history_release(&h);
    CHECK_INT(unlink("r/.git/aicoder"), 0);
    scratch_put("r/.git/aicoder", "");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK_INT(h.kind, HISTORY_USER);
    CHECK(strstr(h.notice, "/r/.git/aicoder' is not a directory"));
    history_release(&h);
    leave();
}

/* ---- .aicoder in directories of the user's ---- */

TEST(outside_git_a_history_is_made_for_a_directory)
{
    struct history h;
    struct err e = ERR_INIT;
    char *dir;

    enter();
    DIRS("d", "d/sub", "r");
    dir = path_join(real_dir, "d");
    CHECK_INT(locate_in(&h, "d", NULL), 0);
    CHECK_INT(history_make_here(&h, dir, NULL), 0);
    scratch_put(h.path, "mine\n");
    history_release(&h);
    check_found("d/sub", HISTORY_HERE, "d/.aicoder/history.jsonl", "d/.aicoder/session");
    CHECK(is_trusted("d/sub"));
    scratch_check("d/.aicoder/.gitignore", "*\n");
    /* Without the mark it is somebody else's. */
    CHECK_INT(rename("d/.aicoder/owner", "owner"), 0);
    CHECK_INT(unlink("home/state/chathist/histories"), 0);
    check_user("d/sub");
    make_repository("r");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK_INT(history_make_here(&h, "r", &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    err_release(&e);
    history_release(&h);
    free(dir);
    leave();
}

/* hist-new --here made it, or it is another program's. */
static void put_here(bool marked)
{
    DIRS("r/.aicoder", "home", "home/state", "home/state/chathist");
    scratch_put("r/.aicoder/history.jsonl", "old\n");
    scratch_put("r/.aicoder/.gitignore", "*\n");
    if (marked) {
        scratch_put("home/state/chathist/token", "secret\n");
        scratch_put("r/.aicoder/owner", "secret\n");
    }
}

TEST(a_history_that_was_made_before_the_repository_is_moved_by_the_first_writer)
{
    struct history h;

    enter();
    DIRS("r");
    make_repository("r");
    put_here(true);
    check_found("r", HISTORY_REPOSITORY, "r/.aicoder/history.jsonl", "r/.aicoder/session");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted && h.is_old && h.pointer_fd == FILE_ABSENT);
    CHECK_INT(history_enter(&h, NULL), 0);
    check_path(h.path, "r/.git/aicoder/history.jsonl");
    history_release(&h);
    scratch_check("r/.git/aicoder/history.jsonl", "old\n");
    scratch_check("r/.aicoder/history.jsonl", "old\n"); /* through the link */
    CHECK(is_trusted("r"));
    check_found("r", HISTORY_REPOSITORY, "r/.git/aicoder/history.jsonl", "r/.git/aicoder/session");
    leave();
}

TEST(a_history_of_another_program_is_read_and_never_written)
{
    struct history h;
    struct err e = ERR_INIT;

    enter();
    DIRS("r");
    make_repository("r");
    put_here(false);
    CHECK_INT(locate_from_dir(&h, "r", NULL, true, NULL), 0);
    check_path(h.path, "r/.aicoder/history.jsonl");
    check_path(h.foreign[0], "r/.aicoder/history.jsonl");
    CHECK(!h.trusted);
    CHECK_INT(history_enter(&h, &e), -1);
    err_release(&e);
    history_release(&h);
    begin("r");
    scratch_check("r/.aicoder/history.jsonl", "old\n");
    scratch_check("r/.git/aicoder/history.jsonl", "mine\n");
    CHECK_INT(locate_from_dir(&h, "r", NULL, true, NULL), 0);
    check_path(h.path, "r/.git/aicoder/history.jsonl");
    check_path(h.foreign[0], "r/.aicoder/history.jsonl");
    CHECK(h.trusted);
    history_release(&h);
    leave();
}
