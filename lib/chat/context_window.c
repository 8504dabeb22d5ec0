#include "chathist/chat/context_window.h"

#include "chathist/base/json.h"
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

/* ---- limits ---- */

/* Bytes of 1,000 tokens: as in English text, and the least and the most that is believed. */
#define TOKEN_BYTES 4000
#define TOKEN_BYTES_LEAST 1000
#define TOKEN_BYTES_MOST 8000
/* With fewer bytes than this between two answers, what surrounds each message outweighs them. */
#define SAMPLE_LEAST 64
/* The estimate changes in steps, so that the context does not move with each turn. */
#define TOKEN_BYTES_STEP 250
/* The room that an answer gets if its length is not limited, in tokens; in a small window it is a
 * quarter of the window. */
#define ANSWER_ROOM 4096

int context_limits_choose(struct context_limits *l, const struct config *c, size_t window,
                          int64_t answer, struct err *e)
{
    size_t tokens, room = window / 4;
    bool known = window > 0;

    if (config_limit(c, SETTING_MAX_MESSAGES, &l->messages, e) < 0 ||
        config_limit(c, SETTING_MAX_BYTES, &l->bytes, e) < 0 ||
        config_limit(c, SETTING_MAX_INPUT_TOKENS, &tokens, e) < 0)
        return -1;
    if (answer > 0 && (uint64_t)answer < window / 2)
        room = (size_t)answer;
    else if (room > ANSWER_ROOM)
        room = ANSWER_ROOM;
    l->answer = known ? room : ANSWER_ROOM;
    if (answer > 0 && !known)
        l->answer = (size_t)answer;
    l->tokens = l->most = CONTEXT_ALL;
    if (known)
        l->most = window - room;
    if (c->value[SETTING_MAX_INPUT_TOKENS] && tokens < l->most)
        l->most = tokens;
    if (known || c->value[SETTING_MAX_INPUT_TOKENS])
        l->tokens = tokens < l->most ? tokens : l->most;
    if (l->tokens != CONTEXT_ALL && !c->value[SETTING_MAX_MESSAGES])
        l->messages = CONTEXT_ALL;
    if (l->tokens != CONTEXT_ALL && !c->value[SETTING_MAX_BYTES])
        l->bytes = CONTEXT_ALL;
    return 0;
}

/* Returns the bytes of `tokens`, or SIZE_MAX. */
static size_t bytes_of_tokens(size_t tokens, size_t token_bytes)
{
    return tokens > SIZE_MAX / token_bytes ? SIZE_MAX : tokens * token_bytes / 1000;
}

/* Returns the bytes that `tokens` leave for the messages of a request. */
static size_t room_of_tokens(const struct context_limits *l, const struct context *c, size_t tokens,
                             size_t token_bytes)
{
    size_t bytes = bytes_of_tokens(tokens, token_bytes), fixed = c->system_len + l->tools;

    if (tokens == CONTEXT_ALL)
        return SIZE_MAX;
    return bytes > fixed ? bytes - fixed : 0;
}

void context_limits_apply(const struct context_limits *l, struct context *c, size_t token_bytes)
{
    context_cut(c, l->messages, l->bytes);
    if (l->tokens != CONTEXT_ALL)
        context_cut_in_steps(c, room_of_tokens(l, c, l->tokens, token_bytes),
                             room_of_tokens(l, c, l->most, token_bytes));
}

bool context_limits_fit(const struct context_limits *l, struct context *c, size_t token_bytes,
                        size_t refused, bool again)
{
    size_t window = room_of_tokens(l, c, l->tokens, token_bytes);
    size_t most = room_of_tokens(l, c, l->most, token_bytes);
    size_t left = again ? refused / 2 : refused - 1;

    if (refused > 0 && window >= refused)
        window = refused - 1;
    if (refused > 0 && most > left)
        most = left;
    return context_fit(c, window, most);
}

bool context_limits_exceeded(const struct context_limits *l, const struct context *c,
                             size_t *tokens)
{
    size_t bytes = c->system_len + l->tools;

    for (size_t i = c->turn; i < c->count; i++)
        bytes += context_weight(&c->at[i]);
    *tokens = bytes / (TOKEN_BYTES_MOST / 1000);
    return l->most != CONTEXT_ALL && *tokens > l->most;
}

/* The last answer whose input tokens are known, and the bytes of the messages from it on. */
struct sample {
    int64_t tokens; /* -1: none */
    size_t bytes;
    struct str model;
};

/* Adds what lies between the last answer and this one, unless another model wrote it, or the
 * context was cut in between: then the numbers cannot be compared. */
static void compare_usage(const struct sample *last, const struct message *m, int64_t tokens,
                          size_t *all_bytes, size_t *all_tokens)
{
    size_t more = last->tokens >= 0 && tokens > last->tokens ? (size_t)(tokens - last->tokens) : 0;

    if (more == 0 || !str_eq(last->model, m->field[FIELD_MODEL]) || last->bytes < SAMPLE_LEAST ||
        last->bytes > bytes_of_tokens(more, TOKEN_BYTES_MOST) ||
        last->bytes < bytes_of_tokens(more, TOKEN_BYTES_LEAST))
        return;
    *all_bytes += last->bytes;
    *all_tokens += more;
}

static size_t weight_of(const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t n = message_content(m, &scratch).n + m->field[FIELD_TOOL_CALLS].n +
               m->field[FIELD_TOOL_CALL_ID].n;

    buf_release(&scratch);
    return n;
}

