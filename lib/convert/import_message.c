#include "chathist/convert/import_message.h"

#include <inttypes.h>
#include <string.h>

#include "chathist/base/clock.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

/* As much of a foreign id as leaves room for the format and a hash in a session's 128 bytes. */
#define ID_MAX 90
/* How many lines at the beginning of a file may show its format. */
#define LINES_LOOKED_AT 50

void import_message_init(struct import_message *m)
{
    struct buf *const large[] = {&m->text, &m->calls, &m->replaces};
    struct buf *const small[] = {&m->session, &m->origin,   &m->call_id,
                                 &m->model,   &m->provider, &m->finish};

    for (size_t i = 0; i < sizeof large / sizeof(struct buf *); i++)
        buf_init(large[i], BUF_LINE);
    for (size_t i = 0; i < sizeof small / sizeof(struct buf *); i++)
        buf_init(small[i], BUF_SMALL);
    import_message_clear(m, ROLE_USER);
}

void import_message_release(struct import_message *m)
{
    buf_release(&m->text);
    buf_release(&m->calls);
    buf_release(&m->session);
    buf_release(&m->origin);
    buf_release(&m->call_id);
    buf_release(&m->model);
    buf_release(&m->provider);
    buf_release(&m->finish);
    buf_release(&m->replaces);
}

void import_message_clear(struct import_message *m, enum role role)
{
    m->role = role;
    m->time = IMPORT_NO_TIME;
    m->input_tokens = m->output_tokens = -1;
    import_message_rewind(m);
    buf_clear(&m->session);
    buf_clear(&m->origin);
    buf_clear(&m->model);
    buf_clear(&m->provider);
    buf_clear(&m->finish);
    buf_clear(&m->replaces);
}

void import_message_rewind(struct import_message *m)
{
    buf_clear(&m->text);
    buf_clear(&m->calls);
    buf_clear(&m->call_id);
    m->images = 0;
}

uint64_t import_hash(struct str text)
{
    return keymap_hash(text);
}

/* ---- names ---- */

static bool is_id_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
}

void import_add_session(struct buf *out, const char *format, struct str id)
{
    bool changed = id.n == 0 || id.n > ID_MAX;

    buf_addf(out, "%s:", format);
    for (size_t i = 0; i < id.n && i < ID_MAX; i++) {
        bool good = is_id_byte(id.p[i]);

        buf_add_byte(out, good ? id.p[i] : '_');
        changed = changed || !good;
    }
    if (changed)
        buf_addf(out, "-%016" PRIx64, import_hash(id));
}

void import_set_session(struct import_message *m, const char *format, struct str id)
{
    buf_clear(&m->session);
    import_add_session(&m->session, format, id);
}

static void add_part(struct import_message *m, char before, struct str part)
{
    buf_add_byte(&m->origin, before);
    for (size_t i = 0; i < part.n; i++)
        buf_add_byte(&m->origin, part.p[i] == '+' ? '_' : part.p[i]);
}

void import_set_part(struct import_message *m, struct str part)
{
    buf_clear(&m->origin);
    buf_add_str(&m->origin, buf_str(&m->session));
    add_part(m, '/', part);
}

void import_add_part(struct import_message *m, struct str part)
{
    add_part(m, '+', part);
}

/* ---- fields ---- */

/* Seconds since 1970, as JSON writes them, to the microsecond; exponents are for other numbers. */
static bool parse_seconds(struct str number, int64_t *us)
{
    int64_t value = 0, unit = CLOCK_SECOND;
    bool fraction = false;

    for (size_t i = 0; i < number.n; i++) {
        char c = number.p[i];

        if (c == '.' && !fraction && i > 0) {
            fraction = true;
        } else if (c < '0' || c > '9' || value > INT64_MAX / 100) {
            return false;
        } else if (!fraction) {
            value = value * 10 + (c - '0') * CLOCK_SECOND;
        } else {
            unit /= 10;
            value += (c - '0') * unit;
        }
    }
    *us = value;
    return number.n > 0;
}

void import_set_time(struct import_message *m, struct str value)
{
    struct buf scratch = BUF_INIT(BUF_SMALL), iso = BUF_INIT(BUF_SMALL);
    int64_t us, again;

    if (json_type(value) == JSON_STRING
            ? clock_parse_iso(json_text(value, &scratch), &us)
            : json_type(value) == JSON_NUMBER && parse_seconds(value, &us)) {
        /* Only a time that can be written, too. */
        clock_add_iso(&iso, us);
        if (clock_parse_iso(buf_str(&iso), &again))
            m->time = us;
    }
    buf_release(&scratch);
    buf_release(&iso);
}

