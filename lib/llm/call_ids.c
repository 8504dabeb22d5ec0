#include "llm/call_ids.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ALNUM "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define SHORT_ID 9

static const struct str alnum = STR(ALNUM);
static const struct str accepted = STR(ALNUM "_-");

void call_ids_init(struct call_ids *ids, bool nine)
{
    ids->nine = nine;
    buf_init(&ids->taken, BUF_LINE);
    buf_init(&ids->waiting, BUF_LINE);
    buf_add_byte(&ids->taken, '\n');
}

void call_ids_release(struct call_ids *ids)
{
    buf_release(&ids->taken);
    buf_release(&ids->waiting);
}

void call_ids_begin(struct call_ids *ids)
{
    buf_clear(&ids->waiting);
}

static bool fits(const struct call_ids *ids, struct str id)
{
    struct str allowed = ids->nine ? alnum : accepted;

    if (ids->nine ? id.n != SHORT_ID : id.n == 0 || id.n > CALL_ID_MAX)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (!memchr(allowed.p, id.p[i], allowed.n))
            return false;
    return true;
}

/* FNV-1a (RFC 9923). */
static uint64_t hash(struct str text)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < text.n; i++)
        h = (h ^ (unsigned char)text.p[i]) * 1099511628211u;
    return h;
}

/* Makes `\nID\n`: as the list of the taken ids holds it. */
static void make_entry(const struct call_ids *ids, struct buf *entry, uint64_t number)
{
    buf_clear(entry);
    buf_add_c(entry, ids->nine ? "\n" : "\ncall_");
    for (size_t i = 0; i < SHORT_ID; i++, number /= alnum.n)
        buf_add_byte(entry, alnum.p[number % alnum.n]);
    buf_add_byte(entry, '\n');
}

void call_ids_add(struct call_ids *ids, struct str id, struct buf *out)
{
    struct buf entry = BUF_INIT(BUF_SMALL);
    uint64_t number = hash(id);

    if (fits(ids, id)) {
        buf_add_byte(&entry, '\n');
        buf_add_str(&entry, id);
        buf_add_byte(&entry, '\n');
    } else {
        make_entry(ids, &entry, number++);
    }
    while (str_find(buf_str(&ids->taken), buf_str(&entry)))
        make_entry(ids, &entry, number++);
    buf_add(&ids->taken, entry.data + 1, entry.len - 1);
    buf_add(&ids->waiting, entry.data + 1, entry.len - 1);
    buf_add(out, entry.data + 1, entry.len - 2);
    buf_release(&entry);
}

bool call_ids_next(struct call_ids *ids, struct buf *out)
{
    struct str rest = buf_str(&ids->waiting);
    struct str id = str_cut(&rest, '\n');

    if (id.n == 0)
        return false;
    buf_add_str(out, id);
    buf_consume(&ids->waiting, id.n + 1);
    return true;
}

void call_name_add(struct buf *out, struct str name)
{
    if (name.n == 0)
        buf_add_c(out, "unnamed");
    for (size_t i = 0; i < name.n && i < CALL_NAME_MAX; i++)
        buf_add_byte(out, memchr(accepted.p, name.p[i], accepted.n) ? name.p[i] : '_');
}
