#include "chathist/cli/choose_session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/start.h"
#include "chathist/history/fork.h"
#include "chathist/history/session_list.h"
#include "chathist/history/thread.h"

/* ---- the place ---- */

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

void choose_tell_place(struct history *h, bool quiet)
{
    if (h->notice && !quiet)
        warnf("%s", h->notice);
    if (h->other && !quiet && strcmp(h->other, h->path) != 0)
        warnf("'%s' is not part of this history: '--history' reads it", h->other);
    if (!quiet)
        tell_came(h);
    tell_earlier(h, quiet);
}

/* ---- the current session ---- */

/* Remembers that the user has named the session, and says so if it came with the repository.
 * Returns 0, or -1 with *e set. */
static int accept_named(struct history *h, struct str id, bool quiet, struct err *e)
{
    int came = session_came(h, id, e);

    if (came > 0)
        came = session_trust(h, id, e) < 0 ? -1 : 1;
    if (came > 0 && !quiet && h->safe)
        warnf("session '%.*s', which came with the repository, is one of yours from now on",
              ERR_SHOWN(id));
    return came < 0 ? -1 : 0;
}

void choose_make_current(const struct choice *c, struct history *h, struct str id)
{
    struct err e = ERR_INIT;

    if (choose_try_current(c, h, id, &e) < 0)
        die_err(&e);
}

int choose_try_current(const struct choice *c, struct history *h, struct str id, struct err *e)
{
    const char *pinned = c->config.value[SETTING_SESSION];
    bool quiet = c->common.quiet;

    if (accept_named(h, id, quiet, e) < 0 || session_make_current(h, id, e) < 0)
        return -1;
    if (!quiet && pinned && !str_eq_c(id, pinned))
        warnf("CHAT_SESSION is set to '%s' and overrides the current session", pinned);
    return 0;
}

/* ---- copies ---- */

/* Gives the copy the title of the session. */
static int copy_title(struct history *to, const struct history *from, struct str session,
                      struct str copy, struct err *e)
{
    struct buf title = BUF_INIT(BUF_LINE);
    int result = session_title(from, session, &title, NULL, e);

    if (result == 0 && title.len > 0)
        result = session_set_title(to, copy, buf_str(&title), e);
    buf_release(&title);
    return result;
}

int choose_copy(struct history *to, struct history *from, struct str session, struct str at,
                struct buf *id, size_t *count, bool quiet, struct err *e)
{
    uint64_t bad_lines;

    buf_clear(id);
    id_add_session(id, time_now() / 1000);
    if ((to == from && accept_named(to, session, quiet, e) < 0) ||
        fork_session(to, from, session, at, buf_str(id), count, &bad_lines, e) < 0 ||
        copy_title(to, from, session, buf_str(id), e) < 0)
        return -1;
    start_report_bad(from, bad_lines, quiet);
    return 0;
}

int choose_offer_copy(struct history *to, struct history *from, struct str session, struct buf *id,
                      bool quiet, struct err *e)
{
    struct buf question = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    int wanted = 0;
    size_t count;

    if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        history_name_add(&name, from);
        buf_add_c(&question, "session '");
        vis_add_line(&question, session, true);
        buf_add_c(&question, "' is in ");
        vis_add_line(&question, buf_str(&name), true);
        buf_add_c(&question, ": copy it here? [y/N] ");
        wanted = confirm_yes(buf_c(&question)) > 0;
    }
    if (wanted && choose_copy(to, from, session, STR_NONE, id, &count, quiet, e) < 0)
        wanted = -1;
    buf_release(&question);
    buf_release(&name);
    return wanted;
}

/* ---- the session of a new message ---- */

/* The session is in another history. Returns the id of a copy here, or NULL if it may begin. */
static char *offer_or_end(struct history *h, struct history *home, struct str id, bool quiet)
{
    struct buf copy = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    struct buf file = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    bool begins = !id_session_generated(id) && !id_is_uuid(id);
    int copied = begins ? 0 : choose_offer_copy(h, home, id, &copy, quiet, &e);

    if (copied < 0)
        die_err(&e);
    history_name_add(&name, home);
    if (begins) {
        if (!quiet)
            hintf(false, "%s has a session '%.*s', too", buf_c(&name), (int)id.n, id.p);
    } else if (copied == 0) {
        words_quote(&file, home->path);
        die_usage("session '%.*s' is in %s: '" PROGRAM_PREFIX "hist-fork --detached %.*s' copies "
                  "it here, '" PROGRAM_PREFIX "chat --history %s -s %.*s' continues it",
                  (int)id.n, id.p, buf_c(&name), (int)id.n, id.p, buf_c(&file), (int)id.n, id.p);
    }
    buf_release(&name);
    buf_release(&file);
    if (copy.len > 0)
        return buf_detach(&copy);
    buf_release(&copy);
    return NULL;
}

