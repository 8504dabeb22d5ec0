#include "chathist/chat/chat_input.h"

#include <errno.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/cli/die.h"
#include "chat/attach.h"
#include "chat/editor.h"
#include "chathist/chat/prompt.h"
#include "chathist/chat/turn.h"

bool chat_input_interactive(const struct chat_args *a)
{
    bool asked = a->once || a->words_count > 0 || a->messages || a->regenerate || a->edit ||
                 a->models || a->template_name || a->schema || a->dry_run || a->extract ||
                 a->common.json;

    return !asked && a->read_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* The files of -f. A prompt that is asked again takes no more text. */
static void attach(struct buf *prompt, struct image_list *images, const struct chat_args *a)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < a->files_count; i++) {
        size_t before = images->count;

        if (attach_file(prompt, images, a->files[i], &e) < 0 && a->regenerate)
            die_usage("--regenerate takes no prompt: %s", err_text(&e));
        if (e.kind != ERR_NONE)
            die_err(&e);
        if (a->regenerate && images->count == before)
            die_usage("--regenerate takes no prompt, and '%s' is no image", a->files[i]);
    }
}

void chat_input_prompt(struct buf *prompt, struct image_list *images, const struct chat_args *a)
{
    const char *waiting =
        a->common.quiet ? NULL : "waiting for standard input (--no-stdin leaves it alone)";
    bool read = (a->read_stdin && prompt_has_stdin()) || prompt_is_dash(a->words, a->words_count);
    struct err e = ERR_INIT;

    if (read && prompt_add_stdin(prompt, waiting, &e) < 0)
        die_err(&e);
    if (read && prompt->len == 0 && a->words_count > 0 && !a->common.quiet)
        hintf(a->verbose, "standard input is empty");
    prompt_add_words(prompt, a->words, a->words_count);
    attach(prompt, images, a);
    if (prompt->overflow)
        die_usage("prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
    if (str_trim(buf_str(prompt)).n > 0 || images->count > 0 || a->regenerate || a->template_name ||
        (a->edit && editor_possible()))
        return;
    if (chat_args_messages_stdin(a))
        die_usage("no prompt: '--messages -' takes standard input, give it as arguments");
    die_usage("no prompt: give it as arguments or on standard input");
}

void chat_input_edit(struct buf *prompt, const struct history *h, struct str session)
{
    struct err e = ERR_INIT;
    int result = editor_possible() ? turn_last_prompt(h, session, prompt, &e) : 0;

    if (result == 0)
        return;
    if (result < 0 || editor_edit(prompt, &e) < 0)
        die_err(&e);
    if (prompt->len == 0)
        die_usage("no prompt: the editor left none");
}

void chat_input_messages(struct buf *text, const struct chat_args *a)
{
    struct err e = ERR_INIT;
    int result = 0;

    if (!chat_args_messages_stdin(a))
        result = io_read_file(a->messages, text, &e);
    else if (io_read_all(STDIN_FILENO, text) < 0)
        result = err_sys(&e, errno, "cannot read standard input");
    if (result == 0)
        return;
    e.kind = ERR_USAGE;
    die_err(&e);
}
