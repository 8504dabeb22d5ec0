#include "chathist/cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

TEST(the_first_signal_is_noted)
{
    int fd = interrupt_begin(NULL);

    CHECK(fd > 2);
    CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_INT(interrupt_signal(), 0);
    CHECK(!readable(fd));
    raise(SIGTERM);
    raise(SIGINT);
    CHECK_INT(interrupt_signal(), SIGTERM);
    CHECK(readable(fd));
    interrupt_end();
}

TEST(a_second_turn_starts_afresh)
{
    int fd = interrupt_begin(NULL);

    CHECK_INT(interrupt_signal(), 0);
    CHECK(!readable(fd));
    raise(SIGHUP);
    CHECK_INT(interrupt_signal(), SIGHUP);
    interrupt_end();
}

TEST(handlers_are_put_back)
{
    struct sigaction act;

    interrupt_begin(NULL);
    sigaction(SIGINT, NULL, &act);
    CHECK(act.sa_handler != SIG_DFL);
    interrupt_end();
    sigaction(SIGINT, NULL, &act);
    CHECK(act.sa_handler == SIG_DFL);
}

TEST(an_ignored_signal_stays_ignored)
{
    signal(SIGHUP, SIG_IGN);
    interrupt_begin(NULL);
    raise(SIGHUP);
    CHECK_INT(interrupt_signal(), 0);
    interrupt_end();
    signal(SIGHUP, SIG_DFL);
}

TEST(without_descriptors_it_says_so)
{
    struct err e = ERR_INIT;
    int fds[1024], n = 0;

    while (n < 1024 && (fds[n] = dup(0)) >= 0)
        n++;
    if (n < 1024) {
        CHECK_INT(interrupt_begin(&e), -1);
        CHECK_STR(err_text(&e), "cannot make a pipe: Too many open files");
    }
    while (n > 0)
        close(fds[--n]);
    err_release(&e);
}
