#include "chat/save.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/history/message.h"

static struct str member(struct str json, const char *key, struct buf *scratch)
{
    return json_text(json_get(json, key), scratch);
}

static void add_text(struct buf *out, struct str text)
{
    if (text.n == 0)
        return;
    buf_add_byte(out, '\n');
    buf_add_str(out, text);
    if (text.p[text.n - 1] != '\n')
        buf_add_byte(out, '\n');
}

/* Each call as a line of an indented block. */
static void add_calls(struct buf *out, struct str calls, struct buf *scratch)
{
    struct json_iter it = json_iter(calls);
    struct buf args = BUF_INIT(BUF_LINE);
    struct message_call call;
    bool any = false;

    while (message_next_call(&it, &call, &args)) {
        buf_add_c(out, any ? "    " : "\n    ");
        buf_add_str(out, json_text(call.name, scratch));
        buf_add_byte(out, ' ');
        buf_add_str(out, call.args);
        buf_add_byte(out, '\n');
        any = true;
    }
    buf_release(&args);
}

static void add_message(void *arg, struct str json)
{
    struct buf *out = arg;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str model;

    buf_add_c(out, out->len > 0 ? "\n## " : "## ");
    buf_add_str(out, member(json, "role", &scratch));
    model = member(json, "model", &scratch);
    if (model.n > 0) {
        buf_add_c(out, " (");
        buf_add_str(out, model);
        buf_add_byte(out, ')');
    }
    buf_add_byte(out, '\n');
    add_text(out, member(json, "content", &scratch));
    add_calls(out, json_get(json, "tool_calls"), &scratch);
    buf_release(&scratch);
}

static void take_answer(void *arg, struct str json)
{
    struct buf *out = arg;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text;

    if (str_eq_c(member(json, "role", &scratch), "assistant")) {
        text = member(json, "content", &scratch);
        if (text.n > 0) {
            buf_clear(out);
            buf_add_str(out, text);
            if (text.p[text.n - 1] != '\n')
                buf_add_byte(out, '\n');
        }
    }
    buf_release(&scratch);
}

int save_format(const struct dialogue *d, bool answer, struct buf *out, struct err *e)
{
    if (dialogue_each(d, answer ? take_answer : add_message, out, e) < 0)
        return -1;
    return out->len > 0;
}

int save_write(const char *path, struct str text, bool over, struct err *e)
{
    int fd, result;

    if (over)
        return io_replace_file(path, text, e) < 0 ? -1 : 1;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return io_check_regular(path, e);
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    result = io_write_all(fd, text.p, text.n);
    if (close(fd) < 0 || result < 0)
        return err_sys(e, errno, "cannot write '%s'", path);
    return 1;
}
