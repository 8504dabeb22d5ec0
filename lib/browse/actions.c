#include "browse/actions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"

/* ---- commands ---- */

/* Adds words, up to NULL. */
static void push_list(struct words *w, const char *const *words)
{
    while (*words)
        words_add(w, str_of(*words++));
}
#define push_words(w, ...) push_list(w, (const char *const[]){__VA_ARGS__})

/* Adds the command for a program of the suite. It runs in the directory of a history that is not
 * the user's current one, so that it finds that history by the same rules, with its pointer and
 * index. */
static void push_program(struct words *w, const struct browse *b, const char *program,
                         size_t history)
{
    const struct history *h = &b->places[history];
    char *name = path_with_suffix(PROGRAM_PREFIX, program);
    char *path = path_beside(b->self, name);
    bool elsewhere = history > 0 && h->kind != HISTORY_EXPLICIT && h->dir;

    if (elsewhere) {
        char *parent = path_parent(h->dir);

        push_words(w, "sh", "-c",
                   ("cd -- \"$1\" && shift && unset CHAT_HISTORY GIT_DIR GIT_COMMON_DIR && exec "
                    "\"$@\""),
                   "sh", parent, NULL);
        free(parent);
    }
    push_words(w, path, h->kind == HISTORY_EXPLICIT ? "--history" : NULL, h->path, NULL);
    free(path);
    free(name);
}

/* Adds the id as a JSON string; readers never interpret that as a prefix, a suffix or `last`. */
static void push_session(struct words *w, struct str id)
{
    struct buf quoted = BUF_INIT(8 * BUF_LINE);

    json_add_string(&quoted, id);
    push_words(w, "--", NULL);
    words_add(w, buf_str(&quoted));
    buf_release(&quoted);
}

bool browse_act_complete_name(struct browse *b)
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
    return stat(buf_c(&b->name.text), &st) == 0 && S_ISREG(st.st_mode);
}

/* Adds a program, which reads the ids of `count` sessions from `in`. Takes ownership of argv and
 * in. */
static void add_job(struct browse_jobs *j, enum browse_command about, struct str name,
                    struct words *argv, struct buf *in, size_t count)
{
    struct browse_job *job = mem_zalloc(sizeof *job), **end = &j->first;

    job->about = about;
    job->argv = *argv;
    job->in = *in;
    job->count = count;
    job->child = (struct child)CHILD_INIT;
    buf_init(&job->name, BUF_LINE);
    buf_init(&job->out, BUF_LINE);
    buf_init(&job->said, BUF_SMALL);
    buf_add_str(&job->name, name);
    *argv = (struct words){0};
    buf_init(in, SIZE_MAX);
    while (*end)
        end = &(*end)->next;
    *end = job;
}

/* Adds the line of an id for a program that reads ids. */
static void add_id_line(struct buf *in, struct str id)
{
    json_add_string(in, id);
    buf_add_byte(in, '\n');
}

/* Exports the subject. The sessions of several histories are found from the first of these. */
static void run_export(struct browse_jobs *j, struct browse *b)
{
    /* The program may run in another directory. */
    char *here = getcwd(NULL, 0), *path = path_join(here ? here : "", buf_c(&b->name.text));
    size_t history, home = SIZE_MAX, count = 0;
    struct buf in = BUF_INIT(SIZE_MAX);
    struct words argv = {0};
    struct str id;

    for (; browse_subject(b, count, &history, &id); count++) {
        add_id_line(&in, id);
        home = home == SIZE_MAX || home == history ? history : 0;
    }
    push_program(&argv, b, "hist-export", home);
    push_words(&argv, "-q", "-o", path, "-", NULL);
    browse_say(b, "exporting");
    add_job(j, BROWSE_EXPORT, buf_str(&b->name.text), &argv, &in, count);
    free(path);
    free(here);
}

/* Deletes the sessions that are to be deleted, of each history with one program. */
static void run_deletions(struct browse_jobs *j, const struct browse *b)
{
    for (size_t history = 0; history < b->histories; history++) {
        struct buf in = BUF_INIT(SIZE_MAX);
        struct buf ids = BUF_INIT(BUF_LINE);
        struct words argv = {0};
        size_t count = 0;

        for (size_t i = 0; i < b->marks.count; i++) {
            const struct browse_mark *one = &b->marks.at[i];

            if (one->history != history || one->deletion == 0)
                continue;
            add_id_line(&in, one->id);
            buf_add_c(&ids, count++ > 0 ? ", '" : "'");
            vis_add_line(&ids, one->id, true);
            buf_add_byte(&ids, '\'');
        }
        if (count == 0)
            continue;
        push_program(&argv, b, "hist-delete", history);
        push_words(&argv, "--force", "-", NULL);
        add_job(j, BROWSE_DELETE, buf_str(&ids), &argv, &in, count);
        buf_release(&ids);
    }
}

