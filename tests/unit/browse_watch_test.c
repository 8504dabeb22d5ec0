#include "browse/list.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "test.h"
#include "scratch.h"

static void put(const char *text, int flags)
{
    int fd = open("h", O_WRONLY | O_CREAT | flags, 0600);

    CHECK(fd >= 0 && file_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

static enum browse_change look(struct browse_watch *w)
{
    return browse_watch_look(w, "h");
}

TEST(what_is_there_and_has_grown)
{
    struct browse_watch w = {0};

    scratch_enter();
    CHECK_INT(look(&w), BROWSE_SAME);
    put("one\n", 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    CHECK_INT(look(&w), BROWSE_SAME);
    put("more\n", O_APPEND);
    CHECK_INT(look(&w), BROWSE_GROWN);
    CHECK_INT(look(&w), BROWSE_SAME);
    CHECK_INT(truncate("h", 4), 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    put("more\n", O_APPEND);
    CHECK_INT(look(&w), BROWSE_GROWN);

    CHECK(rename("h", "before") == 0);
    put("one\nmore\nand another\n", 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    CHECK(unlink("h") == 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    CHECK_INT(look(&w), BROWSE_SAME);
    scratch_leave();
}

/* As cp does it, and an editor that keeps the file. */
TEST(another_text_that_is_longer_has_not_grown)
{
    struct browse_watch w = {0};
    char line[1001];

    scratch_enter();
    put("one\n", 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    put("two\nthree\n", O_TRUNC);
    CHECK_INT(look(&w), BROWSE_OTHER);
    put("two\nthree and a half\n", O_TRUNC);
    CHECK_INT(look(&w), BROWSE_OTHER);

    /* One that is read with its index, changed at its beginning. */
    memset(line, 'x', 1000);
    line[999] = '\n';
    line[1000] = '\0';
    for (int i = 0; i < 400; i++)
        put(line, O_APPEND);
    CHECK_INT(look(&w), BROWSE_GROWN);
    put("TWO\n", 0);
    put(line, O_APPEND);
    CHECK_INT(look(&w), BROWSE_OTHER);
    put(line, O_APPEND);
    CHECK_INT(look(&w), BROWSE_GROWN);
    scratch_leave();
}

/* As touch -r does it. */
TEST(a_change_is_seen_whose_time_was_set_back)
{
    struct browse_watch w = {0};
    struct stat st;

    scratch_enter();
    put("one\n", 0);
    CHECK(stat("h", &st) == 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    file_wait(-1, 50); /* until the file system's clock has moved */
    put("two\n", 0);
    CHECK(utimensat(AT_FDCWD, "h", (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    CHECK_INT(look(&w), BROWSE_OTHER);
    scratch_leave();
}
