#include "convert/export_openai.h"

#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider_openai.h"

static void session(struct export *x, const struct export_session *s)
{
    cJSON *t = cjson_object();
    struct context c;

    context_init(&c);
    for (size_t i = 0; i < s->count; i++)
        context_add(&c, &s->at[i]);
    context_settle(&c);
    cjson_set(t, "messages",
              openai_messages(&c, (struct str){c.system, c.system_len}, "openai", false));
    /* One in which nothing was said is none. */
    if (c.system || c.count > 0) {
        cjson_print(t, &x->out);
        buf_add_byte(&x->out, '\n');
    }
    cJSON_Delete(t);
    context_release(&c);
}

const struct export_format export_openai = {
    .name = "openai",
    .suffix = "openai.jsonl",
    .json = true,
    .grows = true,
    .session = session,
};
