#include "tui/browse_watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "test.h"
#include "scratch.h"

static void put(const char *text, int flags)
{
    int fd = open("h", O_WRONLY | O_CREAT | flags, 0600);

    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

TEST(what_is_there_and_has_grown)
{
    struct browse_stamp none, one, more, other;

    scratch_enter();
    none = browse_stamp("h");
    CHECK(browse_stamp_same(&none, &none));
    put("one\n", 0);
    one = browse_stamp("h");
    CHECK(browse_stamp_same(&one, &one));
    CHECK(!browse_stamp_same(&none, &one));
    CHECK(!browse_stamp_grown(&none, &one));
    put("more\n", O_APPEND);
    more = browse_stamp("h");
    CHECK(!browse_stamp_same(&one, &more));
    CHECK(browse_stamp_grown(&one, &more));
    CHECK(!browse_stamp_grown(&more, &one));

    CHECK(rename("h", "before") == 0);
    put("one\nmore\nand another\n", 0);
    other = browse_stamp("h");
    CHECK(!browse_stamp_same(&more, &other));
    CHECK(!browse_stamp_grown(&more, &other));
    scratch_leave();
}

/* As touch -r does it. */
TEST(a_change_is_seen_whose_time_was_set_back)
{
    struct browse_stamp before, now;
    struct stat st;

    scratch_enter();
    put("one\n", 0);
    CHECK(stat("h", &st) == 0);
    before = browse_stamp("h");
    io_wait(-1, 50); /* until the file system's clock has moved */
    put("two\n", 0);
    CHECK(utimensat(AT_FDCWD, "h", (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    now = browse_stamp("h");
    CHECK(!browse_stamp_same(&before, &now));
    scratch_leave();
}
