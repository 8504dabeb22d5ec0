#include "chat/dialogue.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/base/json_write.h"
#include "chathist/base/mem.h"
#include "chathist/cli/die.h"
#include "chat/attach.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/start.h"
#include "chathist/chat/talk_models.h"
#include "chathist/history/scan.h"
#include "chathist/history/thread.h"

static bool stores(const struct dialogue *d)
{
    return d->talk->args->store && !d->talk->in_memory;
}

struct str dialogue_session(const struct dialogue *d)
{
    return buf_str(&d->talk->session.id);
}

/* ---- in memory ---- */

static void remember_line(struct dialogue *d, enum role role, struct str line)
{
    if (role == ROLE_USER) {
        d->last = d->memory.len;
        d->any = true;
    }
    buf_add_str(&d->memory, line);
    buf_add_byte(&d->memory, '\n');
}

/* Adds a message of the turn whose prompt has that id; the other members may be NULL. */
static void remember(struct dialogue *d, enum role role, struct str text, struct str prompt_id,
                     const char *tool_calls, const char *tool_call_id, const char *finish_reason)
{
    struct buf line = BUF_INIT((size_t)-1);

    buf_add_byte(&line, '{');
    json_add_member(&line, role == ROLE_USER ? "id" : "reply_to", prompt_id);
    json_add_member(&line, "role", str_of(role_name(role)));
    json_add_member(&line, "content", text);
    if (tool_calls) {
        json_add_key(&line, "tool_calls");
        buf_add_c(&line, tool_calls);
    }
    if (tool_call_id)
        json_add_member(&line, "tool_call_id", str_of(tool_call_id));
    if (finish_reason)
        json_add_member(&line, "finish_reason", str_of(finish_reason));
    buf_add_byte(&line, '}');
    remember_line(d, role, buf_str(&line));
    buf_release(&line);
}

/* The prompt, the calls with their results, the answer. */
static void remember_turn(struct dialogue *d, const struct turn *turn)
{
    const struct context *c = &turn->context;
    const char *reason = turn->answer.finish_reason;
    struct buf id = BUF_INIT(BUF_SMALL);

    buf_addf(&id, "%zu", d->memory.len);
    remember(d, ROLE_USER, turn->prompt, buf_str(&id), NULL, NULL, NULL);
    for (size_t i = c->turn + 1; i < c->count; i++) {
        const struct context_message *m = &c->at[i];

        remember(d, m->role, (struct str){m->content, m->n}, buf_str(&id), m->tool_calls,
                 m->tool_call_id, NULL);
    }
    if (!reason && !turn->answer.finished)
        reason = "error";
    remember(d, ROLE_ASSISTANT, buf_str(&turn->answer.text), buf_str(&id), NULL, NULL, reason);
    buf_release(&id);
}

/* Is it of the turn, or does the turn take its place? */
static bool is_of(const struct turn *turn, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    struct str prompt = buf_str(&turn->prompt_id);
    bool is = false;

    if (prompt.n > 0)
        is = str_eq(m->id, prompt) || str_eq(json_text(m->field[FIELD_REPLY_TO], &scratch), prompt);
    for (size_t i = 0; !is && i < turn->replaces_count; i++)
        is = str_eq(m->id, buf_str(&turn->replaces[i]));
    buf_release(&scratch);
    return is;
}

