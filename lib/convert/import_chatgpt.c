/*
 * import_chatgpt - the export of ChatGPT: conversations.json.
 *
 * Its maker does not document the format. Others describe it (mitkury/chatgpt-export-parser,
 * docs/chatgpt-data-export-format.md): an array of conversations, each with `mapping`, a tree of
 * nodes (`message`, `parent`, `children`), and `current_node`, its tip. Edited prompts and
 * regenerated responses are branches; the messages from the root to current_node are imported.
 *
 *   - A message of the assistant whose recipient is not `all` is a call of the tool with that name;
 *     the tool's messages after it are its results.
 *   - Parts that are objects contribute their `text`; images are counted, sounds are ignored. Other
 *     parts, and messages of an unknown content_type without text, are reported. Thoughts, the
 *     user's own instructions (user_editable_context) and hidden messages are not imported.
 *   - Conversations are imported in the order of update_time.
 *
 * The file is read with the zero-copy reader of base/json instead of cJSON, because texts may
 * contain U+0000 and lone surrogates.
 */
#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "convert/import_reader.h"

#define FORMAT "chatgpt"

struct conversation {
    char *text; /* owned; JSON */
    size_t n;
    int64_t time; /* of the last change, µs */
    size_t number;
};

struct reader {
    struct source *source;
    struct conversation *all;
    size_t count, cap;
    struct import_message m;
    struct buf call_id; /* of the last call, for its results */
    int64_t time;       /* of the message before, or of the beginning of the conversation */
};

/* ---- one message ---- */

/* Adds a part of the content. Returns false if its kind is unknown. */
static bool add_part(struct import_message *m, struct str part)
{
    static const char *const images[] = {"image_asset_pointer", NULL};
    static const char *const sounds[] = {"audio_asset_pointer",
                                         "real_time_user_audio_video_asset_pointer", NULL};
    struct str type = json_get(part, "content_type"), text = json_get(part, "text");

    if (json_type(part) == JSON_STRING)
        import_add_content(m, part);
    else if (import_is_one_of(type, images))
        m->images++;
    else if (json_type(text) == JSON_STRING)
        import_add_content(m, text);
    else
        return json_is_null(part) || import_is_one_of(type, sounds);
    return true;
}

/* Adds the content of a message, and reports parts of an unknown kind. */
static void add_content(struct reader *r, struct str content)
{
    static const char *const left_out[] = {"thoughts", "reasoning_recap", "user_editable_context",
                                           "model_editable_context", NULL};
    static const char *const known[] = {
        "text",         "code",         "execution_output",        "multimodal_text",
        "tether_quote", "system_error", "tether_browsing_display", NULL};
    struct str type = json_get(content, "content_type");
    struct json_iter parts = json_iter(json_get(content, "parts"));
    bool whole = true;

    if (import_is_one_of(type, left_out))
        return;
    while (json_next(&parts))
        whole = add_part(&r->m, parts.value) && whole;
    import_add_content(&r->m, json_get(content, "text"));
    import_add_content(&r->m, json_get(content, "result"));
    if (!whole)
        import_bad(r->source, "a part of a message is of an unknown kind");
    else if (!json_is_null(content) && !import_is_one_of(type, known) && import_is_empty(&r->m))
        import_bad(r->source, "a message is of an unknown kind");
}

static enum role role_in(struct str message)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    enum role role = role_of(json_text(json_get(json_get(message, "author"), "role"), &scratch));

    buf_release(&scratch);
    return role;
}

/* Turns the text, which the assistant sent to a tool, into a call. */
static void make_call(struct reader *r, struct str id, struct str recipient)
{
    struct buf name = BUF_INIT(BUF_SMALL), args = BUF_INIT(BUF_LINE);

    json_add_string(&args, buf_str(&r->m.text));
    import_add_call(&r->m, id, json_text(recipient, &name), buf_str(&args));
    r->m.calls.overflow = r->m.calls.overflow || args.overflow;
    buf_clear(&r->m.text);
    buf_set(&r->call_id, id);
    buf_release(&name);
    buf_release(&args);
}

static void add_answer(struct reader *r, struct str id, struct str message)
{
    struct str recipient = json_get(message, "recipient"), meta = json_get(message, "metadata");

    if (json_type(recipient) == JSON_STRING && !json_is_text(recipient, "all") &&
        r->m.text.len > 0 && !r->m.text.overflow)
        make_call(r, id, recipient);
    import_set_text(&r->m.model, json_get(meta, "model_slug"));
    buf_add_c(&r->m.provider, "openai");
    import_set_finish(&r->m, json_get(json_get(meta, "finish_details"), "type"));
}

static int give_node(struct reader *r, struct str session, struct str id, struct str message,
                     struct err *e)
{
    enum role role = role_in(message);
    struct import_message *m = &r->m;

    if (role == ROLE_OTHER || json_is_true(json_get(json_get(message, "metadata"),
                                                    "is_visually_hidden_from_conversation")))
        return 0;
    import_message_clear(m, role);
    import_set_session(m, FORMAT, session);
    import_set_part(m, id);
    m->time = r->time;
    import_set_time(m, json_get(message, "create_time"));
    r->time = m->time;
    add_content(r, json_get(message, "content"));
    if (role == ROLE_ASSISTANT)
        add_answer(r, id, message);
    else if (role == ROLE_TOOL)
        buf_add_str(&m->call_id, buf_str(&r->call_id));
    /* Tools also leave messages without text, such as the state of a search. */
    if (role == ROLE_TOOL && m->text.len == 0 && !m->text.overflow && m->images == 0)
        return 0;
    return import_give(r->source, m, e);
}

