#include "chathist/base/memory.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* An allocator that refuses must return NULL under the sanitizer too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

TEST(grow_doubles)
{
    size_t cap = 0;
    int *p = mem_grow(NULL, &cap, 1, sizeof(*p));

    CHECK_INT(cap, 8);
    p[7] = 1;
    p = mem_grow(p, &cap, 8, sizeof(*p));
    CHECK_INT(cap, 8);
    p = mem_grow(p, &cap, 9, sizeof(*p));
    CHECK_INT(cap, 16);
    CHECK_INT(p[7], 1);
    p = mem_grow(p, &cap, 1000, sizeof(*p));
    CHECK_INT(cap, 1000);
    free(p);
}

/* ---- running out, in a child ---- */

/* Read through volatile, so that the compiler does not warn of what is tested. */
static volatile size_t enormous = SIZE_MAX / 2;

static void exit_7(void)
{
    _exit(7);
}

static void handler_that_returns(void) {}

static void zalloc_enormous(void)
{
    free(mem_zalloc(enormous));
}

static void resize_enormous(void)
{
    free(mem_resize(NULL, enormous, 1));
}

static void resize_overflowing(void)
{
    free(mem_resize(NULL, enormous, 4));
}

/* The product wraps round to 16 bytes. */
static void resize_wrapping(void)
{
    free(mem_resize(NULL, enormous / 4 + 3, 8));
}

static void copy_overflowing(void)
{
    free(mem_copy("", enormous * 2 + 1));
}

static void copy_enormous(void)
{
    free(mem_copy("", enormous));
}

static void grow_overflowing(void)
{
    size_t cap = 8;

    free(mem_grow(NULL, &cap, enormous, 4));
}

/* The wait status of a child that runs it under that handler. */
static int status_of(void (*run)(void), void (*handler)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        mem_on_exhaustion(handler);
        close(STDERR_FILENO); /* what a sanitizer says about the size */
        run();
        _exit(0);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

static bool exits_7(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

TEST(exhaustion_calls_the_handler)
{
    CHECK(exits_7(status_of(zalloc_enormous, exit_7)));
    CHECK(exits_7(status_of(resize_enormous, exit_7)));
    CHECK(exits_7(status_of(resize_overflowing, exit_7)));
    CHECK(exits_7(status_of(resize_wrapping, exit_7)));
    CHECK(exits_7(status_of(copy_overflowing, exit_7)));
    CHECK(exits_7(status_of(copy_enormous, exit_7)));
    CHECK(exits_7(status_of(grow_overflowing, exit_7)));
    CHECK(exits_7(status_of(mem_exhausted, exit_7)));
}

TEST(exhaustion_without_handler_aborts)
{
    int status = status_of(zalloc_enormous, NULL);

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(a_handler_that_returns_does_not_help)
{
    int status = status_of(resize_overflowing, handler_that_returns);

    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(what_was_secret_is_wiped)
{
    char secret[] = "secret";

    mem_wipe(secret, 3);
    CHECK_MEM(secret, sizeof secret, "\0\0\0ret", 7);
    mem_wipe(NULL, 0);
}