static void run_fork(struct browse_jobs *j, struct browse *b)
{
    const struct message *m = browse_message(b);
    struct buf in = BUF_INIT(SIZE_MAX);
    struct words argv = {0};
    size_t history;
    struct str id;

    if (!browse_chosen(b, &history, &id)) {
        browse_say(b, "there is no session");
        return;
    }
    push_program(&argv, b, "hist-fork", history);
    push_words(&argv, "-q", "--detached", m ? "--at" : NULL, NULL);
    if (m)
        words_add(&argv, m->id);
    push_session(&argv, id);
    browse_say(b, "forking");
    add_job(j, BROWSE_FORK, STR(""), &argv, &in, 1);
}

/* Searches by meaning, in the same histories as the box does. */
static void run_like(struct browse_jobs *j, struct browse *b)
{
    bool explicit = b->places[0].kind == HISTORY_EXPLICIT;
    struct buf in = BUF_INIT(SIZE_MAX);
    struct words argv = {0};

    b->wants.like = false;
    push_program(&argv, b, "hist-search", 0);
    for (size_t i = 1; i < b->histories && b->all && explicit; i++)
        words_add_option(&argv, "--history=", str_of(b->places[i].path));
    if (b->all && !explicit)
        words_add(&argv, STR("--all"));
    if (b->role)
        words_add_option(&argv, "--role=", str_of(b->role));
    push_words(&argv, "--json", NULL);
    words_add_option(&argv, "--like=", str_skip(buf_str(&b->searched), 1));
    add_job(j, BROWSE_LIKE, buf_str(&b->searched), &argv, &in, 0);
}

void browse_act_run(struct browse_jobs *j, struct browse *b, enum browse_command command)
{
    if (command == BROWSE_LIKE)
        run_like(j, b);
    else if (command == BROWSE_EXPORT)
        run_export(j, b);
    else if (command == BROWSE_DELETE)
        run_deletions(j, b);
    else
        run_fork(j, b);
}

/* ---- pager and editor ---- */

/* Returns 0, or -1 with *e set, for a program that has ended with this status, or could not be run
 * (-1, *e is set). */
static int check_program(int status, const char *what, struct err *e)
{
    if (status <= 0)
        return status;
    return status == 127 ? err_set(e, ERR_FAILURE, "%s was not found", what)
                         : err_set(e, ERR_FAILURE, "%s failed with status %d", what, status);
}

/* PAGER and EDITOR are shell commands, so a shell runs them. $1 is the file, $2 the line to begin
 * at: less reads it from LESS, and these editors take it as an option. */
static const char pager_script[] = "exec </dev/tty >/dev/tty 2>&1\n"
                                   "case ${PAGER-} in '' | cat) PAGER='less -+F' ;; esac\n"
                                   "export LESS=\"+$2g\\$ ${LESS-}\"\n"
                                   "cat -- \"$1\" | eval \"$PAGER\"";
static const char editor_script[] =
    "exec </dev/tty >/dev/tty 2>&1; file=$1 editor=${VISUAL:-${EDITOR:-vi}}; name=${editor%% *}\n"
    "case ${name##*/} in\n"
    "vi | vim | nvim | view) editor=\"$editor -c $2\" ;;\n"
    "nano | emacs | emacsclient | kak | micro | mg | joe) editor=\"$editor +$2\" ;;\n"
    "esac\n"
    "eval \"$editor \\\"\\$file\\\"\"";

/* Writes text with its control characters made visible, because some pagers (more, less -r) and
 * editors pass them to the terminal. */
static int put_visible(int fd, struct str text)
{
    struct buf visible = BUF_INIT(SIZE_MAX);
    struct vis vis = {0};
    int result;

    vis_feed(&vis, text, &visible);
    vis_end(&vis, &visible);
    result = file_write_all(fd, buf_c(&visible), visible.len);
    buf_release(&visible);
    return result;
}

/* Writes the current message, and sets *line to the line of the current match in it. */
static int put_message(int fd, const struct browse_pane *p, const struct message *m, size_t *line)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_content(m, &scratch);
    int result = put_visible(fd, text);

    if (result == 0 && !str_ends(text, STR("\n")))
        result = file_write_all(fd, "\n", 1);
    if (p->has_hit && p->hit == p->at && p->hit_at.at <= text.n)
        *line = 1 + str_count((struct str){text.p, p->hit_at.at}, '\n');
    buf_release(&scratch);
    return result;
}

