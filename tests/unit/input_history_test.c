#include "chathist/terminal/input_history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"

#include "test.h"

#include "scratch.h"

static void join(void *arg, struct str text)
{
    struct buf *all = arg;

    buf_add_str(all, text);
    buf_add_byte(all, '|');
}

static void check(const char *path, const char *want, int line)
{
    struct buf all = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    test_check_int(input_history_load(path, join, &all, &e), 0, err_text(&e), __FILE__, line);
    test_check_str(buf_c(&all), want, path, __FILE__, line);
    buf_release(&all);
    err_release(&e);
}

#define HOLDS(path, want) check(path, want, __LINE__)

TEST(what_was_added_comes_back)
{
    struct stat st;

    scratch_enter();
    HOLDS("state/prompts", "");
    CHECK_INT(input_history_add("state/prompts", STR("one"), NULL), 0);
    CHECK_INT(input_history_add("state/prompts", STR("two\nlines \"x\" \x1b"), NULL), 0);
    HOLDS("state/prompts", "one|two\nlines \"x\" \x1b|");
    CHECK(stat("state/prompts", &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(stat("state", &st) == 0 && (st.st_mode & 0777) == 0700);
    scratch_leave();
}

TEST(other_lines_are_passed_over)
{
    const struct str bad = STR("bad\n5\n\"\"\n\n{\"a\":1}\n\"torn");
    int fd;

    scratch_enter();
    CHECK_INT(input_history_add("p", STR("one"), NULL), 0);
    fd = open("p", O_WRONLY | O_APPEND);
    CHECK_INT(file_write_all(fd, bad.p, bad.n), 0);
    close(fd);
    HOLDS("p", "one|");
    scratch_leave();
}

TEST(the_file_is_bounded)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct stat st;

    scratch_enter();
    for (size_t i = 0; i < INPUT_HISTORY_TEXT_MAX; i++)
        buf_add_byte(&text, 'x');
    for (int i = 0; i < 20; i++)
        CHECK_INT(input_history_add("p", buf_str(&text), NULL), 0);
    CHECK_INT(input_history_add("p", STR("last"), NULL), 0);
    CHECK(stat("p", &st) == 0 && st.st_size > 1 << 20);

    struct buf all = BUF_INIT(BUF_LINE);

    CHECK_INT(input_history_load("p", join, &all, NULL), 0);
    CHECK(str_ends(buf_str(&all), STR("x|last|")));
    CHECK(all.len > 1 << 18);
    CHECK(stat("p", &st) == 0 && st.st_size <= 1 << 19);
    CHECK((st.st_mode & 0777) == 0600);
    buf_clear(&all);
    /* One that is too long is not kept. */
    buf_add_byte(&text, 'x');
    CHECK_INT(input_history_add("q", buf_str(&text), NULL), 0);
    CHECK_INT(input_history_load("q", join, &all, NULL), 0);
    CHECK_INT(all.len, 0);
    buf_release(&all);
    buf_release(&text);
    scratch_leave();
}

TEST(what_is_no_file_is_refused)
{
    struct err e = ERR_INIT;

    scratch_enter();
    CHECK_INT(symlink("there", "p"), 0);
    CHECK_INT(input_history_add("p", STR("x"), &e), -1);
    err_release(&e);
    CHECK_INT(input_history_load("p", join, NULL, &e), -1);
    err_release(&e);
    CHECK(access("there", F_OK) < 0);
    scratch_leave();
}
