#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/file_replace.h"
#include "chathist/base/json.h"
#include "chathist/base/path.h"
#include "chathist/base/process.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/message.h"
#include "chathist/history/order.h"

/* ---- the temporary file ---- */

/* The directory with the history and what programs keep beside one. Handlers of signals remove
 * them, so the names are made before. */
static struct {
    char *dir;
    char *files[5];
} temporary;

static void remove_temporary(void)
{
    for (size_t i = 0; i < sizeof temporary.files / sizeof *temporary.files; i++)
        if (temporary.files[i])
            unlink(temporary.files[i]);
    if (temporary.dir)
        rmdir(temporary.dir);
}

static void remove_and_end(int signo)
{
    remove_temporary();
    raise(signo); /* SA_RESETHAND has restored the default action */
}

static void catch_end_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction remove = {.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND}, before;

    sigemptyset(&remove.sa_mask);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending[i], &remove, NULL);
}

/* Makes the file, which only the user can read. Returns its path, which lives as long as the
 * program. */
static const char *make_temporary(void)
{
    static const char *const names[] = {"history.jsonl", "history.jsonl.idx",
                                        ("history.jsonl.idx" HISTORY_INDEX_MAKING),
                                        "history.jsonl.skip", "history.jsonl.session"};
    const char *tmp = config_env("TMPDIR");
    struct err e = ERR_INIT;

    temporary.dir = path_join(tmp ? tmp : "/tmp", PROGRAM_PREFIX "chathist.XXXXXX");
    if (!mkdtemp(temporary.dir)) {
        err_sys(&e, errno, "cannot make '%s'", temporary.dir);
        free(temporary.dir);
        temporary.dir = NULL;
        die_err(&e);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        temporary.files[i] = path_join(temporary.dir, names[i]);
    atexit(remove_temporary);
    catch_end_signals();
    return temporary.files[0];
}

const char *remote_store(struct str lines)
{
    const char *path = make_temporary();
    struct err e = ERR_INIT;

    if (file_replace_at(AT_FDCWD, path, lines, false, &e) < 0)
        die_err(&e);
    return path;
}

/* ---- hist-sync ---- */

/* Begins the command line with the options that choose histories and the number of results. */
static void begin_command(struct words *a, const struct remote *r, bool all)
{
    struct buf limit = BUF_INIT(BUF_SMALL);

    words_add(a, STR(PROGRAM_PREFIX "hist-sync"));
    if (r->quiet)
        words_add(a, STR("--quiet"));
    if (all)
        words_add(a, STR("--all"));
    if (r->history)
        words_add_option(a, "--history=", str_of(r->history));
    if (r->limit != SIZE_MAX) {
        buf_addf(&limit, "%zu", r->limit);
        words_add_option(a, "--limit=", buf_str(&limit));
    }
    buf_release(&limit);
}

/* Runs the command, adds its output to `out`, and releases the arguments. If it fails, ends the
 * program with its exit status. */
static void run_sync(struct words *a, struct buf *out)
{
    struct err e = ERR_INIT;
    int status = process_read(a->at, NULL, STR_NONE, out, -1, &e);

    if (status < 0)
        die_err(&e);
    if (status > 0)
        exit(status);
    words_release(a);
}

/* ---- messages ---- */

void remote_session(const struct remote *r, struct buf *name, bool *exact, struct buf *lines)
{
    struct words a = {0};
    struct message m = MESSAGE_INIT;
    size_t from = lines->len;
    struct str rest;

    begin_command(&a, r, r->all || *exact || !str_eq_c(buf_str(name), "last"));
    words_add_option(&a, "--show=", buf_str(name));
    run_sync(&a, lines);
    rest = (struct str){buf_c(lines) + from, lines->len - from};
    if (message_parse(&m, str_cut(&rest, '\n'))) {
        buf_set(name, m.session_id);
        *exact = true;
    }
    message_release(&m);
}

/* Adds the lines of a text in the opposite order. */
static void add_reversed(struct buf *out, struct str lines)
{
    while (lines.n > 0) {
        size_t begin = lines.n - 1;

        while (begin > 0 && lines.p[begin - 1] != '\n')
            begin--;
        buf_add(out, lines.p + begin, lines.n - begin);
        lines.n = begin;
    }
}

void remote_matches(const struct remote *r, const struct arg_list *texts, struct buf *lines)
{
    struct buf found = BUF_INIT(SIZE_MAX);
    struct words a = {0};

    begin_command(&a, r, r->all);
    for (size_t i = 0; i < texts->count; i++)
        words_add_option(&a, "--search=", str_of(texts->at[i]));
    run_sync(&a, &found);
    add_reversed(lines, buf_str(&found));
    buf_release(&found);
}

/* ---- sessions ---- */

static struct str add_list_text(struct session_list *l, struct str json)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str kept;

    json_decode(json, &text);
    kept = session_list_copy(l, buf_str(&text));
    buf_release(&text);
    return kept;
}

/* Adds the session of a summary, as session_add_json writes it. */
static void add_summary(struct session_list *l, struct str line)
{
    static const char *const keys[] = {"session_id", "message_count", "preview",      "title",
                                       "first_role", "created_at",    "last_accessed"};
    struct str value[sizeof keys / sizeof *keys];
    struct session *s = session_list_add(l);
    int64_t count = 0;

    json_pick(line, keys, value, sizeof keys / sizeof *keys);
    s->id = add_list_text(l, value[0]);
    if (json_int(value[1], &count))
        s->count = (uint64_t)count;
    s->preview = add_list_text(l, value[2]);
    s->title = add_list_text(l, value[3]);
    s->first_role = add_list_text(l, value[4]);
    s->created_at = add_list_text(l, value[5]);
    s->last_used = add_list_text(l, value[6]);
}

/* Sets what the sessions are sorted by. The server gives them in order, so that a session was not
 * used before those that follow it. */
static void set_order(struct session_list *l, int64_t now)
{
    struct line_clock used = line_clock_at(now, LINE_OLDEST);

    for (size_t i = l->count; i-- > 0;) {
        struct session *s = &l->at[i];
        struct line_clock created = line_clock_at(now, LINE_OLDEST);

        (void)line_clock_time(&used, s->last_used);
        s->used = used.latest;
        s->created = line_clock_time(&created, s->created_at);
        s->last_line = (off_t)(l->count - i);
    }
}

void remote_list(const struct remote *r, struct session_list *l, int64_t now)
{
    struct buf lines = BUF_INIT(SIZE_MAX);
    struct words a = {0};
    struct str rest;

    begin_command(&a, r, r->all);
    words_add_option(&a, "--sessions", STR(""));
    run_sync(&a, &lines);
    *l = (struct session_list){0};
    rest = buf_str(&lines);
    while (rest.n > 0)
        add_summary(l, str_cut(&rest, '\n'));
    set_order(l, now);
    buf_release(&lines);
}
