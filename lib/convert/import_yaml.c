#include "convert/import_yaml.h"

#include <stdbool.h>
#include <yaml.h>

#include "chathist/base/json.h"

#define DEPTH_MAX 100

struct converter {
    yaml_parser_t parser;
    struct buf *out;
    size_t *line;      /* of the last event */
    const char *wrong; /* why the conversion failed */
};

/* Reads the next event, which the caller deletes. Returns false at the end, or if it failed. */
static bool next_event(struct converter *c, yaml_event_t *event)
{
    if (c->wrong)
        return false;
    if (!yaml_parser_parse(&c->parser, event)) {
        c->wrong = c->parser.problem ? "not YAML" : "out of memory";
        *c->line = c->parser.problem_mark.line + 1;
        return false;
    }
    *c->line = event->start_mark.line + 1;
    return true;
}

static void add_key(struct converter *c, const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        json_add_string(c->out, (struct str){(const char *)event->data.scalar.value,
                                             event->data.scalar.length});
    else
        c->wrong = "a key is no text";
}

/* Appends a scalar. A plain one can be a number, a boolean or null; others are strings. */
static void add_scalar(struct converter *c, const yaml_event_t *event)
{
    struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length}, value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (plain && (text.n == 0 || str_eq_c(text, "~")))
        buf_add_c(c->out, "null");
    else if (plain && json_check(text, &value, NULL) && json_type(value) != JSON_STRING)
        buf_add_str(c->out, value);
    else
        add_key(c, event);
}

/* Appends the value that begins with an event. */
static void add_node(struct converter *c, const yaml_event_t *first, int depth)
{
    bool object = first->type == YAML_MAPPING_START_EVENT, ended = false;
    yaml_event_t event;

    if (first->type == YAML_SCALAR_EVENT)
        add_scalar(c, first);
    else if (first->type == YAML_ALIAS_EVENT)
        c->wrong = "an alias";
    else if (depth == DEPTH_MAX)
        c->wrong = "too deep";
    if (first->type == YAML_SCALAR_EVENT || c->wrong)
        return;
    buf_add_byte(c->out, object ? '{' : '[');
    for (size_t n = 0; !ended && next_event(c, &event); n++) {
        ended = event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT;
        if (n > 0 && !ended)
            buf_add_byte(c->out, object && n % 2 == 1 ? ':' : ',');
        if (object && n % 2 == 0 && !ended)
            add_key(c, &event);
        else if (!ended)
            add_node(c, &event, depth + 1);
        yaml_event_delete(&event);
    }
    buf_add_byte(c->out, object ? '}' : ']');
}

const char *import_yaml_to_json(struct str yaml, struct buf *out, size_t *line)
{
    struct converter c = {.out = out, .line = line};
    yaml_event_t event;
    bool ended = false;

    if (!yaml_parser_initialize(&c.parser))
        return "out of memory";
    yaml_parser_set_encoding(&c.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c.parser, (const unsigned char *)yaml.p, yaml.n);
    while (!ended && next_event(&c, &event)) {
        ended = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
        if (!ended && event.type != YAML_STREAM_START_EVENT &&
            event.type != YAML_DOCUMENT_START_EVENT)
            add_node(&c, &event, 0);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&c.parser);
    return out->overflow ? "too long" : c.wrong;
}
