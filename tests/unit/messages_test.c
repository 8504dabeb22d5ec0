#include "chathist/llm/context.h"

#include "test.h"

/* Reads a text and wants these messages, `r:content` each, r being the first letter of the role,
 * with `|` behind each; the system prompt first as `s:`. */
static void check(struct str text, const char *want, size_t bad, int line)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct context c;

    context_init(&c);
    test_check_int((long long)messages_add(&c, text), (long long)bad, "bad", __FILE__, line);
    if (c.system)
        buf_addf(&got, "s:%s|", c.system);
    for (size_t i = 0; i < c.count; i++) {
        buf_addf(&got, "%c:", role_name(c.at[i].role)[0]);
        buf_add(&got, c.at[i].content, c.at[i].n);
        if (c.at[i].tool_calls)
            buf_add_c(&got, c.at[i].tool_calls);
        if (c.at[i].tool_call_id)
            buf_addf(&got, "<%s>", c.at[i].tool_call_id);
        buf_add_byte(&got, '|');
    }
    test_check_str(buf_c(&got), want, "messages", __FILE__, line);
    buf_release(&got);
    context_release(&c);
}

#define READS(text, want, bad) check(STR(text), want, bad, __LINE__)

#define U(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define A(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

TEST(nothing)
{
    READS("", "", 0);
    READS(" \n\r\n\t", "", 0);
    READS("[]", "", 0);
    READS("\xef\xbb\xbf", "", 0);
}

TEST(an_array)
{
    READS("[" U("a") "," A("b") "]", "u:a|a:b|", 0);
    READS("\xef\xbb\xbf \n[\n  " U("a") ",\n  " A("b") "\n]\n", "u:a|a:b|", 0);
    READS("[{\"content\":\"p\",\"role\":\"system\",\"x\":[1]}," U("a") "]", "s:p|u:a|", 0);
}

TEST(lines)
{
    READS(U("a") "\n" A("b") "\n", "u:a|a:b|", 0);
    READS(U("a") "\r\n\r\n" A("b"), "u:a|a:b|", 0);
    READS("{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\",\"content\":"
          "\"a\","
          "\"model\":1}\n",
          "u:a|", 0);
    READS("{\n\"role\": \"user\",\n\"content\": \"a\"\n}\n", "u:a|", 0);
}

TEST(text_of_any_kind)
{
    READS(U("\\u00e4\\n\\ud83d\\ude00 \\ud800"), "u:\xc3\xa4\n\xf0\x9f\x98\x80 \xef\xbf\xbd|", 0);
    READS(U("a\xff"), "u:a\xef\xbf\xbd|", 0);
}

TEST(tools)
{
    READS("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"name\":\"f\","
          "\"args\":{}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}]",
          "a:[{\"id\":\"c\",\"name\":\"f\",\"args\":{}}]|t:r<c>|", 0);
}

TEST(what_is_no_message_is_counted)
{
    READS("[1,null,\"x\",[],{}," U("a") ",{\"role\":\"user\"}]", "u:a|", 6);
    READS("[{\"role\":\"narrator\",\"content\":\"a\"},{\"role\":7,\"content\":\"a\"}]", "", 2);
    READS("[{\"role\":\"user\",\"content\":[\"a\"]},{\"role\":\"user\",\"content\":null}]", "", 2);
    READS("[{\"role\":\"assistant\",\"content\":null}]", "", 1);
    READS("not JSON\n" U("a") "\n{\"role\":\"us\n" U("b") U("c") "\n[" U("d") "]\n", "u:a|u:d|", 3);
    READS("[" U("a") "," A("b") "\n", "", 1);
    READS("7", "", 1);
    READS("{}", "", 1);
}

TEST(the_last_of_a_repeated_key_counts)
{
    READS("{\"role\":\"x\",\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}", "u:b|", 0);
    READS("{\"role\":\"user\",\"content\":\"a\",\"content\":1}", "", 1);
    READS("{\"ro\\u006ce\":\"user\",\"content\":\"a\",\"CONTENT\":1}", "u:a|", 0);
}
