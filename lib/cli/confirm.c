#include "chathist/cli/confirm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <termios.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/cli/progress.h"

int confirm_open(void)
{
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    progress_end();
    if (tty >= 0)
        tcflush(tty, TCIFLUSH);
    return tty;
}

void confirm_say(int tty, struct str text)
{
    /* If the question cannot be printed, no answer comes either. */
    if (file_write_all(tty, text.p, text.n) < 0)
        errno = 0;
}

int confirm_line(int tty, int cancel_fd, struct buf *line)
{
    struct pollfd fds[2] = {{.fd = tty, .events = POLLIN}, {.fd = cancel_fd, .events = POLLIN}};

    buf_clear(line);
    while (!str_ends(buf_str(line), STR("\n"))) {
        if (poll(fds, 2, -1) < 0) {
            if (errno != EINTR && errno != EAGAIN)
                return 0;
            continue;
        }
        if (fds[1].revents)
            return -1;
        if (fds[0].revents && file_read_some(tty, line) <= 0)
            return 0;
    }
    return 1;
}

int confirm_secret(int tty, int cancel_fd, const char *question, struct buf *line)
{
    struct termios shown, hidden;
    int came;

    if (tcgetattr(tty, &shown) < 0)
        return 0;
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ECHONL;
    if (tcsetattr(tty, TCSAFLUSH, &hidden) < 0)
        return 0;
    confirm_say(tty, str_of(question));
    came = confirm_line(tty, cancel_fd, line);
    tcsetattr(tty, TCSANOW, &shown);
    return came;
}

char confirm_letter(const struct buf *line)
{
    struct str text = str_trim(buf_str(line));

    return text.n > 0 ? ascii_lower(text.p[0]) : '\0';
}

int confirm_yes(const char *question)
{
    struct buf line = BUF_INIT(CONFIRM_MAX_BYTES);
    int tty = confirm_open();
    int yes = -1;

    if (tty >= 0) {
        int came;

        confirm_say(tty, str_of(question));
        came = confirm_line(tty, -1, &line);
        if (came == 0)
            confirm_say(tty, STR("\n"));
        yes = came > 0 && confirm_letter(&line) == 'y';
        close(tty);
    }
    buf_release(&line);
    return yes;
}
