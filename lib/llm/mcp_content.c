#include "llm/mcp_content.h"

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"
#include "chathist/llm/jsonrpc.h"

/* Kept free for the line that says that something is left out. */
#define CUT_NOTE_MAX 128

/* ---- blocks ---- */

/* Adds `, text` of a member; nothing when it has none. */
static void add_detail(struct buf *out, struct str object, const char *key)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str text = json_text(json_get(object, key), &scratch);

    if (text.n > 0) {
        buf_add_c(out, ", ");
        vis_add_line(out, text, false);
    }
    buf_release(&scratch);
}

/* Adds how many bytes the member's base64 stands for. */
static void add_size(struct buf *out, struct str object, const char *key)
{
    struct str data = json_get(object, key);
    size_t n;

    if (json_type(data) != JSON_STRING)
        return;
    n = data.n - 2;
    while (n > 0 && data.p[n] == '=')
        n--;
    buf_addf(out, ", %zu bytes", n * 3 / 4);
}

/* `[image, image/png, 1234 bytes]` */
static void add_described(struct buf *out, struct str type, struct str block, const char *data)
{
    static const char *const details[] = {"uri", "name", "title", "description", "mimeType"};

    buf_add_byte(out, '[');
    vis_add_line(out, type, false);
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        add_detail(out, block, details[i]);
    add_size(out, block, data);
    buf_add_byte(out, ']');
}

static void add_block(struct buf *out, struct str block)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str type = json_text(json_get(block, "type"), &scratch);
    struct str resource = json_get(block, "resource");

    if (str_eq_c(type, "text"))
        json_decode(json_get(block, "text"), out);
    else if (!str_eq_c(type, "resource"))
        add_described(out, type.n > 0 ? type : STR("unknown"), block, "data");
    else if (!json_decode(json_get(resource, "text"), out))
        add_described(out, type, resource, "blob");
    buf_release(&scratch);
}

/* ---- the whole ---- */

static void add_text(struct buf *text, struct str result)
{
    struct str structured = json_get(result, "structuredContent");
    struct json_iter it = json_iter(json_get(result, "content"));
    bool first = true;

    while (json_next(&it)) {
        if (!first)
            buf_add_byte(text, '\n');
        first = false;
        add_block(text, it.value);
    }
    if (text->len == 0 && !json_is_null(structured))
        json_add_compact(text, structured);
}

/* `complete`, and what came before there were any. */
static bool is_complete(struct str result)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str type = json_get(result, "resultType");
    bool complete = json_is_null(type) || str_eq_c(json_text(type, &scratch), "complete");

    buf_release(&scratch);
    return complete;
}

void mcp_content_add(struct buf *out, struct str result, bool *failed)
{
    /* Descriptions repeat nothing, but a message of `{}` blocks becomes longer than it was. */
    struct buf text = BUF_INIT(8 * JSONRPC_MESSAGE_MAX);
    size_t left = out->max - out->len, n;

    *failed = json_is_true(json_get(result, "isError")) || !is_complete(result);
    if (is_complete(result))
        add_text(&text, result);
    else
        buf_add_c(&text, "the tool asks for more input, which it cannot be given");
    if (text.len <= left) {
        buf_add_str(out, buf_str(&text));
    } else if (left > CUT_NOTE_MAX) {
        n = utf8_valid((struct str){text.data, left - CUT_NOTE_MAX});
        buf_add(out, text.data, n);
        buf_addf(out, "\n[%zu bytes are left out]", text.len - n);
    }
    buf_release(&text);
}

void mcp_content_add_message(struct buf *out, struct str params)
{
    static const char *const members[] = {"level", "logger", "data"};
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(params, members[i]);

        if (json_is_null(value))
            continue;
        if (out->len > 0)
            buf_add_byte(out, ' ');
        if (json_type(value) == JSON_STRING)
            buf_add_str(out, json_text(value, &scratch));
        else
            json_add_compact(out, value);
    }
    buf_release(&scratch);
}
