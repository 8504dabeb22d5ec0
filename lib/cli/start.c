#include "chathist/cli/start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/history/session.h"
#include "chathist/history/thread.h"
#include "chathist/history/store.h"

static void tell_wait(const char *path)
{
    warnf("waiting for another program that writes '%s'", path);
}

static void tell_unmarked(const char *why)
{
    warnf("the next program cannot know that this session is yours: %s", why);
}

static void show_percent(int percent)
{
    if (percent >= 0)
        progress_part(percent);
    else
        progress_end();
}

struct locate_from start_from(const struct config *c)
{
    struct err e = ERR_INIT;
    bool copies;

    if (config_switch(c, SETTING_HISTORY_COPY, &copies, &e) < 0)
        die_err(&e);
    return (struct locate_from){.cwd = c->cwd,
                                .data_home = c->data_home,
                                .state_home = c->state_home,
                                .now = c->now,
                                .git_dir = config_env("GIT_DIR"),
                                .git_common_dir = config_env("GIT_COMMON_DIR"),
                                .no_copies = !copies};
}

/* What a program does with the history. */
enum use { TO_WRITE, TO_WRITE_IF_ANY, TO_READ };

/* Locates a history; `file` is NULL if none is named. */
static void open_located(const struct config *c, struct history *h, const char *file, bool quiet,
                         enum use use)
{
    struct locate_from from = start_from(c);
    struct err e = ERR_INIT;

    from.explicit_file = file;
    from.may_be_nowhere = use == TO_WRITE_IF_ANY;
    from.reader = use == TO_READ;
    if (locate(h, &from, &e) < 0)
        die_err(&e);
    if (config_switch(c, SETTING_FSYNC, &h->sync, &e) < 0)
        die_err(&e);
    h->tell = quiet ? NULL : tell_wait;
    h->on_unmarked = quiet ? NULL : tell_unmarked;
    h->work = !quiet && progress_possible() ? show_percent : NULL;
}

static void load_and_open(struct config *c, struct history *h, const struct opt_common *o,
                          enum use use)
{
    struct err e = ERR_INIT;

    if (config_load(c, &e) < 0)
        die_err(&e);
    config_set(c, SETTING_HISTORY, o->history);
    open_located(c, h, c->value[SETTING_HISTORY], o->quiet, use);
}

void start_history(struct config *c, struct history *h, const struct opt_common *o)
{
    load_and_open(c, h, o, TO_WRITE);
}

void start_history_if_any(struct config *c, struct history *h, const struct opt_common *o)
{
    load_and_open(c, h, o, TO_WRITE_IF_ANY);
}

void start_expect(const struct history *h)
{
    struct err e = ERR_INIT;
    struct stat st;

    if (h->kind != HISTORY_EXPLICIT || lstat(h->path, &st) == 0 || errno != ENOENT)
        return;
    err_set(&e, ERR_FAILURE, "no history '%s'", h->path);
    die_err(&e);
}

void start_check(struct history *h)
{
    struct err e = ERR_INIT;

    if (store_check(h, &e) < 0)
        die_err(&e);
}

void start_reader(struct config *c, struct history *h, const struct opt_common *o, bool others)
{
    load_and_open(c, h, o, TO_READ);
    start_expect(h);
    if (h->other && !o->quiet && (others || strcmp(h->other, h->path) == 0))
        warnf("reading '%s', which is not one of your own histories", h->other);
}

void start_reader_of_file(const struct config *c, struct history *h, const char *file, bool quiet)
{
    open_located(c, h, file, quiet, TO_READ);
    start_expect(h);
}

/* Until the first line is stored, which gives the present history its second name. */
static void tell_earlier(const struct history *h, bool quiet)
{
    char *earlier = quiet ? NULL : history_earlier(h);

    if (earlier)
        warnf("an earlier history of this repository is kept in '%s': " PROGRAM_PREFIX
              "hist-import brings it here",
              earlier);
    free(earlier);
}

/* Says that sessions are not continued, until this account has stored something there, or always if
 * another user can write there. */
static void tell_came(struct history *h)
{
    struct stat st = {0};
    int fd =
        h->trusted ? -1 : file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, &st, NULL, NULL);
    /* Another program of this account may have begun the history in the meantime: it wrote its mark
     * before its first line. */
    bool own = fd < 0 || st.st_size == 0 || (h->safe && history_is_marked(h, fd));

    file_close(fd);
    if (own)
        return;
    if (h->safe)
        warnf("the sessions in '%s' came with the repository: " PROGRAM_PREFIX
              "hist-load ID continues one of them",
              h->path);
    else
        warnf("'%s' is not one of your own histories: starting a session of its own", h->path);
}

