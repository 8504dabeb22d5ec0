#include "hist/register.h"

#include <errno.h>

#include "test.h"
#include "scratch.h"

#define REGISTER "state/chathist/histories"

static void check_knows(const char *dir, uint64_t inode, int want)
{
    struct err e = ERR_INIT;

    CHECK_INT(register_knows(REGISTER, dir, inode, &e), want);
    CHECK_STR(err_text(&e), "");
    err_release(&e);
}

TEST(what_is_entered_is_known)
{
    struct err e = ERR_INIT;

    scratch_enter();
    check_knows("/a/.aicoder", 5, 0);
    CHECK_INT(scratch_mode("state"), -1);
    umask(0777);
    CHECK_INT(register_enter(REGISTER, "/a/.aicoder", 5, &e), 0);
    umask(022);
    CHECK_INT(scratch_mode("state"), 0700);
    CHECK_INT(scratch_mode("state/chathist"), 0700);
    CHECK_INT(scratch_mode(REGISTER), 0600);
    check_knows("/a/.aicoder", 5, 1);
    check_knows("/a/.aicoder", 6, 0);
    check_knows("/b/.aicoder", 5, 0);
    check_knows("/a/.aicode", 5, 0);
    CHECK_INT(register_enter(REGISTER, "/b \"x\"\n", UINT64_MAX, &e), 0);
    CHECK_INT(register_enter(REGISTER, "/a/.aicoder", 5, &e), 0); /* once is enough */
    check_knows("/a/.aicoder", 5, 1);
    check_knows("/b \"x\"\n", UINT64_MAX, 1);
    check_knows("/b \"x\"\n", UINT64_MAX - 1, 0);
    scratch_check(REGISTER, "{\"path\":\"/a/.aicoder\",\"inode\":5}\n"
                            "{\"path\":\"/b \\\"x\\\"\\n\",\"inode\":18446744073709551615}\n");
    CHECK_STR(err_text(&e), "");
    scratch_leave();
}

TEST(lines_that_are_no_entry_are_passed_over)
{
    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0);
    scratch_put(REGISTER,
                "garbage\n\n[]\n{\"path\":5,\"inode\":5}\n{\"inode\":1}\n{\"path\":\"/x\"}\n"
                "{ \"inode\": 7, \"more\": [], \"path\": \"\\/a\" }\n{\"path\":\"/torn\"");
    check_knows("/a", 7, 1);
    check_knows("", 1, 0);
    check_knows("/x", 0, 0);
    CHECK_INT(register_enter(REGISTER, "/torn", 3, NULL), 0);
    check_knows("/torn", 3, 1);
    scratch_leave();
}

TEST(a_register_that_is_no_file_is_an_error)
{
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0);
    scratch_put("real", "{\"path\":\"/a\",\"inode\":7}\n");
    CHECK_INT(symlink("../../real", REGISTER), 0);
    CHECK_INT(register_knows(REGISTER, "/a", 7, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a symbolic link");
    CHECK_INT(register_enter(REGISTER, "/b", 7, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a symbolic link");
    scratch_check("real", "{\"path\":\"/a\",\"inode\":7}\n");
    err_release(&e);
    scratch_leave();
}
