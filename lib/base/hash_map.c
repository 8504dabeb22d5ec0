#include "chathist/base/hash_map.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/memory.h"

/* The least and the most bytes of a block of keys that are not longer. */
#define BLOCK_MIN ((size_t)256)
#define BLOCK_MAX ((size_t)64 << 10)

struct hash_map_block {
    struct hash_map_block *before;
    char bytes[];
};

static uint32_t hash_of(struct str key)
{
    return (uint32_t)hash64(key, 0);
}

/* Returns the slot of a key, or the free slot for it. At least one slot is free. */
static struct hash_map_slot *slot_of(const struct hash_map *m, struct str key, uint32_t hash)
{
    size_t i = hash & (m->size - 1);

    while (m->slots[i].number > 0 &&
           (m->slots[i].hash != hash || !str_eq(m->entries[m->slots[i].number - 1].key, key)))
        i = (i + 1) & (m->size - 1);
    return &m->slots[i];
}

size_t *hash_map_find(const struct hash_map *m, struct str key)
{
    uint32_t number = m->size > 0 ? slot_of(m, key, hash_of(key))->number : 0;

    return number > 0 ? &m->entries[number - 1].value : NULL;
}

static void grow(struct hash_map *m)
{
    struct hash_map old = *m;

    m->size = old.size ? old.size * 2 : 64;
    m->slots = mem_zalloc(m->size * sizeof(*m->slots));
    for (size_t i = 0; i < old.size; i++) {
        size_t to = old.slots[i].hash & (m->size - 1);

        while (old.slots[i].number > 0 && m->slots[to].number > 0)
            to = (to + 1) & (m->size - 1);
        if (old.slots[i].number > 0)
            m->slots[to] = old.slots[i];
    }
    free(old.slots);
}

/* Returns the entry of a key. A new entry has a borrowed key, and its number as value. */
static struct hash_map_entry *entry_of(struct hash_map *m, struct str key)
{
    uint32_t hash = hash_of(key);
    struct hash_map_slot *slot;

    if (m->count >= m->size / 2)
        grow(m);
    slot = slot_of(m, key, hash);
    if (slot->number == 0) {
        if (m->count == UINT32_MAX)
            mem_exhausted();
        m->entries = mem_grow(m->entries, &m->entries_cap, m->count + 1, sizeof *m->entries);
        m->entries[m->count] = (struct hash_map_entry){key, m->count};
        *slot = (struct hash_map_slot){hash, (uint32_t)++m->count};
    }
    return &m->entries[slot->number - 1];
}

void hash_map_set(struct hash_map *m, struct str key, size_t value)
{
    entry_of(m, key)->value = value;
}

/* Copies a key, with a NUL. */
static const char *copy_key(struct hash_map *m, struct str key)
{
    size_t n = key.n + 1, size = m->count * (BLOCK_MIN / 8);
    struct hash_map_block *block;
    char *to;

    if (n > m->room) {
        size = size < BLOCK_MIN ? BLOCK_MIN : size > BLOCK_MAX ? BLOCK_MAX : size;
        m->room = n > size ? n : size;
        block = mem_resize(NULL, sizeof *block + m->room, 1);
        block->before = m->blocks;
        m->blocks = block;
        m->free = block->bytes;
    }
    to = m->free;
    if (key.n > 0)
        memcpy(to, key.p, key.n);
    to[key.n] = '\0';
    m->free += n;
    m->room -= n;
    return to;
}

size_t hash_map_number(struct hash_map *m, struct str *key)
{
    size_t count = m->count;
    struct hash_map_entry *entry = entry_of(m, *key);

    if (m->count > count)
        entry->key.p = copy_key(m, *key);
    *key = entry->key;
    return entry->value;
}

bool hash_map_add(struct hash_map *m, struct str key)
{
    size_t before = m->count;

    (void)hash_map_number(m, &key);
    return m->count > before;
}

void *hash_map_values(struct hash_map *m, void *values, size_t size)
{
    if (m->valued == m->count)
        return values;
    values = mem_grow(values, &m->values_cap, m->count, size);
    memset((char *)values + m->valued * size, 0, (m->count - m->valued) * size);
    m->valued = m->count;
    return values;
}

void hash_map_release(struct hash_map *m)
{
    for (struct hash_map_block *block = m->blocks, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    free(m->entries);
    free(m->slots);
    *m = (struct hash_map){0};
}
