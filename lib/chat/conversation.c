#include "chat/conversation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/input.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/history/thread.h"

static bool stores_turns(const struct conversation *d)
{
    return d->chat->args->store && !d->chat->in_memory;
}

struct str conversation_session(const struct conversation *d)
{
    return buf_str(&d->chat->session.id);
}

/* ---- in memory ---- */

static void remember_line(struct conversation *d, enum role role, struct str line)
{
    if (role == ROLE_USER) {
        d->last = d->memory.len;
        d->any = true;
    }
    buf_add_str(&d->memory, line);
    buf_add_byte(&d->memory, '\n');
}

/* Adds a message of the turn whose prompt has this id. The last three arguments may be NULL. */
static void remember_message(struct conversation *d, enum role role, struct str text,
                             struct str prompt_id, const char *tool_calls, const char *tool_call_id,
                             const char *finish_reason)
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

/* Adds the prompt, the calls with their results, and the answer. */
static void remember_turn(struct conversation *d, const struct turn *turn)
{
    const struct context *c = &turn->context;
    const char *reason = turn->answer.finish_reason;
    struct buf id = BUF_INIT(BUF_SMALL);

    buf_addf(&id, "%zu", d->memory.len);
    remember_message(d, ROLE_USER, turn->prompt, buf_str(&id), NULL, NULL, NULL);
    for (size_t i = c->turn + 1; i < c->count; i++) {
        const struct context_message *m = &c->at[i];

        remember_message(d, m->role, (struct str){m->content, m->n}, buf_str(&id), m->tool_calls,
                         m->tool_call_id, NULL);
    }
    if (!reason && !turn->answer.finished)
        reason = "error";
    remember_message(d, ROLE_ASSISTANT, buf_str(&turn->answer.text), buf_str(&id), NULL, NULL,
                     reason);
    buf_release(&id);
}

/* Is the message part of the turn, or replaced by it? */
static bool belongs_to_turn(const struct turn *turn, const struct message *m)
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

/* Loads the messages of the session from the history, except those of the turn `but` (NULL:
 * all). */
