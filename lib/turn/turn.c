#include "turn/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/mem.h"
#include "hist/message.h"
#include "hist/store.h"
#include "hist/thread.h"
#include "llm/messages.h"
#include "llm/stream.h"

/* ---- the context ---- */

/* Is the system prompt another one than the session's? */
static bool is_new_system(const struct turn *t)
{
    struct str had = {t->context.system, t->context.system_len};

    return t->system.p && !str_eq(had, t->system);
}

/* What is given takes the place of the thread. */
static void take_messages(struct turn *t)
{
    context_release(&t->context);
    t->bad_entries = messages_add(&t->context, t->messages);
}

/* The place behind the last prompt of the thread, 0 when it has none. */
static size_t behind_prompt(const struct thread *thread)
{
    size_t i = thread->count;

    while (i > 0 && thread->at[i - 1].role != ROLE_USER)
        i--;
    return i;
}

int turn_last_prompt(const struct history *h, struct str session, struct buf *out, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct thread thread;
    size_t behind;

    if (thread_load(&thread, h->path, session, false, e) < 0)
        return -1;
    behind = behind_prompt(&thread);
    if (behind > 0)
        buf_add_str(out, message_content(&thread.at[behind - 1], &scratch));
    buf_release(&scratch);
    thread_release(&thread);
    return behind > 0;
}

static void supersede(struct turn *t, const struct message *m)
{
    t->replaces =
        mem_grow(t->replaces, &t->replaces_cap, t->replaces_count + 1, sizeof *t->replaces);
    buf_init(&t->replaces[t->replaces_count], BUF_LINE);
    buf_add_str(&t->replaces[t->replaces_count++], m->id);
}

/* Does the line come of the prompt before it? A system prompt does not. */
static bool is_outcome(const struct message *m)
{
    return m->role == ROLE_ASSISTANT || m->role == ROLE_TOOL;
}

/* Adds the thread to the context, all but the turn that this one takes the place of. */
static int take_thread(struct turn *t, const struct thread *thread, struct err *e)
{
    size_t behind = t->kind == TURN_NEXT ? CONTEXT_ALL : behind_prompt(thread);
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (behind == 0)
        return err_set(e, ERR_USAGE, "session '%.*s' has no prompt yet", (int)t->session.n,
                       t->session.p);
    for (size_t i = 0; i < thread->count; i++) {
        const struct message *m = &thread->at[i];

        if (i + 1 == behind && t->kind == TURN_AGAIN) {
            buf_add_str(&t->last, message_content(m, &scratch));
            buf_add_str(&t->prompt_id, m->id);
            t->prompt = buf_str(&t->last);
            t->prompt_stored = true;
        } else if (i + 1 == behind || (i >= behind && is_outcome(m))) {
            supersede(t, m);
        } else {
            context_add(&t->context, m);
        }
    }
    buf_release(&scratch);
    return 0;
}

int turn_prepare(struct turn *t, struct err *e)
{
    struct thread thread;
    int result;

    context_init(&t->context);
    answer_init(&t->answer, NULL);
    buf_init(&t->prompt_id, BUF_SMALL);
    buf_init(&t->answer_id, BUF_SMALL);
    buf_init(&t->last, BUF_LINE);
    if (thread_load(&thread, t->history->path, t->session, false, e) < 0)
        return -1;
    result = take_thread(t, &thread, e);
    t->earlier = thread.all;
    t->bad_lines = thread.bad_lines;
    thread_release(&thread);
    if (result < 0)
        return -1;
    t->new_system = is_new_system(t);
    if (t->messages.p)
        take_messages(t);
    if (t->system.p)
        context_set_system(&t->context, t->system);
    context_begin_turn(&t->context);
    context_add_text(&t->context, ROLE_USER, t->prompt);
    context_cut(&t->context, t->max_messages, t->max_bytes);
    t->before = t->context.turn;
    context_settle(&t->context);
    t->ask.context = &t->context;
    return 0;
}

/* ---- storing ---- */

/* A line of this session. */
static void begin_line(const struct turn *t, struct draft *d, enum role role, struct str content)
{
    draft_init(d);
    draft_message(d, role, content);
    draft_set_text(d, FIELD_SESSION_ID, t->session);
}

static void keep_id(struct buf *id, const struct draft *d)
{
    struct str quoted = buf_str(&d->field[FIELD_ID]);

    buf_clear(id);
    if (quoted.n > 2)
        buf_add(id, quoted.p + 1, quoted.n - 2);
}

static void push_replaces(const struct turn *t, struct draft *d)
{
    for (size_t i = 0; i < t->replaces_count; i++)
        draft_push_text(d, FIELD_REPLACES, buf_str(&t->replaces[i]));
}

/* The prompt's lines: the system prompt when it is new, then the question, when it is new. Returns
 * their number. */
static size_t prompt_lines(const struct turn *t, struct draft lines[2])
{
    size_t n = 0;

    if (t->new_system)
        begin_line(t, &lines[n++], ROLE_SYSTEM, t->system);
    if (t->kind == TURN_AGAIN)
        return n;
    begin_line(t, &lines[n], ROLE_USER, t->prompt);
    if (t->kind == TURN_EDIT)
        push_replaces(t, &lines[n]);
    for (const char *const *f = t->files; f && *f; f++)
        draft_push_text(&lines[n], FIELD_FILES, str_of(*f));
    return n + 1;
}

