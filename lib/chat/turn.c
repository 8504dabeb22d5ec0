#include "chathist/chat/turn.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/chat/context_window.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/llm/context.h"
#include "chathist/llm/exchange.h"
#include "chathist/llm/provider_error.h"

/* ---- the context ---- */

int turn_last_prompt(const struct history *h, const struct buf *memory, struct str session,
                     struct buf *out, struct err *e)
{
    struct context_limits limits = CONTEXT_LIMITS_NONE;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct thread thread;
    size_t behind;
    bool cut;

    limits.messages = 1;
    if (context_window_load(&thread, h, memory, session, &limits, &cut, e) < 0)
        return -1;
    behind = context_window_last_turn(&thread);
    if (behind > 0)
        buf_add_str(out, message_content(&thread.at[behind - 1], &scratch));
    buf_release(&scratch);
    thread_release(&thread);
    return behind > 0;
}

/* Returns whether an attachment with this hash, a JSON string, is sent with the prompt. */
static bool is_attached(const struct turn *t, struct str sha256)
{
    for (size_t i = 0; t->attachments && i < t->attachments->count; i++)
        if (json_is_text(sha256, t->attachments->at[i].sha256))
            return true;
    return false;
}

/* Notes the attachments of an earlier prompt that are not sent again. Lines of other programs, and
 * of earlier versions, have only the number of the images. */
static void add_unsent_names(struct turn *t, const struct message *m)
{
    struct json_iter it = json_iter(m->field[FIELD_ATTACHMENTS]);
    struct buf name = BUF_INIT(BUF_LINE);
    int64_t images;

    while (!it.object && json_next(&it)) {
        struct str text = json_text(json_get(it.value, "name"), &name);

        if (text.n == 0 || is_attached(t, json_get(it.value, "sha256")))
            continue;
        buf_add_c(&t->unsent, t->unsent_count++ > 0 ? ", " : "");
        vis_add_line(&t->unsent, text, true);
    }
    if (!m->field[FIELD_ATTACHMENTS].p && json_int(m->field[FIELD_IMAGES], &images) && images > 0 &&
        (!t->attachments || t->attachments->count == 0)) {
        buf_addf(&t->unsent, "%" PRId64 " image%s", images, images == 1 ? "" : "s");
        t->unsent_count = images == 1 ? 1 : 2;
    }
    buf_release(&name);
}

/* Adds the thread to the context, except the turn that this one replaces. A system prompt after the
 * last prompt is not a part of that turn. */
static int add_thread(struct turn *t, const struct thread *thread, struct err *e)
{
    size_t last = context_window_last_turn(thread);
    size_t behind = t->kind == TURN_NEXT ? CONTEXT_ALL : last;
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (behind == 0)
        return err_set(e, ERR_USAGE, "session '%.*s' has no prompt yet", (int)t->session.n,
                       t->session.p);
    for (size_t i = 0; i < thread->count; i++) {
        const struct message *m = &thread->at[i];

        if (i + 1 == last && !t->messages.p)
            add_unsent_names(t, m);
        if (i + 1 == behind && t->kind == TURN_AGAIN) {
            buf_add_str(&t->last, message_content(m, &scratch));
            buf_add_str(&t->prompt_id, m->id);
            t->prompt = buf_str(&t->last);
            t->prompt_stored = true;
        } else if (i + 1 == behind ||
                   (i >= behind && (m->role == ROLE_ASSISTANT || m->role == ROLE_TOOL))) {
            buf_add_byte(&t->replaces, t->replaces.len > 0 ? ',' : '[');
            buf_add_str(&t->replaces, m->field[FIELD_ID]);
        } else {
            context_add(&t->context, m);
        }
    }
    buf_release(&scratch);
    return 0;
}