void start_tell_place(struct history *h, bool quiet)
{
    if (h->notice && !quiet)
        warnf("%s", h->notice);
    if (h->other && !quiet && strcmp(h->other, h->path) != 0)
        warnf("'%s' is not part of this history: '--history' reads it", h->other);
    if (!quiet)
        tell_came(h);
    tell_earlier(h, quiet);
}

/* Ends the program if a name that is taken literally is no session id. */
static void check_name(const char *name, const char *from, bool is_chat)
{
    if (!name || id_session_valid(str_of(name)))
        return;
    if (strcmp(name, "current") == 0 || strcmp(name, "last") == 0)
        die_usage("bad session id '%s' in %s: leave %s out for the current session%s", name, from,
                  from, is_chat ? ", -c continues the one used last" : "");
    die_usage(
        "bad session id '%s' in %s: up to 128 letters, digits and . _ : -, the first a letter "
        "or a digit",
        name, from);
}

/* The most sessions that an ambiguous name lists. */
#define DIGITS_MOST 8

static int find_generated(const struct session_list *l, struct str name, struct buf *id,
                          struct err *e)
{
    struct buf all = BUF_INIT(BUF_SMALL);
    int found = 0;

    for (size_t i = 0; i < l->count; i++) {
        struct str one = l->at[i].id;

        if (!id_session_generated(one))
            continue;
        buf_addf(&all, "%s%s", found++ > 0 ? ", " : "", one.p);
        buf_set(id, one);
    }
    if (found > 1)
        found = err_set(e, ERR_USAGE, "session '%.*s' is ambiguous: %s", (int)name.n, name.p,
                        buf_c(&all));
    buf_release(&all);
    return found;
}

/* Finds the session that chat -s names by the six digits at the end of its generated id, as prompts
 * show them. Returns 1 and *id; 0 if no such session exists, or if a session has the name itself as
 * its id; -1 if several end so (ERR_USAGE, the message lists them) or the history cannot be
 * read. */
static int find_digits(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    struct buf generated = BUF_INIT(BUF_SMALL), end = BUF_INIT(BUF_SMALL);
    struct session_list l;
    int found = 0;

    buf_addf(&generated, "sess_0_%.*s", (int)name.n, name.p);
    buf_addf(&end, "_%.*s", (int)name.n, name.p);
    if (id_session_generated(buf_str(&generated)) && name.n == ID_SESSION_DIGITS) {
        found = session_exists(h, name, e);
        if (found == 0 && session_list_named(&l, h, buf_str(&end), DIGITS_MOST, e) < 0)
            found = -1;
        else if (found == 0) {
            found = find_generated(&l, name, id, e);
            session_list_release(&l);
        } else if (found > 0)
            found = 0;
    }
    buf_release(&generated);
    buf_release(&end);
    return found;
}

/* A session that is named and new must not have begun. */
static void check_new(const struct history *h, const char *name)
{
    struct err e = ERR_INIT;
    int found = session_exists(h, str_of(name), &e);

    if (found < 0)
        die_err(&e);
    if (found > 0)
        die_usage("session '%s' has begun already: -s without --new continues it, "
                  "and " PROGRAM_PREFIX "hist-new --reset empties its context",
                  name);
}

static bool is_current_session(const struct history *h, struct str id)
{
    struct buf current = BUF_INIT(BUF_SMALL);
    bool is = session_current(h, &current, NULL, NULL) > 0 && str_eq(buf_str(&current), id);

    buf_release(&current);
    return is;
}

void start_session(struct resume *r, struct resume_wish *wish, const struct config *c,
                   struct history *h, bool again, bool quiet)
{
    struct buf found = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    bool named, last, pinned = false;

