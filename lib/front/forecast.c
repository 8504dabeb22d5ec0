#include "front/forecast.h"

#include "hist/thread.h"
#include "llm/context.h"

/* Bytes for each token. */
#define TOKEN_BYTES 4

int forecast_session(struct forecast *f, const struct config *c, const struct history *h,
                     const char *id, struct err *e)
{
    struct context context;
    struct thread thread;
    size_t max_messages, max_bytes, bytes;

    if (config_max_messages(c, &max_messages, e) < 0 || config_max_bytes(c, &max_bytes, e) < 0 ||
        thread_find(&thread, h, str_of(id), false, e) < 0)
        return -1;
    context_init(&context);
    for (size_t i = 0; i < thread.count; i++)
        context_add(&context, &thread.at[i]);
    context_begin_turn(&context);
    context_cut(&context, max_messages, max_bytes);
    context_settle(&context);
    bytes = context.system_len;
    for (size_t i = 0; i < context.count; i++)
        bytes += context_weight(&context.at[i]);
    *f = (struct forecast){.messages = context.count + (context.system ? 1 : 0),
                           .tokens = (bytes + TOKEN_BYTES - 1) / TOKEN_BYTES};
    context_release(&context);
    thread_release(&thread);
    return 0;
}