static void set_usage(struct draft *d, const struct answer *a)
{
    struct buf usage = BUF_INIT(BUF_SMALL);

    if (a->input_tokens < 0 && a->output_tokens < 0)
        return;
    buf_add_c(&usage, "{");
    json_add_member_int(&usage, "input_tokens", a->input_tokens < 0 ? 0 : a->input_tokens);
    json_add_member_int(&usage, "output_tokens", a->output_tokens < 0 ? 0 : a->output_tokens);
    buf_add_c(&usage, "}");
    draft_set(d, FIELD_USAGE, buf_str(&usage));
    buf_release(&usage);
}

static void answer_line(const struct turn *t, struct draft *d)
{
    const struct answer *a = &t->answer;
    struct buf calls = BUF_INIT(BUF_LINE);

    begin_line(t, d, ROLE_ASSISTANT, buf_str(&a->text));
    if (a->calls_count > 0) {
        answer_calls_json(a, &calls);
        draft_set(d, FIELD_TOOL_CALLS, buf_str(&calls));
    }
    buf_release(&calls);
    if (a->thinking.len > 0)
        draft_set(d, FIELD_THINKING, buf_str(&a->thinking));
    if (t->prompt_id.len > 0)
        draft_set_text(d, FIELD_REPLY_TO, buf_str(&t->prompt_id));
    if (t->kind == TURN_AGAIN && t->finished)
        push_replaces(t, d);
    if (t->ask.model)
        draft_set_text(d, FIELD_MODEL, str_of(t->ask.model));
    draft_set_text(d, FIELD_PROVIDER, str_of(t->provider->name));
    set_usage(d, a);
    if (a->finish_reason)
        draft_set_text(d, FIELD_FINISH_REASON, str_of(a->finish_reason));
}

static int store(struct turn *t, struct draft *lines, size_t count, struct err *e)
{
    int result = store_append(t->history, lines, count, e);

    if (result < 0 && e)
        e->kind = ERR_UNSAVED;
    return result;
}

int turn_store_prompt(struct turn *t, struct err *e)
{
    struct draft lines[2];
    size_t n = prompt_lines(t, lines);
    int result = n > 0 ? store(t, lines, n, e) : 0;

    t->prompt_stored = result == 0;
    if (result == 0 && t->kind != TURN_AGAIN)
        keep_id(&t->prompt_id, &lines[n - 1]);
    for (size_t i = 0; i < n; i++)
        draft_release(&lines[i]);
    return result;
}

int turn_store_answer(struct turn *t, struct err *e)
{
    struct draft lines[3];
    bool empty = t->answer.text.len == 0 && t->answer.calls_count == 0 && !t->answer.finished;
    size_t n = t->prompt_stored ? 0 : prompt_lines(t, lines);
    int result = 0;

    if (!empty)
        answer_line(t, &lines[n++]);
    if (n > 0)
        result = store(t, lines, n, e);
    if (result == 0 && !empty)
        keep_id(&t->answer_id, &lines[n - 1]);
    for (size_t i = 0; i < n; i++)
        draft_release(&lines[i]);
    return result;
}

/* ---- asking ---- */

/* Is a finished answer what was asked for? */
static int judge(const struct answer *a, struct err *e)
{
    const char *reason = a->finish_reason ? a->finish_reason : "";

    if (strcmp(reason, "length") == 0)
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: the model's length limit was reached");
    if (strcmp(reason, "content_filter") == 0 || strcmp(reason, "refusal") == 0)
        return err_set(e, ERR_REFUSED, "the model refused to answer (%s)", reason);
    if (strcmp(reason, "model_context_window_exceeded") == 0)
        return a->text.len + a->calls_count == 0
                   ? err_set(e, ERR_REFUSED, "the conversation is too long for the model")
                   : err_set(e, ERR_INCOMPLETE,
                             "answer is incomplete: the model's context is full");
    if (strcmp(reason, "pause_turn") == 0)
        return err_set(e, ERR_INCOMPLETE, "answer is incomplete: the model paused its turn");
    if (a->calls_count > 0)
        return err_set(e, ERR_LIMIT, "the model called the tool '%s', which it was not given",
                       buf_c(&a->calls[0].name));
    return 0;
}

int turn_ask(struct turn *t, const struct answer_sink *sink, struct err *e)
{
    t->answer.sink = sink;
    if (stream_ask(t->provider, &t->ask, &t->answer, e) < 0)
        return -1;
    answer_settle_calls(&t->answer);
    t->finished = judge(&t->answer, e) == 0;
    return t->finished ? 0 : -1;
}

void turn_release(struct turn *t)
{
    context_release(&t->context);
    answer_release(&t->answer);
    buf_release(&t->prompt_id);
    buf_release(&t->answer_id);
    buf_release(&t->last);
    while (t->replaces_count > 0)
        buf_release(&t->replaces[--t->replaces_count]);
    free(t->replaces);
    t->replaces = NULL;
}
