#include "chathist/chat/prompt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/diagnostics.h"

#define SILENCE_MS 3000

bool prompt_has_stdin(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int prompt_too_long(struct err *e)
{
    return err_set(e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
}

int prompt_add_stdin(struct buf *prompt, const char *waiting, bool refuse_binary, struct err *e)
{
    struct pollfd silent = {.fd = STDIN_FILENO, .events = POLLIN};
    struct buf bytes = BUF_INIT(PROMPT_MAX);
    const char *fault;
    struct str text;
    int result = 0;

    if (waiting && poll(&silent, 1, SILENCE_MS) == 0)
        warnf("%s", waiting);
    if (file_read_all(STDIN_FILENO, &bytes) < 0) {
        result =
            errno == EFBIG ? prompt_too_long(e) : err_sys(e, errno, "cannot read standard input");
    } else {
        text = utf8_without_bom(buf_str(&bytes));
        fault = !refuse_binary                   ? NULL
                : str_starts(text, STR("%PDF-")) ? "it is a PDF"
                                                 : text_fault(text);
        if (fault)
            result = err_set(e, ERR_USAGE, "cannot use standard input: %s%s", fault,
                             str_starts(str_of(fault), STR("it is a "))
                                 ? " (chat -f - attaches images and PDFs)"
                                 : "");
        else if (waiting && utf8_valid(text) < text.n)
            warnf("standard input is not UTF-8: what cannot be read becomes U+FFFD (iconv "
                  "converts it)");
        if (text.n > 0 && text.p[text.n - 1] == '\n')
            text.n--;
        utf8_add_repaired(prompt, text);
        if (result == 0 && prompt->overflow)
            result = prompt_too_long(e);
    }
    buf_release(&bytes);
    return result;
}

void prompt_part(struct buf *prompt)
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
        prompt_part(prompt);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_add_byte(prompt, ' ');
        utf8_add_repaired(prompt, str_of(words[i]));
    }
}
