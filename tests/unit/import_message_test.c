/* import_message: names, origins, times, calls and content of messages on their way. */
#include "chathist/base/id.h"
#include "chathist/convert/import_message.h"
#include "test.h"

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

TEST(times_are_iso_or_seconds)
{
    static const struct {
        const char *json;
        long long us;
    } times[] = {
        {"\"2024-06-27T15:00:00.5Z\"", 1719500400500000},
        {"1719500400.25", 1719500400250000},
        {"1719500400", 1719500400000000},
        {"1719500400.1234567", 1719500400123456},
    };
    static const char *const none[] = {
        "null", "\"soon\"", "-1", "1e9", "[]", "9999999999999999999", "999999999999"};
    struct import_message m;

    import_message_init(&m);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        import_message_clear(&m, ROLE_USER);
        import_set_time(&m, str_of(times[i].json));
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
    import_add_content(&m, STR("{\"type\":\"text\",\"text\":\"no\"}"));
    CHECK_STR(buf_c(&m.text), "one\n\ntwo\n\nthree");
    import_message_release(&m);
}
