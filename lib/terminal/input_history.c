#include "chathist/terminal/input_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"

/* A larger file is cut to its newest lines, about half of this size. */
#define FILE_MOST ((size_t)1 << 20)

/* Returns the newest lines, beginning with a complete one. */
static struct str newest_lines(struct str all)
{
    struct str rest = all;

    if (all.n <= FILE_MOST / 2)
        return all;
    rest.p += all.n - FILE_MOST / 2;
    rest.n = FILE_MOST / 2;
    str_cut(&rest, '\n');
    return rest.p ? rest : (struct str){all.p + all.n, 0};
}

int input_history_load(const char *path, void (*fn)(void *arg, struct str text), void *arg,
                       struct err *e)
{
    struct buf all = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_SMALL);
    struct str rest, value;
    int result = file_read_state(path, &all, e) < 0 ? -1 : 0;

    if (result == 0 && all.len > FILE_MOST)
        result = file_replace(path, newest_lines(buf_str(&all)), e);
    rest = newest_lines(buf_str(&all));
    while (result == 0 && rest.n > 0) {
        struct str line = str_cut(&rest, '\n');

        buf_clear(&text);
        if (json_check(line, &value, NULL) && json_decode(value, &text) && text.len > 0)
            fn(arg, buf_str(&text));
    }
    buf_release(&all);
    buf_release(&text);
    return result;
}

int input_history_add(const char *path, struct str text, struct err *e)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    char *dir;
    int fd, result;

    if (text.n > INPUT_HISTORY_TEXT_MAX)
        return 0;
    dir = path_parent(path);
    result = file_make_dirs(dir, e);
    free(dir);
    if (result < 0)
        return -1;
    fd = file_open_regular_at(FILE_CWD, path, O_WRONLY | O_APPEND | O_CREAT, 0600, NULL, NULL, e);
    if (fd < 0)
        return -1;
    json_add_string(&line, text);
    buf_add_byte(&line, '\n');
    /* One write, so that programs that add at the same time do not mix their lines. */
    result = file_write_all(fd, line.data, line.len) < 0
                 ? err_sys(e, errno, "cannot write '%s'", path)
                 : 0;
    close(fd);
    buf_release(&line);
    return result;
}
