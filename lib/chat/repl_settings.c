#include "chat/repl_command.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chathist/history/thread.h"

/* Requests the models of the present server, unless they are known. Returns 0, or -1 with *e
 * set. */
int repl_load_models(struct repl *r, const struct http_limits *limits, struct err *e)
{
    struct http_limits own = *limits;

    if (r->models_of == r->chat->server.provider && r->models.count > 0)
        return 0;
    model_list_release(&r->models);
    r->models_of = r->chat->server.provider;
    own.cancel_fd = line_signals_fd();
    if (chat_session_load_models(r->chat, &own, &r->models, e) == 0)
        return 0;
    model_list_release(&r->models);
    r->models = (struct model_list){0};
    return -1;
}

static void list_models(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    line_signals_forget();
    if (repl_load_models(r, &chat->args->limits, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = 0; i < r->models.count; i++) {
        const char *model = r->models.at[i];
        bool present = chat->server.model && strcmp(model, chat->server.model) == 0;

        buf_clear(&name);
        buf_addf(&name, "%s %s:%s\n", present ? "*" : " ", chat->server.provider->name, model);
        out_text(r->out, buf_str(&name));
    }
    out_text_end(r->out);
    buf_release(&name);
}

void repl_model(struct repl *r, struct str name)
{
    struct chat_session *chat = r->chat;
    struct err e = ERR_INIT;
    char *copy;
    int result;

    if (name.n == 0) {
        list_models(r);
        return;
    }
    copy = mem_copy(name.p, name.n);
    /* The command that prints the key may use the terminal. */
    line_lend(r->line, true);
    result = chat_session_change_model(chat, copy, &e);
    line_lend(r->line, false);
    if (result < 0 && e.kind == ERR_SIGNAL)
        repl_note_interrupt(r, interrupt_signal());
    else if (result < 0)
        repl_report(&e);
    else
        repl_say(r, "model %s:%s", chat->server.provider->name, chat->server.model);
    err_release(&e);
    free(copy);
}

/* Returns the text without the quotation marks around all of it. */
static struct str unquoted(struct str text)
{
    bool quoted = text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"' &&
                  !memchr(text.p + 1, '"', text.n - 2);

    return quoted ? (struct str){text.p + 1, text.n - 2} : text;
}

void repl_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct thread t = {0};
    struct err e = ERR_INIT;

    if (text.n > 0) {
        repl_set_system(r, unquoted(text));
        repl_say(r, "from the next prompt on");
        return;
    }
    buf_add_str(&present, buf_str(&r->system));
    if (!r->has_system && repl_load_thread(r, &t, &e) < 0) {
        repl_report(&e);
        return;
    }
    for (size_t i = t.count; i > 0 && !r->has_system; i--)
        if (t.at[i - 1].role == ROLE_SYSTEM) {
            buf_add_str(&present, message_content(&t.at[i - 1], &scratch));
            break;
        }
    if (present.len == 0) {
        repl_say(r, "there is no system prompt");
    } else {
        out_text(r->out, buf_str(&present));
        out_text_end(r->out);
        out_byte(r->out, '\n');
    }
    thread_release(&t);
    buf_release(&present);
    buf_release(&scratch);
}

void repl_tools(struct repl *r, struct str rest)
{
    const struct toolbox *box = &r->chat->toolbox;
    struct buf line = BUF_INIT(BUF_SMALL);

    (void)rest;
    for (size_t i = 0; i < box->count; i++) {
        buf_clear(&line);
        vis_add_line(&line, str_of(box->at[i]->name), true);
        buf_add_c(&line, "  ");
        vis_add_line(&line, str_of(box->at[i]->description), true);
        buf_add_byte(&line, '\n');
        out_raw(r->out, buf_str(&line));
    }
    if (box->count == 0)
        repl_say(r, "no tools were given to the model");
    buf_release(&line);
}
