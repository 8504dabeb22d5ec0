#include "chathist/base/hash_map.h"

#include <stdlib.h>

#include "chathist/base/memory.h"

uint64_t hash_map_hash(struct str key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
    /* This makes the last byte change all bits. */
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

/* Returns the slot of a key, or the free slot for it. At least one slot is free. */
static struct hash_map_slot *slot_of(const struct hash_map *m, struct str key)
{
    size_t i = (size_t)hash_map_hash(key) & (m->size - 1);

    while (m->slots[i].key.p && !str_eq(m->slots[i].key, key))
        i = (i + 1) & (m->size - 1);
    return &m->slots[i];
}

size_t *hash_map_find(const struct hash_map *m, struct str key)
{
    struct hash_map_slot *slot = m->size ? slot_of(m, key) : NULL;

    return slot && slot->key.p ? &slot->value : NULL;
}

static void grow(struct hash_map *m)
{
    struct hash_map old = *m;

    m->size = old.size ? old.size * 2 : 64;
    m->slots = mem_zalloc(m->size * sizeof(*m->slots));
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].key.p)
            *slot_of(m, old.slots[i].key) = old.slots[i];
    }
    free(old.slots);
}

/* Returns the slot of a key, or a free slot for it, which the caller fills. */
static struct hash_map_slot *slot_for(struct hash_map *m, struct str *key)
{
    struct hash_map_slot *slot;

    if (m->count >= m->size / 2)
        grow(m);
    if (!key->p)
        *key = STR("");
    slot = slot_of(m, *key);
    m->count += !slot->key.p;
    return slot;
}

void hash_map_set(struct hash_map *m, struct str key, size_t value)
{
    struct hash_map_slot *slot = slot_for(m, &key);

    if (!slot->key.p)
        slot->key = key;
    slot->value = value;
}

size_t hash_map_number(struct hash_map *m, struct str *key)
{
    struct hash_map_slot *slot = slot_for(m, key);

    if (!slot->key.p) {
        m->copies = mem_grow(m->copies, &m->copies_cap, m->count, sizeof *m->copies);
        m->copies[m->count - 1] = mem_copy(key->p, key->n);
        *slot = (struct hash_map_slot){{m->copies[m->count - 1], key->n}, m->count - 1};
    }
    *key = slot->key;
    return slot->value;
}

bool hash_map_add(struct hash_map *m, struct str key)
{
    size_t before = m->count;

    (void)hash_map_number(m, &key);
    return m->count > before;
}

void hash_map_release(struct hash_map *m)
{
    for (size_t i = 0; m->copies && i < m->count; i++)
        free(m->copies[i]);
    free(m->copies);
    free(m->slots);
    *m = (struct hash_map){0};
}
