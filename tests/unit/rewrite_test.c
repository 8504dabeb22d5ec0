#include "chathist/history/rewrite.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "test.h"
#include "scratch.h"

#define REPLACEMENTS 8

static char path[] = "history";
static struct history history = {
    .dir_fd = FILE_CWD, .path = path, .trusted = true, .is_history = true, .cancel_fd = -1};

/* What other programs make of the history while the copy of it is synced. */
static const char *later;

/* In place of the C library's: replaces the history several times, as rewrites of other programs
 * do. File systems such as ext4 and XFS give the inode of a file that is gone to the next new one. */
int fsync(int fd)
{
    struct stat before, now = {0};

    if (later && CHECK_INT(stat(path, &before), 0))
        for (int i = 0; i < REPLACEMENTS && now.st_ino != before.st_ino; i++) {
            scratch_put("new", later);
            CHECK_INT(rename("new", path), 0);
            CHECK_INT(stat(path, &now), 0);
        }
    later = NULL;
    return fdatasync(fd);
}

static void begin(void *arg)
{
    (void)arg;
}

static void drop_gone(void *arg, struct rewrite *r, const struct line *l)
{
    (void)arg;
    if (!str_eq(l->text, STR("gone")))
        rewrite_keep(r, l);
}

TEST(a_history_that_was_replaced_meanwhile_is_read_again)
{
    static const struct rewriter by = {.begin = begin, .line = drop_gone};
    struct err e = ERR_INIT;
    struct buf text;

    scratch_enter();
    scratch_put(path, "one\ntwo\ngone\n");
    later = "three\ngone\nfour\nfive\n";
    CHECK_INT(rewrite_run(&history, &by, &e), 1);
    CHECK_STR(err_text(&e), "");
    text = scratch_get(path);
    CHECK_STR(buf_c(&text), "three\nfour\nfive\n");
    buf_release(&text);
    scratch_leave();
}
