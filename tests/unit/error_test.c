#include "chathist/base/error.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

TEST(nothing_is_wrong_at_first)
{
    struct err e = ERR_INIT;

    CHECK_INT(e.kind, ERR_NONE);
    CHECK_STR(err_text(&e), "");
    CHECK_STR(err_text(NULL), "");
    err_release(&e);
}

TEST(set_fills_kind_and_text)
{
    struct err e = ERR_INIT;

    CHECK_INT(err_set(&e, ERR_USAGE, "bad '%s': %d", "x", 3), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), "bad 'x': 3");
    err_release(&e);
    CHECK_INT(e.kind, ERR_NONE);
    CHECK_STR(err_text(&e), "");
    err_release(&e);
}

TEST(sys_adds_the_reason)
{
    struct err e = ERR_INIT;

    CHECK_INT(err_sys(&e, ENOENT, "cannot open '%s'", "x"), -1);
    CHECK_INT(e.kind, ERR_FAILURE);
    CHECK_STR(err_text(&e), "cannot open 'x': No such file or directory");
    err_release(&e);
}

TEST(a_second_error_replaces_the_first)
{
    struct err e = ERR_INIT;

    err_set(&e, ERR_BUSY, "first");
    err_set(&e, ERR_AUTH, "second: %s", err_text(&e));
    CHECK_STR(err_text(&e), "second: first");
    CHECK_INT(e.kind, ERR_AUTH);
    err_sys(&e, EIO, "third: %s", err_text(&e));
    CHECK_STR(err_text(&e), "third: second: first: Input/output error");
    CHECK_INT(e.kind, ERR_FAILURE);
    err_release(&e);
}

TEST(nobody_asks)
{
    CHECK_INT(err_set(NULL, ERR_USAGE, "x"), -1);
    CHECK_INT(err_sys(NULL, ENOENT, "x"), -1);
}

TEST(long_messages_are_whole)
{
    struct err e = ERR_INIT;
    char *long_name = calloc(1, 100001);

    memset(long_name, 'a', 100000);
    err_set(&e, ERR_FAILURE, "<%s>", long_name);
    CHECK_INT(strlen(err_text(&e)), 100002);
    err_release(&e);
    free(long_name);
}
