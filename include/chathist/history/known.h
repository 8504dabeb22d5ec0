/*
 * known - what a history has, as entries that are found by hashes of 64 bits.
 *
 * Import and sync ask the same of each line that they read: whether the history has it. Their
 * entries differ: sync has one for each line, with its digest and its place, import some for the
 * names that a line has. Several entries can have the same key. Different texts with the same hash
 * would be taken for one another: among a billion lines that is a chance of one in 40.
 */
#ifndef CHATHIST_HISTORY_KNOWN_H
#define CHATHIST_HISTORY_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* Initialise with KNOWN_INIT. An entry is a struct of the caller whose first member is the key, a
 * uint64_t. Its pointer is valid until the next one is added, its number always. */
struct known {
    size_t entry_size;
    void *entries; /* an array in the order of adding */
    size_t count, cap;
    uint64_t *slots;   /* the upper half of a key, and the number of its entry + 1; 0: free */
    size_t slots_size; /* a power of two, or 0 */
};
#define KNOWN_INIT(TYPE)                                                                           \
    {                                                                                              \
        .entry_size = sizeof(TYPE)                                                                 \
    }

/* Returns the hash of a text in a session; `kind` keeps the texts of different kinds apart. */
uint64_t known_key(struct str session, struct str text, uint64_t kind);

/* Returns the next entry with this key, or NULL. *at is its place in the search: the caller sets it
 * to the key before the first call. */
void *known_next(const struct known *k, uint64_t key, size_t *at);
/* Returns the first entry with this key, or NULL. */
void *known_find(const struct known *k, uint64_t key);
/* Adds an entry with this key, all other members zero, and returns it. */
void *known_add(struct known *k, uint64_t key);
/* Returns known_find, or else known_add. */
void *known_have(struct known *k, uint64_t key);
/* Makes room for n entries after the last one, and returns the first of them. The caller fills
 * them; each call of known_commit makes the next one an entry. */
void *known_room(struct known *k, size_t n);
void known_commit(struct known *k);
/* Asks the processor for the slot of a key, which is rarely in the cache. */
void known_fetch(const struct known *k, uint64_t key);
void known_release(struct known *k);

#endif