void import_add_text(struct import_message *m, struct str text)
{
    if (text.n == 0)
        return;
    if (m->text.len > 0)
        buf_add_c(&m->text, "\n\n");
    buf_add_str(&m->text, text);
}

void import_add_call(struct import_message *m, struct str id, struct str name, struct str args)
{
    if (m->calls.len > 0)
        buf_add_byte(&m->calls, ',');
    buf_add_c(&m->calls, "{\"id\":");
    json_add_string(&m->calls, id.n > 0 ? id : name);
    buf_add_c(&m->calls, ",\"name\":");
    json_add_string(&m->calls, name);
    buf_add_c(&m->calls, ",\"args\":");
    if (json_is_null(args))
        buf_add_c(&m->calls, "{}");
    else if (!json_add_unpacked(&m->calls, args))
        json_add_string(&m->calls, args);
    buf_add_byte(&m->calls, '}');
}

void import_add_id(struct buf *list, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    json_add_string(&text, id);
    if (id.n > 0 && !str_ends(buf_str(list), buf_str(&text))) {
        if (list->len > 0)
            buf_add_byte(list, ',');
        buf_add_str(list, buf_str(&text));
    }
    buf_release(&text);
}

void import_set_text(struct buf *field, struct str value)
{
    if (json_type(value) != JSON_STRING)
        return;
    buf_clear(field);
    json_decode(value, field);
}

void import_set_finish(struct import_message *m, struct str value)
{
    static const char *const names[][2] = {
        {"end_turn", "stop"},       {"stop_sequence", "stop"},     {"max_tokens", "length"},
        {"tool_use", "tool_calls"}, {"refusal", "content_filter"},
    };

    import_set_text(&m->finish, value);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq_c(buf_str(&m->finish), names[i][0])) {
            buf_clear(&m->finish);
            buf_add_c(&m->finish, names[i][1]);
            return;
        }
    }
}

/* ---- content ---- */

static bool is_one_of(struct str name, const char *const *names)
{
    for (; *names; names++)
        if (str_eq_c(name, *names))
            return true;
    return false;
}

static void add_value(struct import_message *m, struct str string)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    import_add_text(m, json_text(string, &scratch));
    m->text.overflow = m->text.overflow || scratch.overflow;
    buf_release(&scratch);
}

void import_add_refusal(struct import_message *m, struct str refusal)
{
    if (json_type(refusal) != JSON_STRING || refusal.n <= 2)
        return;
    add_value(m, refusal);
    buf_clear(&m->finish);
    buf_add_c(&m->finish, "content_filter");
}

static void add_block(struct import_message *m, struct str block)
{
    static const char *const keys[] = {"type", "text", "id", "name", "input", "refusal"};
    static const char *const texts[] = {"text", "input_text", "output_text", NULL};
    static const char *const images[] = {"image", "image_url", "input_image", NULL};
    enum { TYPE, TEXT, ID, NAME, INPUT, REFUSAL, COUNT };
    struct buf type = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    struct str value[COUNT], kind;

    if (json_type(block) == JSON_STRING)
        add_value(m, block);
    json_pick(block, keys, value, COUNT);
    kind = json_text(value[TYPE], &type);
    if (is_one_of(kind, texts))
        add_value(m, value[TEXT]);
    else if (str_eq_c(kind, "refusal"))
        import_add_refusal(m, value[REFUSAL]);
    else if (is_one_of(kind, images))
        m->images++;
    else if (str_eq_c(kind, "tool_use"))
        import_add_call(m, json_text(value[ID], &id), json_text(value[NAME], &name), value[INPUT]);
    buf_release(&type);
    buf_release(&id);
    buf_release(&name);
}

void import_add_content(struct import_message *m, struct str content)
{
    struct json_iter it = json_iter(content);

    if (json_type(content) == JSON_STRING)
        add_value(m, content);
    if (json_type(content) != JSON_ARRAY)
        return;
    while (json_next(&it))
        add_block(m, it.value);
}

/* ---- handing over ---- */

bool import_is_empty(const struct import_message *m)
{
    /* A message that is too long is not empty: it is reported. */
    return m->text.len == 0 && !m->text.overflow && m->calls.len == 0 && !m->calls.overflow &&
           m->images == 0 && m->role != ROLE_TOOL;
}

