#include "chathist/chat/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/prompt.h"
#include "chathist/chat/turn.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"

/* Returns whether standard input and standard error are a terminal for an editor. */
static bool can_open_editor(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool input_interactive(const struct chat_args *a)
{
    bool asked = a->once || a->words_count > 0 || a->messages || a->regenerate || a->edit ||
                 a->models || a->embed || a->template_name || a->schema || a->dry_run ||
                 a->extract || a->common.json;

    return !asked && a->read_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Attaches the files of -f. With --regenerate only images and PDFs are allowed. */
static void attach_all(struct buf *prompt, struct attachment_list *attachments,
                       const struct chat_args *a)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < a->files.count; i++) {
        size_t before = attachments->count;

        if (attach_file(prompt, attachments, a->files.at[i], a->common.quiet, &e) < 0 &&
            a->regenerate)
            die_usage("--regenerate takes no prompt: %s", err_text(&e));
        if (e.kind != ERR_NONE)
            die_err(&e);
        if (a->regenerate && attachments->count == before)
            die_usage("--regenerate takes no prompt, and '%s' is neither an image nor a PDF",
                      a->files.at[i]);
    }
}

/* With -f *.c the shell puts the first name after -f, and the others become words of the prompt. */
static void report_names(const struct chat_args *a)
{
    const char *first = NULL;
    size_t count = 0;
    struct stat st;

    for (size_t i = 0; i < a->words_count && a->files.count > 0; i++)
        if (stat(a->words[i], &st) == 0 && S_ISREG(st.st_mode)) {
            first = first ? first : a->words[i];
            count++;
        }
    if (count > 1)
        warnf("'%s' and %zu more file%s are not attached, but words of the prompt: -f takes one "
              "FILE, and may be repeated",
              first, count - 1, count > 2 ? "s" : "");
    else if (count > 0)
        warnf("'%s' is not attached, but a word of the prompt: -f takes one FILE, and may be "
              "repeated",
              first);
}

void input_prompt(struct buf *prompt, struct attachment_list *attachments,
                  const struct chat_args *a)
{
    const char *waiting =
        a->common.quiet ? NULL : "waiting for standard input (--no-stdin leaves it alone)";
    bool read = (a->read_stdin && prompt_has_stdin()) || prompt_is_dash(a->words, a->words_count);
    struct err e = ERR_INIT;

    if (read && prompt_add_stdin(prompt, waiting, true, &e) < 0)
        die_err(&e);
    if (read && prompt->len == 0 && a->words_count > 0 && !a->common.quiet)
        hintf(a->verbose, "standard input is empty");
    prompt_add_words(prompt, a->words, a->words_count);
    attach_all(prompt, attachments, a);
    if (!a->common.quiet)
        report_names(a);
    if (prompt->overflow)
        die_usage("prompt is too long: over %zu MiB", PROMPT_MAX >> 20);
    if (str_trim(buf_str(prompt)).n > 0 || attachments->count > 0 || a->regenerate ||
        a->template_name || (a->edit && can_open_editor()))
        return;
    if (chat_args_messages_stdin(a))
        die_usage("no prompt: '--messages -' takes standard input, give it as arguments");
    die_usage("no prompt: give it as arguments or on standard input");
}

void input_edit(struct buf *prompt, const struct history *h, struct str session)
{
    struct err e = ERR_INIT;
    int result = can_open_editor() ? turn_last_prompt(h, NULL, session, prompt, &e) : 0;

    if (result == 0)
        return;
    if (result < 0 || editor_edit(prompt, &e) < 0)
        die_err(&e);
    if (str_trim(buf_str(prompt)).n == 0)
        die_usage("no prompt: the editor left none");
}

void input_messages(struct buf *text, const struct chat_args *a)
{
    struct err e = ERR_INIT;
    int result = 0;

    if (!chat_args_messages_stdin(a))
        result = file_read(a->messages, text, &e);
    else if (file_read_all(STDIN_FILENO, text) < 0)
        result = err_sys(&e, errno, "cannot read standard input");
    if (result == 0)
        return;
    e.kind = ERR_USAGE;
    die_err(&e);
}

/* ---- attached files ---- */

/* Returns the length of the longest run of a character. A fence of it must be longer. */
static size_t longest_run(struct str text, char mark)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < text.n; i++) {
        run = text.p[i] == mark ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest;
}

static void add_fenced_file(struct buf *prompt, size_t length, char mark)
{
    for (size_t i = 0; i < length; i++)
        buf_add_byte(prompt, mark);
}

static void add_fenced_text(struct buf *prompt, const char *file, struct str text)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    size_t fence;
    char mark;

    vis_add_line(&name, str_of(file), true);
    /* The name cannot hold the mark of a fence of backticks (CommonMark 0.31.2, 4.5). */
    mark = str_find(buf_str(&name), STR("`")) ? '~' : '`';
    /* The text cannot end the fence. */
    fence = longest_run(text, mark) + 1;
    if (fence < 3)
        fence = 3;
    prompt_part(prompt);
    add_fenced_file(prompt, fence, mark);
    if (mark == '~')
        buf_add_byte(prompt, ' ');
    buf_add_str(prompt, buf_str(&name));
    buf_add_byte(prompt, '\n');
    utf8_add_repaired(prompt, text);
    if (text.n > 0 && text.p[text.n - 1] != '\n')
        buf_add_byte(prompt, '\n');
    add_fenced_file(prompt, fence, mark);
    buf_release(&name);
}

