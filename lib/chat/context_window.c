#include "chathist/chat/context_window.h"

#include "chathist/llm/context.h"

/* The number of messages that are loaded first. */
#define LOAD_LEAST 16
#define LOAD_LEAST_BYTES ((size_t)64 << 10)

size_t context_window_last_turn(const struct thread *thread)
{
    size_t i = thread->count;

    while (i > 0 && thread->at[i - 1].role != ROLE_USER)
        i--;
    return i;
}

/* Does a context within these bounds leave out some of the first `count` messages? Then it has no
 * earlier ones either. */
static bool is_cut(const struct thread *thread, size_t count, size_t max_messages, size_t max_bytes)
{
    struct context c;
    bool cut;

    context_init(&c);
    for (size_t i = 0; i < count; i++)
        context_add(&c, &thread->at[i]);
    context_cut(&c, max_messages, max_bytes);
    cut = c.dropped > 0;
    context_release(&c);
    return cut;
}

static size_t times(size_t n, size_t factor)
{
    return n > SIZE_MAX / factor ? SIZE_MAX : n * factor;
}

void context_window_parse(struct thread *thread, const struct buf *lines)
{
    struct str rest = buf_str(lines);

    *thread = (struct thread){0};
    while (rest.n > 0)
        thread_add(thread, str_cut(&rest, '\n'));
    thread_settle(thread);
}

int context_window_load(struct tail *tail, const struct history *h, const struct buf *memory,
                        struct str session, size_t max_messages, size_t max_bytes, bool *cut,
                        struct err *e)
{
    struct tail_wish wish = {
        .messages = times(max_messages, 2), .bytes = times(max_bytes, 2), .system = true};

    if (wish.messages < LOAD_LEAST)
        wish.messages = LOAD_LEAST;
    if (wish.bytes < LOAD_LEAST_BYTES)
        wish.bytes = LOAD_LEAST_BYTES;
    for (;;) {
        size_t behind;

        if (memory) {
            *tail = (struct tail){.whole = true};
            context_window_parse(&tail->thread, memory);
        } else if (tail_load(tail, h, session, &wish, e) < 0) {
            return -1;
        }
        behind = context_window_last_turn(&tail->thread);
        *cut = behind > 0 && is_cut(&tail->thread, behind - 1, max_messages, max_bytes);
        if (tail->whole || *cut)
            return 0;
        tail_release(tail);
        wish.messages = times(wish.messages, 4);
        wish.bytes = times(wish.bytes, 4);
    }
}

/* Estimated bytes of a token. */
#define TOKEN_BYTES 4

int context_estimate(struct context_estimate *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e)
{
    struct context context;
    struct tail tail;
    size_t max_messages, max_bytes, bytes;
    bool cut;

    if (config_max_messages(c, &max_messages, e) < 0 || config_max_bytes(c, &max_bytes, e) < 0 ||
        context_window_load(&tail, h, NULL, id, max_messages, max_bytes, &cut, e) < 0)
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
    *f = (struct context_estimate){.messages = context.count + (context.system ? 1 : 0),
                                   .tokens = (bytes + TOKEN_BYTES - 1) / TOKEN_BYTES};
    context_release(&context);
    tail_release(&tail);
    return 0;
}
