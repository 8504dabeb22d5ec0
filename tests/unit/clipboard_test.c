#include "chathist/terminal/clipboard.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/file.h"
#include "scratch.h"

/* More than a pipe holds. */
#define LARGE ((size_t)1 << 20)

/* Copies a text to pbcopy, a script of these lines (NULL: there is none). Returns what is said. */
static const char *copy(struct buf *said, const char *script, size_t size)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    FILE *file = script ? fopen("pbcopy", "w") : NULL;

    if (file) {
        fputs(script, file);
        fclose(file);
        CHECK_INT(chmod("pbcopy", 0700), 0);
    }
    for (size_t i = 0; i < size; i++)
        buf_add_byte(&text, 'x');
    buf_clear(said);
    clipboard_copy(buf_str(&text), -1, -1, said);
    buf_release(&text);
    return buf_c(said);
}

static pid_t pid_in_file(void)
{
    struct buf pid = BUF_INIT(BUF_SMALL);
    pid_t value;

    CHECK_INT(file_read("pid", &pid, NULL), 0);
    value = (pid_t)atoi(buf_c(&pid));
    buf_release(&pid);
    return value;
}

TEST(copied_is_said_when_a_program_has_read_the_text)
{
    static const char nobody[] =
        "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot";
    struct buf kept = BUF_INIT(SIZE_MAX), path = BUF_INIT(BUF_SMALL);
    int status = 0;
    struct buf said = BUF_INIT(BUF_SMALL);
    pid_t other;

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    unsetenv("TMUX");
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    setenv("TERM", "linux", 1);
    buf_addf(&path, ".:%s", getenv("PATH"));
    setenv("PATH", buf_c(&path), 1);
    /* What cannot be started is not waited for: another child would be taken for it. */
    other = fork();
    if (other == 0)
        _exit(5);
    CHECK_STR(copy(&said, NULL, 10), nobody);
    CHECK_INT(waitpid(other, &status, 0), other);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);

    CHECK_STR(copy(&said, "#!/bin/sh\ncat >kept\n", LARGE), "copied");
    CHECK_INT(file_read("kept", &kept, NULL), 0);
    CHECK_INT(kept.len, LARGE);
    CHECK_STR(copy(&said, "#!/bin/sh\ncat >kept; exit 1\n", 10), nobody);
    CHECK(
        str_starts(str_of(copy(&said, "#!/bin/sh\nexit 0\n", LARGE)), STR("cannot copy 1048576")));
    /* It stays to hand it on. */
    CHECK_STR(copy(&said, "#!/bin/sh\ncat >kept; echo $$ >pid; exec sleep 1000\n", LARGE),
              "copied");
    CHECK_INT(kill(pid_in_file(), SIGKILL), 0);
    /* What a pipe holds is not read by that alone; the program is ended. */
    CHECK_STR(copy(&said, "#!/bin/sh\necho $$ >pid; exec sleep 1000\n", 10), nobody);
    CHECK_INT(kill(pid_in_file(), 0), -1);
    buf_release(&said);
    buf_release(&kept);
    buf_release(&path);
    scratch_leave();
}
