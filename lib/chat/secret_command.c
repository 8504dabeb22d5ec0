#include "chat/secret_command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/signals.h"

void secret_free(char *secret)
{
    if (secret)
        mem_wipe(secret, strlen(secret));
    free(secret);
}

void secret_buf_init(struct buf *b)
{
    buf_init(b, SECRET_MAX);
    buf_room(b, SECRET_MAX);
}

void secret_buf_release(struct buf *b)
{
    mem_wipe(b->data, b->cap);
    buf_release(b);
}

bool secret_valid(struct str secret, bool blanks)
{
    for (size_t i = 0; i < secret.n; i++) {
        unsigned char c = (unsigned char)secret.p[i];

        if (c < ' ' || c == 0x7f || (c == ' ' && !blanks))
            return false;
    }
    return secret.n > 0;
}

/* Runs the command while signals are caught, because the caller may have to clean up. Returns its
 * status, or -1 with *e set (ERR_SIGNAL). */
static int run_caught(char *const argv[], const char *dir, struct buf *printed, struct err *e)
{
    int cancel_fd = interrupt_begin(e), status;

    if (cancel_fd < 0)
        return -1;
    status = process_read(argv, dir, STR_NONE, printed, cancel_fd, e);
    /* The signal was meant for this program as well. */
    if (status == 128 + SIGINT && !interrupt_signal())
        raise(SIGINT);
    if (interrupt_signal())
        status = err_set(e, ERR_SIGNAL, "interrupted");
    interrupt_end();
    return status;
}

/* Adds why the command, which ended with this status, has printed no secret. Adds nothing if it
 * has.
 */
static void add_reason(struct buf *out, int status, const struct buf *printed, struct str line,
                       bool blanks)
{
    if (status > 128)
        buf_addf(out, "ended by signal %d", status - 128);
    else if (status != 0)
        buf_addf(out, "exit status %d", status);
    else if (printed->len == SECRET_MAX && !memchr(printed->data, '\n', printed->len))
        buf_add_c(out, "its first line is too long");
    else if (line.n == 0)
        buf_add_c(out, "nothing on its first line");
    else if (!secret_valid(line, blanks))
        buf_addf(out, "%sa control character in it", blanks ? "" : "white space or ");
}

char *secret_command_run(const char *text, const char *dir, const char *setting, bool header,
                         struct err *e)
{
    struct err why = ERR_INIT;
    char shell[] = "/bin/sh", flag[] = "-c", *command = mem_text(text);
    char *argv[] = {shell, flag, command, NULL};
    struct buf printed, reason = BUF_INIT(BUF_SMALL);
    struct str rest, line;
    char *secret = NULL;
    int status;

    secret_buf_init(&printed);
    status = run_caught(argv, dir, &printed, &why);
    rest = buf_str(&printed);
    line = str_trim(utf8_without_bom(str_cut(&rest, '\n')));
    if (status < 0)
        buf_add_c(&reason, err_text(&why));
    else
        add_reason(&reason, status, &printed, line, header);
    if (why.kind == ERR_SIGNAL)
        err_set(e, ERR_SIGNAL, "%s", err_text(&why));
    else if (reason.len > 0)
        err_set(e, ERR_USAGE, "no %s from the command in '%s': %s", header ? "value" : "key",
                setting, buf_c(&reason));
    else
        secret = mem_copy(line.p, line.n);
    secret_buf_release(&printed);
    buf_release(&reason);
    free(command);
    err_release(&why);
    return secret;
}
