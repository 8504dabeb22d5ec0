#include "chathist/chat/turn_store.h"

#include <string.h>

#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/chat/images.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"

/* ---- the lines ---- */

/* Adds a line that is not initialised. The pointer is valid until the next call. */
static struct draft *new_draft(struct turn *t)
{
    t->unstored =
        mem_grow(t->unstored, &t->unstored_cap, t->unstored_count + 1, sizeof *t->unstored);
    return &t->unstored[t->unstored_count++];
}

/* Adds a line of this session, which answers the prompt if that is stored. */
static struct draft *add_draft(struct turn *t, enum role role, struct str content)
{
    struct draft *d = new_draft(t);

    draft_init(d);
    draft_message(d, role, content);
    draft_set_text(d, FIELD_SESSION_ID, t->session);
    if (t->prompt_id.len > 0 && role != ROLE_SYSTEM && role != ROLE_USER)
        draft_set_text(d, FIELD_REPLY_TO, buf_str(&t->prompt_id));
    return d;
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

/* Adds an object of edits to those that the next answer names. */
static void add_edits(struct turn *t, struct str object)
{
    buf_add_c(&t->edits, t->edits.len > 0 ? "\n" : "");
    buf_add_str(&t->edits, object);
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

/* What the other fields of a line may need. */
#define LINE_REST ((size_t)1 << 20)

/* Returns whether a line has room for the reasoning, too. The text must not be lost for it. */
static bool fits_with_reasoning(const struct draft *d, struct str reasoning)
{
    struct buf json = BUF_INIT(BUF_LINE - LINE_REST);
    bool fits;

    for (int f = 0; f < FIELD_COUNT; f++)
        buf_add_str(&json, buf_str(&d->field[f]));
    json_add_string(&json, reasoning);
    fits = !json.overflow;
    buf_release(&json);
    return fits;
}

/* Adds the answer. An answer without text is also a line; it keeps its prompt out of later
 * requests. */
static void add_answer_line(struct turn *t)
{
    const struct response *a = &t->answer;
    struct buf calls = BUF_INIT(BUF_LINE), blocks = BUF_INIT(BUF_LINE);
    struct draft *d = add_draft(t, ROLE_ASSISTANT, buf_str(&a->text));

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
    if (a->reasoning.len > 0 && fits_with_reasoning(d, buf_str(&a->reasoning)))
        draft_set_text(d, FIELD_REASONING, buf_str(&a->reasoning));
    else if (a->reasoning.len > 0)
        warnf("the reasoning is not stored: it and the answer are too long for one line");
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

/* ---- the history, or memory ---- */

static bool keeps_lines(const struct turn_store *s)
{
    return s->args->store || s->in_memory;
}

/* Returns whether two messages end with the same reason, as on a full disk. */
static bool same_reason(const struct err *a, const struct err *b)
{
    const char *x = strrchr(err_text(a), ':'), *y = strrchr(err_text(b), ':');

    return x && y && strcmp(x, y) == 0;
}

/* Reports a failure of the history, once for each reason. The question is asked all the same.
 * Returns false after a failure. */
static bool report_unstored(struct turn_store *s, int result, struct err *e)
{
    struct err unsaved = ERR_INIT;

    if (result >= 0)
        return true;
    err_set(&unsaved, e->kind, "not stored: %s%s", err_text(e),
            s->history->path && s->history->kind != HISTORY_EXPLICIT && e->kind != ERR_ABSENT
                ? " (CHAT_HISTORY can name another file)"
                : "");
    if (strcmp(err_text(&unsaved), err_text(&s->unsaved)) != 0 &&
        !same_reason(&unsaved, &s->unsaved)) {
        events_pause(s->events);
        warn_err(&unsaved);
    }
    err_release(e);
    err_release(&s->unsaved);
    s->unsaved = unsaved;
    return false;
}

int turn_store_remember(struct turn_store *s, const struct turn *t, struct err *e)
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
        result = draft_format(d, &s->memory, e);
    }
    buf_release(&id);
    buf_release(&now);
    return result;
}

/* Writes the lines, which end_storing syncs. */
static void begin_storing(struct turn_store *s)
{
    struct turn *t = s->turn;

    if (t->unstored_count > 0 && !s->in_memory)
        t->storing =
            store_append_begin(s->history, t->unstored, t->unstored_count, buf_str(&t->prompt_id));
}

/* Notes the ids of the lines that are stored. */
static void add_stored_ids(struct turn_store *s)
{
    struct turn *t = s->turn;
    bool answered = false;

    for (size_t i = 0; i < t->unstored_count; i++) {
        const struct draft *d = &t->unstored[i];
        struct str id = buf_str(&d->field[FIELD_ID]), role = buf_str(&d->field[FIELD_ROLE]);

        /* An id of ours has no escapes: the bytes between its quotes are the id. */
        id = id.n > 2 ? (struct str){id.p + 1, id.n - 2} : STR("");
        hash_map_add(&s->own, id);
        if (str_eq_c(role, "\"user\""))
            buf_set(&t->prompt_id, id);
        if (str_eq_c(role, "\"assistant\"")) {
            buf_set(&t->answer_id, id);
            answered = true;
        }
    }
    t->prompt_stored = true;
    if (answered)
        partial_end(&t->partial, true);
}

/* Ends the writing of the lines. Returns whether they are stored; a failure is reported. If the
 * prompt was deleted meanwhile, neither this nor another program stores the lines. */
static bool end_storing(struct turn_store *s)
{
    struct turn *t = s->turn;
    struct err e = ERR_INIT;
    int result;

    if (t->unstored_count == 0)
        return true;
    result = s->in_memory ? turn_store_remember(s, t, &e) : store_append_end(t->storing, &e);
    t->storing = NULL;
    if (result == 0) {
        add_stored_ids(s);
        drop_lines(t);
    } else if (e.kind == ERR_ABSENT) {
        drop_lines(t);
        partial_end(&t->partial, true);
    } else {
        e.kind = ERR_UNSAVED;
    }
    return report_unstored(s, result, &e);
}

static bool store_lines(struct turn_store *s)
{
    begin_storing(s);
    return end_storing(s);
}

/* After its first lines the session becomes current. */
static void make_current(struct turn_store *s)
{
    struct err e = ERR_INIT;

    if (!s->in_memory && !s->settled)
        s->settled = report_unstored(s, resume_finish(s->session, s->history, &e), &e);
}

/* ---- the prompt ---- */

void turn_store_claim(struct turn_store *s, struct turn *t)
{
    const struct chat_args *a = s->args;
    struct err e = ERR_INIT;
    bool fresh;

    s->turn = t;
    s->prompt_ended = s->prompt_kept = false;
    err_release(&s->unsaved);
    if (!a->store || s->in_memory || s->settled)
        return;
    fresh = s->session->fresh;
    /* A failure is reported when the first lines are stored. */
    if (resume_claim(s->session, s->history, &e) < 0)
        err_release(&e);
    if (fresh && !s->session->fresh) {
        if (a->verbose)
            notef("session=%s state=existing", buf_c(&s->session->id));
        if (!a->common.quiet)
            hintf(a->verbose,
                  "another chat began the session '%s' at the same time and this "
                  "prompt joins it (--once, -N or -s ID keeps them apart)",
                  buf_c(&s->session->id));
    }
    t->session = buf_str(&s->session->id);
}

static bool wants_title(const struct turn_store *s)
{
    return s->args->title && s->args->store && !s->in_memory && !s->titled;
}

/* Syncs the prompt: http_limits.before_send, so that nothing of the prompt is sent earlier. */
static void end_prompt(void *arg)
{
    struct turn_store *s = arg;

    if (!s->prompt_ended && keeps_lines(s))
        s->prompt_kept = end_storing(s);
    s->prompt_ended = true;
}

/* Makes the file of the answer that comes next, unless it is there with all edits so far. */
static void await_answer(struct turn_store *s)
{
    struct turn *t = s->turn;
    struct partial older = t->partial;
    struct draft d;

    if (!s->args->store || s->in_memory || t->prompt_id.len == 0 ||
        (older.open && t->awaited_edits == t->edits.len))
        return;
    draft_init(&d);
    draft_message(&d, ROLE_ASSISTANT, STR(""));
    draft_set_text(&d, FIELD_SESSION_ID, t->session);
    draft_set_text(&d, FIELD_REPLY_TO, buf_str(&t->prompt_id));
    set_edits(t, &d);
    set_server(t, &d);
    t->partial = (struct partial){0};
    partial_begin(&t->partial, s->history, &d);
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

/* Prepares for the answer: http_limits.after_send. */
static void prepare_answer(void *arg)
{
    struct turn_store *s = arg;

    if (s->turn->unstored_count == 0)
        await_answer(s);
    if (s->prompt_kept)
        make_current(s);
}

void turn_store_prompt(struct turn_store *s)
{
    struct turn *t = s->turn;
    struct draft title;

    t->ask.limits.before_send = end_prompt;
    t->ask.limits.after_send = prepare_answer;
    t->ask.limits.send_arg = s;
    if (!keeps_lines(s))
        return;
    add_prompt_lines(t);
    draft_init(&title);
    if (t->kind != TURN_AGAIN && wants_title(s) &&
        session_draft_title(s->history, t->session, str_of(s->args->title), &title, NULL) > 0) {
        *new_draft(t) = title;
        draft_init(&title);
    }
    draft_release(&title);
    begin_storing(s);
    if (s->in_memory)
        end_prompt(s);
}

/* ---- the answer ---- */

/* Writes an image of the answer, and notes its file for the line. */
static void store_image(struct turn_store *s, struct str base64)
{
    struct buf path = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    int result =
        image_write(base64, s->args->output, s->images + 1, s->history->path, &path, &name, &e);

    buf_addf(&text, "the answer has an image%s%s", result > 0 ? ": " : ", which is not kept",
             buf_c(&path));
    if (report_unstored(s, result, &e))
        events_notice(s->events, buf_c(&text));
    if (result > 0) {
        s->images++;
        buf_clear(&text);
        buf_add_c(&text, "{\"files_modified\":[");
        json_add_string(&text, buf_str(&name));
        buf_add_c(&text, "]}");
        add_edits(s->turn, buf_str(&text));
    }
    buf_release(&path);
    buf_release(&name);
    buf_release(&text);
}

bool turn_store_answer(struct turn_store *s)
{
    struct str images = buf_str(&s->turn->answer.images);
    const struct history *h = s->history;
    bool nowhere =
        !s->args->output && (!s->args->store || s->in_memory || h->unreadable || h->nowhere);
    struct err e = ERR_INIT;
    bool kept;

    end_prompt(s); /* no connection was made */
    if (images.n > 0 && nowhere)
        events_notice(s->events, "the answer has an image, which is not kept (-O FILE keeps it)");
    else
        while (images.n > 0)
            store_image(s, str_cut(&images, '\n'));
    if (!keeps_lines(s))
        return false;
    add_answer_line(s->turn);
    kept = store_lines(s);
    if (kept || s->prompt_kept)
        make_current(s);
    /* Once, unless it was stored with the prompt. */
    if (kept && wants_title(s))
        s->titled = report_unstored(
            s, session_set_title(s->history, buf_str(&s->session->id), str_of(s->args->title), &e),
            &e);
    return kept;
}

bool turn_store_result(struct turn_store *s, const struct tool_job *job)
{
    struct turn *t = s->turn;
    struct draft *d;
    bool kept;

    if (job->edits.len > 0)
        add_edits(t, buf_str(&job->edits));
    if (!keeps_lines(s))
        return false;
    d = add_draft(t, ROLE_TOOL, buf_str(&job->result));
    draft_set_text(d, FIELD_TOOL_CALL_ID, buf_str(&job->call->id));
    if (job->failed)
        draft_set(d, FIELD_FAILED, STR("true"));
    /* Before the result: whoever finds it finds the names, too. */
    if (t->edits.len > 0 && t->unstored_count == 1)
        await_answer(s);
    kept = store_lines(s);
    if (kept)
        make_current(s);
    return kept;
}

/* ---- the end ---- */

void turn_store_mark(struct turn_store *s)
{
    const struct turn *t = s->turn;
    struct thread_news n = THREAD_NEWS_INIT;

    if (s->in_memory || !t->prompt_stored)
        return;
    if (s->seen.len == 0)
        buf_set(&n.newest, buf_str(t->answer_id.len > 0 ? &t->answer_id : &t->prompt_id));
    else if (thread_find_news(&n, s->history, t->session, buf_str(&s->seen), &s->own) < 0 ||
             n.resets + n.systems + n.replacing > 0)
        buf_set(&n.newest, buf_str(&s->seen));
    session_move_mark(s->history, t->session, buf_str(&n.newest));
    buf_release(&n.newest);
}

void turn_store_release(struct turn_store *s)
{
    buf_release(&s->memory);
    buf_release(&s->seen);
    hash_map_release(&s->own);
    err_release(&s->unsaved);
}
