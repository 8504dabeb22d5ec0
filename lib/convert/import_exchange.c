#include "convert/import_exchange.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"

struct exchange {
    struct buf objects;      /* the prompt and its answer */
    struct buf part;         /* that of the prompt */
    uint64_t prompt, answer; /* hashes of the objects up to the prompt and to the answer, or 0 */
};

/* Takes message number n. */
static void see(struct exchange *x, struct str object, size_t n)
{
    struct str role = json_get(object, "role");

    if (json_is_text(role, "user") && x->prompt == 0) {
        buf_add_str(&x->objects, object);
        x->prompt = hash_fnv(buf_str(&x->objects));
        buf_addf(&x->part, "%zu-%08" PRIx32, n, (uint32_t)hash_fnv(object));
    } else if (json_is_text(role, "assistant") && x->prompt != 0 && x->answer == 0) {
        buf_add_str(&x->objects, object);
        x->answer = hash_fnv(buf_str(&x->objects));
    }
}

/* Takes record number n. */
static void see_record(struct exchange *x, struct str record, size_t n, char *const *arrays,
                       size_t count)
{
    size_t number = 0;
    bool some = false;

    for (size_t i = 0; i < count; i++) {
        struct str list = json_get(record, arrays[i]);
        struct json_iter it = json_iter(list);

        some = some || json_type(list) == JSON_ARRAY;
        while (json_type(list) == JSON_ARRAY && json_next(&it))
            see(x, it.value, ++number);
    }
    if (!some)
        see(x, record, n);
}

bool exchange_has_lines(struct str head, char *const *arrays, size_t count)
{
    struct str line = str_cut(&head, '\n'), value;
    bool is = count > 0 && json_check(line, &value, NULL) && json_type(value) == JSON_OBJECT;

    for (size_t i = 0; i < count && is; i++)
        is = json_is_null(json_get(value, arrays[i]));
    return is;
}

/* Reads the first prompt of a file and its answer, and leaves the source where it is. Returns 0, or
 * -1 with *e set. */
static int read_exchange(const struct source *s, struct str head, char *const *arrays, size_t count,
                         struct exchange *x, struct err *e)
{
    source_next *next = exchange_has_lines(head, arrays, count) ? source_line : source_value;
    struct str text, object;
    struct source again;
    int got = source_open(&again, s->path, e);

    if (got < 0)
        return -1;
    got = source_head(&again, &text, e) < 0 ? -1 : 1;
    while (got > 0 && x->answer == 0 && (got = next(&again, &text, e)) > 0)
        if (json_check(text, &object, NULL))
            see_record(x, object, again.number, arrays, count);
    source_close(&again);
    return got < 0 ? -1 : 0;
}

/* Returns the name of the file without directories, and without what follows its last dot. */
static struct str base_name(const char *path)
{
    struct str base = utf8_first(str_of(path_base(path)), 60);

    while (base.n > 0 && memchr(base.p, '.', base.n) && base.p[base.n - 1] != '.')
        base.n--;
    base.n -= base.n > 1 && base.p[base.n - 1] == '.';
    return base;
}

int exchange_name_session(struct source *s, const char *format, char *const *arrays, size_t count,
                          struct str document, struct str head, struct buf *id, struct err *e)
{
    struct exchange x = {BUF_INIT(2 * SOURCE_VALUE_MAX), BUF_INIT(BUF_SMALL), 0, 0};
    char *place = s->is_file ? path_real(s->path, e) : NULL;
    struct str base = place ? base_name(s->name) : STR("");
    struct buf session = BUF_INIT(BUF_SMALL);
    int result = s->is_file && !place ? -1 : 0;

    if (document.p)
        see_record(&x, document, 0, arrays, count);
    else if (result == 0 && s->is_file)
        result = read_exchange(s, head, arrays, count, &x, e);
    if (result == 0) {
        uint64_t names[] = {place ? hash_fnv(str_of(place)) : 0, x.prompt, x.answer};
        size_t last = x.answer != 0 ? 2 : 1, i = place ? 0 : last;

        head.n = head.n > SOURCE_HEAD ? SOURCE_HEAD : head.n;
        if (!place || x.prompt == 0)
            names[last] = hash_fnv(head);
        do {
            buf_clear(id);
            buf_clear(&session);
            buf_addf(id, "%.*s%s%016" PRIx64, (int)base.n, base.p, place ? "-" : "", names[i]);
            import_add_session(&session, format, buf_str(id));
        } while (i++ < last && !import_knows(s, buf_str(&session), buf_str(&x.part), NULL));
    }
    free(place);
    buf_release(&session);
    buf_release(&x.objects);
    buf_release(&x.part);
    return result;
}
