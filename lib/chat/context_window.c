#include "chathist/chat/context_window.h"

#include "chathist/base/json.h"
#include "chathist/llm/context.h"

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
    size_t bytes = c->system_len + l->tools + context_weight(c, c->turn, c->count);

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

void context_window_parse(struct thread *thread, const struct buf *lines)
{
    struct str rest = buf_str(lines);

    *thread = (struct thread){0};
    while (rest.n > 0)
        (void)thread_add(thread, str_cut(&rest, '\n'));
    thread_finish(thread);
}

/* Returns whether the message is sent whatever follows it: only a complete answer surely is. */
static bool is_answer(const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    enum ending ending = message_ending(message_text(m, FIELD_FINISH_REASON, &scratch), NULL);

    buf_release(&scratch);
    return m->role == ROLE_ASSISTANT && ending == ENDING_COMPLETE && weight_of(m) > 0;
}

/* Returns a prompt whose turn, with those after it, is more than the limits leave of the messages
 * before the last prompt; 0 without one. The messages before it cannot be in the context, and
 * a long session has many. Twice the limits also leave answers from which the length of tokens is
 * estimated. */
static size_t find_start(const struct thread *thread, const struct context_limits *limits)
{
    size_t window = bytes_of_tokens(limits->tokens, TOKEN_BYTES_MOST), messages = 0, bytes = 0;
    size_t i = context_window_last_turn(thread);
    bool answered = false, whole = false; /* a whole answer, and its prompt, are always sent */

    if (i > 0)
        i--;
    while (i > 0 && (!whole || (messages / 2 <= limits->messages && bytes / 2 <= limits->bytes &&
                                bytes / 2 / CONTEXT_STEPS <= window))) {
        const struct message *m = &thread->at[--i];
        bool is_prompt = m->role == ROLE_USER && answered;

        if (is_prompt || is_answer(m)) {
            messages++;
            bytes += weight_of(m);
            answered = !is_prompt;
            whole = whole || (!is_prompt && !m->field[FIELD_TOOL_CALLS].p);
        }
    }
    while (i > 0 && thread->at[i].role != ROLE_USER)
        i--;
    return i;
}

/* Returns whether the last turn of the thread left out messages before it. */
static bool was_cut(const struct thread *thread, const struct context_limits *limits)
{
    size_t behind = context_window_last_turn(thread);
    struct context c;
    bool cut;

    context_init(&c);
    for (size_t i = 0; i < behind; i++) {
        if (i + 1 == behind)
            context_begin_turn(&c);
        context_add(&c, &thread->at[i]);
    }
    context_limits_apply(limits, &c, context_token_bytes(thread));
    cut = c.dropped > 0;
    context_release(&c);
    return cut;
}

int context_window_load(struct thread *thread, const struct history *h, const struct buf *memory,
                        struct str session, const struct context_limits *limits, bool *cut,
                        struct err *e)
{
    size_t start, kept = 0;

    if (memory)
        context_window_parse(thread, memory);
    else if (thread_find(thread, h, session, false, e) < 0)
        return -1;
    start = find_start(thread, limits);
    for (size_t i = 0; i < thread->count; i++) {
        if (i >= start || thread->at[i].role == ROLE_SYSTEM)
            thread->at[kept++] = thread->at[i];
        else
            message_release(&thread->at[i]);
    }
    thread->count = kept;
    *cut = was_cut(thread, limits);
    return 0;
}

int context_estimate(struct context_estimate *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e)
{
    struct context context;
    struct thread thread;
    struct context_limits limits = CONTEXT_LIMITS_NONE;
    size_t bytes, token_bytes;
    bool cut;

    if (context_limits_choose(&limits, c, 0, 0, e) < 0 ||
        context_window_load(&thread, h, NULL, id, &limits, &cut, e) < 0)
        return -1;
    token_bytes = context_token_bytes(&thread);
    context_init(&context);
    for (size_t i = 0; i < thread.count; i++)
        context_add(&context, &thread.at[i]);
    context_begin_turn(&context);
    context_limits_apply(&limits, &context, token_bytes);
    context_finish(&context);
    bytes = context.system_len + context_weight(&context, 0, context.count);
    *f = (struct context_estimate){.messages = context.count + (context.system ? 1 : 0),
                                   .tokens = (bytes * 1000 + token_bytes - 1) / token_bytes};
    context_release(&context);
    thread_release(&thread);
    return 0;
}
