#include "chathist/mcp/client.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

/* The most images of one result. */
#define IMAGES_MAX 20

/* Adds a line such as `[image, image/png, 1234 bytes]`, with the size of the bytes that the member
 * `data` holds in base64. */
static void add_described(struct buf *out, struct str type, struct str block, const char *data)
{
    static const char *const details[] = {"uri", "name", "title", "description", "mimeType"};
    struct buf scratch = BUF_INIT(MCP_MESSAGE_MAX);
    struct str base64 = json_body(json_get(block, data));

    buf_add_byte(out, '[');
    vis_add_line(out, type, false);
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        struct str text = json_text(json_get(block, details[i]), &scratch);

        buf_add_c(out, text.n > 0 ? ", " : "");
        vis_add_line(out, text, false);
    }
    while (str_ends(base64, STR("=")))
        base64.n--;
    if (base64.p)
        buf_addf(out, ", %zu bytes", base64.n * 3 / 4);
    buf_add_byte(out, ']');
    buf_release(&scratch);
}

/* Adds the image of a block, if it has one. Its own bytes say of which type it is, because servers
 * are careless with the type that they declare, and providers refuse a wrong one. */
static void add_image(struct attachment_list *images, struct str block)
{
    struct buf text = BUF_INIT(MCP_MESSAGE_MAX), bytes = BUF_INIT(MCP_MESSAGE_MAX);
    struct str data = json_has_type(block, "image") ? json_get(block, "data")
                                                    : json_get(json_get(block, "resource"), "blob");
    const char *type = NULL;

    if (json_type(data) == JSON_STRING && attachment_decode(json_text(data, &text), &bytes))
        type = attachment_type(buf_str(&bytes));
    if (type && str_starts(str_of(type), STR("image/")) && images->count < IMAGES_MAX)
        /* One that is too large stays a line of the text. */
        attachment_list_add(images, type, "image", buf_str(&bytes), NULL);
    buf_release(&text);
    buf_release(&bytes);
}

/* Adds the path of a link to a file on this machine (RFC 8089) as a string to an array without its
 * brackets. */
static void add_linked_file(struct buf *array, struct str block)
{
    struct buf scratch = BUF_INIT(MCP_MESSAGE_MAX), path = BUF_INIT(MCP_MESSAGE_MAX);
    bool link = json_has_type(block, "resource_link");
    struct str uri = link ? json_text(json_get(block, "uri"), &scratch) : STR("");
    struct str scheme = STR("file://");
    struct str rest = str_starts(uri, scheme) ? str_skip(uri, scheme.n) : STR("");

    if (str_starts(rest, STR("localhost/")))
        rest = str_skip(rest, strlen("localhost"));
    for (size_t i = 0; str_starts(rest, STR("/")) && i < rest.n; i++) {
        bool coded = rest.p[i] == '%' && i + 2 < rest.n;
        int high = coded ? ascii_hex_value(rest.p[i + 1]) : -1;
        int low = coded ? ascii_hex_value(rest.p[i + 2]) : -1;

        coded = high >= 0 && low >= 0;
        buf_add_byte(&path, (char)(coded ? high * 16 + low : rest.p[i]));
        i += coded ? 2 : 0;
    }
    if (path.len > 0 && utf8_valid(buf_str(&path)) == path.len) {
        buf_add_c(array, array->len > 0 ? "," : "");
        json_add_string(array, buf_str(&path));
    }
    buf_release(&scratch);
    buf_release(&path);
}

/* Adds a block to the text, and what it holds beside that: an image, a link to a file. */
static void add_content_block(struct buf *text, struct attachment_list *images, struct buf *files,
                              struct str block)
{
    struct buf scratch = BUF_INIT(MCP_MESSAGE_MAX);
    struct str type = json_text(json_get(block, "type"), &scratch);
    struct str resource = json_get(block, "resource");

    if (json_type(block) == JSON_STRING)
        json_decode(block, text);
    else if (str_eq_c(type, "text"))
        json_decode(json_get(block, "text"), text);
    else if (!str_eq_c(type, "resource"))
        add_described(text, type.n > 0 ? type : STR("unknown"), block, "data");
    else if (!json_decode(json_get(resource, "text"), text))
        add_described(text, type, resource, "blob");
    buf_release(&scratch);
    add_image(images, block);
    add_linked_file(files, block);
}

/* The content is an array of blocks (schema/2025-11-25, CallToolResult). Servers also send one
 * block, and texts in the place of blocks. */
static void add_result_content(struct buf *text, struct attachment_list *images, struct buf *files,
                               struct str result)
{
    struct str structured = json_get(result, "structuredContent");
    struct str content = json_get(result, "content");
    struct json_iter it = json_iter(content);

    if (json_type(content) == JSON_ARRAY) {
        for (bool first = true; json_next(&it); first = false) {
            if (!first)
                buf_add_byte(text, '\n');
            add_content_block(text, images, files, it.value);
        }
    } else if (!json_is_null(content)) {
        add_content_block(text, images, files, content);
    }
    if (text->len == 0 && !json_is_null(structured))
        json_add_compact(text, structured);
}

void mcp_result_read(struct tool_job *job, struct str result)
{
    /* The descriptions of many empty blocks are longer than the message was. */
    struct buf text = BUF_INIT(8 * MCP_MESSAGE_MAX), files = BUF_INIT(MCP_MESSAGE_MAX);
    struct buf links = BUF_INIT(MCP_MESSAGE_MAX);
    struct str object;
    /* Revision 2026-07-28 has it; without it a result is complete. */
    struct str type = json_get(result, "resultType");
    bool complete = json_is_null(type) || json_is_text(type, "complete");

    job->failed = json_is_true(json_get(result, "isError")) || !complete;
    if (complete)
        add_result_content(&text, &job->images, &files, result);
    else
        buf_add_c(&text, "it asks for more input, which it cannot be given");
    buf_addf(&links, "{\"files_modified\":[%s]}", buf_c(&files));
    if (job->failed)
        buf_add_c(&job->result, text.len > 0 ? "the tool failed:\n" : "the tool failed");
    else if (!tool_read_edits(job, json_get(result, "structuredContent")) && files.len > 0 &&
             json_check(buf_str(&links), &object, NULL))
        (void)tool_read_edits(job, object);
    tool_add_ends(&job->result, buf_str(&text), TOOL_HEAD_MAX, TOOL_TAIL_MAX, 0);
    job->done = true;
    buf_release(&text);
    buf_release(&files);
    buf_release(&links);
}
