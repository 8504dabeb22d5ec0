#include "tui/browse_clipboard.h"

#include <stdint.h>
#include <string.h>

#include "base/base64.h"
#include "base/io.h"
#include "base/words.h"
#include "cli/config.h"
#include "tui/browse_child.h"

/* What terminals take at once, most of them. */
#define TERMINAL_MAX ((size_t)74994)

int browse_clipboard_terminal(int fd, struct str text)
{
    const char *term = config_env("TERM");
    struct buf sequence = BUF_INIT(SIZE_MAX);
    int result;

    if (text.n > TERMINAL_MAX || (term && strcmp(term, "linux") == 0))
        return -1;
    buf_add_c(&sequence, "\033]52;c;");
    base64_add(&sequence, text);
    buf_add_c(&sequence, "\a");
    result = io_write_all(fd, sequence.data, sequence.len);
    buf_release(&sequence);
    return result;
}

int browse_clipboard_programs(struct str text, const atomic_bool *cancel)
{
    const struct {
        bool at_hand; /* a desktop for it */
        const char *command;
    } programs[] = {
        {config_env("WAYLAND_DISPLAY"), "wl-copy"},
        {config_env("DISPLAY"), "xclip -selection clipboard"},
        {config_env("DISPLAY"), "xsel --clipboard --input"},
        {true, "pbcopy"},
    };
    int result = -1;

    for (size_t i = 0; i < sizeof programs / sizeof *programs && result < 0; i++) {
        struct words argv = {0};

        if (programs[i].at_hand && !atomic_load(cancel) &&
            words_split(&argv, str_of(programs[i].command), NULL) == 0)
            result = browse_child_give(argv.at, text, cancel);
        words_release(&argv);
    }
    return result;
}
