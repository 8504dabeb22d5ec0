/*
 * schema_index - a JSON Schema walked through once: where in its text the schemas lie, which names
 * and expressions they have.
 *
 * The text is not changed and no tree is made of it: a schema is the struct str of its bytes, and
 * what is known of it is found by its address.
 */
#ifndef CHATHIST_LLM_SCHEMA_INDEX_H
#define CHATHIST_LLM_SCHEMA_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/base/json.h"
#include "chathist/base/keymap.h"

struct regex;

/* How deep schemas may be applied within each other. */
#define SCHEMA_DEPTH 2000

/* A part of an instance or a schema, for JSON pointers: member or element of another, NULL being
 * the whole. Lives on the stack of those who walk. */
struct schema_place {
    const struct schema_place *up;
    struct str key; /* raw; p is NULL for an element */
    size_t index;
};
/* Adds the JSON pointer (RFC 6901), "" for the whole. */
void schema_add_pointer(struct buf *out, const struct schema_place *place);
size_t schema_place_depth(const struct schema_place *place);

/* A schema in the text. */
struct schema_node {
    struct str value;       /* an object or a boolean */
    size_t resource;        /* that it belongs to */
    struct str ref;         /* what $ref means; STR_NONE: it has none */
    struct str dynamic_ref; /* what $dynamicRef means at first */
    bool linked;            /* both are known */
    unsigned char colour;   /* of schema_link */
    struct buf pointer;     /* where it is, for messages */
};

/* A schema that has an identity of its own: the whole, and each with an `$id`. */
struct schema_resource {
    struct buf uri; /* without a fragment; empty: the whole, when it has no `$id` */
    struct str value;
};

struct schema_anchor {
    size_t resource;
    struct buf name;
    struct str value;
    bool dynamic;
};

struct schema {
    struct buf text; /* its own copy */
    struct str root;
    struct schema_node *nodes; /* in the order of their addresses, once schema_sort was called */
    size_t count, cap;
    struct schema_resource *resources;
    size_t resource_count, resource_cap;
    struct schema_anchor *anchors;
    size_t anchor_count, anchor_cap;
    struct buf *pattern_texts;
    struct regex **patterns;
    size_t pattern_count, pattern_cap, text_cap;
    bool unevaluated; /* the keywords that ask what others have looked at are used */
};

/* Walks through `value`, a schema inside s->text that belongs to a resource, and enters it with all
 * that are in it. -1: ERR_USAGE, `POINTER: what is wrong`. */
int schema_index_add(struct schema *s, struct str value, size_t resource,
                     const struct schema_place *place, struct err *e);
/* Puts the nodes into order, one for each address. */
void schema_index_sort(struct schema *s);
/* The node of a schema; NULL: no schema is known to begin there. Needs the order. */
struct schema_node *schema_index_find(const struct schema *s, struct str value);
/* The expression of a JSON string that was entered. */
struct regex *schema_index_pattern(const struct schema *s, struct str string);
/* A schema by the name of its anchor in a resource; NULL: there is none. */
const struct schema_anchor *schema_index_anchor(const struct schema *s, size_t resource,
                                                struct str name);
void schema_index_release(struct schema *s);
/* Sets *e to `POINTER: why`; returns -1. */
int schema_index_refuse(struct err *e, struct str pointer, const char *why);

#endif