static int recall_session(struct conversation *d, const struct turn *but, struct err *e)
{
    struct thread t;

    buf_clear(&d->memory);
    d->any = false;
    if (thread_find(&t, &d->chat->history, conversation_session(d), false, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++)
        if (t.at[i].role != ROLE_OTHER && !(but && belongs_to_turn(but, &t.at[i])))
            remember_line(d, t.at[i].role, t.at[i].line);
    thread_release(&t);
    return 0;
}

/* The history could not be written, so the conversation is kept in memory from now on. */
static void go_on_in_memory(struct conversation *d, const struct turn *turn)
{
    bool given_up = turn->kind == TURN_AGAIN && !turn->finished;
    struct err e = ERR_INIT;

    d->chat->in_memory = true;
    if (recall_session(d, given_up ? NULL : turn, &e) < 0) {
        warn_err(&e);
        err_release(&e);
    }
    if (!given_up)
        remember_turn(d, turn);
    warnf("nothing is stored from now on: the conversation goes on in memory");
}

/* Loads the session, if it is not read from the history for each turn. */
static int remember_session(struct conversation *d, struct err *e)
{
    if (!stores_turns(d))
        return recall_session(d, NULL, e);
    buf_clear(&d->memory);
    d->any = false;
    return 0;
}

static void last_line(const struct conversation *d, struct buf *out)
{
    struct str rest = {d->memory.data + d->last, d->memory.len - d->last};
    struct buf scratch = BUF_INIT(BUF_LINE);

    buf_add_str(out, json_text(json_get(str_cut(&rest, '\n'), "content"), &scratch));
    buf_release(&scratch);
}

/* Calls fn for each message, as a JSON object with role and content at least. Returns 0, or -1 with
 * *e set. */
static int each_message(const struct conversation *d, void (*fn)(void *arg, struct str json),
                        void *arg, struct err *e)
{
    struct str rest = buf_str(&d->memory);
    struct thread t;

    if (!stores_turns(d)) {
        while (rest.n > 0)
            fn(arg, str_cut(&rest, '\n'));
        return 0;
    }
    if (thread_find(&t, &d->chat->history, conversation_session(d), false, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++)
        fn(arg, t.at[i].line);
    thread_release(&t);
    return 0;
}

/* ---- the session ---- */

/* Ends the program if the file cannot be a history, before the first prompt. */
static void check_history(struct chat_session *chat)
{
    struct err e = ERR_INIT;
    struct scan scan;

    chat_session_look_at_history(chat);
    if (!chat->args->store || chat->history.unreadable)
        return;
    if (scan_open(&scan, chat->history.dir_fd, chat->history.path, SCAN_FORWARD, &e) < 0)
        die_err(&e);
    scan_close(&scan);
}

void conversation_open(struct conversation *d, struct chat_session *chat)
{
    struct err e = ERR_INIT;

    *d = (struct conversation){.chat = chat};
    buf_init(&d->system, BUF_LINE);
    buf_init(&d->memory, (size_t)-1);
    check_history(chat);
    chat_session_choose(chat);
    if (remember_session(d, &e) < 0)
        die_err(&e);
    if (chat->args->system)
        conversation_set_system(d, str_of(chat->args->system));
    for (size_t i = 0; i < chat->args->files_count; i++)
        if (conversation_attach(d, chat->args->files[i], &e) < 0)
            die_err(&e);
}

void conversation_close(struct conversation *d)
{
    conversation_detach_files(d);
    free(d->files);
    buf_release(&d->system);
    buf_release(&d->memory);
}

static void forget_system(struct conversation *d)
{
    buf_clear(&d->system);
    d->has_system = false;
}

void conversation_begin(struct conversation *d, const char *system)
{
    struct chat_session *t = d->chat;
    struct resume_wish wish = {.fresh = true};

    start_session(&t->session, &wish, &t->config, &t->history, false, true);
    t->settled = false;
    buf_clear(&d->memory);
    d->any = false;
    forget_system(d);
    if (!system)
        system = t->args->system;
    if (system)
        conversation_set_system(d, str_of(system));
}

int conversation_continue(struct conversation *d, struct str id, struct err *e)
{
    struct chat_session *t = d->chat;
    struct buf copy = BUF_INIT(BUF_SMALL);
    int result = 0;

    buf_add_str(&copy, id);
    if (stores_turns(d))
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

void conversation_set_system(struct conversation *d, struct str text)
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

int conversation_system(const struct conversation *d, struct buf *out, struct err *e)
{
    if (d->has_system)
        buf_add_str(out, buf_str(&d->system));
    else if (each_message(d, take_system, out, e) < 0)
        return -1;
    return out->len > 0;
}

int conversation_attach(struct conversation *d, const char *file, struct err *e)
{
    struct buf tried = BUF_INIT(PROMPT_MAX);
    struct image_list images = {0};
    int result;

    /* The file is read now and with its prompt; a FIFO would be empty the second time. */
    if (file_check_regular(file, e) < 0) {
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

void conversation_detach_files(struct conversation *d)
{
    while (d->files_count > 0) {
        free(d->files[--d->files_count]);
        d->files[d->files_count] = NULL;
    }
}

/* ---- a turn ---- */

/* Reports an error. Returns its exit code. */
static int report_turn_error(struct err *e)
{
    int status = exit_code(e->kind);

    warn_err(e);
    err_release(e);
    return status;
}

static int add_files(const struct conversation *d, struct buf *prompt, struct image_list *images,
                     struct err *e)
{
    for (size_t i = 0; i < d->files_count; i++)
        if (attach_file(prompt, images, d->files[i], e) < 0)
            return -1;
    return prompt->overflow
               ? err_set(e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20)
               : 0;
}

/* Removes the turn that this one replaces; without the history every turn is a TURN_NEXT. */
static int leave_last(struct conversation *d, struct turn *turn, struct buf *prompt, struct err *e)
{
    if (turn->kind == TURN_NEXT)
        return 0;
    if (!d->any)
        return err_set(e, ERR_USAGE, "session '%s' has no prompt yet", buf_c(&d->chat->session.id));
    if (turn->kind == TURN_AGAIN)
        last_line(d, prompt);
    buf_truncate(&d->memory, d->last);
    turn->kind = TURN_NEXT;
    return 0;
}

/* Runs the turn. *asked is set if it began. Returns the exit code. */
static int run_turn(struct conversation *d, struct turn *turn, bool *asked)
{
    struct err e = ERR_INIT;
    int status;

    *asked = false;
    chat_session_seek_model(d->chat);
    if (chat_session_prepare(d->chat, turn, &e) < 0 ||
        chat_session_check(d->chat, turn, false, &e) < 0)
        return report_turn_error(&e);
    *asked = true;
    status = chat_session_run(d->chat, turn);
    if (turn->files)
        conversation_detach_files(d);
    if (turn->prompt_stored)
        forget_system(d);
    return status;
}

/* Runs a turn without the history. If it fails, the turn that it should replace is kept. */
static int ask_in_memory(struct conversation *d, struct turn *turn, struct buf *prompt)
{
    enum turn_kind kind = turn->kind;
    struct buf before = BUF_INIT((size_t)-1);
    size_t last = d->last;
    struct err e = ERR_INIT;
    bool asked;
    int status;

    buf_add_str(&before, buf_str(&d->memory));
    if (leave_last(d, turn, prompt, &e) < 0) {
        status = report_turn_error(&e);
        goto out;
    }
    turn->prompt = buf_str(prompt);
    turn->messages = d->memory.len > 0 ? buf_str(&d->memory) : STR("[]");
    status = run_turn(d, turn, &asked);
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

int conversation_ask(struct conversation *d, enum turn_kind kind, struct str text)
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
            status = report_turn_error(&e);
            goto out;
        }
    }
    turn.prompt = buf_str(&prompt);
    if (!stores_turns(d)) {
        status = ask_in_memory(d, &turn, &prompt);
    } else {
        status = run_turn(d, &turn, &asked);
        if (asked && turn.unstored_count > 0)
            go_on_in_memory(d, &turn);
    }
    turn_release(&turn);
out:
    image_list_release(&images);
    buf_release(&prompt);
    return status;
}

int conversation_last_prompt(const struct conversation *d, struct buf *out, struct err *e)
{
    if (stores_turns(d))
        return turn_last_prompt(&d->chat->history, conversation_session(d), out, e);
    if (d->any)
        last_line(d, out);
    return d->any;
}

/* ---- Markdown and files ---- */

static struct str text_member(struct str json, const char *key, struct buf *scratch)
{
    return json_text(json_get(json, key), scratch);
}

static void add_markdown_text(struct buf *out, struct str text)
{
    if (text.n == 0)
        return;
    buf_add_byte(out, '\n');
    buf_add_str(out, text);
    if (text.p[text.n - 1] != '\n')
        buf_add_byte(out, '\n');
}

/* Adds each call as a line of an indented block. */
static void add_markdown_calls(struct buf *out, struct str calls, struct buf *scratch)
{
    struct json_iter it = json_iter(calls);
    struct buf args = BUF_INIT(BUF_LINE);
    struct message_call call;
    bool any = false;

    while (message_next_call(&it, &call, &args)) {
        buf_add_c(out, any ? "    " : "\n    ");
        buf_add_str(out, json_text(call.name, scratch));
        buf_add_byte(out, ' ');
        buf_add_str(out, call.args);
        buf_add_byte(out, '\n');
        any = true;
    }
    buf_release(&args);
}

static void add_message(void *arg, struct str json)
{
    struct buf *out = arg;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str model;

    buf_add_c(out, out->len > 0 ? "\n## " : "## ");
    buf_add_str(out, text_member(json, "role", &scratch));
    model = text_member(json, "model", &scratch);
    if (model.n > 0) {
        buf_add_c(out, " (");
        buf_add_str(out, model);
        buf_add_byte(out, ')');
    }
    buf_add_byte(out, '\n');
    add_markdown_text(out, text_member(json, "content", &scratch));
    add_markdown_calls(out, json_get(json, "tool_calls"), &scratch);
    buf_release(&scratch);
}

static void take_last_answer(void *arg, struct str json)
{
    struct buf *out = arg;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text;

    if (str_eq_c(text_member(json, "role", &scratch), "assistant")) {
        text = text_member(json, "content", &scratch);
        if (text.n > 0) {
            buf_clear(out);
            buf_add_str(out, text);
            if (text.p[text.n - 1] != '\n')
                buf_add_byte(out, '\n');
        }
    }
    buf_release(&scratch);
}

int conversation_format(const struct conversation *d, bool answer, struct buf *out, struct err *e)
{
    if (each_message(d, answer ? take_last_answer : add_message, out, e) < 0)
        return -1;
    return out->len > 0;
}

int conversation_write_file(const char *path, struct str text, bool over, struct err *e)
{
    int fd, result;

    if (over)
        return file_replace(path, text, e) < 0 ? -1 : 1;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return file_check_regular(path, e);
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    result = file_write_all(fd, text.p, text.n);
    if (close(fd) < 0 || result < 0)
        return err_sys(e, errno, "cannot write '%s'", path);
    return 1;
}
