#include "browse/browse_clipboard.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/base64.h"
#include "chathist/base/io.h"
#include "chathist/base/words.h"
#include "chathist/cli/config.h"
#include "browse/browse_child.h"

/* GNU screen passes the content of a device control string on to the terminal, up to this size. */
#define SCREEN_PIECE ((size_t)240)

static void wrap_for_screen(struct buf *out, struct str sequence)
{
    while (sequence.n > 0) {
        size_t n = sequence.n < SCREEN_PIECE ? sequence.n : SCREEN_PIECE;

        buf_add_c(out, "\033P");
        buf_add(out, sequence.p, n);
        buf_add_c(out, "\033\\");
        sequence = (struct str){sequence.p + n, sequence.n - n};
    }
}

int browse_clipboard_terminal(int fd, struct str text)
{
    const char *term = config_env("TERM");
    struct buf sequence = BUF_INIT(SIZE_MAX), wrapped = BUF_INIT(SIZE_MAX), *sent = &sequence;
    int result;

    if (text.n > BROWSE_CLIPBOARD_MAX || config_env("TMUX") || (term && strcmp(term, "linux") == 0))
        return -1;
    buf_add_c(&sequence, "\033]52;c;");
    base64_add(&sequence, text);
    buf_add_c(&sequence, "\a");
    if (config_env("STY")) {
        wrap_for_screen(&wrapped, buf_str(&sequence));
        sent = &wrapped;
    }
    result = io_write_all(fd, sent->data, sent->len);
    buf_release(&sequence);
    buf_release(&wrapped);
    return result;
}

int browse_clipboard_programs(struct str text, const atomic_bool *cancel)
{
    const struct {
        bool at_hand; /* a desktop for it */
        const char *command;
    } programs[] = {
        {config_env("TMUX"), "tmux load-buffer -w -"},
        {config_env("WAYLAND_DISPLAY"), "wl-copy"},
        {config_env("DISPLAY"), "xclip -selection clipboard"},
        {config_env("DISPLAY"), "xsel --clipboard --input"},
        {true, "pbcopy"},
    };
    int result = -1;

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct words argv = {0};
        bool kept = programs[i].at_hand && !atomic_load(cancel) &&
                    words_split(&argv, str_of(programs[i].command), NULL) == 0 &&
                    browse_child_give(argv.at, text, cancel) == 0;

        words_release(&argv);
        result = kept ? 0 : result;
        /* The desktop gets it as well as tmux. */
        if (kept && i > 0)
            break;
    }
    return result;
}
