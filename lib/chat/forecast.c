#include "chathist/chat/forecast.h"

#include "chathist/llm/context.h"
#include "chat/window.h"

/* Bytes for each token. */
#define TOKEN_BYTES 4

int forecast_session(struct forecast *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e)
{
    struct context context;
    struct tail tail;
    size_t max_messages, max_bytes, bytes;
    bool cut;

    if (config_max_messages(c, &max_messages, e) < 0 || config_max_bytes(c, &max_bytes, e) < 0 ||
        window_load(&tail, h, id, max_messages, max_bytes, &cut, e) < 0)
        return -1;
    context_init(&context);
    for (size_t i = 0; i < tail.system.count; i++)
        context_add(&context, &tail.system.at[i]);
    for (size_t i = 0; i < tail.thread.count; i++)
        context_add(&context, &tail.thread.at[i]);
    context_begin_turn(&context);
    context_cut(&context, max_messages, max_bytes);
    context_settle(&context);
    bytes = context.system_len;
    for (size_t i = 0; i < context.count; i++)
        bytes += context_weight(&context.at[i]);
    *f = (struct forecast){.messages = context.count + (context.system ? 1 : 0),
                           .tokens = (bytes + TOKEN_BYTES - 1) / TOKEN_BYTES};
    context_release(&context);
    tail_release(&tail);
    return 0;
}
