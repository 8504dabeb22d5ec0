#include "port/import_tally.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_same.h"
#include "base/mem.h"
#include "port/import_message.h"

static uint64_t hash_of(const struct message *m)
{
    static const enum field fields[] = {FIELD_SESSION_ID,  FIELD_ID,      FIELD_TIMESTAMP,
                                        FIELD_ROLE,        FIELD_CONTENT, FIELD_TOOL_CALLS,
                                        FIELD_TOOL_CALL_ID};
    struct buf text = BUF_INIT(JSON_SAME_MAX);
    uint64_t hash;

    if (m->id.n == 0)
        json_add_same(&text, m->line);
    for (size_t i = 0; m->id.n > 0 && i < sizeof fields / sizeof *fields; i++) {
        /* An export writes null for what is absent. */
        if (!json_is_null(m->field[fields[i]]))
            json_add_same(&text, m->field[fields[i]]);
        buf_add_byte(&text, '\n');
    }
    hash = import_hash(text.overflow ? m->line : buf_str(&text));
    buf_release(&text);
    return hash;
}

size_t import_tally_find(struct import_tally *t, const struct message *m)
{
    uint64_t hash = hash_of(m);
    struct str key = {(const char *)&hash, sizeof hash};
    size_t *found = keymap_find(&t->lines, key);

    if (found)
        return *found;
    t->at = mem_grow(t->at, &t->cap, t->count + 1, sizeof *t->at);
    t->keys = mem_grow(t->keys, &t->keys_cap, t->count + 1, sizeof *t->keys);
    t->at[t->count] = (struct import_tally_line){0};
    key.p = t->keys[t->count] = mem_copy(key.p, key.n);
    keymap_set(&t->lines, key, t->count);
    return t->count++;
}

void import_tally_restart(struct import_tally *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->at[i].stored = 0;
}

void import_tally_release(struct import_tally *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->keys[i]);
    free(t->keys);
    free(t->at);
    keymap_release(&t->lines);
}