static int attach_bytes(struct buf *prompt, struct attachment_list *attachments, const char *file,
                        struct str bytes, bool quiet, struct err *e)
{
    const char *type = attachment_type(bytes);
    size_t before = prompt->len;

    if (type)
        return attachment_list_add(attachments, type,
                                   strcmp(file, ATTACH_STDIN) == 0 ? "stdin" : path_base(file),
                                   bytes, e);
    if (text_fault(bytes))
        return err_set(e, ERR_USAGE, "%s", text_fault(bytes));
    bytes = utf8_without_bom(bytes);
    if (!quiet && bytes.n == 0)
        warnf("'%s' is empty", file);
    else if (!quiet && utf8_valid(bytes) < bytes.n)
        warnf("'%s' is not UTF-8: what cannot be read is sent as U+FFFD (iconv converts it)", file);
    add_fenced_text(prompt, file, bytes);
    if (!prompt->overflow)
        return 0;
    buf_truncate(prompt, before);
    prompt->overflow = false;
    return err_set(e, ERR_USAGE, "the prompt would be over %zu MiB", PROMPT_MAX >> 20);
}

/* Returns 0, or -1 with *e set and a command that does it, for something that -f does not fetch or
 * walk through. */
static int check_attachable(const char *file, struct err *e)
{
    struct str name = str_of(file);
    struct buf word = BUF_INIT(BUF_LINE);
    struct stat st;
    int result = 0;

    words_quote(&word, file);
    if (stat(file, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            result = err_set(e, ERR_USAGE,
                             "cannot attach '%s': it is a directory; its files can be sent with: "
                             "tail -n +1 %s%s%s* | " PROGRAM_PREFIX "chat ...",
                             file, str_starts(name, STR("-")) ? "-- " : "", buf_c(&word),
                             str_ends(name, STR("/")) ? "" : "/");
    } else if (str_starts(name, STR("https://")) || str_starts(name, STR("http://"))) {
        result = err_set(e, ERR_USAGE,
                         "cannot attach '%s': it is a URL; its page can be sent with: "
                         "curl -fsSL %s | " PROGRAM_PREFIX "chat -f - ...",
                         file, buf_c(&word));
    }
    buf_release(&word);
    return result;
}

static int read_bytes(const char *file, struct buf *bytes, struct err *e)
{
    if (check_attachable(file, e) < 0)
        return -1;
    if (strcmp(file, ATTACH_STDIN) != 0)
        return file_read(file, bytes, e);
    if (file_read_all(STDIN_FILENO, bytes) < 0)
        return err_sys(e, errno, "cannot read standard input");
    if (bytes->len == 0)
        return err_set(e, ERR_USAGE, "standard input is empty");
    return 0;
}

int attach_file(struct buf *prompt, struct attachment_list *attachments, const char *file,
                bool quiet, struct err *e)
{
    struct buf bytes = BUF_INIT(PROMPT_MAX);
    int result = read_bytes(file, &bytes, e);

    if (result < 0) {
        if (e)
            e->kind = ERR_USAGE;
    } else {
        result = attach_bytes(prompt, attachments, file, buf_str(&bytes), quiet, e);
        if (result < 0)
            err_set(e, ERR_USAGE, "cannot attach '%s': %s", file, err_text(e));
    }
    buf_release(&bytes);
    return result;
}

/* ---- the editor ---- */

/* The shell splits the value of EDITOR (`code --wait`). The name of the file is an argument, so the
 * shell does not expand it. */
static int run_editor(char *file, struct err *e)
{
    const char *visual = config_env("VISUAL"), *editor = config_env("EDITOR");
    const char *name = visual ? visual : editor ? editor : "vi";
    struct buf script = BUF_INIT(BUF_SMALL);
    char shell[] = "sh", flag[] = "-c", *argv[] = {shell, flag, NULL, NULL, file, NULL};
    int status;

    buf_addf(&script, "%s \"$@\"", name);
    argv[2] = buf_detach(&script);
    argv[3] = mem_text(name);
    status = process_run(argv, isatty(STDOUT_FILENO) ? -1 : STDERR_FILENO, e);
    free(argv[2]);
    free(argv[3]);
    if (status > 0)
        return err_set(e, ERR_FAILURE, "editor '%s' failed with status %d", name, status);
    return status;
}

/* Reads the result of the editor. */
static int read_edited(struct buf *text, const char *file, struct err *e)
{
    struct buf bytes = BUF_INIT(text->max - 1);
    struct str rest;
    int result = file_read(file, &bytes, e);

    if (result == 0) {
        rest = buf_str(&bytes);
        if (str_ends(rest, STR("\n")))
            rest.n--;
        buf_clear(text);
        utf8_add_repaired(text, rest);
        if (text->overflow)
            result = err_set(e, ERR_USAGE, "prompt is too long");
    }
    buf_release(&bytes);
    return result;
}

int editor_edit(struct buf *text, struct err *e)
{
    const char *dir = config_env("TMPDIR");
    char *file = path_join(dir ? dir : "/tmp", "chat-prompt.XXXXXX");
    int fd = mkstemp(file), result;

    if (fd < 0) {
        result = err_sys(e, errno, "cannot make '%s'", file);
        free(file);
        return result;
    }
    result = file_write_all(fd, buf_c(text), text->len);
    if (result == 0 && !str_ends(buf_str(text), STR("\n")))
        result = file_write_all(fd, "\n", 1);
    if (result < 0)
        err_sys(e, errno, "cannot write '%s'", file);
    close(fd);
    if (result == 0)
        result = run_editor(file, e);
    if (result == 0)
        result = read_edited(text, file, e);
    unlink(file);
    free(file);
    return result;
}
