/*
 * import_messages - messages as OpenAI's chat completions and Anthropic's Messages API take them.
 *
 * Sources: OpenAI, "Create chat completion", messages; Anthropic, "Create a Message", messages.
 * A file is an array of messages, an object with `messages` (a whole request, of which `model` and
 * `system` are used, too), or has an object on each line. Calls of tools and their results may have
 * the form of either API.
 *
 * Such a file has no ids, and mostly no times. Its session is named after its name, the first
 * prompt and its answer; standard input after its first bytes. A message is identified by its
 * number and a hash of its content. Its time is its `timestamp`, `created_at` or `create_time`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "convert/import_reader.h"

/* ---- a message ---- */

static enum role role_in(struct str object)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct str name = json_text(json_get(object, "role"), &scratch);
    enum role role = role_of(name);

    if (str_eq_c(name, "developer"))
        role = ROLE_SYSTEM;
    else if (str_eq_c(name, "function"))
        role = ROLE_TOOL;
    buf_release(&scratch);
    return role;
}

/* Adds a call of chat completions: `{"id","function":{"name","arguments"}}`. */
static void add_call(struct import_message *m, struct str id, struct str function)
{
    struct buf one = BUF_INIT(BUF_SMALL), other = BUF_INIT(BUF_SMALL);

    import_add_call(m, json_text(id, &one), json_text(json_get(function, "name"), &other),
                    json_get(function, "arguments"));
    buf_release(&one);
    buf_release(&other);
}

static void add_calls(struct import_message *m, struct str object)
{
    struct json_iter it = json_iter(json_get(object, "tool_calls"));
    struct str function = json_get(object, "function_call");

    while (json_next(&it))
        add_call(m, json_get(it.value, "id"), json_get(it.value, "function"));
    if (json_type(function) == JSON_OBJECT)
        add_call(m, STR_NONE, function);
}

static void add_part_name(struct buf *out, struct str object, size_t n)
{
    buf_addf(out, "%zu-%08" PRIx32, n, (uint32_t)hash_fnv(object));
}

/* Sets the members of a message apart from its content. */
static void set_members(struct import_message *m, const struct import_message *like,
                        struct str object, size_t n)
{
    struct buf part = BUF_INIT(BUF_SMALL);

    buf_add_str(&m->session, buf_str(&like->session));
    add_part_name(&part, object, n);
    import_set_part(m, buf_str(&part));
    import_set_time(m, json_get(object, "create_time"));
    import_set_time(m, json_get(object, "created_at"));
    import_set_time(m, json_get(object, "timestamp"));
    if (m->role == ROLE_ASSISTANT) {
        buf_add_str(&m->model, buf_str(&like->model));
        buf_add_str(&m->provider, buf_str(&like->provider));
        import_set_text(&m->model, json_get(object, "model"));
        add_calls(m, object);
        import_add_refusal(m, json_get(object, "refusal"));
    }
    if (m->role == ROLE_TOOL) {
        import_set_text(&m->call_id, json_get(object, "name"));
        import_set_text(&m->call_id, json_get(object, "tool_call_id"));
    }
    buf_release(&part);
}

int import_give_message(struct source *s, const struct import_message *like, struct str object,
                        size_t n, struct err *e)
{
    struct str content = json_get(object, "content");
    enum json_type type = json_type(content);
    struct import_message m;
    int result = 0;

    import_message_init(&m);
    m.role = role_in(object);
    if (m.role == ROLE_OTHER) {
        import_bad(s, "no known 'role'");
    } else if (!json_is_null(content) && type != JSON_STRING && type != JSON_ARRAY) {
        import_bad(s, "'content' is neither a string nor an array");
    } else {
        set_members(&m, like, object, n);
        result = import_give_content(s, &m, content, e);
    }
    import_message_release(&m);
    return result;
}

/* ---- the session of a file ---- */

void import_see(struct import_exchange *x, struct str object, size_t n)
{
    enum role role = role_in(object);

    if (role == ROLE_USER && x->prompt == 0) {
        buf_add_str(&x->objects, object);
        x->prompt = hash_fnv(buf_str(&x->objects));
        add_part_name(&x->part, object, n);
    } else if (role == ROLE_ASSISTANT && x->prompt != 0 && x->answer == 0) {
        buf_add_str(&x->objects, object);
        x->answer = hash_fnv(buf_str(&x->objects));
    }
}

size_t import_see_all(struct import_exchange *x, struct str messages, size_t before)
{
    struct json_iter it = json_iter(messages);

    while (json_next(&it))
        import_see(x, it.value, ++before);
    return before;
}

