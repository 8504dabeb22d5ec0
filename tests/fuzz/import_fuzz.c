/*
 * import: a file of any bytes, in each format that is text, ends; what is given has a role, a
 * session that may be stored and an origin in it; and it is the same when it is read again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "convert/import_reader.h"

struct seen {
    uint64_t hash;
    size_t count;
};

static int take(void *arg, const struct import_message *m, struct err *e)
{
    struct seen *s = arg;
    struct buf calls = BUF_INIT(BUF_LINE);
    struct str value;

    (void)e;
    if (m->role >= ROLE_OTHER || !id_session_valid(buf_str(&m->session)) ||
        !str_starts(buf_str(&m->origin), buf_str(&m->session)))
        abort();
    buf_addf(&calls, "[");
    buf_add_str(&calls, buf_str(&m->calls));
    buf_add_byte(&calls, ']');
    if (!json_check(buf_str(&calls), &value, NULL))
        abort();
    s->hash = s->hash * 31 + hash_map_hash(buf_str(&m->text)) + hash_map_hash(buf_str(&m->origin));
    s->count++;
    buf_release(&calls);
    return 0;
}

static int take_line(void *arg, const struct message *m, struct err *e)
{
    struct seen *s = arg;

    (void)e;
    s->hash = s->hash * 31 + hash_map_hash(m->line);
    s->count++;
    return 0;
}

static bool known(void *arg, struct str session, struct str part, struct buf *id)
{
    (void)arg;
    if (id)
        buf_add_str(id, part);
    return hash_map_hash(part) % 8 == 0 && session.n > 0;
}

static void bad(void *arg, size_t number, const char *reason)
{
    (void)arg;
    (void)number;
    if (!reason)
        abort();
}

static void read_all(const struct import_format *f, struct str text, struct seen *seen)
{
    struct import_sink sink = {take, take_line, known, bad, seen, true};
    struct source s;

    source_of_text(&s, "dir/name.jsonl", text);
    (void)f->read(&s, &sink, NULL);
    source_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};

    (void)import_format_of(text);
    for (const struct import_format *const *f = import_formats; *f; f++) {
        struct seen first = {0}, second = {0};

        read_all(*f, text, &first);
        read_all(*f, text, &second);
        if (first.hash != second.hash || first.count != second.count)
            abort();
    }
    return 0;
}