int turn_prepare(struct turn *t, const struct history *h, const struct buf *memory, struct err *e)
{
    struct thread thread = {0};
    size_t token_bytes, tokens;
    int result;

    context_init(&t->context);
    response_init(&t->answer, NULL);
    usage_init(&t->usage);
    buf_init(&t->usages, SIZE_MAX);
    buf_init(&t->prompt_id, BUF_SMALL);
    buf_init(&t->answer_id, BUF_SMALL);
    buf_init(&t->last, BUF_LINE);
    buf_init(&t->replaces, BUF_LINE);
    buf_init(&t->unsent, BUF_LINE);
    buf_init(&t->edits, BUF_LINE);
    if ((memory || !h->unreadable) &&
        context_window_load(&thread, h, memory, t->session, &t->limits, &t->was_cut, e) < 0)
        return -1;
    token_bytes = context_token_bytes(&thread);
    t->ask.token_bytes = token_bytes;
    result = add_thread(t, &thread, e);
    t->is_new = thread.all == 0;
    t->bad_lines = thread.bad_lines;
    thread_release(&thread);
    if (result < 0)
        return -1;
    t->new_system =
        t->system.p && !str_eq((struct str){t->context.system, t->context.system_len}, t->system);
    /* The given messages replace the thread. */
    if (t->messages.p) {
        context_release(&t->context);
        t->bad_entries = messages_add(&t->context, t->messages);
    }
    if (t->system.p)
        context_set_system(&t->context, t->system);
    context_begin_turn(&t->context);
    context_add_text(&t->context, ROLE_USER, t->prompt);
    if (t->attachments)
        context_set_attachments(&t->context, t->attachments->at, t->attachments->count);
    context_limits_apply(&t->limits, &t->context, token_bytes);
    if (context_limits_exceeded(&t->limits, &t->context, &tokens))
        return err_set(e, ERR_TOO_LONG,
                       "the prompt is too long for the model: it has at least %zu tokens, and the "
                       "model's context has room for %zu",
                       tokens, t->limits.most);
    t->before = t->context.turn;
    context_finish(&t->context);
    t->ask.context = &t->context;
    return 0;
}

/* ---- asking ---- */

/* Returns 0 if the calls of the answer can be run, else -1 with *e set. */
static int check_calls(const struct turn *t, struct err *e)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    if (t->ask.tools_count == 0) {
        vis_add_line(&shown, buf_str(&t->answer.calls[0].name), true);
        err_set(e, ERR_LIMIT, "the model called the tool '%s', which it was not given",
                buf_c(&shown));
        buf_release(&shown);
        return -1;
    }
    if (t->rounds >= t->max_rounds)
        return err_set(e, ERR_LIMIT,
                       "the model goes on calling tools after %u rounds: the last calls were not "
                       "carried out",
                       t->rounds);
    return 0;
}

/* Sets the error of an answer that was filtered, or that the server broke off, with the server's
 * word for it. */
static int unusual_end(const struct response *a, enum ending ending, struct err *e)
{
    struct buf reason = BUF_INIT(BUF_SMALL);
    bool named = strcmp(a->finish_reason, "content_filter") != 0;

    vis_add_line(&reason, str_of(a->finish_reason), true);
    if (ending == ENDING_BROKEN)
        err_set(e, ERR_INCOMPLETE, "answer is incomplete: the server ended it: %s", buf_c(&reason));
    else if (a->refused || a->refusal)
        err_set(e, ERR_REFUSED, "the model refused to answer%s%s", a->refusal ? ": " : "",
                a->refusal ? a->refusal : "");
    else
        err_set(e, ERR_REFUSED, "the server's content filter stopped the answer%s%s",
                named ? ": " : "", named ? buf_c(&reason) : "");
    buf_release(&reason);
    return -1;
}

/* Returns 0 if the answer is complete, or calls tools that can be run, else -1 with *e set. */
static int check_answer(const struct turn *t, struct err *e)
{
    const struct response *a = &t->answer;
    bool empty = a->text.len + a->calls_count == 0;
    enum ending ending = message_ending(str_of(a->finish_reason), NULL);

    switch (ending) {
    case ENDING_COMPLETE:
        break;
    case ENDING_LENGTH:
        return err_set(e, ERR_INCOMPLETE,
                       "answer is incomplete: the model's length limit was reached");
    case ENDING_FULL:
        return empty ? err_set(e, ERR_TOO_LONG, "the conversation is too long for the model")
                     : err_set(e, ERR_INCOMPLETE,
                               "answer is incomplete: the model's context is full");
    case ENDING_PAUSED:
        return t->rounds >= t->max_rounds
                   ? err_set(e, ERR_LIMIT, "the model goes on pausing its turn after %u rounds",
                             t->rounds)
                   : err_set(e, ERR_INCOMPLETE, "answer is incomplete: the model paused its turn");
    case ENDING_FILTERED:
    case ENDING_BROKEN:
        return unusual_end(a, ending, e);
    }
    if (a->asked)
        return err_set(e, ERR_LIMIT, "the model asks for what chat cannot carry out: %s", a->asked);
    if (empty && a->other)
        return err_set(e, ERR_INCOMPLETE, "answer is incomplete: it has only a part '%s'",
                       a->other);
    return a->calls_count > 0 ? check_calls(t, e) : 0;
}

