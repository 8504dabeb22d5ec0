#include "hist/locate.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/path.h"
#include "hist/register.h"
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

static int locate_in(struct history *h, const char *dir, struct err *e)
{
    char *cwd = path_join(real_dir, dir);
    struct locate_from from = {NULL, cwd, data, state, false};
    int result = locate(h, &from, e);

    free(cwd);
    return result;
}

static void check_root(const char *cwd, const char *want)
{
    char *from = path_join(real_dir, cwd);
    char *got = locate_root(from);
    char *path = want ? path_join(real_dir, want) : NULL;

    CHECK_STR(got, path);
    free(from);
    free(got);
    free(path);
}

static void check_path(const char *got, const char *want)
{
    char *path = path_join(real_dir, want);

    CHECK_STR(got, path);
    free(path);
}

TEST(the_root_is_the_nearest_that_is_marked)
{
    enter();
    CHECK(mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0 && mkdir("a/b/c", 0700) == 0);
    check_root("a/b/c", NULL);
    CHECK_INT(mkdir("a/.git", 0700), 0);
    check_root("a/b/c", "a");
    check_root("a", "a");
    check_root("no/where", NULL);
    scratch_put("a/b/.git", "gitdir: elsewhere\n"); /* a worktree */
    check_root("a/b/c", "a/b");
    CHECK_INT(mkdir("a/b/c/.aicoder", 0700), 0);
    check_root("a/b/c", "a/b/c");
    CHECK_INT(symlink("nowhere", "a/b/c/.git"), 0);
    check_root("a/b/c", "a/b/c");
    leave();
}

TEST(directories_of_other_owners_are_passed_over)
{
    enter();
    CHECK(mkdir("a", 0700) == 0 && mkdir("a/b", 0755) == 0 && mkdir("a/b/c", 0755) == 0);
    CHECK(mkdir("a/.git", 0700) == 0 && mkdir("a/b/.git", 0700) == 0);
    check_root("a/b/c", "a/b");
    if (geteuid() == 0) {
        CHECK_INT(chown("a/b", 65534, 65534), 0);
        check_root("a/b/c", "a");
        /* Nor do marks that they have put into ours. */
        CHECK_INT(chown("a/b", geteuid(), getegid()), 0);
        check_root("a/b/c", "a/b");
        CHECK_INT(chown("a/b/.git", 65534, 65534), 0);
        check_root("a/b/c", "a");
    }
    leave();
}

/* What the next test runs in a mount namespace; by itself it has nothing to do. */
TEST(inside_a_mounted_file_system)
{
    const char *cwd = getenv("LOCATE_TEST_CWD");
    char *root = cwd ? locate_root(cwd) : NULL;

    CHECK(root == NULL);
    free(root);
}

static int run_unshared(const char *script, const char *self)
{
    const char *how = geteuid() == 0 ? "-m" : "-rm";
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execlp("unshare", "unshare", how, "sh", "-c", script, self, (char *)NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_file_system_is_not_left)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    enter();
    CHECK(mkdir("a", 0700) == 0 && mkdir("a/.git", 0700) == 0 && mkdir("a/m", 0700) == 0);
    check_root("a/m", "a");
    /* Not every machine lets us mount. */
    if (n > 0 && run_unshared("mount -t tmpfs none a/m 2>/dev/null", "sh") == 0) {
        self[n] = '\0';
        CHECK_INT(run_unshared("mount -t tmpfs none a/m && mkdir a/m/b &&"
                               " LOCATE_TEST_CWD=$PWD/a/m/b exec \"$0\" inside_a >/dev/null",
                               self),
                  0);
    }
    leave();
}

TEST(an_explicit_file_is_taken_as_it_is)
{
    struct history h;
    struct locate_from from = {"x/f.jsonl", "/", NULL, NULL, false};

    enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    CHECK_INT(h.kind, HISTORY_EXPLICIT);
    CHECK_STR(h.path, "x/f.jsonl");
    CHECK_STR(h.pointer, "x/f.jsonl.session");
    CHECK(h.dir == NULL);
    CHECK(h.trusted && h.sync && h.dir_exists);
    CHECK_INT(history_enter(&h, NULL, NULL), 0);
    history_release(&h);
    CHECK_INT(scratch_mode("x"), -1);
    leave();
}

