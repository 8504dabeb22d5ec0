/* chat - send a prompt to a language model, print the answer, keep both. */
#include <signal.h>

#include "chathist/cli/import_hint.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/chat/embed.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/input.h"
#include "chathist/chat/template.h"
#include "chathist/chat/prompt.h"
#include "chathist/repl/repl.h"
#include "chathist/chat/chat_session.h"

/* Runs one turn with the prompt from the command line. Returns the exit code. */
static int turn_once(struct chat_session *chat, struct buf *prompt,
                     const struct attachment_list *attachments, const struct buf *messages)
{
    const struct chat_args *args = chat->args;
    struct err e = ERR_INIT;
    int status = 0;

    chat_session_check_history(chat);
    chat_session_choose(chat);
    if (args->edit && prompt->len == 0)
        input_edit(prompt, chat->history, buf_str(&chat->session.id));

    struct turn turn = {
        .kind = args->edit         ? TURN_EDIT
                : args->regenerate ? TURN_AGAIN
                                   : TURN_NEXT,
        .prompt = buf_str(prompt),
        .system = str_of(args->system),
        .messages = args->messages ? (struct str){buf_c(messages), messages->len} : STR_NONE,
        .files = args->files.at,
        .attachments = attachments,
    };

    if (chat_session_prepare(chat, &turn, &e) < 0 ||
        chat_session_check(chat, &turn, args->dry_run, &e) < 0) {
        mcp_servers_close(&chat->mcp, false);
        die_err(&e);
    }
    if (!args->dry_run)
        status = chat_session_run(chat, &turn);
    turn_release(&turn);
    return status;
}

int main(int argc, char **argv)
{
    struct chat_session chat = CHAT_SESSION_INIT;
    struct presets presets = PRESETS_INIT;
    struct buf prompt = BUF_INIT(PROMPT_MAX), messages = BUF_INIT(MESSAGES_MAX);
    struct attachment_list attachments = {0};
    struct err e = ERR_INIT;
    struct chat_args args;
    bool interactive;
    int status, printed;

    /* With --json, an error in the command line is an event, too. */
    die_start("chat");
    events_start(&chat.events, &(struct opt_common){.json = chat_args_want_json(argc, argv)},
                 false);
    chat_args_parse(&args, argc, argv);
    events_start(&chat.events, &args.common, args.verbose);
    if (!args.no_markdown)
        events_show_markdown(&chat.events);
    signal(SIGPIPE, SIG_IGN);
    if (args.save) {
        if (preset_save(&args, &e) < 0)
            die_err(&e);
        chat_args_release(&args);
        return 0;
    }
    presets_load(&presets, &args);
    interactive = input_interactive(&args);
    if (!args.models && !args.embed && !interactive)
        input_prompt(&prompt, &attachments, &args);
    presets_expand(&presets, &args, &prompt, attachments.count > 0);
    if (args.messages)
        input_messages(&messages, &args);
    chat_session_open(&chat, &args);
    if (interactive)
        status = repl_run(&chat);
    else
        status = args.models  ? chat_session_list_models(&chat)
                 : args.embed ? embed_run(&chat)
                              : turn_once(&chat, &prompt, &attachments, &messages);
    /* The part that arrived is printed and stored. Now the signal may end the program. */
    mcp_servers_close(&chat.mcp, status > 128);
    if (status > 128)
        die_signal(status - 128);
    printed = out_close(&chat.events.out, 0);
    status = status ? status : printed;
    import_hint(&chat.choice);
    chat_session_close(&chat);
    buf_release(&prompt);
    attachment_list_release(&attachments);
    buf_release(&messages);
    presets_release(&presets);
    chat_args_release(&args);
    return status;
}
