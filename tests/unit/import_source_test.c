/* import_source: lines and values of any size, from memory and from files, byte for byte. */
#include <stdlib.h>
#include <unistd.h>

#include "chathist/convert/import_source.h"
#include "test.h"

/* All values or lines, each with `|` behind it. */
static char *all(const char *text, int (*next)(struct source *, struct str *, struct err *))
{
    struct source s;
    struct str one;
    struct buf out = BUF_INIT(BUF_SMALL);

    source_of_text(&s, "text", str_of(text));
    while (next(&s, &one, NULL) > 0) {
        buf_add_str(&out, one);
        buf_add_byte(&out, '|');
    }
    source_close(&s);
    return buf_detach(&out);
}

static void check(const char *text, int (*next)(struct source *, struct str *, struct err *),
                  const char *want)
{
    char *got = all(text, next);

    CHECK_STR(got, want);
    free(got);
}

TEST(lines_end_with_a_newline_or_the_file)
{
    check("", source_line, "");
    check("\n", source_line, "|");
    check("a\nb\n", source_line, "a|b|");
    check("a\n\nb", source_line, "a||b|");
}

TEST(values_of_an_array_are_told_apart_by_their_brackets)
{
    check("", source_value, "");
    check(" [ ] ", source_value, "");
    check("[1, 2]", source_value, "1|2|");
    check("\xef\xbb\xbf[{\"a\":[1,2]}, \"],[\\\"\", {}]", source_value,
          "{\"a\":[1,2]}|\"],[\\\"\"|{}|");
    check("[{\"a\":1},{broken},{\"b\":2}]", source_value, "{\"a\":1}|{broken}|{\"b\":2}|");
    check("[1,,2,]", source_value, "1|2|");
}

TEST(a_file_that_is_cut_off_still_ends)
{
    check("[", source_value, "");
    check("[{\"a\":[1", source_value, "{\"a\":[1|");
    check("[\"a\\", source_value, "\"a\\|");
}

TEST(what_is_no_array_is_one_value)
{
    check(" {\"a\":[1]} ", source_value, "{\"a\":[1]}|");
    check("{\"a\":[1]}\n{\"}\":\"\\\"}\"}{}\n[3]\n", source_value,
          "{\"a\":[1]}|{\"}\":\"\\\"}\"}|{}|[3]|");
    check("{} text {}", source_value, "{}|text {}|");
    check("{\"a\":[1}\n{", source_value, "{\"a\":[1}\n{|");
    check("text\nand more", source_value, "text\nand more|");
}

TEST(the_head_takes_nothing)
{
    struct source s;
    struct str head, line;

    source_of_text(&s, "text", STR("one\ntwo"));
    CHECK(source_head(&s, &head, NULL) == 0 && str_eq_c(head, "one\ntwo"));
    CHECK(source_line(&s, &line, NULL) == 1 && str_eq_c(line, "one") && s.terminated);
    CHECK(source_line(&s, &line, NULL) == 1 && str_eq_c(line, "two") && !s.terminated);
    CHECK_INT(s.number, 2);
    CHECK(source_line(&s, &line, NULL) == 0);
    source_close(&s);
}

/* Lines and values across the ends of what is read at once. */
TEST(a_large_file)
{
    char path[] = "/tmp/import_source_test.XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    struct source s;
    struct str one;
    size_t lines = 0, bytes = 0, values = 0;

    if (!CHECK(f != NULL))
        return;
    for (size_t i = 0; i < 3000; i++)
        fprintf(f, "%s{\"n\":%zu,\"t\":\"%0*d\"}", i ? ",\n" : "[", i, (int)(i % 500), 0);
    fputs("]\n", f);
    fclose(f);
    CHECK(source_open(&s, path, NULL) == 0);
    for (; source_line(&s, &one, NULL) > 0; lines++)
        bytes += one.n + 1;
    CHECK_INT(lines, 3000);
    source_close(&s);
    CHECK(source_open(&s, path, NULL) == 0);
    for (; source_value(&s, &one, NULL) > 0; values++)
        CHECK(one.p[0] == '{' && one.p[one.n - 1] == '}');
    CHECK_INT(values, 3000);
    source_close(&s);
    unlink(path);
}

TEST(a_line_that_is_too_long_is_none)
{
    char path[] = "/tmp/import_source_test.XXXXXX";
    int fd = mkstemp(path);
    struct source s;
    struct str line;

    CHECK(ftruncate(fd, (off_t)BUF_LINE + 100) == 0);
    CHECK(lseek(fd, 0, SEEK_END) > 0 && write(fd, "\nnext", 5) == 5);
    close(fd);
    CHECK(source_open(&s, path, NULL) == 0);
    CHECK(source_line(&s, &line, NULL) == 1 && !line.p);
    CHECK(source_line(&s, &line, NULL) == 1 && str_eq_c(line, "next"));
    CHECK_INT(s.number, 2);
    source_close(&s);
    unlink(path);
}
