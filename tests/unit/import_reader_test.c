/* import_reader: lines and values of any size, from memory and from files, byte for byte; sessions,
 * origins, times, calls and content of messages. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/id.h"
#include "convert/import_reader.h"
#include "test.h"

/* Opens a file with this text, which needs no name any more. */
static void open_text(struct source *s, const char *text)
{
    char path[] = "/tmp/import_reader_test.XXXXXX";
    int fd = mkstemp(path);
    size_t n = strlen(text);

    CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
    CHECK(source_open(s, path, NULL) == 0);
    unlink(path);
}

/* All values or lines, each with `|` behind it. */
static char *all(const char *text, int (*next)(struct source *, struct str *, struct err *))
{
    struct source s;
    struct str one;
    struct buf out = BUF_INIT(BUF_SMALL);

    open_text(&s, text);
    CHECK(source_head(&s, &one, NULL) == 0);
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
    check("{} text {}", source_value, "{}|text |{}|");
    check("{\"a\":[1}\n{", source_value, "{\"a\":[1}\n{|");
    check("text\nand more", source_value, "text\nand more|");
}

TEST(the_head_takes_nothing)
{
    struct source s;
    struct str head, line;

    open_text(&s, "one\ntwo");
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
    char path[] = "/tmp/import_reader_test.XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    struct source s;
    struct str one;
    size_t lines = 0, values = 0;

    if (!CHECK(f != NULL))
        return;
    for (size_t i = 0; i < 3000; i++)
        fprintf(f, "%s{\"n\":%zu,\"t\":\"%0*d\"}", i ? ",\n" : "[", i, (int)(i % 500), 0);
    fputs("]\n", f);
    fclose(f);
    CHECK(source_open(&s, path, NULL) == 0);
    while (source_line(&s, &one, NULL) > 0)
        lines++;
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
    char path[] = "/tmp/import_reader_test.XXXXXX";
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

/* ---- messages ---- */

TEST(a_session_is_always_an_id)
{
    static const char *const names[][2] = {
        {"2b1f-x.y_z:1", "f:2b1f-x.y_z:1"},
        {"", "f:-"},
        {"my chat", "f:my_chat-"},
        {"caf\xc3\xa9", "f:caf__-"},
    };
    struct import_message m;
    char longest[300];

    import_message_init(&m);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        import_set_session(&m, "f", str_of(names[i][0]));
        CHECK(id_session_valid(buf_str(&m.session)));
        CHECK(str_starts(buf_str(&m.session), str_of(names[i][1])));
    }
    memset(longest, 'x', sizeof longest);
    import_set_session(&m, "claude-code", (struct str){longest, sizeof longest});
    CHECK(id_session_valid(buf_str(&m.session)));
    /* Two that are changed to the same stay two. */
    import_set_session(&m, "f", STR("a b"));
    CHECK(!str_starts(buf_str(&m.session), STR("f:a_b-0000")));
    import_message_release(&m);
}

TEST(origins_have_parts)
{
    struct import_message m;

    import_message_init(&m);
    import_set_session(&m, "f", STR("s"));
    import_set_part(&m, STR("a+b"));
    import_add_part(&m, STR("c/d"));
    CHECK_STR(buf_c(&m.origin), "f:s/a_b+c/d");
    import_message_release(&m);
}

TEST(times_are_iso_or_seconds_or_milliseconds)
{
    static const struct {
        const char *text;
        long long us;
    } times[] = {
        {"2024-06-27T15:00:00.5Z", 1719500400500000},
        {"1719500400.25", 1719500400250000},
        {"1719500400", 1719500400000000},
        {"1719500400.1234567", 1719500400123456},
        {"100000000000", 100000000000000000},
        {"100000000001", 100000000001000},
        {"1719500400250", 1719500400250000},
        {"1719500400250.75", 1719500400250750},
    };
    static const char *const none[] = {
        "", "soon", "-1", "1e9", "[]", "9999999999999999999", "999999999999999"};
    struct import_message m;

    import_message_init(&m);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        import_message_clear(&m, ROLE_USER);
        import_set_time(&m, str_of(times[i].text));
        CHECK_INT(m.time, times[i].us);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        import_message_clear(&m, ROLE_USER);
        import_set_time(&m, str_of(none[i]));
        CHECK(m.time == IMPORT_NO_TIME);
    }
    import_message_release(&m);
}

TEST(calls_have_objects_or_strings)
{
    static const char *const args[][2] = {
        {"{\"a\": [1, 2]}", "{\"a\":[1,2]}"},
        {"\"{\\\"a\\\":1}\"", "{\"a\":1}"},
        {"\"{no\"", "\"{no\""},
        {"\"[1]\"", "\"[1]\""},
        {"null", "{}"},
        {"17", "\"17\""},
    };
    struct import_message m;

    import_message_init(&m);
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        struct buf want = BUF_INIT(BUF_SMALL);

        import_message_clear(&m, ROLE_ASSISTANT);
        import_add_call(&m, STR("c1"), STR("n"), str_of(args[i][0]));
        buf_addf(&want, "{\"id\":\"c1\",\"name\":\"n\",\"args\":%s}", args[i][1]);
        CHECK_STR(buf_c(&m.calls), buf_c(&want));
        buf_release(&want);
    }
    import_message_clear(&m, ROLE_ASSISTANT);
    import_add_call(&m, STR_NONE, STR("n"), STR("{}"));
    CHECK_STR(buf_c(&m.calls), "{\"id\":\"n\",\"name\":\"n\",\"args\":{}}");
    import_message_release(&m);
}

TEST(content_is_text_or_blocks)
{
    struct import_message m;

    import_message_init(&m);
    import_add_content(&m, STR("\"one\""));
    import_add_content(&m,
                       STR("[\"two\",{\"type\":\"text\",\"text\":\"three\"},{\"type\":\"image\"},"
                           "{\"type\":\"thinking\",\"thinking\":\"no\"},{\"type\":\"odd\"},7,"
                           "{\"type\":\"input_image\"}]"));
    CHECK_STR(buf_c(&m.text), "one\n\ntwo\n\nthree");
    CHECK_INT(m.images, 2);
    import_add_content(&m, STR("null"));
    import_add_content(&m, STR("{\"type\":\"text\",\"text\":\"four\"}"));
    CHECK_STR(buf_c(&m.text), "one\n\ntwo\n\nthree\n\nfour");
    import_message_release(&m);
}
