#include "convert/export_jsonl.h"

static void message(struct export *x, const struct message *m)
{
    buf_add_str(&x->out, m->line);
    buf_add_byte(&x->out, '\n');
}

const struct export_format export_jsonl = {
    .name = "jsonl",
    .suffix = "jsonl",
    .json = true,
    .lines = true,
    .grows = true,
    .message = message,
};
