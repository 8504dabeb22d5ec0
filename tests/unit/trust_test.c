#include "history/trust.h"

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

static void add_name(void *arg, const char *dir)
{
    buf_addf(arg, "%s;", dir);
}

static void check_list(const char *want)
{
    struct buf names = BUF_INIT(BUF_SMALL);

    CHECK_INT(register_each(REGISTER, add_name, &names, NULL), 0);
    CHECK_STR(buf_c(&names), want);
    buf_release(&names);
}

TEST(a_directory_is_listed_once)
{
    scratch_enter();
    check_list("");
    add("a b");
    add("gone");
    add("c\xc3\xa9");
    add("a b");
    scratch_check(REGISTER, "{\"path\":\"a b\"}\n{\"path\":\"gone\"}\n{\"path\":\"c\xc3\xa9\"}\n");
    CHECK_INT(scratch_mode("state"), 0700);
    CHECK_INT(scratch_mode(REGISTER), 0600);
    check_list("a b;gone;c\xc3\xa9;");
    scratch_leave();
}

TEST(damaged_lines_are_passed_over)
{
    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0);
    scratch_put(REGISTER, "garbage\n{\"path\":5}\n{\"path\":\"a\",\"inode\":18446744073709551615,"
                          "\"begins\":\"x\"}\n{\"path\":\"a\\u0000b\"}\n{\"path\":\"torn");
    check_list("a;");
    /* A torn last line does not swallow the next one. */
    add("b");
    check_list("a;b;");
    scratch_leave();
}

TEST(a_register_that_is_no_file_is_an_error)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct buf names = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK(mkdir("state", 0700) == 0 && mkdir("state/chathist", 0700) == 0 &&
          mkdir(REGISTER, 0700) == 0);
    CHECK_INT(register_each(REGISTER, add_name, &names, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '" REGISTER "': is a directory");
    buf_release(&names);
    CHECK_INT(register_add(REGISTER, "a", &wait, &e), -1);
    err_release(&e);
    scratch_leave();
}