/* No text has more bytes for a token than this. */
#define TOKEN_BYTES_CUT 8
/* A request with fewer bytes is not looked at. */
#define CUT_LEAST_BYTES 4096

/* Tells the user that the server has left out a part of the conversation, if it counted far fewer
 * tokens than were sent. */
static void report_silent_cut(struct turn *t)
{
    int64_t tokens = t->answer.usage.at[USAGE_INPUT];
    struct buf notice = BUF_INIT(BUF_SMALL);
    size_t bytes = t->context.system_len + ask_tools_bytes(&t->ask) +
                   context_weight(&t->context, 0, t->context.count);

    if (t->provider->cuts_silently && !t->cut_noted && tokens > 0 && bytes >= CUT_LEAST_BYTES &&
        (uint64_t)tokens < bytes / TOKEN_BYTES_CUT) {
        t->cut_noted = true;
        buf_addf(&notice,
                 "the server has left out a part of the conversation%s: it counted %" PRId64
                 " tokens in %zu bytes",
                 t->before > 0 ? ", or does not count what it has cached" : "", tokens, bytes);
        response_notice(&t->answer, buf_c(&notice));
    }
    buf_release(&notice);
}

static int ask_once(struct turn *t, const struct response_sink *sink, struct err *e)
{
    int result;

    t->answer.sink = sink;
    result = exchange_run(t->provider, &t->ask, &t->answer, t->max_rounds, &t->rounds, e);
    /* A request that was refused cost nothing. */
    if (result == 0 || usage_known(&t->answer.usage) ||
        t->answer.text.len + t->answer.calls_count > 0) {
        usage_sum(&t->usage, &t->answer.usage);
        usage_add_object(&t->answer.usage, buf_str(&t->answer.raw_usage), &t->usages);
        buf_add_byte(&t->usages, '\n');
    }
    if (result == 0)
        report_silent_cut(t);
    return result < 0 ? -1 : check_answer(t, e);
}

/* Makes room in the context before a request, and says so: `why` is printed, with the
 * server's words in `detail`, which may be empty. Returns false if nothing was left out. */
static bool shorten_context(struct turn *t, const char *why, const char *detail)
{
    struct buf notice = BUF_INIT(BUF_LINE);
    size_t before = t->context.dropped;
    bool changed = context_limits_fit(&t->limits, &t->context, t->ask.token_bytes, t->refused_bytes,
                                      *detail != '\0');

    buf_add_c(&notice, why);
    if (t->context.dropped > before)
        buf_addf(&notice, " the oldest %zu messages", t->context.dropped - before);
    else
        buf_add_c(&notice, " parts of long texts");
    if (*detail)
        buf_addf(&notice, " (%s)", detail);
    if (changed)
        response_notice(&t->answer, buf_c(&notice));
    buf_release(&notice);
    return changed;
}

/* Leaves out the older half of the messages if the server said that the conversation is too long
 * and nothing of an answer came. Returns false if the error stands. */
static bool leave_out_half(struct turn *t, struct err *e)
{
    if (e->kind != ERR_TOO_LONG || t->answer.text.len + t->answer.calls_count > 0)
        return false;
    t->refused_bytes = context_bytes(&t->context, 0, t->context.count);
    if (!shorten_context(t, "the conversation is too long: asking again without", err_text(e)))
        return false;
    err_release(e);
    response_release(&t->answer);
    return true;
}

/* Leaves out the images of results if the error may be about them and nothing of an answer came. A
 * model that cannot see, or a server that takes only text there, refuses them in many words and
 * with several statuses (OpenRouter: 404 "No endpoints found that support image input", llama.cpp:
 * 500 "image input is not supported"). Returns false if the error stands. */
static bool leave_out_images(struct turn *t, struct err *e)
{
    bool about = e->kind == ERR_REQUEST || (e->kind == ERR_BUSY && strstr(err_text(e), "image"));

    if (!about || t->answer.text.len > 0 || !context_drop_result_images(&t->context))
        return false;
    t->text_results = true;
    response_notice(&t->answer, "sent the results of tools again without their images");
    err_release(e);
    response_release(&t->answer); /* its calls, too */
    return true;
}

int turn_ask(struct turn *t, const struct response_sink *sink, struct err *e)
{
    int result;

    t->calling = false;
    t->answer.sink = sink;
    /* The first request was cut when the context was made (turn_prepare). */
    if (t->context.count > t->context.turn + 1)
        (void)shorten_context(t, "the model's context is full: it goes on without", "");
    do
        result = ask_once(t, sink, e);
    while (result < 0 && (leave_out_half(t, e) || leave_out_images(t, e)));
    t->calling = result == 0 && t->answer.calls_count > 0;
    t->finished = result == 0 && !t->calling;
    return result;
}