int browse_act_read_session(const struct browse *b, size_t history, struct str id, size_t messages,
                            bool lines, struct buf *out, struct err *e)
{
    struct buf number = BUF_INIT(BUF_SMALL);
    struct words argv = {0};
    int status;

    push_program(&argv, b, "hist-show", history);
    if (messages < SIZE_MAX)
        buf_addf(&number, "-n%zu", messages);
    push_words(&argv, "--no-pager",
               number.len > 0 ? buf_c(&number)
               : lines        ? "--json"
                              : NULL,
               NULL);
    push_session(&argv, id);
    status = process_read(argv.at, NULL, STR_NONE, out, -1, e);
    words_release(&argv);
    buf_release(&number);
    return check_program(status, "hist-show", e);
}

/* Writes the text of a session, and sets *line to the line in it where the current message begins.
 * Returns 0, or -1 with *e set. */
static int put_session(int fd, const struct browse *b, size_t history, struct str id, size_t *line,
                       struct err *e)
{
    const struct browse_pane *p = &b->pane;
    struct buf text = BUF_INIT(SIZE_MAX), end = BUF_INIT(SIZE_MAX);
    int result = browse_act_read_session(b, history, id, SIZE_MAX, false, &text, e);

    if (result == 0 && browse_shows(b, history, id) && !b->every && browse_pane_has(p))
        result = browse_act_read_session(b, history, id, p->thread.count - p->at, false, &end, e);
    if (result == 0 && put_visible(fd, buf_str(&text)) < 0)
        result = err_sys(e, errno, "cannot write a temporary file");
    if (end.len > 0 && end.len <= text.len)
        *line = str_count(buf_str(&text), '\n') - str_count(buf_str(&end), '\n') + 1;
    buf_release(&text);
    buf_release(&end);
    return result;
}

int browse_act_chat(const struct browse *b, struct err *e)
{
    struct words argv = {0};
    size_t history;
    struct str id;
    int status;

    if (!browse_chosen(b, &history, &id))
        return err_set(e, ERR_ABSENT, "there is no session to continue");
    push_words(&argv, "sh", "-c",
               ("exec </dev/tty >/dev/tty 2>&1; \"$@\"; status=$?; "
                "[ $status -eq 0 ] || { printf 'Enter: back to " PROGRAM_PREFIX
                "hist-browse '; read -r _; }; exit $status"),
               "sh", NULL);
    push_program(&argv, b, "chat", history);
    push_words(&argv, "-s", NULL);
    words_add(&argv, id);
    status = process_run(argv.at, -1, e);
    words_release(&argv);
    return check_program(status, "chat", e);
}

int browse_act_open(const struct browse *b, enum browse_command command, struct err *e)
{
    const struct message *m = b->focus == BROWSE_TEXT ? browse_message(b) : NULL;
    const char *what = command == BROWSE_PAGER ? "the pager" : "the editor";
    const char *dir = config_env("TMPDIR");
    struct words argv = {0};
    struct buf number = BUF_INIT(BUF_SMALL);
    size_t history, line = 1;
    struct str id;
    char *file;
    int fd, status;

    if (!browse_chosen(b, &history, &id))
        return err_set(e, ERR_ABSENT, "there is nothing to open");
    /* mkstemp makes it such that only the user can read it. */
    file = path_join(dir ? dir : "/tmp", "hist-browse.XXXXXX");
    fd = mkstemp(file);
    status = fd < 0 ? err_sys(e, errno, "cannot write '%s'", file)
             : m    ? put_message(fd, &b->pane, m, &line)
                    : put_session(fd, b, history, id, &line, e);
    if (fd >= 0 && m && status < 0)
        err_sys(e, errno, "cannot write '%s'", file);
    file_close(fd);
    if (status == 0) {
        buf_addf(&number, "%zu", line);
        push_words(&argv, "sh", "-c", command == BROWSE_PAGER ? pager_script : editor_script,
                   "hist-browse", file, buf_c(&number), NULL);
        status = process_run(argv.at, -1, e);
    }
    buf_release(&number);
    if (fd >= 0)
        unlink(file);
    words_release(&argv);
    free(file);
    return check_program(status, what, e);
}

/* ---- programs that run in order ---- */

/* How long a program that is stopped may take to end. */
#define GRACE_MS 2000

static void drop_job(struct browse_jobs *j)
{
    struct browse_job *job = j->first;

    j->first = job->next;
    words_release(&job->argv);
    buf_release(&job->in);
    buf_release(&job->name);
    buf_release(&job->out);
    buf_release(&job->said);
    free(job);
}

