/*
 * keymap - a hash table from strings to numbers.
 *
 * Keys are borrowed: they must live as long as the map.
 */
#ifndef CHATHIST_BASE_KEYMAP_H
#define CHATHIST_BASE_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

struct keymap_slot {
    struct str key; /* p is NULL if the slot is free */
    size_t value;
};

/* Initialise with zeros. */
struct keymap {
    struct keymap_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
};

/* Returns the number of a key, or NULL if the key is absent. The caller can change the number
 * through the pointer. */
size_t *keymap_find(const struct keymap *m, struct str key);
/* Sets the number of a key, which may be new. */
void keymap_set(struct keymap *m, struct str key, size_t value);
void keymap_release(struct keymap *m);
/* Returns the hash that the map uses: FNV-1a over the bytes, then mixed. It is stored in files. */
uint64_t keymap_hash(struct str key);

#endif