size_t context_token_bytes(const struct thread *thread)
{
    struct sample last = {.tokens = -1};
    size_t bytes = 0, tokens = 0;

    for (size_t i = 0; i < thread->count; i++) {
        const struct message *m = &thread->at[i];
        int64_t input;

        if (m->role == ROLE_ASSISTANT &&
            json_int(json_get(m->field[FIELD_USAGE], "input_tokens"), &input) && input > 0) {
            compare_usage(&last, m, input, &bytes, &tokens);
            last = (struct sample){.tokens = input, .model = m->field[FIELD_MODEL]};
        }
        last.bytes += weight_of(m);
    }
    if (tokens == 0)
        return TOKEN_BYTES;
    return (size_t)((double)bytes * 1000 / (double)tokens / TOKEN_BYTES_STEP + 0.5) *
           TOKEN_BYTES_STEP;
}

/* ---- loading ---- */

/* Do these limits leave out some of the first `count` messages in the turn of the prompt that
 * follows them? */
static bool is_cut(const struct thread *thread, size_t count, const struct context_limits *limits,
                   size_t token_bytes)
{
    struct context c;
    bool cut;

    context_init(&c);
    for (size_t i = 0; i < count; i++)
        context_add(&c, &thread->at[i]);
    context_begin_turn(&c);
    context_add(&c, &thread->at[count]);
    context_limits_apply(limits, &c, token_bytes);
    cut = c.dropped > 0;
    context_release(&c);
    return cut;
}

/* Is there a prompt before the newest answer of the first `count` messages? */
static bool has_answer(const struct thread *thread, size_t count)
{
    size_t i = count;

    while (i > 0 && (thread->at[i - 1].role != ROLE_ASSISTANT ||
                     thread->at[i - 1].field[FIELD_TOOL_CALLS].n > 0 ||
                     thread->at[i - 1].field[FIELD_CONTENT].n <= 2))
        i--;
    while (i > 0 && thread->at[i - 1].role != ROLE_USER)
        i--;
    return i > 0;
}

/* Are the first `count` messages more than these limits, and so all that matters? Limits of
 * messages and bytes leave out all messages before the first that they leave out, except the newest
 * answer and its prompt. */
static bool is_enough(const struct thread *thread, size_t count,
                      const struct context_limits *limits, size_t token_bytes)
{
    struct context_limits plain = CONTEXT_LIMITS_NONE;
    size_t window = bytes_of_tokens(limits->tokens, token_bytes), bytes = 0;

    plain.messages = limits->messages;
    plain.bytes = limits->bytes;
    if (!has_answer(thread, count))
        return false;
    if (is_cut(thread, count, &plain, token_bytes))
        return true;
    for (size_t i = 0; i < count; i++)
        bytes += weight_of(&thread->at[i]);
    return bytes / CONTEXT_STEPS > window;
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
                        struct str session, const struct context_limits *limits, bool *cut,
                        struct err *e)
{
    size_t window = times(bytes_of_tokens(limits->tokens, TOKEN_BYTES), CONTEXT_STEPS);
    struct tail_wish wish = {.messages = times(limits->messages, 2),
                             .bytes = times(window < limits->bytes ? window : limits->bytes, 2),
                             .system = true};

    if (wish.messages < LOAD_LEAST)
        wish.messages = LOAD_LEAST;
    if (wish.bytes < LOAD_LEAST_BYTES)
        wish.bytes = LOAD_LEAST_BYTES;
    for (;;) {
        size_t behind, token_bytes;

        if (memory) {
            *tail = (struct tail){.whole = true};
            context_window_parse(&tail->thread, memory);
        } else if (tail_load(tail, h, session, &wish, e) < 0) {
            return -1;
        }
        behind = context_window_last_turn(&tail->thread);
        token_bytes = context_token_bytes(&tail->thread);
        if (tail->whole ||
            (behind > 0 && is_enough(&tail->thread, behind - 1, limits, token_bytes))) {
            *cut = behind > 0 && is_cut(&tail->thread, behind - 1, limits, token_bytes);
            return 0;
        }
        tail_release(tail);
        wish.messages = times(wish.messages, 4);
        wish.bytes = times(wish.bytes, 4);
    }
}

int context_estimate(struct context_estimate *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e)
{
    struct context context;
    struct tail tail;
    struct context_limits limits = CONTEXT_LIMITS_NONE;
    size_t bytes, token_bytes;
    bool cut;

    if (context_limits_choose(&limits, c, 0, 0, e) < 0 ||
        context_window_load(&tail, h, NULL, id, &limits, &cut, e) < 0)
        return -1;
    token_bytes = context_token_bytes(&tail.thread);
    context_init(&context);
    for (size_t i = 0; i < tail.system.count; i++)
        context_add(&context, &tail.system.at[i]);
    for (size_t i = 0; i < tail.thread.count; i++)
        context_add(&context, &tail.thread.at[i]);
    context_begin_turn(&context);
    context_limits_apply(&limits, &context, token_bytes);
    context_settle(&context);
    bytes = context.system_len;
    for (size_t i = 0; i < context.count; i++)
        bytes += context_weight(&context.at[i]);
    *f = (struct context_estimate){.messages = context.count + (context.system ? 1 : 0),
                                   .tokens = (bytes * 1000 + token_bytes - 1) / token_bytes};
    context_release(&context);
    tail_release(&tail);
    return 0;
}
