#include "repl/conversation.h"

#include <signal.h>
#include <stdarg.h>

#include "chathist/base/file.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/context_window.h"
#include "chathist/chat/input.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"

void repl_report(struct err *e)
{
    warn_err(e);
    err_release(e);
}

void repl_print_dim(struct repl *r, struct str text)
{
    out_style(r->out, STYLE_DIM);
    out_raw(r->out, text);
    out_style(r->out, STYLE_NONE);
    out_byte(r->out, '\n');
}

void repl_say(struct repl *r, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    va_list ap;

    if (r->chat->args->common.quiet)
        return;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    vis_add_line(&line, buf_str(&text), true);
    repl_print_dim(r, buf_str(&line));
    buf_release(&text);
    buf_release(&line);
}

/* ---- the session ---- */

int repl_load_thread(const struct repl *r, struct thread *t, struct err *e)
{
    struct chat_session *chat = r->chat;

    if (!chat->store.in_memory)
        return thread_find(t, chat->history, buf_str(&chat->session.id), false, e);
    context_window_parse(t, &chat->store.memory);
    return 0;
}

int repl_copy_to_memory(struct chat_session *chat, struct err *e)
{
    struct thread t;

    buf_clear(&chat->store.memory);
    if (thread_find(&t, chat->history, buf_str(&chat->session.id), true, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++) {
        buf_add_str(&chat->store.memory, t.at[i].line);
        buf_add_byte(&chat->store.memory, '\n');
    }
    thread_release(&t);
    return 0;
}

void repl_set_system(struct repl *r, struct str text)
{
    buf_set(&r->system, text);
    r->has_system = true;
}

void repl_forget_system(struct repl *r)
{
    buf_clear(&r->system);
    r->has_system = false;
}

/* ---- turns ---- */

int repl_attach(struct repl *r, const char *file, struct err *e)
{
    struct buf tried = BUF_INIT(PROMPT_MAX);
    struct attachment_list attachments = {0};
    int result;

    /* The file is read now and with its prompt; a FIFO would be empty the second time. */
    if (file_check_regular(file, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    result = attach_file(&tried, &attachments, file, false, e);
    attachment_list_release(&attachments);
    buf_release(&tried);
    if (result == 0)
        words_add(&r->files, str_of(file));
    return result;
}

void repl_set_interrupt(struct repl *r, int signo)
{
    if (signo == SIGINT)
        repl_say(r, "interrupted");
    else
        r->signal = signo;
}

static void run_turn(struct repl *r, struct turn *turn)
{
    struct chat_session *chat = r->chat;
    struct err e = ERR_INIT;
    int status;

    chat_session_seek_model(chat);
    if (chat_session_prepare(chat, turn, &e) < 0 || chat_session_check(chat, turn, false, &e) < 0) {
        repl_report(&e);
        return;
    }
    status = chat_session_run(chat, turn);
    if (turn->files)
        words_release(&r->files);
    if (turn->prompt_stored || turn->unstored_count > 0)
        repl_forget_system(r);
    /* The history could not be written, so the conversation is kept in memory from now on. */
    if (turn->unstored_count > 0 && !chat->store.in_memory) {
        chat->store.in_memory = true;
        if (repl_copy_to_memory(chat, &e) < 0)
            repl_report(&e);
        if (turn_store_remember(&chat->store, turn, &e) < 0)
            repl_report(&e);
        warnf("nothing is stored from now on: the conversation goes on in memory");
    }
    if (status > 128)
        repl_set_interrupt(r, status - 128);
}

void repl_ask(struct repl *r, enum turn_kind kind, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct attachment_list attachments = {0};
    struct err e = ERR_INIT;
    struct turn turn = {.kind = kind,
                        .system = r->has_system ? (struct str){buf_c(&r->system), r->system.len}
                                                : STR_NONE,
                        .attachments = &attachments};
    int result = 0;

    if (kind != TURN_AGAIN) {
        buf_add_str(&prompt, text);
        turn.files = (const char *const *)r->files.at;
        for (size_t i = 0; i < r->files.count && result >= 0; i++)
            result = attach_file(&prompt, &attachments, r->files.at[i], true, &e);
    }
    if (result >= 0 && prompt.overflow)
        result = err_set(&e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
    if (result < 0) {
        repl_report(&e);
    } else {
        turn.prompt = buf_str(&prompt);
        run_turn(r, &turn);
        turn_release(&turn);
    }
    attachment_list_release(&attachments);
    buf_release(&prompt);
    out_byte(r->out, '\n');
}

void repl_regenerate(struct repl *r, struct str rest)
{
    (void)rest;
    repl_ask(r, TURN_AGAIN, STR_NONE);
}

void repl_edit(struct repl *r, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;
    int found = 1;

    if (text.n == 0) {
        found = turn_last_prompt(r->chat->history,
                                 r->chat->store.in_memory ? &r->chat->store.memory : NULL,
                                 buf_str(&r->chat->session.id), &prompt, &e);
        if (found > 0) {
            line_lend(r->line, true);
            found = editor_edit(&prompt, &e) < 0 ? -1 : 1;
            line_lend(r->line, false);
        }
        text = buf_str(&prompt);
    }
    if (found < 0)
        repl_report(&e);
    else if (found == 0)
        warnf("there is no prompt yet to be edited");
    else if (str_trim(text).n == 0)
        warnf("no prompt: the editor left none");
    else
        repl_ask(r, TURN_EDIT, text);
    buf_release(&prompt);
}
