#include "tui/browse_act.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/proc.h"
#include "cli/config.h"
#include "tui/browse_words.h"

void browse_act_init(struct browse_act *a, const struct history *histories, const char *self)
{
    *a = (struct browse_act){.histories = histories};
    if (strchr(self, '/')) {
        char *parent = path_parent(self);

        a->dir = path_real(parent, NULL);
        free(parent);
    }
}

void browse_act_release(struct browse_act *a)
{
    free(a->dir);
}

/* ---- commands ---- */

static void push(struct words *w, const char *text, size_t n)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 2, sizeof *w->at);
    w->at[w->count++] = mem_copy(text, n);
    w->at[w->count] = NULL;
}

static void push_c(struct words *w, const char *text)
{
    push(w, text, strlen(text));
}

/* A program of ours, on that history as it was found here: one of the register is found from its
 * directory, so that what lies beside it is taken for what it is. */
static void push_program(struct words *w, const struct browse_act *a, const char *name,
                         size_t history)
{
    const struct history *h = &a->histories[history];
    char *path = a->dir ? path_join(a->dir, name) : mem_copy(name, strlen(name));
    bool elsewhere = history > 0 && h->kind != HISTORY_EXPLICIT && h->dir;

    if (elsewhere) {
        char *parent = path_parent(h->dir);

        push_c(w, "sh");
        push_c(w, "-c");
        push_c(w, "cd -- \"$1\" && shift && unset CHAT_HISTORY && exec \"$@\"");
        push_c(w, "sh");
        push_c(w, parent);
        free(parent);
    }
    push_c(w, path);
    if (h->kind == HISTORY_EXPLICIT) {
        push_c(w, "--history");
        push_c(w, h->path);
    }
    free(path);
}

/* A relative name stays one of ours, wherever the program works. */
static void push_file(struct words *w, struct str name)
{
    char *given = mem_copy(name.p, name.n);
    char *here = getcwd(NULL, 0);
    char *path = path_join(here ? here : "", given);

    push_c(w, path);
    free(path);
    free(here);
    free(given);
}

void browse_act_settle_name(struct browse *b)
{
    struct str typed = buf_str(&b->name.text);
    const char *home = config_env("HOME");
    struct buf name = BUF_INIT(BUF_LINE);
    struct stat st;

    if (home && (str_starts(typed, STR("~/")) || str_eq_c(typed, "~"))) {
        buf_add_c(&name, home);
        typed = (struct str){typed.p + 1, typed.n - 1};
    }
    buf_add_str(&name, typed);
    if (stat(buf_c(&name), &st) == 0 && S_ISDIR(st.st_mode)) {
        if (!str_ends(buf_str(&name), STR("/")))
            buf_add_byte(&name, '/');
        browse_add_file_name(&name, b);
    }
    browse_edit_set(&b->name, buf_str(&name));
    buf_release(&name);
}

bool browse_act_overwrites(const struct browse *b)
{
    struct stat st;

    return stat(buf_c(&b->name.text), &st) == 0 && S_ISREG(st.st_mode);
}

bool browse_act_command(const struct browse_act *a, const struct browse *b,
                        enum browse_command command, struct words *argv)
{
    const struct message *m = browse_message(b);
    size_t history = b->subject.history;
    struct str id = buf_str(&b->subject.id);

    *argv = (struct words){0};
    if (command == BROWSE_FORK && !browse_chosen(b, &history, &id))
        return false;
    if (command == BROWSE_EXPORT) {
        push_program(argv, a, "hist-export", history);
        push_c(argv, "-q");
        push_c(argv, "-o");
        push_file(argv, buf_str(&b->name.text));
    } else if (command == BROWSE_DELETE) {
        push_program(argv, a, "hist-delete", history);
        push_c(argv, "-f");
    } else {
        push_program(argv, a, "hist-fork", history);
        push_c(argv, "-q");
        push_c(argv, "--detached");
        if (m) {
            push_c(argv, "--at");
            push(argv, m->id.p, m->id.n);
        }
    }
    push_c(argv, "--");
    push(argv, id.p, id.n);
    return true;
}

/* ---- pager and editor ---- */

/* What is shown is the file $1, or what "$@" prints from $2 on. A shell, for both are commands of
 * the shell. */
static const char pager_script[] =
    "exec </dev/tty >/dev/tty 2>&1; file=$1; shift\n"
    "case ${PAGER-} in '' | cat) PAGER='less -+F' ;; esac\n"
    "if [ $# -gt 0 ]; then \"$@\"; else cat -- \"$file\"; fi | eval \"$PAGER\"";
static const char editor_script[] =
    "exec </dev/tty 2>/dev/tty; file=$1; shift\n"
    "if [ $# -gt 0 ]; then \"$@\" >\"$file\" || exit; fi\n"
    "exec >/dev/tty; eval \"${VISUAL:-${EDITOR:-vi}} \\\"\\$file\\\"\"";

static int put(int fd, struct str text)
{
    return io_write_all(fd, text.p, text.n) < 0 ||
                   (!str_ends(text, STR("\n")) && io_write_all(fd, "\n", 1) < 0)
               ? -1
               : 0;
}

/* A file of the text of the message; empty when a session is meant. */
static char *make_file(const struct message *m, struct err *e)
{
    const char *dir = config_env("TMPDIR");
    char *file = path_join(dir ? dir : "/tmp", "hist-browse.XXXXXX");
    struct buf scratch = BUF_INIT(BUF_LINE);
    int fd = mkstemp(file), failed = fd < 0;

    if (!failed && m)
        failed = put(fd, message_content(m, &scratch)) < 0;
    if (failed) {
        err_sys(e, errno, "cannot write '%s'", file);
        if (fd >= 0)
            unlink(file);
        free(file);
        file = NULL;
    }
    if (fd >= 0)
        close(fd);
    buf_release(&scratch);
    return file;
}

int browse_act_open(const struct browse_act *a, const struct browse *b, enum browse_command command,
                    struct err *e)
{
    const struct message *m = b->focus == BROWSE_TEXT ? browse_message(b) : NULL;
    struct words argv = {0};
    size_t history;
    struct str id;
    char *file;
    int status;

    if (!browse_chosen(b, &history, &id))
        return err_set(e, ERR_ABSENT, "there is nothing to open");
    file = make_file(m, e);
    if (!file)
        return -1;
    push_c(&argv, "sh");
    push_c(&argv, "-c");
    push_c(&argv, command == BROWSE_PAGER ? pager_script : editor_script);
    push_c(&argv, "hist-browse");
    push_c(&argv, file);
    if (!m) {
        push_program(&argv, a, "hist-show", history);
        push_c(&argv, "--no-pager");
        push_c(&argv, "--");
        push(&argv, id.p, id.n);
    }
    status = proc_run(argv.at, -1, e);
    unlink(file);
    if (status > 0)
        status = err_set(e, ERR_FAILURE, "%s failed with status %d",
                         command == BROWSE_PAGER ? "the pager" : "the editor", status);
    words_release(&argv);
    free(file);
    return status;
}
