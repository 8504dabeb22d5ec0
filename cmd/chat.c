/* chat - send a prompt to a language model, print the answer, keep both. */
#include <signal.h>

#include "chathist/cli/die.h"
#include "chathist/chat/chat_args.h"
#include "chathist/chat/chat_input.h"
#include "chathist/chat/preset.h"
#include "chathist/chat/prompt.h"
#include "chathist/chat/repl.h"
#include "chathist/chat/talk.h"
#include "chathist/chat/talk_models.h"

static enum turn_kind kind_of(const struct chat_args *a)
{
    return a->edit ? TURN_EDIT : a->regenerate ? TURN_AGAIN : TURN_NEXT;
}

/* One turn with what was given. Gives the exit code. */
static int turn_once(struct talk *talk, struct buf *prompt, const struct image_list *images,
                     const struct buf *messages)
{
    const struct chat_args *args = talk->args;
    struct err e = ERR_INIT;
    int status = 0;

    talk_look_at_history(talk);
    talk_choose_session(talk);
    if (args->edit && prompt->len == 0)
        chat_input_edit(prompt, &talk->history, buf_str(&talk->session.id));

    struct turn turn = {
        .kind = kind_of(args),
        .prompt = buf_str(prompt),
        .system = str_of(args->system),
        .messages = args->messages ? (struct str){buf_c(messages), messages->len} : STR_NONE,
        .files = args->files,
        .images = images,
    };

    if (talk_prepare(talk, &turn, &e) < 0 || talk_check(talk, &turn, args->dry_run, &e) < 0) {
        mcp_servers_close(&talk->mcp, false);
        die_err(&e);
    }
    if (!args->dry_run)
        status = talk_run(talk, &turn);
    turn_release(&turn);
    return status;
}

int main(int argc, char **argv)
{
    struct talk talk = TALK_INIT;
    struct presets presets = PRESETS_INIT;
    struct buf prompt = BUF_INIT(PROMPT_MAX), messages = BUF_INIT(MESSAGES_MAX);
    struct image_list images = {0};
    struct chat_args args;
    bool interactive;
    int status;

    /* A wrong command line is told by an event, too. */
    die_start("chat");
    events_start(&talk.events, &(struct opt_common){.json = chat_args_want_json(argc, argv)},
                 false);
    chat_args_parse(&args, argc, argv);
    events_start(&talk.events, &args.common, args.verbose);
    if (!args.raw)
        events_show_markdown(&talk.events);
    signal(SIGPIPE, SIG_IGN);
    if (args.list) {
        presets_list(args.list, &talk.events.out);
        chat_args_release(&args);
        return out_close(&talk.events.out, 0, exit_code(ERR_FAILURE));
    }
    presets_load(&presets, &args);
    interactive = chat_input_interactive(&args);
    if (!args.models && !interactive)
        chat_input_prompt(&prompt, &images, &args);
    presets_expand(&presets, &args, &prompt);
    if (args.messages)
        chat_input_messages(&messages, &args);
    talk_open(&talk, &args);
    if (interactive)
        status = repl_run(&talk);
    else
        status =
            args.models ? talk_list_models(&talk) : turn_once(&talk, &prompt, &images, &messages);
    /* What came is printed and stored; now the signal takes its course. */
    mcp_servers_close(&talk.mcp, status > 128);
    if (status > 128)
        die_signal(status - 128);
    status = out_close(&talk.events.out, status, status ? status : exit_code(ERR_FAILURE));
    talk_close(&talk);
    buf_release(&prompt);
    image_list_release(&images);
    buf_release(&messages);
    presets_release(&presets);
    chat_args_release(&args);
    return status;
}