    if (!wish->named && !wish->fresh && !wish->last) {
        wish->named = c->value[SETTING_SESSION];
        pinned = wish->named != NULL;
        check_name(wish->named, "CHAT_SESSION", false);
        wish->by_digits = false;
    } else {
        check_name(wish->named, "-s", wish->by_digits);
    }
    if (wish->named && wish->fresh)
        check_new(h, wish->named);
    else if (wish->named && wish->by_digits && !h->unreadable &&
             find_digits(h, str_of(wish->named), &found, &e) < 0)
        die_err(&e);
    if (found.len > 0)
        wish->named = buf_c(&found);
    named = wish->named != NULL;
    last = wish->last;
    if (config_session_timeout(c, &wish->timeout_ms, &e) < 0)
        die_err(&e);
    if (again)
        wish->timeout_ms = -1;
    if (resume_choose(r, h, wish, &e) < 0)
        die_err(&e);
    /* The variable may come from a profile or a Makefile: it does not show consent. */
    if (pinned && !h->safe)
        die_usage("CHAT_SESSION is set, but '%s' is not one of your own histories: name the "
                  "session with -s, or leave CHAT_SESSION out",
                  h->path);
    if (pinned && r->adopt)
        die_usage("CHAT_SESSION is set to '%s', which came with the repository: name the session "
                  "with -s, or leave CHAT_SESSION out",
                  buf_c(&r->id));
    r->make_current = r->make_current || wish->fresh;
    wish->named = NULL;
    if (r->adopt && !quiet && h->safe)
        warnf("session '%s' came with the repository", buf_c(&r->id));
    if (named && !quiet && !h->unreadable && isatty(STDERR_FILENO) &&
        session_exists(h, buf_str(&r->id), &e) == 0)
        hintf(false, "session '%s' begins", buf_c(&r->id));
    err_release(&e);
    buf_release(&found);
    if (r->fresh || (last && h->notice && !is_current_session(h, buf_str(&r->id))))
        start_tell_place(h, quiet);
    else
        tell_earlier(h, quiet);
}

int start_accept(struct history *h, struct str id, bool quiet, struct err *e)
{
    int came = session_came(h, id, e);

    if (came > 0)
        came = session_accept(h, id, e) < 0 ? -1 : 1;
    if (came > 0 && !quiet && h->safe)
        warnf("session '%.*s', which came with the repository, is one of yours from now on",
              ERR_SHOWN(id));
    return came < 0 ? -1 : 0;
}

void start_make_current(const struct config *c, struct history *h, struct str id, bool quiet)
{
    struct err e = ERR_INIT;

    if (start_try_current(c, h, id, quiet, &e) < 0)
        die_err(&e);
}

int start_try_current(const struct config *c, struct history *h, struct str id, bool quiet,
                      struct err *e)
{
    const char *pinned = c->value[SETTING_SESSION];

    if (start_accept(h, id, quiet, e) < 0 || session_make_current(h, id, e) < 0)
        return -1;
    if (!quiet && pinned && !str_eq_c(id, pinned))
        warnf("CHAT_SESSION is set to '%s' and overrides the current session", pinned);
    return 0;
}

static void add_news(struct buf *text, size_t n, const char *what)
{
    if (n > 0)
        buf_addf(text, "%s%s", text->len > 0 ? ", " : "", what);
}

void start_tell_news(const struct history *h, struct str session, const struct hash_map *own,
                     struct buf *seen)
{
    struct thread_news n = THREAD_NEWS_INIT;
    struct buf mark = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_SMALL);

    if (!h->unreadable && session_mark(h, session, &mark) > 0 &&
        thread_find_news(&n, h, session, buf_str(&mark), own, NULL) == 0) {
        buf_set(seen, buf_str(&n.newest));
        add_news(&text, n.resets, "it was reset");
        add_news(&text, n.systems, "it was given a new system prompt");
        add_news(&text, n.replacing, "messages were replaced");
    }
    if (text.len > 0)
        warnf("something other than this chat has changed session '%.*s': %s; 'hist-show --raw "
              "%.*s' prints its lines",
              (int)session.n, session.p, buf_c(&text), (int)session.n, session.p);
    buf_release(&text);
    buf_release(&mark);
    buf_release(&n.newest);
}

void start_report_bad(const struct history *h, uint64_t bad_lines, bool quiet)
{
    if (bad_lines > 0 && !quiet)
        warnf("skipped %" PRIu64 " bad line%s in '%s'", bad_lines, bad_lines == 1 ? "" : "s",
              h->path);
}

void start_report_entries(const char *file, size_t bad, bool too_deep, bool quiet)
{
    const char *ending = bad == 1 ? "y" : "ies";
    const char *why = too_deep ? ": nested too deeply" : "";

    if (bad == 0 || quiet)
        return;
    if (strcmp(file, "-") == 0)
        warnf("skipped %zu bad entr%s on standard input%s", bad, ending, why);
    else
        warnf("skipped %zu bad entr%s in '%s'%s", bad, ending, file, why);
}
