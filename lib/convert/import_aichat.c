/*
 * import_aichat - sessions of aichat: NAME.yaml in the directory `sessions` of its configuration.
 *
 * Source: sigoden/aichat, src/config/session.rs (Session), src/client/message.rs (Message,
 * MessageContent, MessageContentToolCalls) and src/function.rs (ToolCall). A file is a mapping with
 * `model` and `messages`; a session that was compressed also has `compressed_messages`, which come
 * first. A tool message has calls and results together: it becomes a response, and a message for
 * each result.
 *
 * Messages have no ids and no times: see import_messages. `model` is CLIENT:MODEL, and the client
 * is stored as the provider. Only this file uses libyaml. Anchors are not resolved, because aichat
 * does not write any.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "convert/import_reader.h"

#define DEPTH_MAX 100

/* ---- YAML as JSON ---- */

/* An object or array around the next value. In an object, keys and values alternate. */
struct level {
    bool object;
    size_t count; /* keys and values so far */
};

struct converter {
    struct buf *out;
    struct level level[DEPTH_MAX];
    size_t depth;
    const char *wrong; /* why the conversion failed */
};

/* Appends the separator before the next key or value. Returns false if a key is no scalar. */
static bool separate(struct converter *c, bool scalar)
{
    struct level *l = c->depth > 0 ? &c->level[c->depth - 1] : NULL;

    if (!l)
        return true;
    if (l->object && l->count % 2 == 0 && !scalar)
        return false;
    if (l->count > 0)
        buf_add_byte(c->out, l->object && l->count % 2 == 1 ? ':' : ',');
    l->count++;
    return true;
}

static bool is_key(const struct converter *c)
{
    return c->depth > 0 && c->level[c->depth - 1].object && c->level[c->depth - 1].count % 2 == 1;
}

/* Appends a scalar. A plain one can be a number, a boolean or null; others are strings. */
static void add_scalar(struct converter *c, const yaml_event_t *event)
{
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length}, value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (!separate(c, true))
        return;
    if (plain && !is_key(c) && (text.n == 0 || str_eq_c(text, "~")))
        buf_add_c(c->out, "null");
    else if (plain && !is_key(c) && json_check(text, &value, NULL) &&
             json_type(value) != JSON_STRING)
        buf_add_str(c->out, value);
    else
        json_add_string(c->out, text);
}

static void open_level(struct converter *c, bool object)
{
    if (c->depth == DEPTH_MAX)
        c->wrong = "too deep";
    else if (!separate(c, false))
        c->wrong = "a key is no text";
    else {
        buf_add_byte(c->out, object ? '{' : '[');
        c->level[c->depth++] = (struct level){.object = object};
    }
}

static void take_event(struct converter *c, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        add_scalar(c, event);
        break;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        open_level(c, event->type == YAML_MAPPING_START_EVENT);
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        buf_add_byte(c->out, event->type == YAML_MAPPING_END_EVENT ? '}' : ']');
        c->depth--;
        break;
    case YAML_ALIAS_EVENT:
        c->wrong = "an alias";
        break;
    default:
        break;
    }
}

/* Appends the first document as JSON. Returns NULL, or the reason of a failure in line *line. */
static const char *convert(struct str yaml, struct buf *out, size_t *line)
{
    struct converter c = {.out = out};
    yaml_parser_t parser;
    yaml_event_type_t type = YAML_NO_EVENT;

    if (!yaml_parser_initialize(&parser))
        return "out of memory";
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.p, yaml.n);
    while (!c.wrong && type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            c.wrong = parser.problem ? "not YAML" : "out of memory";
            *line = parser.problem_mark.line + 1;
            break;
        }
        *line = event.start_mark.line + 1;
        type = event.type;
        take_event(&c, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return out->overflow ? "too long" : c.wrong;
}

/* ---- a session ---- */

struct reader {
    struct source *source;
    struct import_message m;
};

static void set_model(struct import_message *m, struct str model)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct str rest = json_text(model, &scratch), client = str_cut(&rest, ':');

    buf_add_str(&m->model, rest.p ? rest : client);
    if (rest.p)
        buf_add_str(&m->provider, client);
    buf_release(&scratch);
}

