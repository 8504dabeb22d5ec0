#include "llm/schema_index.h"

#include <stdlib.h>

#include "chathist/base/mem.h"
#include "chathist/base/regex.h"
#include "llm/schema_keyword.h"
#include "llm/uri.h"

/* ---- places ---- */

size_t schema_place_depth(const struct schema_place *place)
{
    size_t depth = 0;

    for (; place; place = place->up)
        depth++;
    return depth;
}

static void add_step(struct buf *out, const struct schema_place *place)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name;

    buf_add_byte(out, '/');
    if (!place->key.p) {
        buf_add_number(out, place->index);
        return;
    }
    name = json_text((struct str){place->key.p - 1, place->key.n + 2}, &scratch);
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '~')
            buf_add_c(out, "~0");
        else if (name.p[i] == '/')
            buf_add_c(out, "~1");
        else
            buf_add_byte(out, name.p[i]);
    }
    buf_release(&scratch);
}

void schema_add_pointer(struct buf *out, const struct schema_place *place)
{
    size_t count = schema_place_depth(place);
    const struct schema_place **steps = mem_zalloc(count * sizeof(void *));

    for (size_t i = count; place; place = place->up)
        steps[--i] = place;
    for (size_t i = 0; i < count; i++)
        add_step(out, steps[i]);
    free(steps);
}

int schema_index_refuse(struct err *e, struct str pointer, const char *why)
{
    return err_set(e, ERR_USAGE, "%.*s%s%s", (int)pointer.n, pointer.n ? pointer.p : "",
                   pointer.n ? ": " : "", why);
}

static int refuse(struct err *e, const struct schema_place *place, const char *why)
{
    struct buf pointer = BUF_INIT(BUF_SMALL);

    schema_add_pointer(&pointer, place);
    schema_index_refuse(e, buf_str(&pointer), why);
    buf_release(&pointer);
    return -1;
}

/* ---- what is entered ---- */

static size_t find_text(const struct schema *s, struct str text)
{
    size_t i = 0;

    while (i < s->pattern_count && !str_eq(buf_str(&s->pattern_texts[i]), text))
        i++;
    return i;
}

static int add_pattern(struct schema *s, struct str string, const struct schema_place *place,
                       struct err *e)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    struct regex *re;

    json_decode(string, &text);
    if (find_text(s, buf_str(&text)) < s->pattern_count) {
        buf_release(&text);
        return 0;
    }
    re = regex_new_ecma(buf_str(&text), &why);
    if (!re) {
        refuse(e, place, err_text(&why));
        err_release(&why);
        buf_release(&text);
        return -1;
    }
    s->patterns = mem_grow(s->patterns, &s->pattern_cap, s->pattern_count + 1, sizeof(void *));
    s->pattern_texts =
        mem_grow(s->pattern_texts, &s->text_cap, s->pattern_count + 1, sizeof *s->pattern_texts);
    s->pattern_texts[s->pattern_count] = text;
    s->patterns[s->pattern_count++] = re;
    return 0;
}

struct regex *schema_index_pattern(const struct schema *s, struct str string)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t i = find_text(s, json_text(string, &scratch));

    buf_release(&scratch);
    return s->patterns[i];
}

const struct schema_anchor *schema_index_anchor(const struct schema *s, size_t resource,
                                                struct str name)
{
    for (size_t i = 0; i < s->anchor_count; i++)
        if (s->anchors[i].resource == resource && str_eq(buf_str(&s->anchors[i].name), name))
            return &s->anchors[i];
    return NULL;
}

static int add_anchor(struct schema *s, const struct schema_node *node, struct str name,
                      bool dynamic, const struct schema_place *place, struct err *e)
{
    struct schema_anchor anchor = {node->resource, BUF_INIT(BUF_LINE), node->value, dynamic};
    const struct schema_anchor *other;

    json_decode(name, &anchor.name);
    other = schema_index_anchor(s, node->resource, buf_str(&anchor.name));
    if (other) {
        buf_release(&anchor.name);
        /* What a reference points into may be walked through twice. */
        return other->value.p == node->value.p
                   ? 0
                   : refuse(e, place, "has an anchor whose name another has");
    }
    s->anchors = mem_grow(s->anchors, &s->anchor_cap, s->anchor_count + 1, sizeof anchor);
    s->anchors[s->anchor_count++] = anchor;
    return 0;
}

/* A schema with an `$id` is a resource; gives its number, or that of the one that it is in. */
static int add_resource(struct schema *s, struct str value, size_t *resource,
                        const struct schema_place *place, struct err *e)
{
    struct schema_resource new = {BUF_INIT(BUF_LINE), value};
    struct str base = STR_NONE, id = json_get(value, "$id"), fragment = STR_NONE;
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (s->resource_count > 0) {
        if (json_type(id) != JSON_STRING)
            return 0;
        base = buf_str(&s->resources[*resource].uri);
    }
    uri_resolve(&new.uri, base, json_text(id, &scratch), &fragment);
    if (fragment.n > 0) {
        buf_release(&scratch);
        buf_release(&new.uri);
        return refuse(e, place, "has an '$id' with a fragment");
    }
    buf_release(&scratch);
    for (size_t i = 0; i < s->resource_count; i++)
        if (str_eq(buf_str(&s->resources[i].uri), buf_str(&new.uri))) {
            buf_release(&new.uri);
            *resource = i;
            return s->resources[i].value.p == value.p
                       ? 0
                       : refuse(e, place, "has the '$id' of another schema");
        }
    s->resources = mem_grow(s->resources, &s->resource_cap, s->resource_count + 1, sizeof new);
    s->resources[s->resource_count] = new;
    *resource = s->resource_count++;
    return 0;
}

