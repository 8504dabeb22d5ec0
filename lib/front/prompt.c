#include "front/prompt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/utf8.h"
#include "base/vis.h"
#include "cli/die.h"

#define SILENCE_MS 3000

bool prompt_has_stdin(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int too_long(struct err *e)
{
    return err_set(e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
}

int prompt_add_stdin(struct buf *prompt, const char *waiting, struct err *e)
{
    struct pollfd silent = {.fd = STDIN_FILENO, .events = POLLIN};
    struct buf bytes = BUF_INIT(PROMPT_MAX);
    struct str text;
    int result = 0;

    if (waiting && poll(&silent, 1, SILENCE_MS) == 0)
        warnf("%s", waiting);
    if (io_read_all(STDIN_FILENO, &bytes) < 0) {
        result = errno == EFBIG ? too_long(e) : err_sys(e, errno, "cannot read standard input");
    } else {
        text = buf_str(&bytes);
        if (text.n > 0 && text.p[text.n - 1] == '\n')
            text.n--;
        utf8_add_repaired(prompt, text);
        if (prompt->overflow)
            result = too_long(e);
    }
    buf_release(&bytes);
    return result;
}

/* A blank line between what stands there and what follows. */
static void part(struct buf *prompt)
{
    if (prompt->len > 0)
        buf_add_c(prompt, "\n\n");
}

bool prompt_is_dash(char **words, size_t count)
{
    return count == 1 && strcmp(words[0], "-") == 0;
}

void prompt_add_words(struct buf *prompt, char **words, size_t count)
{
    if (prompt_is_dash(words, count))
        return;
    if (count > 0)
        part(prompt);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_byte(prompt, ' ');
        utf8_add_repaired(prompt, str_of(words[i]));
    }
}

/* ---- files ---- */

/* Images by their first bytes: PNG, JPEG, GIF, WebP. */
static bool is_image(struct str b)
{
    return str_starts(b, STR("\x89PNG\r\n\x1a\n")) || str_starts(b, STR("\xff\xd8\xff")) ||
           str_starts(b, STR("GIF87a")) || str_starts(b, STR("GIF89a")) ||
           (b.n >= 12 && str_starts(b, STR("RIFF")) && memcmp(b.p + 8, "WEBP", 4) == 0);
}

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

int prompt_add_file(struct buf *prompt, const char *file, struct err *e)
{
    struct buf bytes = BUF_INIT(PROMPT_MAX), name = BUF_INIT(BUF_SMALL);
    struct str text;
    size_t fence = 2;
    int result = io_read_file(file, &bytes, e);

    if (result < 0)
        goto out;
    text = buf_str(&bytes);
    if (is_image(text)) {
        result = err_set(e, ERR_USAGE, "cannot attach '%s': it is an image, not text", file);
        goto out;
    }
    if (text.n > 0 && memchr(text.p, '\0', text.n)) {
        result = err_set(e, ERR_USAGE, "cannot attach '%s': it is a binary file", file);
        goto out;
    }
    /* Neither the text nor a name with odd characters ends the fence. */
    vis_add_line(&name, str_of(file), true);
    if (longest_run(text) > fence)
        fence = longest_run(text);
    if (longest_run(buf_str(&name)) > fence)
        fence = longest_run(buf_str(&name));
    fence++;
    part(prompt);
    add_fence(prompt, fence);
    buf_add_str(prompt, buf_str(&name));
    buf_add_byte(prompt, '\n');
    utf8_add_repaired(prompt, text);
    if (text.n > 0 && text.p[text.n - 1] != '\n')
        buf_add_byte(prompt, '\n');
    add_fence(prompt, fence);
    if (prompt->overflow)
        result = too_long(e);
out:
    if (result < 0 && e && e->kind == ERR_FAILURE)
        e->kind = ERR_USAGE;
    buf_release(&bytes);
    buf_release(&name);
    return result;
}
