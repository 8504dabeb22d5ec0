#include "chat/repl_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/start.h"

/* What hist-browse prints: `{"action":"session"|"message","history":...,"session_id":...,
 * "content":...}`. */
struct chosen {
    struct buf line;
    struct buf history, session, content;
    bool message; /* the content is for the draft */
};

#define CHOSEN_INIT                                                                                \
    {                                                                                              \
        .line = BUF_INIT(SIZE_MAX), .history = BUF_INIT(SIZE_MAX), .session = BUF_INIT(SIZE_MAX),  \
        .content = BUF_INIT(SIZE_MAX)                                                              \
    }

static void chosen_release(struct chosen *c)
{
    buf_release(&c->line);
    buf_release(&c->history);
    buf_release(&c->session);
    buf_release(&c->content);
}

static bool chosen_parse(struct chosen *c)
{
    static const char *const keys[] = {"action", "history", "session_id", "content"};
    struct str values[4];

    json_pick(str_trim(buf_str(&c->line)), keys, values, 4);
    c->message = str_eq_c(values[0], "\"message\"");
    json_decode(values[3], &c->content);
    return json_decode(values[1], &c->history) && json_decode(values[2], &c->session);
}

/* Runs hist-browse, which gets the terminal, and reads what it prints. Returns its exit status, or
 * -1 with *e set. */
static int run_browser(const struct repl *r, struct str query, struct buf *line, struct err *e)
{
    const struct history *h = &r->chat->history;
    char *program = path_beside(r->chat->args->self, PROGRAM_PREFIX "hist-browse");
    char *text = mem_copy(query.p ? query.p : "", query.n);
    char print[] = "--print", form[] = "chat", history[] = "--history", end[] = "--";
    char *argv[8] = {program, print, form};
    size_t count = 3;
    FILE *file = tmpfile();
    int status = -1;

    if (h->kind == HISTORY_EXPLICIT) {
        argv[count++] = history;
        argv[count++] = h->path;
    }
    argv[count++] = end;
    if (query.n > 0)
        argv[count++] = text;
    if (!file)
        err_sys(e, errno, "cannot make a temporary file");
    else
        status = process_run(argv, fileno(file), e);
    if (status == 0 &&
        (lseek(fileno(file), 0, SEEK_SET) < 0 || file_read_all(fileno(file), line) < 0))
        status = err_sys(e, errno, "cannot read what " PROGRAM_PREFIX "hist-browse has printed");
    if (file)
        fclose(file);
    free(program);
    free(text);
    return status;
}

/* Is it the history of this conversation? */
static bool is_here(const struct repl *r, struct str path)
{
    char *real = r->chat->history.path ? path_real(r->chat->history.path, NULL) : NULL;
    bool is = real && str_eq_c(path, real);

    free(real);
    return is;
}

/* A session of another history is continued as a copy, if the user wants that. */
static void take_elsewhere(struct repl *r, const struct chosen *c)
{
    struct chat_session *chat = r->chat;
    struct buf copy = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct history from;
    int copied = 0;

    start_reader_of_file(&chat->config, &from, buf_c(&c->history), true);
    if (chat->in_memory) {
        warnf("session '%s' is in '%s', and nothing is stored here", buf_c(&c->session),
              buf_c(&c->history));
    } else {
        line_lend(r->line, true);
        copied = histories_offer(&chat->history, &from, buf_str(&c->session), &copy,
                                 chat->args->common.quiet, &e);
        line_lend(r->line, false);
    }
    if (copied < 0)
        repl_report(&e);
    else if (copied > 0)
        repl_continue(r, &copy);
    history_release(&from);
    buf_release(&copy);
}

void repl_browse(struct repl *r, struct str query)
{
    struct chosen c = CHOSEN_INIT;
    struct err e = ERR_INIT;
    int status;

    out_flush(r->out);
    line_lend(r->line, true);
    status = run_browser(r, query, &c.line, &e);
    line_lend(r->line, false);
    out_measure(r->out);
    if (status < 0)
        repl_report(&e);
    else if (status == 127)
        warnf("cannot run " PROGRAM_PREFIX "hist-browse: it was not found");
    else if (status == 0 && !chosen_parse(&c))
        warnf(PROGRAM_PREFIX "hist-browse has printed no choice");
    else if (status == 0 && c.message)
        line_begin_with(r->line, buf_str(&c.content));
    else if (status == 0 && is_here(r, buf_str(&c.history)))
        repl_continue(r, &c.session);
    else if (status == 0)
        take_elsewhere(r, &c);
    chosen_release(&c);
}