/* ---- walking ---- */

static int add_keyword(struct schema *s, const struct schema_node *node, enum schema_keyword_id id,
                       struct str value, const struct schema_place *place, struct err *e)
{
    enum schema_form form = schema_keyword_at(id)->form;
    struct json_iter it = json_iter(value);
    struct err why = ERR_INIT;

    if (schema_keyword_check(id, value, &why) < 0) {
        refuse(e, place, err_text(&why));
        err_release(&why);
        return -1;
    }
    if (id == KW_ANCHOR || id == KW_DYNAMIC_ANCHOR)
        return add_anchor(s, node, value, id == KW_DYNAMIC_ANCHOR, place->up, e);
    if (id == KW_UNEVALUATED_ITEMS || id == KW_UNEVALUATED_PROPERTIES)
        s->unevaluated = true;
    if (form == FORM_REGEX)
        return add_pattern(s, value, place, e);
    if (form == FORM_SCHEMA)
        return schema_index_add(s, value, node->resource, place, e);
    if (form != FORM_SCHEMAS && form != FORM_SCHEMAS_BY && form != FORM_SCHEMAS_FOR)
        return 0;
    for (size_t i = 0; json_next(&it); i++) {
        struct schema_place inner = {place, it.key, i};

        if (form == FORM_SCHEMAS_FOR &&
            add_pattern(s, (struct str){it.key.p - 1, it.key.n + 2}, &inner, e) < 0)
            return -1;
        if (schema_index_add(s, it.value, node->resource, &inner, e) < 0)
            return -1;
    }
    return 0;
}

/* What older drafts had in their place would be passed over in silence. */
static int check_draft(struct str value, const struct schema_place *place, struct err *e)
{
    static const char *const gone[] = {"dependencies", "additionalItems", "$recursiveRef"};
    struct str draft = json_get(value, "$schema");

    if (json_type(draft) != JSON_STRING || !str_find(draft, STR("json-schema.org/")) ||
        str_find(draft, STR("draft/2020-12/")))
        return 0;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        if (json_get(value, gone[i]).p)
            return refuse(e, place, "has a keyword of an older draft that 2020-12 has no more");
    }
    return 0;
}

int schema_index_add(struct schema *s, struct str value, size_t resource,
                     const struct schema_place *place, struct err *e)
{
    struct schema_node node = {.value = value, .pointer = BUF_INIT(BUF_SMALL)};

    if (json_type(value) != JSON_OBJECT && json_type(value) != JSON_BOOL)
        return refuse(e, place, "is no schema: neither an object nor a boolean");
    if (json_type(value) == JSON_OBJECT &&
        (check_draft(value, place, e) < 0 || add_resource(s, value, &resource, place, e) < 0))
        return -1;
    node.resource = resource;
    schema_add_pointer(&node.pointer, place);
    s->nodes = mem_grow(s->nodes, &s->cap, s->count + 1, sizeof node);
    s->nodes[s->count++] = node;
    for (struct json_iter it = json_iter(value); json_next(&it);) {
        enum schema_keyword_id id = schema_keyword_find(it.key);
        struct schema_place inner = {place, it.key, 0};

        if (id < KW_COUNT && add_keyword(s, &node, id, it.value, &inner, e) < 0)
            return -1;
    }
    return 0;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct schema_node *x = a, *y = b;

    if (x->value.p != y->value.p)
        return x->value.p < y->value.p ? -1 : 1;
    return (int)y->linked - (int)x->linked;
}

void schema_index_sort(struct schema *s)
{
    size_t kept = 0;

    if (s->count)
        qsort(s->nodes, s->count, sizeof *s->nodes, compare_nodes);
    for (size_t i = 0; i < s->count; i++) {
        if (kept && s->nodes[kept - 1].value.p == s->nodes[i].value.p)
            buf_release(&s->nodes[i].pointer);
        else
            s->nodes[kept++] = s->nodes[i];
    }
    s->count = kept;
}

struct schema_node *schema_index_find(const struct schema *s, struct str value)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->nodes[middle].value.p < value.p)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->nodes[low].value.p == value.p ? &s->nodes[low] : NULL;
}

void schema_index_release(struct schema *s)
{
    for (size_t i = 0; i < s->count; i++)
        buf_release(&s->nodes[i].pointer);
    for (size_t i = 0; i < s->resource_count; i++)
        buf_release(&s->resources[i].uri);
    for (size_t i = 0; i < s->anchor_count; i++)
        buf_release(&s->anchors[i].name);
    for (size_t i = 0; i < s->pattern_count; i++) {
        buf_release(&s->pattern_texts[i]);
        regex_free(s->patterns[i]);
    }
    free(s->nodes);
    free(s->resources);
    free(s->anchors);
    free(s->pattern_texts);
    free(s->patterns);
    buf_release(&s->text);
}
