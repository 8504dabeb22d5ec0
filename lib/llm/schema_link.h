/*
 * schema_link - the references of a JSON Schema: `$ref` and `$dynamicRef` are resolved within the
 * document (RFC 3986, RFC 6901, anchors, `$id`), and a schema that refers to itself for ever is
 * found. Other documents are never fetched.
 */
#ifndef CHATHIST_LLM_SCHEMA_LINK_H
#define CHATHIST_LLM_SCHEMA_LINK_H

#include "llm/schema_index.h"

/* Links every node. -1: ERR_USAGE, `POINTER: what is wrong`. */
int schema_link(struct schema *s, struct err *e);
/* What a `$dynamicRef` means when it is met: `scope` gives the resources that the walk is in, the
 * outermost first; the first of them that has an anchor of that name counts. */
struct str schema_link_dynamic(const struct schema *s, const struct schema_node *node,
                               const size_t *scope, size_t depth);

#endif
