#include "chathist/chat/turn.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/id.h"
#include "chathist/base/memory.h"
#include "chathist/chat/context_window.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/llm/context.h"
#include "chathist/llm/exchange.h"
#include "chathist/llm/provider_error.h"

/* ---- the context ---- */

/* Does the system prompt differ from the session's? */
static bool is_new_system(const struct turn *t)
{
    struct str had = {t->context.system, t->context.system_len};

    return t->system.p && !str_eq(had, t->system);
}

/* Replaces the thread by the given messages. */
static void take_messages(struct turn *t)
{
    context_release(&t->context);
    t->bad_entries = messages_add(&t->context, t->messages);
}

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

static void supersede(struct turn *t, const struct message *m)
{
    buf_add_byte(&t->replaces, t->replaces.len > 0 ? ',' : '[');
    buf_add_str(&t->replaces, m->field[FIELD_ID]);
}

/* Is an attachment with this hash, a JSON string, sent with the prompt? */
static bool is_attached(const struct turn *t, struct str sha256)
{
    for (size_t i = 0; t->attachments && i < t->attachments->count; i++)
        if (json_is_text(sha256, t->attachments->at[i].sha256))
            return true;
    return false;
}

/* Notes the attachments of an earlier prompt that are not sent again. Lines of other programs, and
 * of earlier versions, have only the number of the images. */
static void note_unsent(struct turn *t, const struct message *m)
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

/* Is the line a result of the prompt before it? A system prompt is not. */
static bool is_outcome(const struct message *m)
{
    return m->role == ROLE_ASSISTANT || m->role == ROLE_TOOL;
}

/* Adds the thread to the context, except the turn that this one replaces. */
static int take_thread(struct turn *t, const struct thread *thread, struct err *e)
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
            note_unsent(t, m);
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
    if ((t->memory || !t->history->unreadable) &&
        context_window_load(&thread, t->history, t->memory, t->session, &t->limits, &t->was_cut,
                            e) < 0)
        return -1;
    token_bytes = context_token_bytes(&thread);
    t->ask.token_bytes = token_bytes;
    result = take_thread(t, &thread, e);
    t->is_new = thread.all == 0;
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
    if (t->attachments)
        context_set_attachments(&t->context, t->attachments->at, t->attachments->count);
    context_limits_apply(&t->limits, &t->context, token_bytes);
    if (context_limits_exceeded(&t->limits, &t->context, &tokens))
        return err_set(e, ERR_TOO_LONG,
                       "the prompt is too long for the model: it has at least %zu tokens, and the "
                       "model's context has room for %zu",
                       tokens, t->limits.most);
    t->before = t->context.turn;
    context_settle(&t->context);
    t->ask.context = &t->context;
    return 0;
}

/* ---- storing ---- */

/* Adds a line that is not initialised. The pointer is valid until the next call. */
static struct draft *new_draft(struct turn *t)
{
    t->unstored =
        mem_grow(t->unstored, &t->unstored_cap, t->unstored_count + 1, sizeof *t->unstored);
    return &t->unstored[t->unstored_count++];
}

/* Adds a line of this session. */
static struct draft *add_draft(struct turn *t, enum role role, struct str content)
{
    struct draft *d = new_draft(t);

    draft_init(d);
    draft_message(d, role, content);
    draft_set_text(d, FIELD_SESSION_ID, t->session);
    return d;
}

static struct draft *turn_add_line(struct turn *t, enum role role, struct str content)
{
    struct draft *d = add_draft(t, role, content);

    if (t->prompt_id.len > 0)
        draft_set_text(d, FIELD_REPLY_TO, buf_str(&t->prompt_id));
    return d;
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
    struct buf array = BUF_INIT(BUF_LINE);

    if (t->replaces.len > 0) {
        buf_add_str(&array, buf_str(&t->replaces));
        buf_add_byte(&array, ']');
        draft_set(d, FIELD_REPLACES, buf_str(&array));
    }
    buf_release(&array);
}

static void set_attachments(const struct turn *t, struct draft *d)
{
    const struct attachment_list *l = t->attachments;
    struct buf json = BUF_INIT(BUF_LINE);
    size_t images = l ? attachment_images(l->at, l->count) : 0;

    if (images > 0)
        draft_set_int(d, FIELD_IMAGES, (long long)images);
    if (l && l->count > 0) {
        attachment_list_json(l, &json);
        draft_set(d, FIELD_ATTACHMENTS, buf_str(&json));
    }
    buf_release(&json);
}

