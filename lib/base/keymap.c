#include "chathist/base/keymap.h"

#include <stdlib.h>

#include "chathist/base/mem.h"

uint64_t keymap_hash(struct str key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < key.n; i++)
        h = (h ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
    /* This makes the last byte change all bits. */
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

/* Returns the slot of a key, or the free slot for it. At least one slot is free. */
static struct keymap_slot *slot_of(const struct keymap *m, struct str key)
{
    size_t i = (size_t)keymap_hash(key) & (m->size - 1);

    while (m->slots[i].key.p && !str_eq(m->slots[i].key, key))
        i = (i + 1) & (m->size - 1);
    return &m->slots[i];
}

size_t *keymap_find(const struct keymap *m, struct str key)
{
    struct keymap_slot *slot = m->size ? slot_of(m, key) : NULL;

    return slot && slot->key.p ? &slot->value : NULL;
}

static void grow(struct keymap *m)
{
    struct keymap old = *m;

    m->size = old.size ? old.size * 2 : 64;
    m->slots = mem_zalloc(m->size * sizeof(*m->slots));
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].key.p)
            *slot_of(m, old.slots[i].key) = old.slots[i];
    }
    free(old.slots);
}

void keymap_set(struct keymap *m, struct str key, size_t value)
{
    if (m->count >= m->size / 2)
        grow(m);
    if (!key.p)
        key = STR("");

    struct keymap_slot *slot = slot_of(m, key);

    if (!slot->key.p) {
        slot->key = key;
        m->count++;
    }
    slot->value = value;
}

void keymap_release(struct keymap *m)
{
    free(m->slots);
    *m = (struct keymap){0};
}
