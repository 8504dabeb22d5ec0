#include "chathist/base/path.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

/* Checks a string that the caller frees. */
static void check_owned(char *got, const char *want)
{
    CHECK_STR(got, want);
    free(got);
}

/* A fresh directory that becomes the working directory; left and removed by leave_dir. */
static char *enter_dir(void)
{
    char *dir = path_join("/tmp", "path_test.XXXXXX");

    if (!mkdtemp(dir) || chdir(dir) < 0)
        abort();
    return dir;
}

static void leave_dir(char *dir)
{
    CHECK_INT(chdir("/"), 0);
    CHECK_INT(rmdir(dir), 0); /* fails when something was left behind */
    free(dir);
}

TEST(join)
{
    check_owned(path_join("a", "b"), "a/b");
    check_owned(path_join("a/", "b"), "a/b");
    check_owned(path_join("/", "b"), "/b");
    check_owned(path_join("", "b"), "b");
    check_owned(path_join("a", "/b"), "/b");
    check_owned(path_join("a", ""), "a/");
    check_owned(path_join("a", "b/c"), "a/b/c");
}

TEST(parent)
{
    check_owned(path_parent("/a/b"), "/a");
    check_owned(path_parent("/a/b/"), "/a");
    check_owned(path_parent("/a//b"), "/a");
    check_owned(path_parent("a/b"), "a");
    check_owned(path_parent("a"), ".");
    check_owned(path_parent("a/"), ".");
    check_owned(path_parent(""), ".");
    check_owned(path_parent("/a"), "/");
    check_owned(path_parent("//a"), "/");
    check_owned(path_parent("/"), "/");
    check_owned(path_parent("//"), "/");
}

TEST(base)
{
    CHECK_STR(path_base("/a/b"), "b");
    CHECK_STR(path_base("b"), "b");
    CHECK_STR(path_base("a/"), "");
    CHECK_STR(path_base(""), "");
}

TEST(real_resolves_links)
{
    char *dir = enter_dir();
    struct err e = ERR_INIT;

    CHECK_INT(mkdir("a", 0700) | symlink("a", "link"), 0);

    char *real = path_real("./link/../link", &e);
    char *want = path_real("a", &e);

    CHECK_STR(real, want);
    CHECK(real && real[0] == '/');
    free(real);
    free(want);
    CHECK(path_real("absent", &e) == NULL);
    CHECK_STR(err_text(&e), "cannot resolve 'absent': No such file or directory");
    err_release(&e);
    CHECK_INT(rmdir("a") | unlink("link"), 0);
    leave_dir(dir);
}
