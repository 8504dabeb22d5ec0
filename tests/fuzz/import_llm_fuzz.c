/*
 * import_llm: a file of any bytes as the database of llm. Reading it ends; what is given has a
 * role, a session that may be stored and an origin in it; and it is the same when it is read again.
 */
#include <stdint.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "convert/import_reader.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash;
    size_t count;
};

static int take(void *arg, const struct import_message *m, struct err *e)
{
    struct seen *s = arg;
    struct buf calls = BUF_INIT(SIZE_MAX);
    struct str value;

    (void)e;
    demand(m->role < ROLE_OTHER && id_session_valid(buf_str(&m->session)) &&
           str_starts(buf_str(&m->origin), buf_str(&m->session)));
    buf_add_byte(&calls, '[');
    buf_add_str(&calls, buf_str(&m->calls));
    buf_add_byte(&calls, ']');
    demand(json_check(buf_str(&calls), &value, NULL));
    buf_release(&calls);
    s->hash = s->hash * 31 + hash_map_hash(buf_str(&m->text)) + hash_map_hash(buf_str(&m->origin));
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
    demand(reason != NULL);
}

static void read_all(const char *path, struct seen *seen)
{
    struct import_sink sink = {take, NULL, known, bad, seen, true};
    struct err e = ERR_INIT;
    struct source s;

    demand(source_open(&s, path, &e) == 0);
    if (import_llm.read(&s, &sink, &e) < 0)
        demand(*err_text(&e) != '\0');
    source_close(&s);
    err_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *path = scratch_path("h");
    struct seen first = {0}, second = {0};

    scratch_write(path, (struct str){(const char *)data, size});
    read_all(path, &first);
    read_all(path, &second);
    demand(first.hash == second.hash && first.count == second.count);
    free(path);
    return 0;
}
