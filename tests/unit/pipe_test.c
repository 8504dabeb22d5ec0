#include "chathist/base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "test.h"

#define STARTED 100

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

TEST(only_one_for_waking_never_waits)
{
    int waits[2], wakes[2];

    CHECK_INT(pipe_open(waits), 0);
    CHECK_INT(pipe_open_wake(wakes), 0);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(fcntl(waits[i], F_GETFD), FD_CLOEXEC);
        CHECK_INT(fcntl(wakes[i], F_GETFD), FD_CLOEXEC);
        CHECK_INT(fcntl(waits[i], F_GETFL) & O_NONBLOCK, 0);
        CHECK(fcntl(wakes[i], F_GETFL) & O_NONBLOCK);
    }
    close_both(waits);
    close_both(wakes);
}

static void *open_and_close(void *stop)
{
    int ends[2];

    while (!atomic_load((atomic_bool *)stop))
        if (pipe_open(ends) == 0)
            close_both(ends);
    return NULL;
}

/* Who holds the writing end of a pipe keeps its reader waiting. */
TEST(what_another_thread_starts_inherits_none)
{
    char script[200];
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", script, NULL};
    struct buf out = BUF_INIT(BUF_SMALL);
    int least = dup(STDIN_FILENO);
    atomic_bool stop = false;
    pthread_t thread;

    close(least);
    snprintf(script, sizeof script,
             "for i in %d %d %d %d; do test ! -e /proc/self/fd/$i || echo inherited; done", least,
             least + 1, least + 2, least + 3);
    CHECK_INT(pthread_create(&thread, NULL, open_and_close, &stop), 0);
    for (size_t i = 0; i < STARTED; i++)
        CHECK_INT(process_read(argv, NULL, STR_NONE, &out, -1, NULL), 0);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    CHECK_STR(buf_c(&out), "");
    buf_release(&out);
}
