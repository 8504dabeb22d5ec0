/*
 * keymap - a number for each of many strings, found in constant time.
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
    struct str key; /* p is NULL when free */
    size_t value;
};

/* Zero-initialise. */
struct keymap {
    struct keymap_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
};

/* The number of a key, NULL when it has none; changed by writing through it. */
size_t *keymap_find(const struct keymap *m, struct str key);
/* Sets the number of a key, new or not. */
void keymap_set(struct keymap *m, struct str key, size_t value);
void keymap_release(struct keymap *m);
/* Returns the hash that the map uses: FNV-1a over the bytes, then mixed. It is stored in files. */
uint64_t keymap_hash(struct str key);

#endif
