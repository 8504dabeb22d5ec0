#include "chathist/base/path.h"

#include "test.h"
#include "scratch.h"

/* Checks a string that the caller frees. */
static void check_owned(char *got, const char *want)
{
    CHECK_STR(got, want);
    free(got);
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
    struct err e = ERR_INIT;

    scratch_enter();
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
    scratch_leave();
}