/* Gives a message with the calls, and one for each result. */
static int give_calls(struct reader *r, struct str content, struct err *e)
{
    struct json_iter it = json_iter(json_get(content, "tool_results"));
    struct buf answer = BUF_INIT(BUF_LINE), results = BUF_INIT(BUF_LINE);
    struct str value, text = json_get(content, "text");
    int result;

    buf_add_c(&answer, "{\"role\":\"assistant\",\"content\":");
    buf_add_str(&answer, json_is_null(text) ? STR("\"\"") : text);
    buf_add_c(&answer, ",\"tool_calls\":[");
    while (json_next(&it)) {
        struct str call = json_get(it.value, "call"), output = json_get(it.value, "output");
        struct str name = json_get(call, "name"), id = json_get(call, "id");
        struct str arguments = json_get(call, "arguments");

        if (json_type(name) != JSON_STRING)
            continue;
        id = json_type(id) == JSON_STRING ? id : name;
        buf_addf(&answer, "%s{\"id\":%.*s,\"function\":{\"name\":%.*s,\"arguments\":",
                 results.len > 0 ? "," : "", (int)id.n, id.p, (int)name.n, name.p);
        buf_add_str(&answer, json_is_null(arguments) ? STR("{}") : arguments);
        buf_add_c(&answer, "}}");
        buf_addf(&results, "%s{\"role\":\"tool\",\"tool_call_id\":%.*s,\"content\":",
                 results.len > 0 ? "," : "[", (int)id.n, id.p);
        if (json_type(output) == JSON_STRING)
            buf_add_str(&results, output);
        else
            json_add_string(&results, json_is_null(output) ? STR("") : output);
        buf_add_byte(&results, '}');
    }
    buf_add_c(&answer, "]}");
    buf_add_c(&results, results.len > 0 ? "]" : "[]");
    result = import_give_message(r->source, &r->m, buf_str(&answer), r->source->number, e);
    for (it = json_iter(json_check(buf_str(&results), &value, NULL) ? value : STR_NONE);
         result == 0 && json_next(&it);)
        result = import_give_message(r->source, &r->m, it.value, r->source->number, e);
    buf_release(&answer);
    buf_release(&results);
    return result;
}

static int give_all(struct reader *r, struct str messages, struct err *e)
{
    struct json_iter it = json_iter(messages);
    int result = 0;

    while (result == 0 && json_next(&it)) {
        struct str content = json_get(it.value, "content");

        r->source->number++;
        result = json_type(content) == JSON_OBJECT
                     ? give_calls(r, content, e)
                     : import_give_message(r->source, &r->m, it.value, r->source->number, e);
    }
    return result;
}

/* The name of the file is that of the session; `temp` is the one of all that have none. */
static int give_title(struct reader *r, struct err *e)
{
    struct str name = source_stem(r->source);

    return !r->source->path || str_eq_c(name, "temp")
               ? 0
               : import_give_title(r->source, buf_str(&r->m.session), name, e);
}

static int read_aichat(struct source *s, struct err *e)
{
    struct reader r = {.source = s};
    struct buf json = BUF_INIT(SOURCE_VALUE_MAX), yaml = BUF_INIT(4 * SOURCE_VALUE_MAX);
    struct import_exchange x = IMPORT_EXCHANGE_INIT;
    struct str text, session;
    const char *wrong;
    size_t number;
    int result = -1;

    import_message_init(&r.m);
    if (source_rest(s, &text, e) < 0)
        goto out;
    utf8_add_repaired(&yaml, text);
    wrong = convert(buf_str(&yaml), &json, &s->number);
    if (!wrong &&
        (!json_check(buf_str(&json), &session, NULL) || json_type(session) != JSON_OBJECT ||
         json_type(json_get(session, "messages")) != JSON_ARRAY))
        wrong = "no 'messages'";
    if (wrong) {
        import_bad(s, wrong);
        result = 0;
        goto out;
    }
    number = import_see_all(&x, json_get(session, "compressed_messages"), 0);
    (void)import_see_all(&x, json_get(session, "messages"), number);
    if (import_set_file_session(&r.m, "aichat", s, &x, text, e) < 0)
        goto out;
    s->number = 0; /* from here on the number of the message */
    set_model(&r.m, json_get(session, "model"));
    result = give_all(&r, json_get(session, "compressed_messages"), e);
    if (result == 0)
        result = give_all(&r, json_get(session, "messages"), e);
    if (result == 0)
        result = give_title(&r, e);
out:
    import_message_release(&r.m);
    import_exchange_release(&x);
    buf_release(&json);
    buf_release(&yaml);
    return result;
}

/* ---- the format ---- */

static bool is_aichat(struct str head)
{
    bool model = false, messages = false;

    while (head.n > 0) {
        struct str line = str_cut(&head, '\n');

        model = model || str_starts(line, STR("model:"));
        messages = messages || str_starts(line, STR("messages:")) ||
                   str_starts(line, STR("compressed_messages:"));
    }
    return model && messages;
}

const struct import_format import_aichat = {"aichat", is_aichat, read_aichat};
