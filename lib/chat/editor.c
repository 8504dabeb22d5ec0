#include "chat/editor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"
#include "chathist/base/proc.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"

bool editor_possible(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static const char *editor_name(void)
{
    const char *name = config_env("VISUAL");

    if (!name)
        name = config_env("EDITOR");
    return name ? name : "vi";
}

/* The shell splits what EDITOR holds (`code --wait`), and sees nothing of the file's name. */
static int run(const char *file, struct err *e)
{
    const char *name = editor_name();
    struct buf script = BUF_INIT(BUF_SMALL);
    char *argv[6] = {NULL};
    int status;

    buf_addf(&script, "%s \"$@\"", name);
    argv[0] = mem_copy("sh", 2);
    argv[1] = mem_copy("-c", 2);
    argv[2] = buf_detach(&script);
    argv[3] = mem_copy(name, strlen(name));
    argv[4] = mem_copy(file, strlen(file));
    status = proc_run(argv, isatty(STDOUT_FILENO) ? -1 : STDERR_FILENO, e);
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    if (status > 0)
        return err_set(e, ERR_FAILURE, "editor '%s' failed with status %d", name, status);
    return status;
}

static int put(int fd, struct str text)
{
    bool ended = str_ends(text, STR("\n"));

    return io_write_all(fd, text.p, text.n) < 0 || (!ended && io_write_all(fd, "\n", 1) < 0) ? -1
                                                                                             : 0;
}

/* What the editor left. */
static int take(struct buf *text, const char *file, struct err *e)
{
    struct buf bytes = BUF_INIT(text->max - 1);
    struct str rest;
    int result = io_read_file(file, &bytes, e);

    if (result == 0) {
        rest = buf_str(&bytes);
        if (str_ends(rest, STR("\n")))
            rest.n--;
        buf_clear(text);
        utf8_add_repaired(text, rest);
        if (text->overflow)
            result = err_set(e, ERR_USAGE, "prompt is too long");
    }
    buf_release(&bytes);
    return result;
}

int editor_edit(struct buf *text, struct err *e)
{
    const char *dir = config_env("TMPDIR");
    char *file = path_join(dir ? dir : "/tmp", "chat-prompt.XXXXXX");
    int fd = mkstemp(file), result;

    if (fd < 0) {
        result = err_sys(e, errno, "cannot make '%s'", file);
        free(file);
        return result;
    }
    result = put(fd, buf_str(text)) < 0 ? err_sys(e, errno, "cannot write '%s'", file) : 0;
    close(fd);
    if (result == 0)
        result = run(file, e);
    if (result == 0)
        result = take(text, file, e);
    unlink(file);
    free(file);
    return result;
}