void turn_release(struct turn *t)
{
    if (t->storing)
        (void)store_append_end(t->storing, NULL);
    t->storing = NULL;
    round_end(t);
    /* If the answer could not be stored, the file is kept for the next program. */
    partial_end(&t->partial, t->unstored_count == 0);
    buf_release(&t->partial.id);
    while (t->unstored_count > 0)
        draft_release(&t->unstored[--t->unstored_count]);
    free(t->unstored);
    t->unstored = NULL;
    context_release(&t->context);
    response_release(&t->answer);
    buf_release(&t->prompt_id);
    buf_release(&t->answer_id);
    buf_release(&t->last);
    buf_release(&t->replaces);
    buf_release(&t->unsent);
    buf_release(&t->edits);
    buf_release(&t->usages);
    for (size_t i = 0; i < t->images_count; i++)
        attachment_list_release(&t->images[i]);
    free(t->images);
    t->images = NULL;
    t->images_count = t->images_cap = 0;
}

/* ---- a round of calls ---- */

/* The maximum length of invalid arguments in an error message, in code points. */
#define EXCERPT_MAX 200

/* Finds the tool of a call, and gives a call that cannot run its result. */
static void find_tool(const struct turn *t, struct tool_job *job)
{
    struct str name = buf_str(&job->call->name), args = buf_str(&job->call->args);
    struct buf shown = BUF_INIT(BUF_SMALL);

    buf_init(&job->result, TOOL_RESULT_MAX);
    job->timeout_ms = t->tool_timeout_ms;
    for (size_t i = 0; i < t->ask.tools_count && !job->tool; i++)
        if (str_eq_c(name, t->ask.tools[i]->name))
            job->tool = t->ask.tools[i];
    if (!job->tool) {
        vis_add_line(&shown, name, true);
        tool_fail(job, "there is no tool '%s'", buf_c(&shown));
    } else if (!json_check(args, &job->args, NULL) || json_type(job->args) != JSON_OBJECT) {
        /* The next request repeats the call with `{}` for its arguments, so the result quotes what
         * the model wrote. */
        provider_error_add_excerpt(&shown, args, EXCERPT_MAX);
        tool_fail(job, "the tool was not run: its arguments are not a valid JSON object: %s",
                  buf_c(&shown));
    }
    buf_release(&shown);
}

void round_begin(struct turn *t)
{
    t->calls = mem_zalloc(t->answer.calls_count * sizeof *t->calls);
    for (size_t i = 0; i < t->answer.calls_count; i++) {
        t->calls[i].call = &t->answer.calls[i];
        find_tool(t, &t->calls[i]);
    }
}

int round_run(struct turn *t, const struct tool_watch *watch, struct err *e)
{
    t->rounds++;
    return tool_run(t->calls, t->answer.calls_count, t->ask.limits.cancel_fd, watch, e);
}

static void grow_context(struct turn *t)
{
    struct buf calls = BUF_INIT(BUF_LINE), blocks = BUF_INIT(BUF_LINE);
    struct attachment_list *images;

    response_calls_json(&t->answer, &calls);
    opaque_add_replay(&t->answer.opaque, &blocks);
    context_add_calls(&t->context, buf_str(&t->answer.text), buf_str(&calls), buf_str(&blocks),
                      (struct context_server){t->provider->name, t->ask.address});
    buf_release(&blocks);
    for (size_t i = 0; i < t->answer.calls_count; i++) {
        context_add_result(&t->context, buf_str(&t->calls[i].call->id),
                           buf_str(&t->calls[i].result), t->calls[i].failed);
        images = &t->calls[i].images;
        if (images->count == 0)
            continue;
        t->images = mem_grow(t->images, &t->images_cap, t->images_count + 1, sizeof *t->images);
        t->images[t->images_count++] = *images;
        if (!t->text_results)
            context_set_attachments(&t->context, images->at, images->count);
        *images = (struct attachment_list){0};
    }
    buf_release(&calls);
}

void round_end(struct turn *t)
{
    if (!t->calls)
        return;
    grow_context(t);
    for (size_t i = 0; i < t->answer.calls_count; i++) {
        buf_release(&t->calls[i].result);
        buf_release(&t->calls[i].edits);
    }
    free(t->calls);
    t->calls = NULL;
    response_release(&t->answer);
}