/* Starts a program, or reads what it prints. Returns true when it has ended. */
static bool step_job(struct browse_job *job)
{
    struct err e = ERR_INIT;
    bool ended;

    if (!job->started && child_start(&job->child, job->argv.at, NULL, NULL, &e) < 0) {
        buf_add_c(&job->said, err_text(&e));
        err_release(&e);
        job->child.status = -1;
        return true;
    }
    job->started = true;
    if (job->child.in >= 0 && job->in.len > 0)
        buf_consume(&job->in, child_write(&job->child.in, buf_str(&job->in)));
    if (job->in.len == 0)
        child_close(&job->child.in);
    /* What a program has printed before its end is there when it has ended. */
    ended = child_ended(&job->child);
    while (child_read(&job->child.out, &job->out) || child_read(&job->child.err, &job->said))
        continue;
    if (ended)
        child_end(&job->child, 0);
    return ended;
}

/* Chooses the new session, at once or when the list has been read again. */
static void choose_fork(struct browse *b, struct str id)
{
    size_t place = browse_sessions_find(&b->sessions, BROWSE_ANY_HISTORY, id);

    if (b->searching)
        return;
    if (place != SIZE_MAX) {
        browse_choose(b, place);
        return;
    }
    buf_set(&b->back.session, id);
    b->back.row = 0;
    b->back.list = true;
    b->back.text = false;
    b->wants.sessions = true;
}

/* Returns whether the result of a search is no longer wanted. */
static bool is_stale(const struct browse_job *job, const struct browse *b)
{
    return job->about == BROWSE_LIKE && !str_eq(buf_str(&job->name), buf_str(&b->searched));
}

/* Puts the messages that a search by meaning has printed into the list, and what it said beside it. */
static void report_like(const struct browse_job *job, struct browse *b)
{
    struct str rest = buf_str(&job->out), said = str_trim(buf_str(&job->said));
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct browse_hits hits = {0};

    while (rest.n > 0) {
        if (!message_parse(&m, str_cut(&rest, '\n')))
            continue;

        struct hit hit = {.message = &m, .text = message_content(&m, &scratch), .in_content = true};
        size_t row = browse_sessions_find(&b->sessions, BROWSE_ANY_HISTORY, m.session_id);

        browse_hits_add(&hits, row == SIZE_MAX ? 0 : b->sessions.at[row].history, &hit);
    }
    browse_set_instead(b, str_skip(buf_str(&b->searched), 1), hits.count == 0 ? said : STR(""));
    browse_add_hits(b, &hits, BROWSE_FIT_LIKE, true);
    message_release(&m);
    buf_release(&scratch);
}

static void report_job(const struct browse_job *job, struct browse *b, struct buf *failures)
{
    struct str said = str_trim(buf_str(&job->said)), id = str_trim(buf_str(&job->out));
    struct buf text = BUF_INIT(BUF_LINE);

    if (job->about == BROWSE_LIKE) {
        if (!is_stale(job, b))
            report_like(job, b);
        return;
    }
    if (job->child.status != 0) {
        buf_add_str(&text, said);
        if (said.n == 0)
            buf_addf(&text, "failed with status %d", job->child.status);
        if (failures)
            buf_addf(failures, "%s%s", failures->len > 0 ? "; " : "", buf_c(&text));
    } else if (job->about == BROWSE_EXPORT) {
        if (job->count > 1)
            buf_addf(&text, "%zu sessions ", job->count);
        buf_addf(&text, "exported to '%s'", buf_c(&job->name));
    } else if (job->about == BROWSE_DELETE) {
        buf_add_c(&text, "deleted");
    } else {
        buf_addf(&text, "forked: '%.*s'", (int)id.n, id.p ? id.p : "");
        choose_fork(b, id);
    }
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

/* ---- both ---- */

bool browse_jobs_busy(const struct browse_jobs *j)
{
    return j->first || clipboard_busy(&j->clipboard);
}

void browse_jobs_step(struct browse_jobs *j, struct browse *b, struct buf *failures)
{
    struct buf said = BUF_INIT(BUF_SMALL);

    if (clipboard_step(&j->clipboard, &said))
        browse_say(b, buf_c(&said));
    buf_release(&said);
    while (j->first && is_stale(j->first, b) && !j->first->started)
        drop_job(j);
    if (j->first && is_stale(j->first, b))
        child_term(&j->first->child);
    while (j->first && step_job(j->first)) {
        report_job(j->first, b, failures);
        drop_job(j);
        j->changed = true;
    }
}

void browse_jobs_stop(struct browse_jobs *j, struct buf *failures)
{
    clipboard_stop(&j->clipboard);
    if (j->first && j->first->started) {
        child_term(&j->first->child);
        child_end(&j->first->child, GRACE_MS);
    }
    for (; j->first; drop_job(j))
        if (j->first->about == BROWSE_DELETE && (!j->first->started || j->first->child.status != 0))
            buf_addf(failures, "%snot deleted: %s", failures->len > 0 ? "; " : "",
                     buf_c(&j->first->name));
}
