#include "convert/import_yaml.h"

#include <stdbool.h>
#include <yaml.h>

#include "chathist/base/json.h"

#define DEPTH_MAX 100

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

const char *import_yaml_to_json(struct str yaml, struct buf *out, size_t *line)
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