/* Looks for the session of chat -s, if this history does not have it, in the other histories of the
 * user. If one has a session of that id, which programs generate, it must not begin here as another
 * one: the user may have it copied into this history, else the program ends. If the id is a name,
 * which two repositories may have, a hint on a terminal says so. Returns the id of the copy, which
 * the caller frees, or NULL. */
static char *copy_named(const struct resume_request *request, const struct config *c,
                        struct history *h, bool quiet)
{
    struct str name = str_of(request->named);
    struct histories all = {0};
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    char *copy = NULL;
    size_t place;
    int found;
    bool generated = id_session_generated(name) || id_is_uuid(name);

    if (!request->named || request->fresh || !request->by_digits || !c->state_home ||
        h->kind == HISTORY_EXPLICIT || h->unreadable || !id_session_valid(name) ||
        (!generated && (quiet || !isatty(STDERR_FILENO))) || session_exists(h, name, NULL) != 0)
        return NULL;
    histories_add_all(&all, c);
    found = histories_find(&all, 0, name, true, &place, &id, &e);
    if (found > 0)
        copy = offer_or_end(h, &all.at[place], name, quiet);
    else if (found < 0 && generated)
        die_err(&e);
    err_release(&e);
    histories_release(&all);
    buf_release(&id);
    return copy;
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

void choose_session(struct resume *r, struct resume_request request, const struct choice *c,
                    bool again, bool quiet)
{
    struct history *h = c->histories.at;
    char *copy = copy_named(&request, &c->config, h, quiet);
    struct buf found = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    bool pinned = false;

    if (copy)
        request.named = copy;
    if (!request.named && !request.fresh && !request.last) {
        request.named = c->config.value[SETTING_SESSION];
        pinned = request.named != NULL;
        check_name(request.named, "CHAT_SESSION", false);
        request.by_digits = false;
    } else {
        check_name(request.named, "-s", request.by_digits);
    }
    if (request.named && request.fresh)
        check_new(h, request.named);
    else if (request.named && request.by_digits && !h->unreadable &&
             find_digits(h, str_of(request.named), &found, &e) < 0)
        die_err(&e);
    if (found.len > 0)
        request.named = buf_c(&found);
    if (config_session_timeout(&c->config, &request.timeout_ms, &e) < 0)
        die_err(&e);
    if (again)
        request.timeout_ms = -1;
    if (resume_choose(r, h, &request, &e) < 0)
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
    r->make_current = r->make_current || request.fresh;
    if (r->adopt && !quiet && h->safe)
        warnf("session '%s' came with the repository", buf_c(&r->id));
    if (request.named && !quiet && !h->unreadable && isatty(STDERR_FILENO) &&
        session_exists(h, buf_str(&r->id), &e) == 0)
        hintf(false, "session '%s' begins", buf_c(&r->id));
    err_release(&e);
    buf_release(&found);
    free(copy);
    if (r->fresh || h->displaced ||
        (request.last && h->notice && !is_current_session(h, buf_str(&r->id))))
        choose_tell_place(h, quiet);
    else
        tell_earlier(h, quiet);
}

/* ---- what others have changed ---- */

static void add_news(struct buf *text, size_t n, const char *what)
{
    if (n > 0)
        buf_addf(text, "%s%s", text->len > 0 ? ", " : "", what);
}

void choose_tell_news(const struct history *h, struct str session, const struct hash_map *own,
                      struct buf *seen)
{
    struct thread_news n = THREAD_NEWS_INIT;
    struct buf mark = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_SMALL);

    if (!h->unreadable && session_mark(h, session, &mark) > 0 &&
        thread_find_news(&n, h, session, buf_str(&mark), own) == 0) {
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