void import_exchange_release(struct import_exchange *x)
{
    buf_release(&x->objects);
    buf_release(&x->part);
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

int import_set_file_session(struct import_message *m, const char *format, struct source *s,
                            struct import_exchange *x, struct str head, struct err *e)
{
    char *place = s->is_file ? path_real(s->path, e) : NULL;
    struct str base = place ? base_name(s->name) : STR("");
    uint64_t names[] = {place ? hash_fnv(str_of(place)) : 0, x->prompt, x->answer};
    size_t last = x->answer != 0 ? 2 : 1, i = place ? 0 : last;
    struct buf id = BUF_INIT(BUF_SMALL);
    int result = s->is_file && !place ? -1 : 0;

    if (head.n > SOURCE_HEAD)
        head.n = SOURCE_HEAD;
    if (!place || x->prompt == 0)
        names[last] = hash_fnv(head);
    do {
        buf_clear(&id);
        buf_addf(&id, "%.*s%s%016" PRIx64, (int)base.n, base.p, place ? "-" : "", names[i]);
        import_set_session(m, format, buf_str(&id));
    } while (i++ < last && !import_knows(s, buf_str(&m->session), buf_str(&x->part), NULL));
    free(place);
    buf_release(&id);
    return result;
}

/* ---- a file ---- */

/* Gives the messages of a request. Each request is a session; the first has the session of the
 * file. */
static int give_request(struct source *s, struct import_message *m, struct str request,
                        struct err *e)
{
    struct json_iter it = json_iter(json_get(request, "messages"));
    struct str system = json_get(request, "system");
    struct buf object = BUF_INIT(BUF_LINE);
    size_t file_session = m->session.len, number = s->number;
    int result = 0;

    if (number > 1)
        buf_addf(&m->session, "-%zu", number);
    buf_clear(&m->model);
    import_set_text(&m->model, json_get(request, "model"));
    if (!json_is_null(system)) {
        buf_add_c(&object, "{\"role\":\"system\",\"content\":");
        buf_add_str(&object, system);
        buf_add_byte(&object, '}');
        result = import_give_message(s, m, buf_str(&object), 0, e);
    }
    for (s->number = 0; result == 0 && json_next(&it);) {
        s->number++;
        result = import_give_message(s, m, it.value, s->number, e);
    }
    s->number = number;
    buf_truncate(&m->session, file_session);
    buf_release(&object);
    return result;
}

struct reader {
    struct source *source;
    struct import_message m; /* session, model and provider of the current request */
};

static int take_object(void *arg, struct str object, struct err *e)
{
    struct reader *r = arg;
    size_t number = r->source->number;

    return json_type(json_get(object, "messages")) == JSON_ARRAY
               ? give_request(r->source, &r->m, object, e)
               : import_give_message(r->source, &r->m, object, number, e);
}

/* Returns whether the first line is an object that is no request. */
static bool has_lines(struct str head)
{
    struct str line = str_cut(&head, '\n'), value;

    return json_check(line, &value, NULL) && json_type(value) == JSON_OBJECT &&
           json_is_null(json_get(value, "messages"));
}

/* Reads the first prompt of a file and its answer, and leaves the source where it is. Returns 0, or
 * -1 with *e set. */
static int read_exchange(const struct source *s, source_next *next, struct import_exchange *x,
                         struct err *e)
{
    struct str text, object;
    struct source again;
    int result = source_open(&again, s->path, e);

    if (result < 0)
        return -1;
    while (x->answer == 0 && (result = next(&again, &text, e)) > 0) {
        struct str messages;

        if (!json_check(text, &object, NULL))
            continue;
        messages = json_get(object, "messages");
        if (json_type(messages) == JSON_ARRAY)
            import_see_all(x, messages, 0);
        else
            import_see(x, object, again.number);
    }
    source_close(&again);
    return result < 0 ? -1 : 0;
}

static int read_messages(struct source *s, struct err *e)
{
    struct import_exchange x = IMPORT_EXCHANGE_INIT;
    struct reader r = {.source = s};
    source_next *next;
    struct str head;
    int result = -1;

    import_message_init(&r.m);
    if (source_head(s, &head, e) == 0) {
        next = has_lines(head) ? source_line : source_value;
        if ((!s->is_file || read_exchange(s, next, &x, e) == 0) &&
            import_set_file_session(&r.m, "messages", s, &x, head, e) == 0)
            result = import_each_object(s, next, take_object, &r, e);
    }
    import_message_release(&r.m);
    import_exchange_release(&x);
    return result;
}

/* ---- the format ---- */

static bool is_messages(struct str head)
{
    struct str text = str_trim(head);

    if (!str_starts(text, STR("[")) && !str_starts(text, STR("{")))
        return false;
    if (str_find(text, STR("\"role\"")))
        return str_find(text, STR("\"content\"")) || str_find(text, STR("\"tool_calls\""));
    /* A request that has a system prompt but no message. */
    return str_find(text, STR("\"system\":")) && str_find(text, STR("\"messages\":"));
}

const struct import_format import_messages = {"messages", is_messages, read_messages};
