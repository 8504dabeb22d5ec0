#include "chathist/history/message.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "test.h"
#include "draw.h"

#define HEAD                                                                                       \
    "{\"id\":\"1719500000000-a1b2c3d4\",\"session_id\":\"sess_1719500000000_f0e1d2\","             \
    "\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"user\","

/* What own_line_check says holds for all who parse the line. */
static bool check(struct str line)
{
    struct message m = MESSAGE_INIT;
    struct str timestamp, content;
    bool calls, own = own_line_check(line, &timestamp, &content, &calls);

    if (own && CHECK(message_parse(&m, line))) {
        struct str body = json_body(m.field[FIELD_CONTENT]);

        CHECK_MEM(content.p, content.n, body.p, body.n);
        CHECK(str_eq(timestamp, m.timestamp));
        CHECK_INT(calls, m.field[FIELD_TOOL_CALLS].p != NULL);
    }
    message_release(&m);
    return own;
}

TEST(a_line_of_ours_is_known_with_its_content)
{
    static const char *const known[] = {
        HEAD "\"content\":\"\"}",
        HEAD "\"content\":\"\",\"tool_calls\":[{\"name\":\"f\"}]}",
        HEAD "\"content\":\"a\\\"\\n\\u00e4\xc3\xa4\"}",
        HEAD "\"content\":\"a\",\"model\":\"m\",\"usage\":{\"content\":[1,{\"role\":null}]}} \r",
        "{\"id\":\"1719500000000-a1b2c3d4\",\"session_id\":\"6f2c1f4e-8d0b-4a57-9c3e-"
        "2b7d5a9e1f00\","
        "\"timestamp\":\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"assistant\","
        "\"content\":\"a\"}",
    };
    static const char *const unknown[] = {
        "",
        "{}",
        HEAD,
        HEAD "\"content\":\"a\"",
        HEAD "\"content\":\"a",
        HEAD "\"content\":\"\x1f\"}",
        HEAD "\"content\":\"\xc3\"}",
        HEAD "\"content\":\"\\x\"}",
        HEAD "\"content\":null}",
        HEAD "\"content\":\"a\"}x",
        HEAD "\"content\":\"a\",}",
        HEAD "\"content\":\"a\",\"role\":5}",
        HEAD "\"content\":\"a\",\"content\":\"b\"}",
        HEAD "\"content\":\"a\",\"c\\u006fntent\":\"b\"}",
        HEAD "\"model\":\"m\",\"content\":\"a\"}",
        "\xef\xbb\xbf" HEAD "\"content\":\"a\"}",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK(check(str_of(known[i])));
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        CHECK(!check(str_of(unknown[i])));
}

/* One that was changed at some places, and ends where its memory does. */
TEST(what_is_taken_for_a_line_of_ours_is_a_message)
{
    static const char *const members[] = {
        ",\"model\":\"m\"", ",\"id\":1",   ",\"session_id\":\"s\"",    ",\"timestamp\":null",
        ",\"role\":{}",     ",\"\":\"\"",  ",\"content\":\"b\"",       ",\"rol\\u0065\":2",
        ",\"images\":[1,2", "]",           ",\"usage\":{\"id\":true}", "}",
        ",\"a\":1e9",       ", \"b\": [ ]"};
    int own = 0;

    for (int round = 0; round < 50000 && !test_failed; round++) {
        struct buf line = BUF_INIT(SIZE_MAX);

        buf_add_c(&line, HEAD "\"content\":\"ab\\nc\"");
        for (uint32_t n = draw(3); n > 0; n--)
            buf_add_c(&line, members[draw(sizeof(members) / sizeof(members[0]))]);
        buf_add_c(&line, draw(20) ? "}" : "");
        for (uint32_t n = draw(2) ? 0 : 1 + draw(2); n > 0; n--)
            line.data[draw((uint32_t)line.len)] = draw(2) ? "\"\\{},:n"[draw(7)] : (char)draw(256);

        char *exact = malloc(line.len);

        memcpy(exact, line.data, line.len);
        own += check((struct str){exact, line.len});
        free(exact);
        buf_release(&line);
    }
    CHECK(own > 5000);
}
