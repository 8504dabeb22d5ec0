/*
 * hash_map - a hash table from strings to numbers.
 *
 * Either the keys are borrowed, and must live as long as the map (hash_map_set), or the map has
 * copies of them and numbers them from 0 (hash_map_number). A map is used in one of these ways.
 */
#ifndef CHATHIST_BASE_HASH_MAP_H
#define CHATHIST_BASE_HASH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

struct hash_map_entry {
    struct str key; /* copies end with NUL */
    size_t value;
};

/* A slot has a part of the hash, so that the table grows, and most other keys are passed over,
 * without reading keys. */
struct hash_map_slot {
    uint32_t hash;
    uint32_t number; /* the number of the entry, from 1; 0 if the slot is free */
};

struct hash_map_block;

/* Initialise with zeros. */
struct hash_map {
    struct hash_map_entry *entries; /* an array in the order of adding */
    size_t count, entries_cap;
    struct hash_map_slot *slots;
    size_t size;                   /* a power of two, or 0 */
    struct hash_map_block *blocks; /* the blocks of copied keys */
    char *free;                    /* the bytes of the last one that are not used */
    size_t room;
    size_t valued, values_cap; /* hash_map_values */
};

/* Returns the number of a key, or NULL if the key is absent. The caller can change the number
 * through the pointer. */
size_t *hash_map_find(const struct hash_map *m, struct str key);
/* Sets the number of a key, which may be new. */
void hash_map_set(struct hash_map *m, struct str key, size_t value);
/* Returns the number of a key. A new key gets the next number: it was new if the result is the
 * count from before. *key becomes the map's copy, which lives as long as the map. */
size_t hash_map_number(struct hash_map *m, struct str *key);
/* The same if the number is not wanted now. Returns whether the key was new. */
bool hash_map_add(struct hash_map *m, struct str key);
/* Returns an array with an element of `size` bytes for each number. `values` is the array of the last
 * call, at first NULL. The elements of keys that were added since are zero. The caller frees it. */
void *hash_map_values(struct hash_map *m, void *values, size_t size);
void hash_map_release(struct hash_map *m);

#endif