/* What the session holds in the history; `but` what belongs to that turn (NULL: all of it). */
static int recall_session(struct dialogue *d, const struct turn *but, struct err *e)
{
    struct thread t;

    buf_clear(&d->memory);
    d->any = false;
    if (thread_find(&t, &d->talk->history, dialogue_session(d), false, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++)
        if (t.at[i].role != ROLE_OTHER && !(but && is_of(but, &t.at[i])))
            remember_line(d, t.at[i].role, t.at[i].line);
    thread_release(&t);
    return 0;
}

/* The history could not take all of the turn: from now on the conversation is here. */
static void go_on_in_memory(struct dialogue *d, const struct turn *turn)
{
    bool given_up = turn->kind == TURN_AGAIN && !turn->finished;
    struct err e = ERR_INIT;

    d->talk->in_memory = true;
    if (recall_session(d, given_up ? NULL : turn, &e) < 0) {
        warn_err(&e);
        err_release(&e);
    }
    if (!given_up)
        remember_turn(d, turn);
    warnf("nothing is stored from now on: the conversation goes on in memory");
}

/* The session, where it is not read from the history each time. */
static int remember_session(struct dialogue *d, struct err *e)
{
    if (!stores(d))
        return recall_session(d, NULL, e);
    buf_clear(&d->memory);
    d->any = false;
    return 0;
}

static void last_line(const struct dialogue *d, struct buf *out)
{
    struct str rest = {d->memory.data + d->last, d->memory.len - d->last};
    struct buf scratch = BUF_INIT(BUF_LINE);

    buf_add_str(out, json_text(json_get(str_cut(&rest, '\n'), "content"), &scratch));
    buf_release(&scratch);
}

/* ---- the session ---- */

/* What can never be a history is found now, not at each turn. */
static void check_history(struct talk *talk)
{
    struct err e = ERR_INIT;
    struct scan scan;

    talk_look_at_history(talk);
    if (!talk->args->store || talk->history.unreadable)
        return;
    if (scan_open(&scan, talk->history.dir_fd, talk->history.path, SCAN_FORWARD, &e) < 0)
        die_err(&e);
    scan_close(&scan);
}

void dialogue_open(struct dialogue *d, struct talk *talk)
{
    struct err e = ERR_INIT;

    *d = (struct dialogue){.talk = talk};
    buf_init(&d->system, BUF_LINE);
    buf_init(&d->memory, (size_t)-1);
    check_history(talk);
    talk_choose_session(talk);
    if (remember_session(d, &e) < 0)
        die_err(&e);
    if (talk->args->system)
        dialogue_set_system(d, str_of(talk->args->system));
    for (size_t i = 0; i < talk->args->files_count; i++)
        if (dialogue_attach(d, talk->args->files[i], &e) < 0)
            die_err(&e);
}

void dialogue_close(struct dialogue *d)
{
    dialogue_detach_files(d);
    free(d->files);
    buf_release(&d->system);
    buf_release(&d->memory);
}

static void forget_system(struct dialogue *d)
{
    buf_clear(&d->system);
    d->has_system = false;
}

void dialogue_begin(struct dialogue *d, const char *system)
{
    struct talk *t = d->talk;
    struct resume_wish wish = {.fresh = true};

    start_session(&t->session, &wish, &t->config, &t->history, false, true);
    t->settled = false;
    buf_clear(&d->memory);
    d->any = false;
    forget_system(d);
    if (!system)
        system = t->args->system;
    if (system)
        dialogue_set_system(d, str_of(system));
}

int dialogue_continue(struct dialogue *d, struct str id, struct err *e)
{
    struct talk *t = d->talk;
    struct buf copy = BUF_INIT(BUF_SMALL);
    int result = 0;

    buf_add_str(&copy, id);
    if (stores(d))
        result =
            start_try_current(&t->config, &t->history, buf_str(&copy), t->args->common.quiet, e);
    if (result == 0) {
        buf_clear(&t->session.id);
        buf_add_str(&t->session.id, buf_str(&copy));
        t->session.fresh = t->session.make_current = false;
        forget_system(d);
        result = remember_session(d, e);
    }
    buf_release(&copy);
    return result;
}

/* ---- the next prompt ---- */

void dialogue_set_system(struct dialogue *d, struct str text)
{
    buf_clear(&d->system);
    buf_add_str(&d->system, text);
    d->has_system = true;
}

static void take_system(void *arg, struct str json)
{
    struct buf *newest = arg;
    struct buf scratch = BUF_INIT(BUF_LINE);

    if (str_eq_c(json_text(json_get(json, "role"), &scratch), "system")) {
        buf_clear(newest);
        buf_add_str(newest, json_text(json_get(json, "content"), &scratch));
    }
    buf_release(&scratch);
}

int dialogue_system(const struct dialogue *d, struct buf *out, struct err *e)
{
    if (d->has_system)
        buf_add_str(out, buf_str(&d->system));
    else if (dialogue_each(d, take_system, out, e) < 0)
        return -1;
    return out->len > 0;
}

int dialogue_attach(struct dialogue *d, const char *file, struct err *e)
{
    struct buf tried = BUF_INIT(PROMPT_MAX);
    struct image_list images = {0};
    int result;

    /* It is read now and again with its prompt; a FIFO would give nothing the second time. */
    if (io_check_regular(file, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    result = attach_file(&tried, &images, file, e);
    image_list_release(&images);
    buf_release(&tried);
    if (result < 0)
        return -1;
    d->files = mem_grow(d->files, &d->files_cap, d->files_count + 2, sizeof *d->files);
    d->files[d->files_count++] = mem_copy(file, strlen(file));
    d->files[d->files_count] = NULL;
    return 0;
}

void dialogue_detach_files(struct dialogue *d)
{
    while (d->files_count > 0) {
        free(d->files[--d->files_count]);
        d->files[d->files_count] = NULL;
    }
}

/* ---- a turn ---- */

static int add_files(const struct dialogue *d, struct buf *prompt, struct image_list *images,
                     struct err *e)
{
    for (size_t i = 0; i < d->files_count; i++)
        if (attach_file(prompt, images, d->files[i], e) < 0)
            return -1;
    return prompt->overflow
               ? err_set(e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20)
               : 0;
}

/* A turn in memory is always the next one, once what it replaces is gone. */
static int leave_last(struct dialogue *d, struct turn *turn, struct buf *prompt, struct err *e)
{
    if (turn->kind == TURN_NEXT)
        return 0;
    if (!d->any)
        return err_set(e, ERR_USAGE, "session '%s' has no prompt yet", buf_c(&d->talk->session.id));
    if (turn->kind == TURN_AGAIN)
        last_line(d, prompt);
    buf_truncate(&d->memory, d->last);
    turn->kind = TURN_NEXT;
    return 0;
}

/* *asked: the turn began. */
static int ask(struct dialogue *d, struct turn *turn, bool *asked)
{
    struct err e = ERR_INIT;
    int status;

    *asked = false;
    talk_seek_model(d->talk);
    if (talk_prepare(d->talk, turn, &e) < 0 || talk_check(d->talk, turn, false, &e) < 0) {
        status = exit_code(e.kind);
        warn_err(&e);
        err_release(&e);
        return status;
    }
    *asked = true;
    status = talk_run(d->talk, turn);
    if (turn->files)
        dialogue_detach_files(d);
    if (turn->prompt_stored)
        forget_system(d);
    return status;
}

/* The same without the history. What a failed attempt was to replace stays. */
static int ask_in_memory(struct dialogue *d, struct turn *turn, struct buf *prompt)
{
    enum turn_kind kind = turn->kind;
    struct buf before = BUF_INIT((size_t)-1);
    size_t last = d->last;
    struct err e = ERR_INIT;
    bool asked;
    int status;

    buf_add_str(&before, buf_str(&d->memory));
    if (leave_last(d, turn, prompt, &e) < 0) {
        status = exit_code(e.kind);
        warn_err(&e);
        err_release(&e);
        goto out;
    }
    turn->prompt = buf_str(prompt);
    turn->messages = d->memory.len > 0 ? buf_str(&d->memory) : STR("[]");
    status = ask(d, turn, &asked);
    if (!asked || (kind == TURN_AGAIN && !turn->finished)) {
        buf_clear(&d->memory);
        buf_add_str(&d->memory, buf_str(&before));
        d->last = last;
    } else {
        remember_turn(d, turn);
    }
out:
    buf_release(&before);
    return status;
}

int dialogue_ask(struct dialogue *d, enum turn_kind kind, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct image_list images = {0};
    struct err e = ERR_INIT;
    struct turn turn = {
        .kind = kind, .system = d->has_system ? buf_str(&d->system) : STR_NONE, .images = &images};
    bool asked;
    int status;

    if (d->has_system && d->system.len == 0)
        turn.system = STR("");
    if (kind != TURN_AGAIN) {
        buf_add_str(&prompt, text);
        turn.files = (const char *const *)d->files;
        if (add_files(d, &prompt, &images, &e) < 0) {
            status = exit_code(e.kind);
            warn_err(&e);
            err_release(&e);
            goto out;
        }
    }
    turn.prompt = buf_str(&prompt);
    if (!stores(d)) {
        status = ask_in_memory(d, &turn, &prompt);
    } else {
        status = ask(d, &turn, &asked);
        if (asked && turn.unstored_count > 0)
            go_on_in_memory(d, &turn);
    }
    turn_release(&turn);
out:
    image_list_release(&images);
    buf_release(&prompt);
    return status;
}

int dialogue_last_prompt(const struct dialogue *d, struct buf *out, struct err *e)
{
    if (stores(d))
        return turn_last_prompt(&d->talk->history, dialogue_session(d), out, e);
    if (d->any)
        last_line(d, out);
    return d->any;
}

int dialogue_each(const struct dialogue *d, void (*fn)(void *arg, struct str json), void *arg,
                  struct err *e)
{
    struct str rest = buf_str(&d->memory);
    struct thread t;

    if (!stores(d)) {
        while (rest.n > 0)
            fn(arg, str_cut(&rest, '\n'));
        return 0;
    }
    if (thread_find(&t, &d->talk->history, dialogue_session(d), false, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++)
        fn(arg, t.at[i].line);
    thread_release(&t);
    return 0;
}