/* Adds the system prompt and the prompt, each if it is new. */
static void add_prompt_lines(struct turn *t)
{
    struct draft *d;

    if (t->new_system)
        add_draft(t, ROLE_SYSTEM, t->system);
    if (t->kind == TURN_AGAIN)
        return;
    d = add_draft(t, ROLE_USER, t->prompt);
    if (t->kind == TURN_EDIT)
        push_replaces(t, d);
    set_attachments(t, d);
    for (const char *const *f = t->files; f && *f; f++)
        draft_push_text(d, FIELD_FILES, str_of(*f));
}

/* Adds what the tools have edited since the answer before. */
static void set_edits(const struct turn *t, struct draft *d)
{
    struct buf results = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct str rest = buf_str(&t->edits);
    struct hash_map files = {0};

    while (rest.n > 0) {
        struct str object = str_cut(&rest, '\n');
        struct json_iter it = json_iter(json_get(object, "files_modified"));

        while (json_next(&it)) {
            struct str name = json_text(it.value, &scratch);

            if (hash_map_add(&files, name))
                draft_push_text(d, FIELD_FILES_MODIFIED, name);
        }
        for (it = json_iter(json_get(object, "edit_results")); json_next(&it);) {
            buf_add_byte(&results, results.len > 0 ? ',' : '[');
            buf_add_str(&results, it.value);
        }
    }
    if (results.len > 0) {
        buf_add_byte(&results, ']');
        draft_set(d, FIELD_EDIT_RESULTS, buf_str(&results));
    }
    hash_map_release(&files);
    buf_release(&results);
    buf_release(&scratch);
}

static void set_server(const struct turn *t, struct draft *d)
{
    /* The requested model may be an alias or a router; the answer names the real one. */
    const char *model = t->answer.model ? t->answer.model : t->ask.model;

    if (model)
        draft_set_text(d, FIELD_MODEL, str_of(model));
    draft_set_text(d, FIELD_PROVIDER, str_of(t->provider->name));
    if (t->ask.address)
        draft_set_text(d, FIELD_SERVER, str_of(t->ask.address));
}

/* Adds the answer. An answer without text is also a line; it keeps its prompt out of later
 * requests. */
static void add_answer_line(struct turn *t)
{
    const struct response *a = &t->answer;
    struct buf calls = BUF_INIT(BUF_LINE), blocks = BUF_INIT(BUF_LINE);
    struct draft *d = turn_add_line(t, ROLE_ASSISTANT, buf_str(&a->text));

    if (t->partial.open)
        draft_set_text(d, FIELD_ID, buf_str(&t->partial.id));
    if (a->calls_count > 0) {
        response_calls_json(a, &calls);
        draft_set(d, FIELD_TOOL_CALLS, buf_str(&calls));
        /* Otherwise a call without a result is one that a killed chat may have run. */
        if (!t->calling)
            draft_set(d, FIELD_FAILED, STR("true"));
    }
    buf_release(&calls);
    opaque_add_replay(&a->opaque, &blocks);
    if (blocks.len > 0)
        draft_set(d, FIELD_THINKING, buf_str(&blocks));
    buf_release(&blocks);
    if (t->kind == TURN_AGAIN && t->finished)
        push_replaces(t, d);
    set_edits(t, d);
    buf_clear(&t->edits);
    set_server(t, d);
    draft_set_usage(d, &a->usage, buf_str(&a->raw_usage));
    if (a->finish_reason)
        draft_set_text(d, FIELD_FINISH_REASON, str_of(a->finish_reason));
    else if (!a->finished)
        draft_set_text(d, FIELD_FINISH_REASON, STR("error"));
    if (a->opaque.citations.len > 0)
        draft_set(d, FIELD_CITATIONS, buf_str(&a->opaque.citations));
}

static void drop_lines(struct turn *t)
{
    while (t->unstored_count > 0)
        draft_release(&t->unstored[--t->unstored_count]);
}

int turn_remember(struct turn *t, struct buf *memory, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL), now = BUF_INIT(BUF_SMALL);
    int result = 0;

    for (size_t i = 0; i < t->unstored_count && result == 0; i++) {
        struct draft *d = &t->unstored[i];

        buf_clear(&id);
        buf_clear(&now);
        id_add_message(&id, time_now() / 1000);
        time_add_iso(&now, time_now());
        if (!draft_has(d, FIELD_ID))
            draft_set_text(d, FIELD_ID, buf_str(&id));
        draft_set_text(d, FIELD_TIMESTAMP, buf_str(&now));
        result = draft_format(d, memory, e);
    }
    buf_release(&id);
    buf_release(&now);
    return result;
}

