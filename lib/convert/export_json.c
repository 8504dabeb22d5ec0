#include "chathist/convert/export_json.h"

#include "chathist/base/json.h"

static void begin(struct export *x)
{
    buf_add_c(&x->out, "{\"messages\":[");
}

static void message(struct export *x, const struct message *m)
{
    static const enum field always[] = {FIELD_TOOL_CALLS, FIELD_TOOL_CALL_ID};

    buf_add_c(&x->out, x->messages > 0 ? ",\n" : "\n");
    json_add_compact(&x->out, m->line);
    buf_truncate(&x->out, x->out.len - 1); /* the brace */
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (m->field[always[i]].n == 0) {
            json_add_key(&x->out, field_name(always[i]));
            buf_add_c(&x->out, "null");
        }
    }
    buf_add_byte(&x->out, '}');
}

static void end(struct export *x)
{
    buf_add_c(&x->out, x->messages > 0 ? "\n]}\n" : "]}\n");
}

const struct export_format export_json = {
    .name = "json",
    .suffix = "json",
    .json = true,
    .begin = begin,
    .message = message,
    .end = end,
};
