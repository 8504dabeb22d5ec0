#include "llm/schema_link.h"

#include "chathist/base/json_same.h"
#include "llm/schema_keyword.h"
#include "llm/uri.h"

static int refuse(struct err *e, const struct schema_node *node, const char *keyword,
                  struct str reference, const char *why)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_addf(&text, "%s/%s: '", buf_c(&node->pointer), keyword);
    buf_add_str(&text, reference);
    buf_addf(&text, "' %s", why);
    err_set(e, ERR_USAGE, "%s", buf_c(&text));
    buf_release(&text);
    return -1;
}

/* ---- pointers ---- */

/* Adds the name that a step of a JSON pointer means. */
static void add_unescaped(struct buf *out, struct str step)
{
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] == '~' && i + 1 < step.n && (step.p[i + 1] == '0' || step.p[i + 1] == '1'))
            buf_add_byte(out, step.p[++i] == '0' ? '~' : '/');
        else
            buf_add_byte(out, step.p[i]);
    }
}

/* The element of an array at "0", "12"; no leading zeros. */
static struct str element(struct str array, struct str step)
{
    size_t index = 0;

    if (step.n == 0 || step.n > 9 || (step.n > 1 && step.p[0] == '0'))
        return STR_NONE;
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] < '0' || step.p[i] > '9')
            return STR_NONE;
        index = index * 10 + (size_t)(step.p[i] - '0');
    }
    return json_at(array, index);
}

static struct str member(struct str object, struct str step)
{
    struct buf name = BUF_INIT(BUF_LINE), json = BUF_INIT(BUF_LINE);
    struct str found;

    add_unescaped(&name, step);
    json_add_string(&json, buf_str(&name));
    found = json.len > 2 ? json_get_same(object, (struct str){json.data + 1, json.len - 2})
                         : json_get(object, "");
    buf_release(&name);
    buf_release(&json);
    return found;
}

static struct str follow(struct str value, struct str pointer)
{
    struct str rest = pointer;

    str_cut(&rest, '/');
    while (rest.p && value.p) {
        struct str step = str_cut(&rest, '/');

        value = json_type(value) == JSON_ARRAY ? element(value, step) : member(value, step);
    }
    return value;
}

/* ---- references ---- */

static const struct schema_resource *find_resource(const struct schema *s, struct str uri)
{
    for (size_t i = 0; i < s->resource_count; i++)
        if (str_eq(buf_str(&s->resources[i].uri), uri))
            return &s->resources[i];
    return NULL;
}

/* What the decoded fragment means in a resource; STR_NONE: nothing. */
static struct str find_fragment(const struct schema *s, const struct schema_resource *r,
                                struct str fragment)
{
    const struct schema_anchor *anchor;

    if (fragment.n == 0 || fragment.p[0] == '/')
        return fragment.n ? follow(r->value, fragment) : r->value;
    anchor = schema_index_anchor(s, (size_t)(r - s->resources), fragment);
    return anchor ? anchor->value : STR_NONE;
}

/* Finds what a reference means, and enters it when nobody knew yet that it is a schema. */
static int resolve(struct schema *s, size_t i, const char *keyword, struct str *target,
                   struct err *e)
{
    const struct schema_node *node = &s->nodes[i];
    struct str string = json_get(node->value, keyword), reference, fragment;
    struct buf text = BUF_INIT(BUF_LINE), uri = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE);
    const struct schema_resource *r;
    int rc = -1;

    *target = STR_NONE;
    if (!string.p)
        return 0;
    reference = json_text(string, &text);
    uri_resolve(&uri, buf_str(&s->resources[node->resource].uri), reference, &fragment);
    r = find_resource(s, buf_str(&uri));
    if (!r) {
        refuse(e, node, keyword, reference, "is not in this file, and nothing else is read");
        goto out;
    }
    if (uri_decode(&name, fragment))
        *target = find_fragment(s, r, buf_str(&name));
    if (!target->p)
        refuse(e, node, keyword, reference, "leads nowhere");
    else
        rc = 0;

out:
    buf_release(&text);
    buf_release(&uri);
    buf_release(&name);
    return rc;
}

