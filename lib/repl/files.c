#include "repl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/clipboard.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chathist/convert/export.h"
#include "chathist/history/thread.h"

char *repl_file_of(const struct repl *r, struct str name)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    if (str_starts(name, STR("~/")) && r->chat->config.home) {
        buf_add_c(&path, r->chat->config.home);
        name.p++;
        name.n--;
    }
    buf_add_str(&path, name);
    return buf_detach(&path);
}

void repl_file(struct repl *r, struct str name)
{
    struct err e = ERR_INIT;
    char *file = repl_file_of(r, name);

    if (str_eq_c(name, "-"))
        words_release(&r->files);
    else if (name.n > 0 && repl_attach(r, file, &e) < 0)
        repl_report(&e);
    for (size_t i = 0; i < r->files.count; i++)
        repl_say(r, "%s: goes with the next prompt", r->files.at[i]);
    if (r->files.count == 0)
        repl_say(r, "no file is attached");
    free(file);
}

/* May the file be overwritten? */
static bool confirmed(struct repl *r, const char *file)
{
    struct buf question = BUF_INIT(BUF_SMALL), answer = BUF_INIT(BUF_LINE);
    bool yes;

    vis_add_line(&question, str_of(file), true);
    buf_add_c(&question, " is there: overwrite it? [y/N] ");
    out_flush(r->out);
    yes = line_read(r->line, buf_str(&question), &answer) == LINE_TEXT &&
          confirm_letter(&answer) == 'y';
    buf_release(&question);
    buf_release(&answer);
    return yes;
}

static int add_bytes(void *arg, struct str bytes, struct err *e)
{
    (void)e;
    buf_add_str(arg, bytes);
    return 0;
}

/* Adds the conversation as Markdown. Returns 0, or -1 with *e set. */
static int add_markdown(const struct thread *t, struct buf *out, struct err *e)
{
    struct export x;
    int result = export_begin(&x, &export_md, add_bytes, out, e);

    x.title_line = t->title;
    if (result == 0)
        result = export_session(&x, t->at, t->count, e);
    if (result == 0)
        result = export_end(&x, e);
    export_release(&x);
    return result;
}

/* Adds the text of the last answer that has one. */
static void add_last_answer(const struct thread *t, struct buf *out)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    for (size_t i = t->count; i > 0 && out->len == 0; i--)
        if (t->at[i - 1].role == ROLE_ASSISTANT)
            buf_add_str(out, message_content(&t->at[i - 1], &scratch));
    buf_release(&scratch);
}

void repl_copy(struct repl *r, struct str rest)
{
    struct buf text = BUF_INIT(SIZE_MAX), said = BUF_INIT(BUF_SMALL);
    struct thread t = {0};
    struct err e = ERR_INIT;

    (void)rest;
    if (repl_load_thread(r, &t, &e) < 0) {
        repl_report(&e);
        return;
    }
    add_last_answer(&t, &text);
    out_flush(r->out);
    if (text.len == 0) {
        warnf("there is no answer yet to be copied");
    } else {
        line_signals_forget();
        clipboard_copy(buf_str(&text), STDOUT_FILENO, line_signals_fd(), &said);
        repl_say(r, "%s", buf_c(&said));
    }
    thread_release(&t);
    buf_release(&text);
    buf_release(&said);
}

/* Writes a new file (mode 0600), or replaces one after a question. Returns 1, 0 if the user
 * refuses, or -1 with *e set. */
static int write_file(struct repl *r, const char *path, struct str text, struct err *e)
{
    const char *why = history_file_of(&r->chat->history, path);
    int fd, result;

    if (why)
        return err_set(e, ERR_USAGE, "'%s' %s", path, why);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        if (file_check_regular(path, e) < 0)
            return -1;
        if (!confirmed(r, path))
            return 0;
        return file_replace(path, text, e) < 0 ? -1 : 1;
    }
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    result = file_write_all(fd, text.p, text.n);
    if (close(fd) < 0 || result < 0)
        return err_sys(e, errno, "cannot write '%s'", path);
    return 1;
}

void repl_save(struct repl *r, struct str rest)
{
    struct str name = rest, flag = str_cut(&name, ' ');
    bool answer = str_eq_c(flag, "-a");
    struct buf text = BUF_INIT(SIZE_MAX);
    struct thread t = {0};
    struct err e = ERR_INIT;
    char *file;
    int result;

    name = answer ? str_trim(name) : rest;
    if (name.n == 0) {
        warnf("no file: try '/save FILE', or '/save -a FILE' for the last answer alone");
        return;
    }
    file = repl_file_of(r, name);
    result = repl_load_thread(r, &t, &e);
    if (result == 0 && answer)
        add_last_answer(&t, &text);
    if (text.len > 0 && !str_ends(buf_str(&text), STR("\n")))
        buf_add_byte(&text, '\n');
    if (result == 0 && !answer && t.count > 0)
        result = add_markdown(&t, &text, &e);
    if (result == 0 && text.len == 0) {
        warnf("there is nothing yet to be saved");
    } else if (result == 0) {
        result = write_file(r, file, buf_str(&text), &e);
        repl_say(r, result > 0 ? "%s: saved" : "%s: not saved", file);
    }
    if (result < 0)
        repl_report(&e);
    thread_release(&t);
    free(file);
    buf_release(&text);
}