/* Makes the file of the answer that comes next, unless it is there with all edits so far. */
static void await_answer_line(struct turn *t)
{
    struct partial older = t->partial;
    struct draft d;

    if (!t->keeps_partial || t->prompt_id.len == 0 ||
        (older.open && t->awaited_edits == t->edits.len))
        return;
    draft_init(&d);
    draft_message(&d, ROLE_ASSISTANT, STR(""));
    draft_set_text(&d, FIELD_SESSION_ID, t->session);
    draft_set_text(&d, FIELD_REPLY_TO, buf_str(&t->prompt_id));
    set_edits(t, &d);
    set_server(t, &d);
    t->partial = (struct partial){0};
    partial_begin(&t->partial, t->history, &d);
    if (t->partial.open || !older.open) {
        t->awaited_edits = t->edits.len;
        partial_end(&older, true);
        buf_release(&older.id);
    } else {
        buf_release(&t->partial.id);
        t->partial = older;
    }
    draft_release(&d);
}

void turn_await(struct turn *t)
{
    if (t->unstored_count == 0)
        await_answer_line(t);
}

/* Writes the lines, which turn_store_end syncs. */
static void turn_store_begin(struct turn *t)
{
    if (t->unstored_count > 0 && !t->memory)
        t->storing =
            store_append_begin(t->history, t->unstored, t->unstored_count, buf_str(&t->prompt_id));
}

static int turn_store_end(struct turn *t, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool answered = false;
    int result;

    if (t->unstored_count == 0)
        return 0;
    result = t->memory ? turn_remember(t, t->memory, e) : store_append_end(t->storing, e);
    t->storing = NULL;
    if (result < 0) {
        if (e && e->kind == ERR_ABSENT) {
            drop_lines(t);
            partial_end(&t->partial, true);
        } else if (e) {
            e->kind = ERR_UNSAVED;
        }
        return -1;
    }
    for (size_t i = 0; i < t->unstored_count; i++) {
        const struct draft *d = &t->unstored[i];

        keep_id(&id, d);
        if (t->own)
            hash_map_add(t->own, buf_str(&id));
        if (str_eq(buf_str(&d->field[FIELD_ROLE]), STR("\"user\"")))
            keep_id(&t->prompt_id, d);
        if (str_eq(buf_str(&d->field[FIELD_ROLE]), STR("\"assistant\""))) {
            keep_id(&t->answer_id, d);
            answered = true;
        }
    }
    t->prompt_stored = true;
    drop_lines(t);
    if (answered)
        partial_end(&t->partial, true);
    buf_release(&id);
    return 0;
}

static int turn_store(struct turn *t, struct err *e)
{
    turn_store_begin(t);
    return turn_store_end(t, e);
}

void turn_store_prompt_begin(struct turn *t, struct draft *title)
{
    add_prompt_lines(t);
    if (title && t->kind != TURN_AGAIN) {
        *new_draft(t) = *title;
        draft_init(title);
    }
    turn_store_begin(t);
}

int turn_store_prompt_end(struct turn *t, struct err *e)
{
    return turn_store_end(t, e);
}

int turn_store_answer(struct turn *t, struct err *e)
{
    add_answer_line(t);
    return turn_store(t, e);
}

int turn_store_result(struct turn *t, struct err *e)
{
    /* Before the result: whoever finds it finds the names, too. */
    if (t->edits.len > 0 && t->unstored_count == 1)
        await_answer_line(t);
    return turn_store(t, e);
}

/* ---- asking ---- */

static int unknown_tool(const struct tool_call *call, struct err *e)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    vis_add_line(&shown, buf_str(&call->name), true);
    err_set(e, ERR_LIMIT, "the model called the tool '%s', which it was not given", buf_c(&shown));
    buf_release(&shown);
    return -1;
}

