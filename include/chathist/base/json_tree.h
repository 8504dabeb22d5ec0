/*
 * json_tree - JSON objects that are built and changed before they are sent: request bodies.
 *
 * A thin fence round cJSON, whose only user is json_tree.c. cJSON's known traps do not arise: text
 * goes in as a raw JSON string made by base/json_write, so that U+0000, invalid UTF-8 and large
 * integers come out right; keys match by case; nothing is parsed by cJSON at all.
 */
#ifndef CHATHIST_BASE_JSON_TREE_H
#define CHATHIST_BASE_JSON_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* An object or array under construction. Owned by its creator until it is put into a parent. */
struct json_tree;

struct json_tree *json_tree_object(void);
struct json_tree *json_tree_array(void);
/* Frees a tree that has no parent, with all that is in it; NULL is fine. */
void json_tree_free(struct json_tree *t);

/* Each sets a member of an object: at its end, or in the place of an older one of that name, which
 * is freed. json_tree_set takes `value` over; it must not have a parent yet. */
void json_tree_set(struct json_tree *object, const char *key, struct json_tree *value);
void json_tree_set_text(struct json_tree *object, const char *key, struct str text);
void json_tree_set_int(struct json_tree *object, const char *key, int64_t n);
/* `json` must be a value that json_check accepted; it is copied byte for byte. */
void json_tree_set_raw(struct json_tree *object, const char *key, struct str json);
/* Takes a member out and frees it; nothing happens when it is absent. */
void json_tree_remove(struct json_tree *object, const char *key);
/* Adds an element to an array, taking `value` over; or JSON as json_tree_set_raw takes it. */
void json_tree_push(struct json_tree *array, struct json_tree *value);
void json_tree_push_raw(struct json_tree *array, struct str json);

/* Adds the tree to out: on one line, raw values as they were given; or indented by two blanks a
 * level, raw values laid out with the rest. No newline at the end. */
void json_tree_print(const struct json_tree *t, bool indented, struct buf *out);

#endif
