#include "chat/secret_command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/process.h"
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

static int command_error(const struct secret_command *c, struct err *e, const char *reason)
{
    return err_set(e, ERR_USAGE, "no %s from the command in '%s': %s", c->what, c->setting, reason);
}

static int check_line(const struct secret_command *c, int status, struct str line, struct err *e)
{
    if (status > 128)
        return err_set(e, ERR_USAGE, "no %s from the command in '%s': ended by signal %d", c->what,
                       c->setting, status - 128);
    if (status != 0)
        return err_set(e, ERR_USAGE, "no %s from the command in '%s': exit status %d", c->what,
                       c->setting, status);
    if (line.n == 0)
        return command_error(c, e, "nothing on its first line");
    if (!secret_valid(line, c->blanks))
        return command_error(c, e,
                             c->blanks ? "a control character in it"
                                       : "white space or a control character in it");
    return 0;
}

/* Runs the command while signals are caught, because the caller may have to clean up. Returns its
 * status, or -1 with *e set (ERR_SIGNAL). */
static int run_caught(char *const argv[], const char *dir, struct buf *printed, struct err *e)
{
    int cancel_fd = interrupt_begin(e), status;

    if (cancel_fd < 0)
        return -1;
    status = process_read(argv, dir, printed, cancel_fd, e);
    /* The signal was meant for this program as well. */
    if (status == 128 + SIGINT && !interrupt_signal())
        raise(SIGINT);
    if (interrupt_signal())
        status = err_set(e, ERR_SIGNAL, "interrupted");
    interrupt_end();
    return status;
}

char *secret_command_run(const struct secret_command *c, struct err *e)
{
    struct err why = ERR_INIT;
    char shell[] = "/bin/sh", flag[] = "-c", *command = mem_copy(c->command, str_of(c->command).n);
    char *argv[] = {shell, flag, command, NULL};
    struct buf printed;
    struct str rest, line;
    char *secret = NULL;
    int status;

    secret_buf_init(&printed);
    status = run_caught(argv, c->dir, &printed, &why);
    rest = buf_str(&printed);
    line = str_trim(str_cut(&rest, '\n'));
    if (why.kind == ERR_SIGNAL)
        err_set(e, ERR_SIGNAL, "%s", err_text(&why));
    else if (status < 0)
        command_error(c, e, err_text(&why));
    else if (status == 0 && printed.len == SECRET_MAX && rest.n == 0)
        command_error(c, e, "its first line is too long");
    else if (check_line(c, status, line, e) == 0)
        secret = mem_copy(line.p, line.n);
    secret_buf_release(&printed);
    free(command);
    err_release(&why);
    return secret;
}
