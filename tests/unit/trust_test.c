#include "history/trust.h"

#include "chathist/base/file.h"
#include "test.h"
#include "scratch.h"

#define REGISTER "state/chathist/histories"

static void add(const char *dir)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct err e = ERR_INIT;

    CHECK_INT(register_add(REGISTER, dir, &wait, &e), 0);
    CHECK_STR(err_text(&e), "");
}

static void check_list(const char *first, const char *second)
{
    struct register_dirs dirs;

    CHECK_INT(register_list(REGISTER, &dirs, NULL), 0);
    CHECK_INT(dirs.count, (first != NULL) + (second != NULL));
    if (first && dirs.count > 0)
        CHECK_STR(dirs.at[0], first);
    if (second && dirs.count > 1)
        CHECK_STR(dirs.at[1], second);
    register_dirs_release(&dirs);
}

TEST(a_directory_is_listed_once_and_while_it_exists)
{
    scratch_enter();
    check_list(NULL, NULL);
    CHECK(mkdir("a b", 0700) == 0 && mkdir("c\xc3\xa9", 0700) == 0);
    add("a b");
    add("gone");
    add("c\xc3\xa9");
    add("a b");
    scratch_check(REGISTER, "{\"path\":\"a b\"}\n{\"path\":\"gone\"}\n{\"path\":\"c\xc3\xa9\"}\n");
    CHECK_INT(scratch_mode("state"), 0700);
    CHECK_INT(scratch_mode(REGISTER), 0600);
    check_list("a b", "c\xc3\xa9");
    scratch_leave();
}

TEST(lines_of_an_older_version_and_damaged_ones_are_read)
{
    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0 &&
          mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
    scratch_put(REGISTER, "garbage\n{\"path\":5}\n{\"path\":\"a\",\"inode\":18446744073709551615,"
                          "\"begins\":\"x\"}\n{\"path\":\"a\\u0000b\"}\n{\"path\":\"torn");
    check_list("a", NULL);
    /* A torn last line does not swallow the next one. */
    add("b");
    check_list("a", "b");
    scratch_leave();
}

TEST(a_register_that_is_no_file_is_an_error)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct register_dirs dirs;
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0 &&
          mkdir(REGISTER, 0700) == 0);
    CHECK_INT(register_list(REGISTER, &dirs, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a directory");
    register_dirs_release(&dirs);
    CHECK_INT(register_add(REGISTER, "a", &wait, &e), -1);
    err_release(&e);
    scratch_leave();
}
