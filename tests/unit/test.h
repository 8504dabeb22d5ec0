/*
 * test.h: the unit test frame. A test program is one .c file that includes this header once and
 * holds functions written as
 *
 *     TEST(append_grows_the_buffer)
 *     {
 *         struct buf b = BUF_INIT;
 *         ...
 *         CHECK(b.len == 3);
 *         CHECK_STR(b.data, "abc");
 *         CHECK_INT(b.len, 3);
 *         buf_release(&b);
 *     }
 *
 * The header holds main. It runs the tests in the order of the file and prints TAP: the plan, then
 * `ok N - name` or `not ok N - name`; what a check expected and found goes to stderr with its
 * place. The exit status is 0 when all passed, else 1. Arguments select the tests whose name
 * contains one of them; none matching is a failure.
 *
 * A check that fails marks its test and goes on. Each check is an expression, true when it held,
 * for tests that cannot go on: `if (!CHECK(p != NULL)) return;`
 */
#ifndef CHATHIST_TESTS_LIB_TEST_H
#define CHATHIST_TESTS_LIB_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

static struct test *test_first;
static struct test **test_tail = &test_first;
static bool test_failed; /* has a check of the running test failed? */

static inline void test_register(struct test *t)
{
    *test_tail = t;
    test_tail = &t->next;
}

/* Defines a test and enters it in the table before main runs. */
#define TEST(id)                                                                                   \
    static void id(void);                                                                          \
    static struct test id##_entry = {.name = #id, .run = id};                                      \
    __attribute__((constructor)) static void id##_register(void)                                   \
    {                                                                                              \
        test_register(&id##_entry);                                                                \
    }                                                                                              \
    static void id(void)

#define CHECK(cond) test_check((cond), #cond, __FILE__, __LINE__)
/* Strings; NULL equals NULL alone. */
#define CHECK_STR(got, want) test_check_str((got), (want), #got, __FILE__, __LINE__)
/* Any integers that fit a long long. */
#define CHECK_INT(got, want)                                                                       \
    test_check_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
/* Bytes, for content that may hold NUL. */
#define CHECK_MEM(got, got_len, want, want_len)                                                    \
    test_check_mem((got), (got_len), (want), (want_len), #got, __FILE__, __LINE__)

static inline bool test_check(bool held, const char *what, const char *file, int line)
{
    if (!held) {
        test_failed = true;
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    }
    return held;
}

/* Prints bytes so that no two different strings look alike. */
static inline void test_print_bytes(const char *label, const char *s, size_t len)
{
    fprintf(stderr, "    %s ", label);
    if (s == NULL) {
        fputs("NULL\n", stderr);
        return;
    }
    fputc('"', stderr);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\n')
            fputs("\\n", stderr);
        else if (c == '"' || c == '\\')
            fprintf(stderr, "\\%c", c);
        else if (c < 0x20 || c > 0x7e)
            fprintf(stderr, "\\x%02x", (unsigned)c);
        else
            fputc(c, stderr);
    }
    fprintf(stderr, "\" (%zu bytes)\n", len);
}

static inline bool test_check_mem(const void *got, size_t got_len, const void *want,
                                  size_t want_len, const char *what, const char *file, int line)
{
    bool same = (got == NULL) == (want == NULL) && got_len == want_len;

    if (same && got != NULL && want != NULL && got_len > 0)
        same = memcmp(got, want, got_len) == 0;
    if (!test_check(same, what, file, line)) {
        test_print_bytes("got ", (const char *)got, got_len);
        test_print_bytes("want", (const char *)want, want_len);
    }
    return same;
}

static inline bool test_check_str(const char *got, const char *want, const char *what,
                                  const char *file, int line)
{
    return test_check_mem(got, got != NULL ? strlen(got) : 0, want, want != NULL ? strlen(want) : 0,
                          what, file, line);
}

static inline bool test_check_int(long long got, long long want, const char *what, const char *file,
                                  int line)
{
    bool same = got == want;

    if (!test_check(same, what, file, line))
        fprintf(stderr, "    got  %lld\n    want %lld\n", got, want);
    return same;
}

static inline bool test_selected(const struct test *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(t->name, argv[i]) != NULL)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    int planned = 0, done = 0, failed = 0;

    /* A line is out before the next test runs: a crash loses none, a fork repeats none. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (struct test *t = test_first; t != NULL; t = t->next)
        planned += test_selected(t, argc, argv);
    printf("1..%d\n", planned);
    for (struct test *t = test_first; t != NULL; t = t->next) {
        if (!test_selected(t, argc, argv))
            continue;
        test_failed = false;
        t->run();
        printf("%s %d - %s\n", test_failed ? "not ok" : "ok", ++done, t->name);
        failed += test_failed;
    }
    return failed > 0 || planned == 0;
}

#endif