/* ---- one conversation ---- */

/* The nodes of a mapping. */
struct tree {
    struct hash_map ids; /* -> node */
    struct str *node;
    size_t cap;
};

static void tree_build(struct tree *t, struct str mapping)
{
    struct json_iter it = json_iter(mapping);

    *t = (struct tree){0};
    while (json_next(&it)) {
        size_t i = hash_map_number(&t->ids, &it.key);

        t->node = mem_grow(t->node, &t->cap, i + 1, sizeof *t->node);
        t->node[i] = it.value;
    }
}

static void tree_release(struct tree *t)
{
    hash_map_release(&t->ids);
    free(t->node);
}

/* Finds the number of the node with this id. Returns false if no node has it. */
static bool tree_find(const struct tree *t, struct str name, size_t *number)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    size_t *found =
        json_type(name) == JSON_STRING ? hash_map_find(&t->ids, json_text(name, &scratch)) : NULL;

    if (found)
        *number = *found;
    buf_release(&scratch);
    return found != NULL;
}

/* Lists the nodes from the tip to the root in `way`; a cycle ends the list. If the tip is unknown,
 * the list begins at the last node. Returns their number. */
static size_t way_up(const struct tree *t, struct str tip, size_t *way)
{
    size_t n = 0, count = t->ids.count, at = count - 1;
    bool found = count > 0;

    (void)tree_find(t, tip, &at);
    while (found && n < count) {
        way[n++] = at;
        found = tree_find(t, json_get(t->node[at], "parent"), &at);
    }
    return n;
}

/* Gives the title of a conversation, unless it is the one of all that have none yet. */
static int give_title(struct reader *r, struct str id, struct str title, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct str text = json_text(title, &scratch);
    int result = 0;

    import_message_clear(&r->m, ROLE_USER);
    import_set_session(&r->m, FORMAT, id);
    if (text.p && !str_eq_c(text, "New chat"))
        result = import_give_title(r->source, buf_str(&r->m.session), text, e);
    buf_release(&scratch);
    return result;
}

static int give_conversation(struct reader *r, struct str value, struct err *e)
{
    struct str mapping = json_get(value, "mapping"), id;
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct tree tree;
    size_t *way, n;
    int result = 0;

    id = json_text(json_get(value, "conversation_id"), &scratch);
    if (id.n == 0)
        id = json_text(json_get(value, "id"), &scratch);
    if (json_type(mapping) != JSON_OBJECT || id.n == 0) {
        import_bad(r->source, id.n > 0 ? "no 'mapping'" : "no 'id'");
        buf_release(&scratch);
        return 0;
    }
    import_message_clear(&r->m, ROLE_USER);
    import_set_time(&r->m, json_get(value, "create_time"));
    r->time = r->m.time;
    tree_build(&tree, mapping);
    way = mem_zalloc((tree.ids.count + 1) * sizeof *way);
    buf_clear(&r->call_id);
    for (n = way_up(&tree, json_get(value, "current_node"), way); result == 0 && n-- > 0;)
        result = give_node(r, id, tree.ids.entries[way[n]].key,
                           json_get(tree.node[way[n]], "message"), e);
    if (result == 0)
        result = give_title(r, id, json_get(value, "title"), e);
    free(way);
    tree_release(&tree);
    buf_release(&scratch);
    return result;
}

/* ---- all conversations ---- */

static int compare_conversations(const void *a, const void *b)
{
    const struct conversation *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Keeps a conversation until all are read. */
static int keep_conversation(void *arg, struct str object, struct err *e)
{
    struct reader *r = arg;

    (void)e;
    import_message_clear(&r->m, ROLE_USER);
    import_set_time(&r->m, json_get(object, "create_time"));
    import_set_time(&r->m, json_get(object, "update_time"));
    r->all = mem_grow(r->all, &r->cap, r->count + 1, sizeof *r->all);
    r->all[r->count++] =
        (struct conversation){mem_copy(object.p, object.n), object.n, r->m.time, r->source->number};
    return 0;
}

static int read_chatgpt(struct source *s, struct err *e)
{
    struct reader r = {.source = s};
    int got;

    import_message_init(&r.m);
    buf_init(&r.call_id, BUF_SMALL);
    got = import_each_object(s, source_value, keep_conversation, &r, e);
    if (r.count > 1)
        qsort(r.all, r.count, sizeof *r.all, compare_conversations);
    for (size_t i = 0; i < r.count; i++) {
        s->number = r.all[i].number;
        if (got == 0)
            got = give_conversation(&r, (struct str){r.all[i].text, r.all[i].n}, e);
        free(r.all[i].text);
    }
    free(r.all);
    import_message_release(&r.m);
    buf_release(&r.call_id);
    return got;
}

/* ---- the format ---- */

/* In a string, a quotation mark has a backslash before it, so these matches are keys. */
static bool is_chatgpt(struct str head)
{
    struct str text = str_trim(head);

    return (str_starts(text, STR("[")) || str_starts(text, STR("{"))) &&
           str_find(text, STR("\"mapping\"")) &&
           (str_find(text, STR("\"current_node\"")) || str_find(text, STR("\"create_time\"")));
}

const struct import_format import_chatgpt = {"chatgpt", is_chatgpt, read_chatgpt};
