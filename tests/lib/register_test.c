#include "hist/register.h"

#include <errno.h>

#include "test.h"
#include "scratch.h"

#define REGISTER "state/chathist/histories"

static void check_knows(const char *dir, uint64_t inode, int want)
{
    struct err e = ERR_INIT;

    CHECK_INT(register_knows(REGISTER, dir, inode, STR_NONE, &e), want);
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
    CHECK_INT(register_enter(REGISTER, "/a/.aicoder", 5, STR_NONE, NULL, &e), 0);
    umask(022);
    CHECK_INT(scratch_mode("state"), 0700);
    CHECK_INT(scratch_mode("state/chathist"), 0700);
    CHECK_INT(scratch_mode(REGISTER), 0600);
    check_knows("/a/.aicoder", 5, 1);
    check_knows("/a/.aicoder", 6, 0);
    check_knows("/b/.aicoder", 5, 0);
    check_knows("/a/.aicode", 5, 0);
    CHECK_INT(register_enter(REGISTER, "/b \"x\"\n", UINT64_MAX, STR("x"), NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "/a/.aicoder", 5, STR_NONE, NULL, &e),
              0); /* once is enough */
    check_knows("/a/.aicoder", 5, 1);
    check_knows("/b \"x\"\n", UINT64_MAX, 1);
    check_knows("/b \"x\"\n", UINT64_MAX - 1, 0);
    scratch_check(
        REGISTER,
        "{\"path\":\"/a/.aicoder\",\"inode\":5,\"begins\":\"\"}\n"
        "{\"path\":\"/b \\\"x\\\"\\n\",\"inode\":18446744073709551615,\"begins\":\"x\"}\n");
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
    CHECK_INT(register_enter(REGISTER, "/torn", 3, STR_NONE, NULL, NULL), 0);
    check_knows("/torn", 3, 1);
    scratch_leave();
}

#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void check_begins(struct str beginning, int want)
{
    CHECK_INT(register_knows(REGISTER, "/a", 7, beginning, NULL), want);
}

TEST(a_history_must_begin_as_it_did)
{
    scratch_enter();
    CHECK_INT(register_enter(REGISTER, "/a", 7, STR_NONE, NULL, NULL), 0);
    check_begins(STR_NONE, 1);
    check_begins(STR("x"), 0);
    CHECK_INT(register_enter(REGISTER, "/a", 7,
                             STR(SIXTY "abc\xff"
                                       "beyond"),
                             NULL, NULL),
              0);
    check_begins(STR_NONE, 1);
    check_begins(STR(SIXTY "abc\xff"), 1);
    check_begins(STR(SIXTY "abc\xff"
                           "other"),
                 1);
    check_begins(STR(SIXTY "abcd"), 0);
    check_begins(STR(SIXTY), 1); /* a write that was cut off */
    check_begins(STR("1"), 0);
    CHECK_INT(register_enter(REGISTER, "/a", 7, STR_NONE, NULL, NULL), 0); /* says nothing new */
    check_begins(STR(SIXTY "abc\xff"), 1);
    CHECK_INT(register_enter(REGISTER, "/a", 8, STR("x"), NULL, NULL), 0);
    check_begins(STR(SIXTY "abc\xff"), 1);

    /* A short one that was entered is not the start of any longer one. */
    CHECK_INT(register_enter(REGISTER, "/a", 7, STR("short"), NULL, NULL), 0);
    check_begins(STR("short"), 1);
    check_begins(STR("shor"), 1);
    check_begins(STR("shorter"), 0);
    check_begins(STR(SIXTY "abc\xff"), 0); /* the last entry counts */
    CHECK_INT(register_enter(REGISTER, "/a", 7, STR(SIXTY "abc\xff"), NULL, NULL), 0);
    check_begins(STR(SIXTY "abc\xff"), 1);
    scratch_leave();
}

TEST(entries_without_a_beginning_vouch_for_nothing)
{
    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0);
    scratch_put(REGISTER, "{\"path\":\"/a\",\"inode\":7,\"begins\":\"x\"}\n"
                          "{\"path\":\"/a\",\"inode\":7}\n");
    check_begins(STR_NONE, 1);
    check_begins(STR("x"), 0);
    scratch_put(REGISTER, "{\"path\":\"/a\",\"inode\":7,\"begins\":5}\n");
    check_begins(STR("5"), 0);
    scratch_leave();
}

TEST(without_a_place_nothing_is_known)
{
    struct err e = ERR_INIT;

    CHECK_INT(register_knows(NULL, "/a", 7, STR_NONE, &e), 0);
    CHECK_STR(err_text(&e), "");
    CHECK_INT(register_enter(NULL, "/a", 7, STR_NONE, NULL, &e), -1);
    CHECK_STR(err_text(&e),
              "cannot remember '/a': neither HOME nor XDG_STATE_HOME is an absolute path");
    err_release(&e);
}

TEST(a_register_that_is_no_file_is_an_error)
{
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0);
    scratch_put("real", "{\"path\":\"/a\",\"inode\":7}\n");
    CHECK_INT(symlink("../../real", REGISTER), 0);
    CHECK_INT(register_knows(REGISTER, "/a", 7, STR_NONE, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a symbolic link");
    CHECK_INT(register_enter(REGISTER, "/b", 7, STR_NONE, NULL, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a symbolic link");
    scratch_check("real", "{\"path\":\"/a\",\"inode\":7}\n");
    err_release(&e);
    scratch_leave();
}

static uint64_t make_dir(const char *path)
{
    struct stat st = {0};

    CHECK(mkdir(path, 0700) == 0 && stat(path, &st) == 0);
    return (uint64_t)st.st_ino;
}

TEST(what_is_still_there_is_listed)
{
    struct register_dirs dirs;
    struct err e = ERR_INIT;
    uint64_t a, b;

    scratch_enter();
    CHECK_INT(register_list(REGISTER, &dirs, &e), 0);
    CHECK_INT(dirs.count, 0);
    register_dirs_release(&dirs);

    a = make_dir("a");
    b = make_dir("b\xc3\xa9");
    make_dir("other");
    CHECK_INT(symlink("a", "link"), 0);
    CHECK_INT(register_enter(REGISTER, "gone", 5, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "b\xc3\xa9", b, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "a", a + 1000000, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "a", a, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "a", a, STR("later"), NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "link", a, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_enter(REGISTER, "other", a, STR_NONE, NULL, &e), 0);
    CHECK_INT(register_list(REGISTER, &dirs, &e), 0);
    if (CHECK_INT(dirs.count, 2)) {
        CHECK_STR(dirs.at[0], "b\xc3\xa9");
        CHECK_STR(dirs.at[1], "a");
    }
    register_dirs_release(&dirs);

    CHECK_INT(register_list("a", &dirs, &e), -1);
    CHECK_INT(dirs.count, 0);
    register_dirs_release(&dirs);
    err_release(&e);
    scratch_leave();
}
