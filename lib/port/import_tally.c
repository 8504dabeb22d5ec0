#include "port/import_tally.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_same.h"
#include "base/mem.h"
#include "port/import_message.h"

/* Adds what it says; null is what an export writes for what is absent. */
static void add_said(struct buf *out, const struct message *m)
{
    struct buf content = BUF_INIT(BUF_LINE), call = BUF_INIT(BUF_LINE);
    const struct str texts[] = {m->session_id,
                                m->id,
                                m->timestamp,
                                m->role_text,
                                message_content(m, &content),
                                message_text(m, FIELD_TOOL_CALL_ID, &call)};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_addf(out, "%zu:", texts[i].n);
        buf_add_str(out, texts[i]);
    }
    if (!json_is_null(m->field[FIELD_TOOL_CALLS]))
        json_add_same(out, m->field[FIELD_TOOL_CALLS]);
    buf_release(&content);
    buf_release(&call);
}

static uint64_t hash_of(const struct message *m)
{
    struct buf text = BUF_INIT(JSON_SAME_MAX);
    uint64_t hash;

    if (m->id.n > 0)
        add_said(&text, m);
    else
        json_add_same(&text, m->line);
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
