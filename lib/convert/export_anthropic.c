#include "convert/export_anthropic.h"

#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider_anthropic.h"

static void session(struct export *x, const struct export_session *s)
{
    cJSON *t = cjson_object(), *messages, *tools;
    struct context c;

    context_init(&c);
    for (size_t i = 0; i < s->count; i++)
        context_add(&c, &s->at[i]);
    context_settle(&c);
    anthropic_conversation(&c, "anthropic", &messages, &tools);
    if (c.system)
        cjson_set_text(t, "system", (struct str){c.system, c.system_len});
    cjson_set(t, "messages", messages);
    if (tools)
        cjson_set(t, "tools", tools);
    /* One in which nothing was said is none. */
    if (c.system || c.count > 0) {
        cjson_print(t, &x->out);
        buf_add_byte(&x->out, '\n');
    }
    cJSON_Delete(t);
    context_release(&c);
}

const struct export_format export_anthropic = {
    .name = "anthropic",
    .suffix = "anthropic.jsonl",
    .json = true,
    .grows = true,
    .session = session,
};