TEST(without_a_repository_the_history_is_the_users)
{
    struct history h;
    bool entered = true;

    enter();
    umask(077);
    CHECK_INT(locate_in(&h, ".", NULL), 0);
    CHECK_INT(h.kind, HISTORY_USER);
    check_path(h.path, "home/data/aicoder/history.jsonl");
    check_path(h.pointer, "home/data/aicoder/session");
    check_path(h.dir, "home/data/aicoder");
    CHECK(h.trusted && !h.dir_exists);
    CHECK_INT(scratch_mode("home"), -1); /* locate makes nothing */
    umask(0777);
    CHECK_INT(history_enter(&h, &entered, NULL), 0);
    umask(022);
    CHECK(!entered && h.trusted && h.dir_exists);
    CHECK_INT(scratch_mode("home"), 0700);
    CHECK_INT(scratch_mode("home/data/aicoder"), 0700);
    scratch_check("home/data/aicoder/.gitignore", "*\n");
    CHECK_INT(scratch_mode("home/state"), -1);
    history_release(&h);
    CHECK_INT(locate_in(&h, ".", NULL), 0);
    CHECK(h.trusted && h.dir_exists);
    history_release(&h);
    leave();
}

TEST(without_a_home_there_is_no_place)
{
    struct history h;
    struct err e = ERR_INIT;
    struct locate_from from = {NULL, "/", NULL, NULL, false};

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
    struct locate_from from = {"x/f.jsonl", NULL, "/data", "/state", false};

    CHECK_INT(locate(&h, &from, &e), 0);
    CHECK_STR(h.path, "x/f.jsonl");
    history_release(&h);
    from.explicit_file = NULL;
    CHECK_INT(locate(&h, &from, &e), -1);
    CHECK_STR(err_text(&e), "cannot tell the working directory");
    err_release(&e);
}

TEST(a_history_is_vouched_for_as_it_begins)
{
    struct history h;

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.git", 0700) == 0);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK_INT(history_enter(&h, NULL, NULL), 0);
    scratch_put("r/.aicoder/history.jsonl", "mine\n");
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(!h.trusted);
    CHECK_INT(history_vouch(&h, STR("mine\n"), NULL), 0);
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    scratch_put("r/.aicoder/history.jsonl", "theirs\n");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(!h.trusted);
    CHECK_INT(history_enter(&h, NULL, NULL), 0);
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    /* What cannot be read is nobody's. */
    CHECK_INT(unlink("r/.aicoder/history.jsonl"), 0);
    CHECK_INT(symlink("/dev/null", "r/.aicoder/history.jsonl"), 0);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(!h.trusted);
    history_release(&h);
    leave();
}

TEST(a_repository_gets_a_directory_that_is_known)
{
    struct history h;
    bool entered = true;

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.git", 0700) == 0 && mkdir("r/sub", 0700) == 0);
    CHECK_INT(locate_in(&h, "r/sub", NULL), 0);
    CHECK_INT(h.kind, HISTORY_REPOSITORY);
    check_path(h.path, "r/.aicoder/history.jsonl");
    check_path(h.pointer, "r/.aicoder/session");
    check_path(h.register_path, "home/state/chathist/histories");
    CHECK(h.trusted && !h.dir_exists);
    umask(0777);
    CHECK_INT(history_enter(&h, &entered, NULL), 0);
    umask(022);
    CHECK(!entered && h.trusted && h.dir_exists);
    CHECK_INT(scratch_mode("r/.aicoder"), 0700);
    CHECK_INT(scratch_mode("r/.aicoder/.gitignore"), 0600);
    scratch_check("r/.aicoder/.gitignore", "*\n");
    CHECK_INT(scratch_mode("home/state/chathist"), 0700);
    CHECK_INT(scratch_mode("home/state/chathist/histories"), 0600);
    history_release(&h);

    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted && h.dir_exists);
    history_release(&h);

    /* Another directory in its place is not it. */
    CHECK_INT(rename("r/.aicoder", "r/moved"), 0);
    CHECK_INT(mkdir("r/.aicoder", 0700), 0);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(!h.trusted);
    history_release(&h);

    /* Nor is it known in another place. */
    CHECK(mkdir("q", 0700) == 0 && rename("r/moved", "q/.aicoder") == 0);
    CHECK_INT(locate_in(&h, "q", NULL), 0);
    CHECK(!h.trusted);
    history_release(&h);
    leave();
}