int import_give(struct import_sink *sink, const struct import_message *m, struct err *e)
{
    if (import_is_empty(m))
        return 0;
    return sink->message(sink->arg, m, e);
}

/* Gives m and clears it for the next message of the same record. */
static int give_one(struct import_sink *sink, struct import_message *m, struct str part,
                    size_t *given, struct err *e)
{
    struct buf own = BUF_INIT(BUF_SMALL);
    bool some = !import_is_empty(m);
    int result;

    buf_add_str(&own, part);
    if (*given > 0)
        buf_addf(&own, ".%zu", *given);
    import_set_part(m, buf_str(&own));
    result = import_give(sink, m, e);
    *given += some;
    import_message_rewind(m);
    buf_release(&own);
    return result;
}

/* A text that comes with a call is a message of its own, apart from the texts before it. Returns
 * whether such a text is next. */
static bool is_said_with_call(const struct import_message *m, const struct json_iter *at)
{
    struct json_iter next = *at;

    return m->role == ROLE_ASSISTANT && m->text.len > 0 && json_has_type(at->value, "text") &&
           json_next(&next) && json_has_type(next.value, "tool_use");
}

int import_give_content(struct import_sink *sink, struct import_message *m, struct str content,
                        struct err *e)
{
    enum role role = m->role;
    struct str origin = buf_str(&m->origin), part = STR_NONE;
    struct buf own = BUF_INIT(BUF_SMALL);
    struct json_iter it = json_iter(content);
    size_t given = 0;
    int result = 0;

    if (origin.n > m->session.len)
        part = (struct str){origin.p + m->session.len + 1, origin.n - m->session.len - 1};
    buf_add_str(&own, part);
    if (json_type(content) == JSON_STRING)
        add_value(m, content);
    while (result == 0 && json_type(content) == JSON_ARRAY && json_next(&it)) {
        bool is_result = json_has_type(it.value, "tool_result");

        if (is_result || is_said_with_call(m, &it))
            result = give_one(sink, m, buf_str(&own), &given, e);
        if (!is_result) {
            add_block(m, it.value);
            continue;
        }
        m->role = ROLE_TOOL;
        import_set_text(&m->call_id, json_get(it.value, "tool_use_id"));
        import_add_content(m, json_get(it.value, "content"));
        if (result == 0)
            result = give_one(sink, m, buf_str(&own), &given, e);
        m->role = role;
    }
    if (result == 0)
        result = give_one(sink, m, buf_str(&own), &given, e);
    import_message_clear(m, role);
    buf_release(&own);
    return result;
}

/* The next one: 1, 0, -1. `scratch` holds it when it had to be repaired. */
static int next_object(struct source *s, struct import_sink *sink, struct buf *scratch,
                       struct str *object, struct err *e)
{
    struct str line;
    int got;

    while ((got = source_line(s, &line, e)) > 0) {
        if (!line.p) {
            sink->bad(sink->arg, s->number, "longer than 64 MiB");
            continue;
        }
        if (str_trim(line).n == 0)
            continue;
        if (utf8_valid(line) < line.n) {
            buf_clear(scratch);
            utf8_add_repaired(scratch, line);
            line = buf_str(scratch);
        }
        if (str_starts(line, STR("\xef\xbb\xbf")))
            line = (struct str){line.p + 3, line.n - 3};
        if (json_check(line, object, NULL) && json_type(*object) == JSON_OBJECT)
            return 1;
        /* Its writer may be at it. */
        if (s->terminated)
            sink->bad(sink->arg, s->number, "not a JSON object");
    }
    return got;
}

int import_each_object(struct source *s, struct import_sink *sink,
                       int (*take)(void *arg, struct str object, struct err *e), void *arg,
                       struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str object;
    int got;

    while ((got = next_object(s, sink, &scratch, &object, e)) > 0)
        if (take(arg, object, e) < 0) {
            got = -1;
            break;
        }
    buf_release(&scratch);
    return got;
}

/* ---- which format is it? ---- */

bool import_has_string(struct str object, const char *key)
{
    return json_type(json_get(object, key)) == JSON_STRING;
}

bool import_some_line(struct str head, bool (*is)(struct str object))
{
    if (str_starts(head, STR("\xef\xbb\xbf")))
        head = (struct str){head.p + 3, head.n - 3};
    for (int i = 0; i < LINES_LOOKED_AT && head.n > 0; i++) {
        struct str line = str_cut(&head, '\n'), value;

        if (json_check(line, &value, NULL) && json_type(value) == JSON_OBJECT && is(value))
            return true;
    }
    return false;
}