/* A place that only a reference of node i says is a schema; `keyword` is in its quotes. */
static int enter(struct schema *s, size_t i, struct str target, struct str keyword, struct err *e)
{
    struct schema_place place = {NULL, {keyword.p + 1, keyword.n - 2}, 0};
    struct err why = ERR_INIT;

    if (!target.p || schema_index_find(s, target))
        return 0;
    if (schema_index_add(s, target, s->nodes[i].resource, &place, &why) == 0)
        return 1;
    err_set(e, ERR_USAGE, "%s%s", buf_c(&s->nodes[i].pointer), err_text(&why));
    err_release(&why);
    return -1;
}

/* 1: schemas were entered, and the nodes are without order; 0; -1. */
static int link_node(struct schema *s, size_t i, struct err *e)
{
    struct schema_node *node = &s->nodes[i];
    int entered = 0;

    if (json_type(node->value) == JSON_OBJECT) {
        if (resolve(s, i, "$ref", &node->ref, e) < 0 ||
            resolve(s, i, "$dynamicRef", &node->dynamic_ref, e) < 0)
            return -1;
        entered = enter(s, i, node->ref, STR("\"$ref\""), e);
        if (entered == 0)
            entered = enter(s, i, node->dynamic_ref, STR("\"$dynamicRef\""), e);
    }
    if (entered == 0)
        node->linked = true;
    return entered;
}

/* ---- schemas that refer to themselves ---- */

enum { WHITE, GREY, BLACK };

static int visit(struct schema *s, struct str value, size_t depth, struct err *e);

/* The schemas that a keyword applies to the same instance. */
static int visit_keyword(struct schema *s, enum schema_keyword_id id, struct str value,
                         size_t depth, struct err *e)
{
    const struct schema_keyword *keyword = schema_keyword_at(id);
    struct json_iter it = json_iter(value);

    if (!keyword->in_place || keyword->form == FORM_TEXT)
        return 0;
    if (keyword->form == FORM_SCHEMA)
        return visit(s, value, depth, e);
    while (json_next(&it))
        if (visit(s, it.value, depth, e) < 0)
            return -1;
    return 0;
}

static int visit(struct schema *s, struct str value, size_t depth, struct err *e)
{
    struct schema_node *node = value.p ? schema_index_find(s, value) : NULL;

    if (!node || node->colour == BLACK)
        return 0;
    if (node->colour == GREY)
        return schema_index_refuse(e, buf_str(&node->pointer), "refers to itself for ever");
    if (depth > SCHEMA_DEPTH)
        return schema_index_refuse(e, buf_str(&node->pointer), "refers on too often");
    node->colour = GREY;
    if (visit(s, node->ref, depth + 1, e) < 0 || visit(s, node->dynamic_ref, depth + 1, e) < 0)
        return -1;
    for (struct json_iter it = json_iter(node->value); json_next(&it);) {
        enum schema_keyword_id id = it.object ? schema_keyword_find(it.key) : KW_COUNT;

        if (id < KW_COUNT && visit_keyword(s, id, it.value, depth + 1, e) < 0)
            return -1;
    }
    node->colour = BLACK;
    return 0;
}

int schema_link(struct schema *s, struct err *e)
{
    schema_index_sort(s);
    for (size_t i = 0; i < s->count;) {
        int entered = s->nodes[i].linked ? 0 : link_node(s, i, e);

        if (entered < 0)
            return -1;
        if (entered) {
            schema_index_sort(s);
            i = 0;
        } else {
            i++;
        }
    }
    for (size_t i = 0; i < s->count; i++)
        if (visit(s, s->nodes[i].value, 0, e) < 0)
            return -1;
    return 0;
}

/* Only a name in the fragment is looked for elsewhere: a pointer means its one place. */
static bool has_name(struct str reference)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str fragment = json_text(reference, &scratch);
    bool named;

    str_cut(&fragment, '#');
    named = fragment.n > 0 && fragment.p[0] != '/';
    buf_release(&scratch);
    return named;
}

struct str schema_link_dynamic(const struct schema *s, const struct schema_node *node,
                               const size_t *scope, size_t depth)
{
    const struct schema_anchor *first = NULL;

    for (size_t i = 0; i < s->anchor_count && !first; i++)
        if (s->anchors[i].dynamic && s->anchors[i].value.p == node->dynamic_ref.p)
            first = &s->anchors[i];
    if (!first || !has_name(json_get(node->value, "$dynamicRef")))
        return node->dynamic_ref;
    for (size_t i = 0; i < depth; i++) {
        const struct schema_anchor *outer = schema_index_anchor(s, scope[i], buf_str(&first->name));

        if (outer && outer->dynamic)
            return outer->value;
    }
    return node->dynamic_ref;
}
