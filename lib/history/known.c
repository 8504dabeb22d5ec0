#include "chathist/history/known.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/memory.h"

/* The part of a slot that is one of the key: most slots with another key are passed over without a
 * look at their entry. */
#define SLOT_KEY (UINT64_MAX << 32)

uint64_t known_key(struct str session, struct str text, uint64_t kind)
{
    return hash64(text, hash64(session, kind));
}

static void *entry_at(const struct known *k, size_t number)
{
    return (char *)k->entries + number * k->entry_size;
}

static uint64_t key_at(const struct known *k, size_t number)
{
    const uint64_t *key = entry_at(k, number);

    return *key;
}

void *known_next(const struct known *k, uint64_t key, size_t *at)
{
    size_t mask = k->slots_size - 1;

    while (k->slots_size > 0 && k->slots[*at & mask] != 0) {
        uint64_t slot = k->slots[(*at)++ & mask];
        size_t number = (size_t)(slot & ~SLOT_KEY) - 1;

        if ((slot & SLOT_KEY) == (key & SLOT_KEY) && key_at(k, number) == key)
            return entry_at(k, number);
    }
    return NULL;
}

void *known_find(const struct known *k, uint64_t key)
{
    size_t at = (size_t)key;

    return known_next(k, key, &at);
}

static void put(struct known *k, size_t number)
{
    uint64_t key = key_at(k, number);
    size_t mask = k->slots_size - 1, at = (size_t)key & mask;

    while (k->slots[at] != 0)
        at = (at + 1) & mask;
    k->slots[at] = (key & SLOT_KEY) | (number + 1);
}

void *known_room(struct known *k, size_t n)
{
    size_t size = k->slots_size > 0 ? k->slots_size : 1024;

    n += k->count;
    if (n >= UINT32_MAX)
        mem_exhausted();
    k->entries = mem_grow(k->entries, &k->cap, n, k->entry_size);
    while (size / 4 * 3 < n)
        size *= 2;
    if (size != k->slots_size) {
        free(k->slots);
        k->slots = mem_zalloc(size * sizeof *k->slots);
        k->slots_size = size;
        for (size_t i = 0; i < k->count; i++)
            put(k, i);
    }
    return entry_at(k, k->count);
}

void known_commit(struct known *k)
{
    put(k, k->count++);
}

void *known_add(struct known *k, uint64_t key)
{
    uint64_t *entry = known_room(k, 1);

    memset(entry, 0, k->entry_size);
    *entry = key;
    known_commit(k);
    return entry;
}

void *known_have(struct known *k, uint64_t key)
{
    void *found = known_find(k, key);

    return found ? found : known_add(k, key);
}

void known_fetch(const struct known *k, uint64_t key)
{
    __builtin_prefetch(&k->slots[key & (k->slots_size - 1)]);
}

void known_release(struct known *k)
{
    free(k->entries);
    free(k->slots);
    *k = (struct known){.entry_size = k->entry_size};
}
