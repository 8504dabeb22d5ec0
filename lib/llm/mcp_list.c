#include "chathist/llm/mcp_list.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/llm/mcp.h"

#define TOOL_NAME_MAX ((size_t)64)

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

bool mcp_server_name_valid(struct str name)
{
    return tool_name_valid(name) && name.n <= MCP_SERVER_NAME_MAX;
}

/* ---- the list ---- */

static char *copy_text(struct str text)
{
    return mem_copy(text.p ? text.p : "", text.n);
}

/* The decoded text of a member, up to a U+0000; the caller frees it. */
static char *text_of(struct str object, const char *key)
{
    struct buf text = BUF_INIT(MCP_LIST_MAX);

    json_decode(json_get(object, key), &text);
    return buf_detach(&text);
}

static char *description_of(struct str entry)
{
    char *text = text_of(entry, "description");

    if (*text != '\0')
        return text;
    free(text);
    return text_of(entry, "title");
}

static char *schema_of(struct str entry)
{
    struct buf schema = BUF_INIT(MCP_LIST_MAX);
    struct str given = json_get(entry, "inputSchema");

    if (json_type(given) == JSON_OBJECT)
        json_add_compact(&schema, given);
    else
        buf_add_c(&schema, "{\"type\":\"object\"}");
    return buf_detach(&schema);
}

static bool needs_task(struct str entry)
{
    struct buf scratch = BUF_INIT(MCP_LIST_MAX);
    struct str support = json_get(json_get(entry, "execution"), "taskSupport");
    bool needs = str_eq_c(json_text(support, &scratch), "required");

    buf_release(&scratch);
    return needs;
}

/* Providers refuse a whole request for one tool whose schema is not an object's. */
static bool takes_object(struct str entry)
{
    struct buf scratch = BUF_INIT(MCP_LIST_MAX);
    struct str schema = json_get(entry, "inputSchema"), type = json_get(schema, "type");
    bool takes =
        json_is_null(schema) || (json_type(schema) == JSON_OBJECT &&
                                 (!type.p || str_eq_c(json_text(type, &scratch), "object")));

    buf_release(&scratch);
    return takes;
}

static bool has(const struct mcp_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tools[i]->name, name) == 0)
            return true;
    return false;
}

static void add(struct mcp_list *list, struct str entry, struct mcp_server *server,
                const struct tool_kind *kind)
{
    char *name = text_of(entry, "name");
    struct mcp_tool *t;
    bool valid = *name != '\0' && !has(list, name) && !needs_task(entry);

    if (valid && !takes_object(entry)) {
        mcp_tell(server, MCP_LEFT_OUT, str_of(name));
        valid = false;
    }
    if (!valid) {
        free(name);
        return;
    }
    t = mem_zalloc(sizeof *t);
    *t = (struct mcp_tool){.server = server, .name = name};
    t->tool = (struct tool){.description = description_of(entry),
                            .parameters = schema_of(entry),
                            .kind = kind,
                            .source = t};
    list->tools = mem_grow(list->tools, &list->cap, list->count + 1, sizeof(struct mcp_tool *));
    list->tools[list->count++] = t;
}

int mcp_list_add_page(struct mcp_list *list, struct str result, struct mcp_server *server,
                      const struct tool_kind *kind, struct err *e)
{
    struct json_iter it = json_iter(json_get(result, "tools"));

    while (json_next(&it)) {
        list->bytes += it.value.n;
        if (list->count == MCP_TOOLS_MAX || list->bytes > MCP_LIST_MAX)
            return err_set(e, ERR_LIMIT, "it has more than %d tools, or %zu MiB of them",
                           MCP_TOOLS_MAX, MCP_LIST_MAX >> 20);
        add(list, it.value, server, kind);
    }
    return 0;
}

void mcp_list_release(struct mcp_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct mcp_tool *t = list->tools[i];

        free(t->tool.name);
        free(t->tool.description);
        free(t->tool.parameters);
        free(t->name);
        free(t);
    }
    free(list->tools);
    *list = (struct mcp_list){0};
}

/* ---- names ---- */

static void add_clean(struct buf *out, const char *text)
{
    for (; *text; text++) {
        /* A character outside of ASCII is one, however many bytes it has. */
        if (((unsigned char)*text & 0xc0U) != 0x80)
            buf_add_byte(out, is_name_char(*text) ? *text : '_');
    }
}

static bool taken(const struct mcp_list *list, const struct tool *const *others, size_t count,
                  const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(others[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < list->count && list->tools[i]->tool.name; i++)
        if (strcmp(list->tools[i]->tool.name, name) == 0)
            return true;
    return false;
}

void mcp_list_name(struct mcp_list *list, const char *server, const struct tool *const *others,
                   size_t others_count)
{
    struct buf full = BUF_INIT(MCP_LIST_MAX), name = BUF_INIT(MCP_LIST_MAX),
               end = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < list->count; i++) {
        buf_clear(&full);
        add_clean(&full, server);
        buf_add_c(&full, "__");
        add_clean(&full, list->tools[i]->name);
        for (size_t again = 1; again == 1 || taken(list, others, others_count, buf_c(&name));
             again++) {
            buf_clear(&end);
            if (again > 1)
                buf_addf(&end, "_%zu", again);
            buf_clear(&name);
            buf_add_str(&name, buf_str(&full));
            buf_truncate(&name, TOOL_NAME_MAX - end.len);
            buf_add_str(&name, buf_str(&end));
        }
        list->tools[i]->tool.name = copy_text(buf_str(&name));
    }
    buf_release(&full);
    buf_release(&name);
    buf_release(&end);
}
