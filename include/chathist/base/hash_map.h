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

struct hash_map_slot {
    struct str key; /* p is NULL if the slot is free */
    size_t value;
};

/* Initialise with zeros. */
struct hash_map {
    struct hash_map_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
    char **copies; /* the keys in the order of their numbers; NULL if they are borrowed */
    size_t copies_cap;
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
void hash_map_release(struct hash_map *m);
/* Returns the hash that the map uses: FNV-1a over the bytes, then mixed. It is stored in files. */
uint64_t hash_map_hash(struct str key);

#endif