TEST(nothing_but_the_directory_is_left_in_the_repository)
{
    struct history a, b;
    DIR *d;
    int entries = 0;

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.git", 0700) == 0);
    CHECK_INT(locate_in(&a, "r", NULL), 0);
    CHECK_INT(locate_in(&b, "r", NULL), 0);
    CHECK_INT(history_enter(&a, NULL, NULL), 0);
    CHECK_INT(history_enter(&b, NULL, NULL), 0); /* the second finds the first one's */
    CHECK(b.trusted && b.dir_exists);
    d = opendir("r");
    while (readdir(d) != NULL)
        entries++;
    closedir(d);
    CHECK_INT(entries, 4); /* . .. .git .aicoder */
    history_release(&a);
    history_release(&b);
    CHECK_INT(locate_in(&a, "r", NULL), 0);
    CHECK(a.trusted);
    history_release(&a);
    leave();
}

TEST(a_foreign_directory_is_entered_without_its_pointer)
{
    struct history h;
    bool entered = false;

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.aicoder", 0755) == 0);
    scratch_put("r/.aicoder/session", "theirs\n");
    scratch_put("r/.aicoder/history.jsonl", "");
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.dir_exists && !h.trusted);
    CHECK_INT(history_enter(&h, &entered, NULL), 0);
    CHECK(entered && h.trusted);
    CHECK_INT(scratch_mode("r/.aicoder/session"), -1);
    CHECK_INT(scratch_mode("r/.aicoder/history.jsonl"), 0600);
    CHECK_INT(scratch_mode("r/.aicoder"), 0755);
    scratch_put("r/.aicoder/session", "ours\n");
    CHECK_INT(history_enter(&h, &entered, NULL), 0);
    CHECK(!entered);
    scratch_check("r/.aicoder/session", "ours\n");
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted);
    history_release(&h);
    leave();
}

TEST(without_a_register_a_new_directory_works_and_a_foreign_one_is_refused)
{
    struct history h;
    struct err e = ERR_INIT;

    enter();
    scratch_put("home", "in the way");
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.git", 0700) == 0);
    CHECK_INT(locate_in(&h, "r", &e), 0);
    CHECK_INT(history_enter(&h, NULL, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK(h.trusted);
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", &e), 0);
    CHECK(!h.trusted);
    CHECK_INT(history_enter(&h, NULL, &e), -1);
    CHECK(strstr(err_text(&e), "cannot make directory") != NULL);
    CHECK(!h.trusted);
    err_release(&e);
    history_release(&h);
    leave();
}

TEST(what_is_no_directory_of_ours_is_refused)
{
    struct history h;
    struct err e = ERR_INIT;
    struct buf want = BUF_INIT(BUF_SMALL);

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("elsewhere", 0700) == 0);
    CHECK_INT(symlink("../elsewhere", "r/.aicoder"), 0);
    CHECK_INT(locate_in(&h, "r", &e), -1);
    buf_addf(&want, "cannot use '%s/r/.aicoder': is a symbolic link", real_dir);
    CHECK_STR(err_text(&e), buf_c(&want));

    CHECK_INT(unlink("r/.aicoder"), 0);
    scratch_put("r/.aicoder", "");
    CHECK_INT(locate_in(&h, "r", &e), -1);
    buf_clear(&want);
    buf_addf(&want, "cannot use '%s/r/.aicoder': is not a directory", real_dir);
    CHECK_STR(err_text(&e), buf_c(&want));

    CHECK_INT(unlink("r/.aicoder"), 0);
    CHECK_INT(mkdir("r/.aicoder", 0755), 0);
    if (geteuid() == 0) {
        CHECK_INT(chown("r/.aicoder", 65534, 65534), 0);
        CHECK_INT(mkdir("r/.git", 0700), 0); /* their mark alone would be passed over */
        CHECK_INT(locate_in(&h, "r", &e), -1);
        buf_clear(&want);
        buf_addf(&want, "cannot use '%s/r/.aicoder': belongs to another user", real_dir);
        CHECK_STR(err_text(&e), buf_c(&want));
    }
    err_release(&e);
    buf_release(&want);
    leave();
}

TEST(a_directory_reached_through_a_link_is_known)
{
    struct history h;

    enter();
    CHECK(mkdir("r", 0700) == 0 && mkdir("r/.git", 0700) == 0 && symlink("r", "l") == 0);
    CHECK_INT(locate_in(&h, "l", NULL), 0);
    CHECK_INT(history_enter(&h, NULL, NULL), 0);
    history_release(&h);
    CHECK_INT(locate_in(&h, "r", NULL), 0);
    CHECK(h.trusted && h.dir_exists);
    history_release(&h);
    leave();
}
