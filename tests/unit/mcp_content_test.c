#include "chathist/mcp/client.h"

#include "test.h"

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

static struct tool tool;

static struct tool_job take(struct str result)
{
    struct tool_job job = {.tool = &tool};
    struct str value;

    buf_init(&job.result, TOOL_RESULT_MAX);
    if (CHECK(json_check(result, &value, NULL)))
        mcp_result_read(&job, value);
    CHECK(job.done);
    return job;
}

static void release(struct tool_job *job)
{
    buf_release(&job->result);
    buf_release(&job->edits);
    attachment_list_release(&job->images);
}

static void check(const char *result, const char *want, bool want_failed)
{
    struct tool_job job = take(str_of(result));

    CHECK_STR(buf_c(&job.result), want);
    CHECK_INT(job.failed, want_failed);
    release(&job);
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
    check("{\"content\":\"no such file\",\"isError\":true}", "the tool failed:\nno such file",
          true);
    check("{\"content\":{\"type\":\"text\",\"text\":\"a\"}}", "a", false);
    check("{\"content\":[\"a\",{\"type\":\"text\",\"text\":\"b\"}]}", "a\nb", false);
    check("{\"content\":null,\"structuredContent\":[1]}", "[1]", false);
    check("{\"content\":7}", "[unknown]", false);
}

TEST(a_tool_can_fail)
{
    check("{\"content\":[{\"type\":\"text\",\"text\":\"no such file\"}],\"isError\":true}",
          "the tool failed:\nno such file", true);
    check("{\"content\":[],\"isError\":true}", "the tool failed", true);
    check("{\"isError\":true}", "the tool failed", true);
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
    struct tool_job job = take(str_of(result));

    CHECK(str_starts(buf_str(&job.result),
                     STR("a dot\n[image, image/jpeg, 70 bytes]\n[resource, u:x, ")));
    CHECK_INT(job.images.count, 2);
    for (size_t i = 0; i < job.images.count; i++) {
        /* The type is that of the bytes. */
        CHECK_STR(job.images.at[i].type, "image/png");
        CHECK_STR(job.images.at[i].base64, DOT);
    }
    release(&job);
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
          "the tool failed:\nit asks for more input, which it cannot be given", true);
}

TEST(what_is_too_long_is_cut_and_says_so)
{
    struct buf json = BUF_INIT(BUF_SMALL);
    struct tool_job job;

    buf_add_c(&json, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    for (size_t i = 0; i < TOOL_HEAD_MAX; i++)
        buf_add_c(&json, "\xc3\xa9");
    for (size_t i = 0; i < TOOL_TAIL_MAX; i++)
        buf_add_c(&json, "\\n");
    buf_add_c(&json, "end\"}]}");
    job = take(buf_str(&json));
    CHECK_INT(utf8_valid(buf_str(&job.result)), job.result.len);
    CHECK(str_find(buf_str(&job.result),
                   STR("\xa9\n[output cut: 30724 bytes are left out here]\n\n")));
    CHECK(str_ends(buf_str(&job.result), STR("\n\nend")));
    buf_release(&json);
    release(&job);
}

#define LINK(uri) "{\"type\":\"resource_link\",\"name\":\"n\",\"uri\":\"" uri "\"}"

static void check_edits(const char *result, bool read_only, const char *want)
{
    struct tool_job job;

    tool.read_only = read_only;
    job = take(str_of(result));
    tool.read_only = false;
    CHECK_STR(buf_c(&job.edits), want);
    release(&job);
}

TEST(links_to_files_name_what_was_modified)
{
    static const char *const uris[] = {
        "file:///a/b%20c%C3%A9.c", "https://x/y", "file://localhost/l", "file://host/l", "file:a",
        "file:///nul%00%ff",       "file:///100%"};
    struct buf links = BUF_INIT(BUF_SMALL), failed = BUF_INIT(BUF_SMALL),
               fine = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < sizeof uris / sizeof(char *); i++)
        buf_addf(&links, LINK("%s") ",", uris[i]);
    buf_add_c(&links,
              "{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///r\",\"text\":\"t\"}}");
    buf_addf(&fine, "{\"content\":[%s]}", buf_c(&links));
    buf_addf(&failed, "{\"content\":[%s],\"isError\":true}", buf_c(&links));
    check_edits(buf_c(&fine), false,
                "{\"files_modified\":[\"/a/b c\xc3\xa9.c\",\"/l\",\"/100%\"]}");
    check_edits(buf_c(&fine), true, "");
    check_edits(buf_c(&failed), false, "");
    check_edits("{\"content\":[]}", false, "");
    buf_release(&links);
    buf_release(&failed);
    buf_release(&fine);
}

TEST(structured_content_names_what_was_edited)
{
    check_edits("{\"content\":[" LINK(
                    "file:///l") "],\"structuredContent\":"
                                 "{\"files_modified\":[\"a\"],\"edit_results\":[{}],\"more\":1}}",
                false, "{\"files_modified\":[\"a\"],\"edit_results\":[{}]}");
    check_edits("{\"content\":[" LINK("file:///l") "],\"structuredContent\":{\"a\":1}}", false,
                "{\"files_modified\":[\"/l\"]}");
    check_edits("{\"content\":[],\"structuredContent\":{\"files_modified\":7}}", false, "");
}
