#include "chathist/base/file.h"

#include "test.h"
#include "scratch.h"

TEST(parents_are_made_and_private)
{
    mode_t old = umask(0);
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(file_make_dirs("a/b/c", &e), 1);
    CHECK_INT(scratch_mode("a"), 0700);
    CHECK_INT(scratch_mode("a/b"), 0700);
    CHECK_INT(scratch_mode("a/b/c"), 0700);
    CHECK_INT(file_make_dirs("a/b/c", &e), 0);
    CHECK_INT(file_make_dirs("a/b/c/", &e), 0);
    CHECK_INT(file_make_dirs("a//b/d/", &e), 1);
    CHECK_INT(file_make_dirs("n/../m", &e), 1);
    CHECK_INT(e.kind, ERR_NONE);
    umask(0777);
    CHECK_INT(file_make_dirs("x/y", &e), 1);
    CHECK_INT(scratch_mode("x"), 0700);
    CHECK_INT(scratch_mode("x/y"), 0700);
    umask(old);
    scratch_leave();
}

TEST(what_exists_is_left_alone)
{
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(mkdir("open", 0755) | chmod("open", 0755) | symlink("open", "link"), 0);
    CHECK_INT(file_make_dirs("open", &e), 0);
    CHECK_INT(file_make_dirs("link", &e), 0);
    CHECK_INT(file_make_dirs("/", &e), 0);
    CHECK_INT(file_make_dirs(".", &e), 0);
    CHECK_INT(file_make_dirs("link/in", &e), 1);
    CHECK_INT(scratch_mode("open"), 0755);
    CHECK_INT(scratch_mode("open/in"), 0700);
    scratch_leave();
}

TEST(why_not_is_told)
{
    struct err e = ERR_INIT;

    scratch_enter();
    scratch_put("file", "");
    CHECK_INT(symlink("nowhere", "dangling"), 0);
    CHECK_INT(file_make_dirs("file", &e), -1);
    CHECK_STR(err_text(&e), "cannot make directory 'file': File exists");
    CHECK_INT(e.kind, ERR_FAILURE);
    CHECK_INT(file_make_dirs("file/a", &e), -1);
    CHECK_STR(err_text(&e), "cannot make directory 'file/a': Not a directory");
    CHECK_INT(file_make_dirs("dangling", &e), -1);
    CHECK_STR(err_text(&e), "cannot make directory 'dangling': File exists");
    CHECK_INT(file_make_dirs("", &e), -1);
    CHECK_STR(err_text(&e), "cannot make directory '': No such file or directory");
    CHECK_INT(file_make_dirs("", NULL), -1);
    err_release(&e);
    scratch_leave();
}
