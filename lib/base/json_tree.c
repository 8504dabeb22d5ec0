#include "chathist/base/json_tree.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"

/* A struct json_tree is a cJSON under another name, so that no other file sees cJSON's header. Its
 * leaves are raw items, JSON text made or checked by base/json: cJSON formats no text and no
 * number. */

static cJSON *item_of(struct json_tree *t)
{
    return (cJSON *)t;
}

static struct json_tree *tree_of(cJSON *item)
{
    if (!item)
        mem_exhausted();
    return (struct json_tree *)item;
}

struct json_tree *json_tree_object(void)
{
    return tree_of(cJSON_CreateObject());
}

struct json_tree *json_tree_array(void)
{
    return tree_of(cJSON_CreateArray());
}

void json_tree_free(struct json_tree *t)
{
    cJSON_Delete(item_of(t));
}

void json_tree_set(struct json_tree *object, const char *key, struct json_tree *value)
{
    struct buf name = BUF_INIT(SIZE_MAX);

    /* cJSON writes the bytes of a key as they are. */
    utf8_add_repaired(&name, str_of(key));

    /* cJSON_ReplaceItemInObjectCaseSensitive looks for the key only after it has taken the value
     * apart; it is called when the key is known to be there. It keeps the place. */
    cJSON_bool done =
        cJSON_GetObjectItemCaseSensitive(item_of(object), buf_c(&name))
            ? cJSON_ReplaceItemInObjectCaseSensitive(item_of(object), buf_c(&name), item_of(value))
            : cJSON_AddItemToObject(item_of(object), buf_c(&name), item_of(value));

    if (!done)
        mem_exhausted();
    buf_release(&name);
}

static void set_raw(struct json_tree *object, const char *key, struct buf *json)
{
    json_tree_set(object, key, tree_of(cJSON_CreateRaw(buf_c(json))));
    buf_release(json);
}

void json_tree_set_text(struct json_tree *object, const char *key, struct str text)
{
    struct buf json = BUF_INIT(SIZE_MAX);

    json_add_string(&json, text);
    set_raw(object, key, &json);
}

void json_tree_set_int(struct json_tree *object, const char *key, int64_t n)
{
    struct buf json = BUF_INIT(BUF_SMALL);

    buf_addf(&json, "%lld", (long long)n);
    set_raw(object, key, &json);
}

/* Valid JSON has no NUL byte, so it survives as the C string that cJSON keeps. */
void json_tree_set_raw(struct json_tree *object, const char *key, struct str json)
{
    struct buf copy = BUF_INIT(SIZE_MAX);

    buf_add_str(&copy, json);
    set_raw(object, key, &copy);
}

void json_tree_remove(struct json_tree *object, const char *key)
{
    struct buf name = BUF_INIT(SIZE_MAX);

    utf8_add_repaired(&name, str_of(key));
    cJSON_DeleteItemFromObjectCaseSensitive(item_of(object), buf_c(&name));
    buf_release(&name);
}

void json_tree_push(struct json_tree *array, struct json_tree *value)
{
    if (!cJSON_AddItemToArray(item_of(array), item_of(value)))
        mem_exhausted();
}

void json_tree_push_raw(struct json_tree *array, struct str json)
{
    struct buf copy = BUF_INIT(SIZE_MAX);

    buf_add_str(&copy, json);
    json_tree_push(array, tree_of(cJSON_CreateRaw(buf_c(&copy))));
    buf_release(&copy);
}

static void add_line(struct buf *out, size_t depth)
{
    buf_add_byte(out, '\n');
    for (; depth; depth--)
        buf_add_c(out, "  ");
}

/* Adds compact JSON with a member or element a line; raw values inside it are laid out with it. */
static void add_indented(struct buf *out, struct str json)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        char next = i + 1 < json.n ? json.p[i + 1] : '\0';

        if (in_string) {
            buf_add_byte(out, c);
            if (c == '\\') {
                buf_add_byte(out, next);
                i++;
            } else if (c == '"') {
                in_string = false;
            }
            continue;
        }
        in_string = c == '"';
        if (c == '}' || c == ']')
            add_line(out, --depth);
        buf_add_byte(out, c);
        if (c == ':')
            buf_add_byte(out, ' ');
        else if (c == ',')
            add_line(out, depth);
        else if ((c == '{' || c == '[') && (next == '}' || next == ']'))
            buf_add_byte(out, json.p[++i]);
        else if (c == '{' || c == '[')
            add_line(out, ++depth);
    }
}

void json_tree_print(const struct json_tree *t, bool indented, struct buf *out)
{
    char *text = cJSON_PrintUnformatted((const cJSON *)t);

    if (!text)
        mem_exhausted();
    if (indented) {
        struct buf compact = BUF_INIT(SIZE_MAX);

        json_add_compact(&compact, str_of(text));
        add_indented(out, buf_str(&compact));
        buf_release(&compact);
    } else {
        buf_add_c(out, text);
    }
    cJSON_free(text);
}
