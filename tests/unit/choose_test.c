#include "chathist/cli/choose.h"

#include <stdlib.h>

#include "test.h"

static void check(enum history_kind kind, const char *place, const char *wanted)
{
    char path[64];
    struct history h = {.kind = kind, .path = path, .dir = kind == HISTORY_EXPLICIT ? NULL : path};
    struct buf name = BUF_INIT(BUF_SMALL);

    snprintf(path, sizeof path, "%s", place);
    history_name_add(&name, &h);
    CHECK_STR(buf_c(&name), wanted);
    buf_release(&name);
}

TEST(names)
{
    setenv("HOME", "/home/u", 1);
    check(HISTORY_REPOSITORY, "/home/u/src/beta/.git/aicoder", "~/src/beta");
    check(HISTORY_REPOSITORY, "/home/u/src/beta/.aicoder", "~/src/beta");
    check(HISTORY_REPOSITORY, "/srv/beta.git/aicoder", "/srv/beta.git");
    check(HISTORY_REPOSITORY, "/home/u/.git/aicoder", "~");
    check(HISTORY_REPOSITORY, "/home/us/.git/aicoder", "/home/us");
    check(HISTORY_USER, "/home/u/.local/share/aicoder", "~/.local/share/aicoder");
    check(HISTORY_EXPLICIT, "/home/u/aicoder", "~/aicoder");
    check(HISTORY_EXPLICIT, "h.jsonl", "h.jsonl");
    unsetenv("HOME");
    check(HISTORY_REPOSITORY, "/home/u/.git/aicoder", "/home/u");
}
