#include "chathist/mcp/client.h"

#include "test.h"

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

static void check(const char *result, const char *want, bool want_failed)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct str value;
    bool failed = !want_failed;

    if (CHECK(json_check(str_of(result), &value, NULL))) {
        mcp_result_add(&got, NULL, value, &failed);
        CHECK_STR(buf_c(&got), want);
        CHECK_INT(failed, want_failed);
    }
    buf_release(&got);
}

TEST(text_blocks_are_joined)
{
    check("{\"content\":[{\"type\":\"text\",\"text\":\"a\\nb\"}]}", "a\nb", false);
    check("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
          "a\nb", false);
    check("{\"content\":[],\"isError\":false}", "", false);
    check("{}", "", false);
    check("[]", "", false);
}

TEST(content_that_is_no_list_of_blocks)
{
    check("{\"content\":\"a \\u00e9\"}", "a \xc3\xa9", false);
    check("{\"content\":\"no such file\",\"isError\":true}", "no such file", true);
    check("{\"content\":{\"type\":\"text\",\"text\":\"a\"}}", "a", false);
    check("{\"content\":[\"a\",{\"type\":\"text\",\"text\":\"b\"}]}", "a\nb", false);
    check("{\"content\":null,\"structuredContent\":[1]}", "[1]", false);
    check("{\"content\":7}", "[unknown]", false);
}

TEST(a_tool_can_fail)
{
    check("{\"content\":[{\"type\":\"text\",\"text\":\"no such file\"}],\"isError\":true}",
          "no such file", true);
}

TEST(what_is_no_text_is_described)
{
    check("{\"content\":[{\"type\":\"image\",\"data\":\"aGVsbG8=\",\"mimeType\":\"image/png\"}]}",
          "[image, image/png, 5 bytes]", false);
    check("{\"content\":[{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"audio/wav\"}]}",
          "[audio, audio/wav, 0 bytes]", false);
    check("{\"content\":[{\"type\":\"resource_link\",\"uri\":\"file:///a\\nb\",\"name\":\"n\","
          "\"description\":\"d\",\"mimeType\":\"text/x\"}]}",
          "[resource_link, file:///a b, n, d, text/x]", false);
    check(
        "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"u:x\",\"blob\":\"AAAA\"}}]}",
        "[resource, u:x, 3 bytes]", false);
    check("{\"content\":[{\"type\":\"hologram\"},{\"text\":5},7]}",
          "[hologram]\n[unknown]\n[unknown]", false);
}

#define DOT                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg" \
    "gg=="

TEST(images_are_kept_beside_the_text)
{
    static const char result[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"a dot\"},"
        "{\"type\":\"image\",\"mimeType\":\"image/jpeg\",\"data\":\"" DOT "\"},"
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"u:x\",\"blob\":\"" DOT "\"}},"
        "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"aGVsbG8=\"},"
        "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"bm8gYmFzZTY0*\"},"
        "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"" DOT "\"}]}";
    struct attachment_list images = {0};
    struct buf got = BUF_INIT(BUF_LINE);
    struct str value;
    bool failed;

    CHECK(json_check(str_of(result), &value, NULL));
    mcp_result_add(&got, &images, value, &failed);
    CHECK(str_starts(buf_str(&got), STR("a dot\n[image, image/jpeg, 70 bytes]\n[resource, u:x, ")));
    CHECK_INT(images.count, 2);
    for (size_t i = 0; i < images.count; i++) {
        /* The type is that of the bytes. */
        CHECK_STR(images.at[i].type, "image/png");
        CHECK_STR(images.at[i].base64, DOT);
    }
    attachment_list_release(&images);
    buf_release(&got);
}

TEST(a_resource_with_text_is_that_text)
{
    check("{\"content\":[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"resource\",\"resource\":"
          "{\"uri\":\"u:x\",\"mimeType\":\"text/plain\",\"text\":\"body\"}}]}",
          "see\nbody", false);
}

TEST(structured_content_counts_when_there_is_no_text)
{
    check("{\"content\":[],\"structuredContent\":{ \"a\" : 1.50 }}", "{\"a\":1.50}", false);
    check("{\"structuredContent\":[1, 2]}", "[1,2]", false);
    check("{\"content\":[{\"type\":\"text\",\"text\":\"t\"}],\"structuredContent\":{\"a\":1}}", "t",
          false);
}

TEST(a_result_that_is_not_complete_is_a_failure)
{
    check("{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}", "t",
          false);
    check("{\"resultType\":\"input_required\",\"inputRequests\":{}}",
          "the tool asks for more input, which it cannot be given", true);
}

TEST(what_is_too_long_is_cut_and_says_so)
{
    struct buf json = BUF_INIT(BUF_SMALL), got = BUF_INIT(1000);
    struct str value;
    bool failed;

    buf_add_c(&json, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    for (size_t i = 0; i < 600; i++)
        buf_add_c(&json, "\xc3\xa9");
    buf_add_c(&json, "\"}]}");
    CHECK(json_check(buf_str(&json), &value, NULL));
    mcp_result_add(&got, NULL, value, &failed);
    CHECK(!got.overflow && got.len < 1000);
    CHECK_INT(utf8_valid(buf_str(&got)), got.len);
    CHECK(str_ends(buf_str(&got), STR("\xa9\n[328 bytes are left out]")));
    buf_release(&json);
    buf_release(&got);
}
