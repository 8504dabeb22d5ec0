#include "chat/attach.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"
#include "chathist/chat/prompt.h"

/* The length of the longest run of backticks: a fence must be longer. */
static size_t longest_run(struct str text)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < text.n; i++) {
        run = text.p[i] == '`' ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest;
}

static void add_fence(struct buf *prompt, size_t length)
{
    for (size_t i = 0; i < length; i++)
        buf_add_byte(prompt, '`');
}

static void add_text(struct buf *prompt, const char *file, struct str text)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    size_t fence = 2;

    /* Neither the text nor a name with odd characters ends the fence. */
    vis_add_line(&name, str_of(file), true);
    if (longest_run(text) > fence)
        fence = longest_run(text);
    if (longest_run(buf_str(&name)) > fence)
        fence = longest_run(buf_str(&name));
    fence++;
    prompt_part(prompt);
    add_fence(prompt, fence);
    buf_add_str(prompt, buf_str(&name));
    buf_add_byte(prompt, '\n');
    utf8_add_repaired(prompt, text);
    if (text.n > 0 && text.p[text.n - 1] != '\n')
        buf_add_byte(prompt, '\n');
    add_fence(prompt, fence);
    buf_release(&name);
}

static int add(struct buf *prompt, struct image_list *images, const char *file, struct str bytes,
               struct err *e)
{
    const char *type = image_type(bytes);
    size_t before = prompt->len;

    if (type)
        return image_list_add(images, type, bytes, e);
    if (bytes.n > 0 && memchr(bytes.p, '\0', bytes.n))
        return err_set(e, ERR_USAGE, "it is a binary file");
    add_text(prompt, file, bytes);
    if (!prompt->overflow)
        return 0;
    buf_truncate(prompt, before);
    prompt->overflow = false;
    return err_set(e, ERR_USAGE, "the prompt would be over %zu MiB", PROMPT_MAX >> 20);
}

static int read_bytes(const char *file, struct buf *bytes, struct err *e)
{
    if (strcmp(file, ATTACH_STDIN) != 0)
        return io_read_file(file, bytes, e);
    if (io_read_all(STDIN_FILENO, bytes) < 0)
        return err_sys(e, errno, "cannot read standard input");
    if (bytes->len == 0)
        return err_set(e, ERR_USAGE, "standard input is empty");
    return 0;
}

int attach_file(struct buf *prompt, struct image_list *images, const char *file, struct err *e)
{
    struct buf bytes = BUF_INIT(PROMPT_MAX);
    int result = read_bytes(file, &bytes, e);

    if (result < 0) {
        if (e)
            e->kind = ERR_USAGE;
    } else {
        result = add(prompt, images, file, buf_str(&bytes), e);
        if (result < 0)
            err_set(e, ERR_USAGE, "cannot attach '%s': %s", file, err_text(e));
    }
    buf_release(&bytes);
    return result;
}