/* Returns 0 if the calls of the answer can be run, else -1 with *e set. */
static int check_calls(const struct turn *t, struct err *e)
{
    if (t->ask.tools_count == 0)
        return unknown_tool(&t->answer.calls[0], e);
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
static void note_silent_cut(struct turn *t)
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

static void add_usage(struct turn *t)
{
    usage_sum(&t->usage, &t->answer.usage);
    usage_add_object(&t->answer.usage, buf_str(&t->answer.raw_usage), &t->usages);
    buf_add_byte(&t->usages, '\n');
}

static int ask_once(struct turn *t, const struct response_sink *sink, struct err *e)
{
    int result;

    t->answer.sink = sink;
    result = exchange_run(t->provider, &t->ask, &t->answer, t->max_rounds, &t->rounds, e);
    /* A request that was refused cost nothing. */
    if (result == 0 || usage_known(&t->answer.usage) ||
        t->answer.text.len + t->answer.calls_count > 0)
        add_usage(t);
    if (result == 0)
        note_silent_cut(t);
    return result < 0 ? -1 : check_answer(t, e);
}

/* Makes room in the context before a request, and says so: `why` the user is told, with the
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

/* Leaves out the older half of what was sent if the server said that the conversation is too long
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

void turn_add_file(struct turn *t, struct str name)
{
    buf_add_c(&t->edits, t->edits.len > 0 ? "\n" : "");
    buf_add_c(&t->edits, "{\"files_modified\":[");
    json_add_string(&t->edits, name);
    buf_add_c(&t->edits, "]}");
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
    drop_lines(t);
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

static const struct tool *find_tool(const struct ask *ask, struct str name)
{
    for (size_t i = 0; i < ask->tools_count; i++)
        if (str_eq_c(name, ask->tools[i]->name))
            return ask->tools[i];
    return NULL;
}

/* The next request repeats the call with `{}` for its arguments, so the result quotes what the
 * model wrote. */
static void refuse_arguments(struct tool_job *job)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    provider_error_add_excerpt(&shown, buf_str(&job->call->args), EXCERPT_MAX);
    tool_fail(job, "the tool was not run: its arguments are not a valid JSON object: %s",
              buf_c(&shown));
    buf_release(&shown);
}

static void refuse_name(struct tool_job *job)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    vis_add_line(&shown, buf_str(&job->call->name), true);
    tool_fail(job, "there is no tool '%s'", buf_c(&shown));
    buf_release(&shown);
}

static void find_job_tool(const struct turn *t, struct tool_job *job)
{
    buf_init(&job->result, TOOL_RESULT_MAX);
    job->tool = find_tool(&t->ask, buf_str(&job->call->name));
    job->timeout_ms = t->tool_timeout_ms;
    if (!job->tool)
        refuse_name(job);
    else if (!json_check(buf_str(&job->call->args), &job->args, NULL) ||
             json_type(job->args) != JSON_OBJECT)
        refuse_arguments(job);
}

void round_begin(struct turn *t)
{
    t->calls = mem_zalloc(t->answer.calls_count * sizeof *t->calls);
    for (size_t i = 0; i < t->answer.calls_count; i++) {
        t->calls[i].call = &t->answer.calls[i];
        find_job_tool(t, &t->calls[i]);
    }
}

int round_run(struct turn *t, const struct tool_watch *watch, struct err *e)
{
    t->rounds++;
    return tool_run(t->calls, t->answer.calls_count, t->ask.limits.cancel_fd, watch, e);
}

void round_keep(struct turn *t, struct tool_job *job)
{
    struct draft *d = turn_add_line(t, ROLE_TOOL, buf_str(&job->result));

    draft_set_text(d, FIELD_TOOL_CALL_ID, buf_str(&job->call->id));
    if (job->failed)
        draft_set(d, FIELD_FAILED, STR("true"));
    if (job->edits.len > 0) {
        buf_add_c(&t->edits, t->edits.len > 0 ? "\n" : "");
        buf_add_str(&t->edits, buf_str(&job->edits));
    }
    buf_release(&job->edits);
}

/* Keeps the images of a result and attaches them to it. */
static void attach_images(struct turn *t, struct attachment_list *images)
{
    if (images->count == 0)
        return;
    t->images = mem_grow(t->images, &t->images_cap, t->images_count + 1, sizeof *t->images);
    t->images[t->images_count++] = *images;
    if (!t->text_results)
        context_set_attachments(&t->context, images->at, images->count);
    *images = (struct attachment_list){0};
}

static void grow_context(struct turn *t)
{
    struct buf calls = BUF_INIT(BUF_LINE), blocks = BUF_INIT(BUF_LINE);

    response_calls_json(&t->answer, &calls);
    opaque_add_replay(&t->answer.opaque, &blocks);
    context_add_calls(&t->context, buf_str(&t->answer.text), buf_str(&calls), buf_str(&blocks),
                      (struct context_server){t->provider->name, t->ask.address});
    buf_release(&blocks);
    for (size_t i = 0; i < t->answer.calls_count; i++) {
        context_add_result(&t->context, buf_str(&t->calls[i].call->id),
                           buf_str(&t->calls[i].result), t->calls[i].failed);
        attach_images(t, &t->calls[i].images);
    }
    buf_release(&calls);
}

void round_end(struct turn *t)
{
    if (!t->calls)
        return;
    grow_context(t);
    for (size_t i = 0; i < t->answer.calls_count; i++)
        buf_release(&t->calls[i].result);
    free(t->calls);
    t->calls = NULL;
    response_release(&t->answer);
}
