#include "chathist/history/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/append.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"
#include "chathist/history/title.h"
#include "history/trust.h"

/* So many of the sessions that an ambiguous name could mean are shown. */
#define CANDIDATES_SHOWN 3

/* ---- the current session ---- */

int session_came(const struct history *h, struct str id, struct err *e)
{
    struct session_list l;
    int found;

    if (h->mark.from == 0 || mark_has_named(&h->mark, id))
        return 0;
    found = session_list_find(&l, h, id, e);
    if (found > 0)
        found = l.at[0].first_line < h->mark.from;
    session_list_release(&l);
    return found;
}

int session_trust(struct history *h, struct str id, struct err *e)
{
    int came;

    /* An id that cannot be written again is not continued. */
    if (!id_session_valid(id))
        return 0;
    came = store_enter(h, e) < 0 ? -1 : session_came(h, id, e);
    return came > 0 ? store_name(h, id, e) : came;
}

/* The pointer has the id of the session, and may have a mark in a second line. */
#define POINTER_MOST 1024
#define MARK_MOST 256

/* The pointer file, open. */
struct pointer {
    int fd;
    char text[POINTER_MOST];
    struct str id, mark; /* both are in `text` */
    struct stat st;
};

/* Opens and reads the pointer. Returns 1; 0 if the file does not exist, is not trusted, or does not
 * begin with an id; -1 with *e set. The caller closes it if the result is 1. */
static int pointer_open(struct pointer *p, const struct history *h, int mode, struct err *e)
{
    struct err why = ERR_INIT;
    struct str rest;
    ssize_t got;
    int reason = 0;

    if (!h->trusted)
        return 0;
    p->fd = file_open_regular_at(h->pointer_fd, h->pointer, mode, 0, &p->st, &reason, &why);
    if (p->fd < 0) {
        int result = reason == ENOENT ? 0 : err_set(e, ERR_FAILURE, "%s", err_text(&why));

        err_release(&why);
        return result;
    }
    got = owner_fault(p->fd, OWNER_USER) ? 0 : file_read_full(p->fd, p->text, sizeof(p->text));
    if (got < 0)
        err_sys(e, errno, "cannot read '%s'", h->pointer);
    rest = str_trim((struct str){p->text, got < 0 ? 0 : (size_t)got});
    p->id = str_trim(str_cut(&rest, '\n'));
    p->mark = str_trim(str_cut(&rest, '\n'));
    if (got >= 0 && id_session_valid(p->id))
        return 1;
    close(p->fd);
    return got < 0 ? -1 : 0;
}

int session_current(const struct history *h, struct buf *id, int64_t *since, struct err *e)
{
    struct pointer p;
    int result = pointer_open(&p, h, O_RDONLY, e);

    if (result <= 0)
        return result;
    result = session_came(h, p.id, e);
    if (result != 0) {
        close(p.fd);
        return result < 0 ? -1 : 0;
    }
    buf_set(id, p.id);
    if (since)
        *since = system_mtime(&p.st) / 1000;
    close(p.fd);
    return 1;
}

int session_mark(const struct history *h, struct str id, struct buf *mark)
{
    struct pointer p;
    bool found;

    if (pointer_open(&p, h, O_RDONLY, NULL) <= 0)
        return 0;
    found = str_eq(p.id, id) && p.mark.n > 0;
    if (found)
        buf_add_str(mark, p.mark);
    close(p.fd);
    return found;
}

/* Adds the line of a mark, if the id can be one. */
static void add_mark_line(struct buf *out, struct str line)
{
    if (store_id_valid(line) && line.n <= MARK_MOST)
        buf_addf(out, "%.*s\n", (int)line.n, line.p);
}

/* The file is changed in place: if another program makes another session current meanwhile, the
 * file that it replaces is changed, and not its own. */
void session_move_mark(const struct history *h, struct str id, struct str line)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct pointer p;

    if (pointer_open(&p, h, O_RDWR, NULL) <= 0)
        return;
    buf_addf(&text, "%.*s\n", (int)id.n, id.p);
    add_mark_line(&text, line);
    if (str_eq(p.id, id) && !str_eq(p.mark, line) && p.st.st_nlink == 1 &&
        file_pwrite_all(p.fd, text.data, text.len, 0) == 0)
        (void)!ftruncate(p.fd, (off_t)text.len);
    close(p.fd);
    buf_release(&text);
}

static int write_pointer(struct history *h, struct str id, struct str mark, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int result;

    /* The pointer would not be followed: some other client's idea of an id. */
    if (!id_session_valid(id))
        return err_set(e, ERR_USAGE, "cannot continue session '%.*s': not an id that chat takes",
                       ERR_SHOWN(id));
    result = store_enter(h, e);
    if (result == 0)
        result = store_check(h, e);
    if (result == 0) {
        buf_addf(&text, "%.*s\n", (int)id.n, id.p);
        add_mark_line(&text, mark);
        if (h->dir)
            (void)file_sweep(h->pointer_fd, h->pointer, false, true, NULL);
        /* The pointer is not worth a sync: without one, a new session is begun. */
        result = file_replace_at(h->pointer_fd, h->pointer, buf_str(&text), false, e);
        history_announce(h);
    }
    buf_release(&text);
    return result;
}

int session_make_current(struct history *h, struct str id, struct err *e)
{
    struct buf mark = BUF_INIT(BUF_LINE);
    struct thread t;
    int result;

    if (!h->unreadable && thread_find(&t, h, id, true, NULL) == 0) {
        if (t.count > 0)
            buf_set(&mark, t.at[t.count - 1].id);
        thread_release(&t);
    }
    result = write_pointer(h, id, buf_str(&mark), e);
    buf_release(&mark);
    return result;
}

/* Returns 1 if a session has been idle at h->now for longer than timeout_ms, counted from the later
 * of its latest message (history/order.h) and `since`, in microseconds; otherwise 0, or -1 with
 * *err set. A clock that was set back makes no session expire. */
static int has_expired(const struct history *h, struct str id, int64_t since, int64_t timeout_ms,
                       struct err *e)
{
    struct session_list l;
    int64_t used = since;
    int found;

    /* A message could only make it younger, so that it need not be looked for. */
    if ((h->now - since) / 1000 <= timeout_ms)
        return 0;
    if (h->unreadable)
        return 1;
    found = session_list_find(&l, h, id, e);
    if (found < 0)
        return -1;
    if (found && l.at[0].used > since)
        used = l.at[0].used;
    session_list_release(&l);
    return (h->now - used) / 1000 > timeout_ms;
}

/* Finds the session that was used last, of those that did not come with the repository: that of the
 * latest message (history/order.h) or, where several worktrees share the history, the current
 * session of this worktree if it has one. Returns 1 and *id, 0 if the history has no such session,
 * or -1 with *err set. */
static int find_last(const struct history *h, struct buf *id, struct err *e)
{
    int found = history_has_worktrees(h) ? session_current(h, id, NULL, e) : 0;
    struct session_list l;

    if (found != 0 || !h->trusted)
        return found;
    if (session_list_newest(&l, h, h->mark.from > 0 ? SIZE_MAX : 1, e) < 0)
        return -1;
    for (size_t i = 0; i < l.count && !found; i++) {
        found = !l.at[i].came;
        if (found)
            buf_set(id, l.at[i].id);
    }
    session_list_release(&l);
    return found;
}

/* ---- names ---- */

static int absent(struct str name, struct err *e)
{
    return err_set(e, ERR_ABSENT, "no session '%.*s'", ERR_SHOWN(name));
}

static int ambiguous(struct str name, const struct session_list *l, struct err *e)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < l->count && i < CANDIDATES_SHOWN; i++)
        buf_addf(&shown, "%s%s", i > 0 ? ", " : "", l->at[i].id.p);
    err_set(e, ERR_FAILURE, "session '%.*s' is ambiguous: %s%s", (int)name.n, name.p, buf_c(&shown),
            l->count > CANDIDATES_SHOWN ? ", …" : "");
    buf_release(&shown);
    return -1;
}

/* Takes the one session that the name begins, or else ends. 0, or -1. */
static int pick(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    struct session_list l;
    int result = session_list_named(&l, h, name, CANDIDATES_SHOWN + 1, e);

    if (result < 0)
        return -1;
    if (l.count > 1) {
        result = ambiguous(name, &l, e);
    } else if (l.count == 1) {
        buf_set(id, l.at[0].id);
    } else {
        result = absent(name, e);
    }
    session_list_release(&l);
    return result;
}

int session_has_lines(const struct history *h, struct str id, struct err *e)
{
    struct session_list l;
    int found = session_list_find(&l, h, id, e);

    session_list_release(&l);
    return found;
}

int session_exists(const struct history *h, struct str id, struct err *e)
{
    struct buf current = BUF_INIT(BUF_SMALL);
    int result = session_has_lines(h, id, e);

    if (result == 0 && session_current(h, &current, NULL, NULL) > 0)
        result = str_eq(buf_str(&current), id);
    buf_release(&current);
    return result;
}

int session_resolve(const struct history *h, struct str name, struct buf *id, struct err *e)
{
    int found;

    if (str_eq_c(name, "current") || str_eq_c(name, "last")) {
        bool current = str_eq_c(name, "current");

        found = current ? session_current(h, id, NULL, e) : find_last(h, id, e);
        if (found == 0)
            err_set(e, ERR_ABSENT, "there is no %ssession%s", current ? "current " : "",
                    current || h->mark.from == 0
                        ? ""
                        : " of yours: one that came with the repository is named by its id");
        return found > 0 ? 0 : -1;
    }
    if (name.n == 0)
        return absent(name, e);

    found = session_exists(h, name, e);
    if (found < 0)
        return -1;
    if (found > 0) {
        buf_set(id, name);
        return 0;
    }
    return pick(h, name, id, e);
}

/* ---- titles ---- */

int session_draft_title(const struct history *h, struct str id, struct str title, struct draft *d,
                        struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE), now = BUF_INIT(BUF_SMALL), set = BUF_INIT(SIZE_MAX);
    struct titles known = {0};
    struct str text;
    int result = -1;

    vis_add_line(&line, title, false);
    text = str_trim(buf_str(&line));
    if (utf8_count(text) > MESSAGE_TITLE) {
        err_set(e, ERR_USAGE, "a title has at most %d characters", MESSAGE_TITLE);
    } else if (session_title(h, id, &now, &set, e) == 0) {
        titles_add_known(&known, buf_str(&set));
        titles_draft(&known, text, d);
        draft_set_text(d, FIELD_SESSION_ID, id);
        result = !str_eq(text, buf_str(&now));
    }
    titles_release(&known);
    buf_release(&line);
    buf_release(&now);
    buf_release(&set);
    return result;
}

int session_set_title(struct history *h, struct str id, struct str title, struct err *e)
{
    struct draft d;
    int result, begun = session_has_lines(h, id, e);

    if (begun < 0)
        return -1;
    draft_init(&d);
    result = session_draft_title(h, id, title, &d, e);
    if (result > 0)
        result = begun ? store_append_to(h, id, &d, 1, e) : store_append(h, &d, 1, e);
    draft_release(&d);
    return result;
}

/* ---- which session a new message belongs to ---- */

/* The current session unless it has expired: 1, 0, -1. A pointer that cannot be read names none; it
 * is in the way when the next one is to be written, and reported then. */
static int choose_current(struct buf *id, const struct history *h, int64_t timeout_ms,
                          struct err *e)
{
    int64_t since = 0;
    int found = session_current(h, id, &since, NULL);
    int expired;

    if (found <= 0)
        return 0;
    if (timeout_ms < 0)
        return 1;
    expired = has_expired(h, buf_str(id), since, timeout_ms, e);
    return expired < 0 ? -1 : !expired;
}

int resume_choose(struct resume *r, const struct history *h, const struct resume_request *request,
                  struct err *e)
{
    int found = 0;

    buf_clear(&r->id);
    r->fresh = r->make_current = r->may_join = r->adopt = false;
    r->timeout_ms = request->timeout_ms;
    if (h->trust_fault && !request->named)
        return err_set(e, ERR_FAILURE, "%s", h->trust_fault);
    if (request->named) {
        if (!id_session_valid(str_of(request->named)))
            return err_set(e, ERR_USAGE, "'%s' is no session id", request->named);
        buf_add_c(&r->id, request->named);
        /* Naming a session that came with the repository is consent to continue it. */
        found = h->unreadable ? 0 : session_came(h, buf_str(&r->id), e);
        r->adopt = found > 0;
        return found < 0 ? -1 : 0;
    }
    if (!request->fresh) {
        if (request->last)
            found = find_last(h, &r->id, e);
        else
            found = choose_current(&r->id, h, request->timeout_ms, e);
        if (found < 0)
            return -1;
        r->make_current = request->last;
    }
    /* Another client's id that cannot be written again does not come back by itself either. */
    if (!found || !id_session_valid(buf_str(&r->id))) {
        buf_clear(&r->id);
        id_add_session(&r->id, time_now() / 1000);
        r->fresh = r->make_current = true;
        r->may_join = !request->fresh;
    }
    return 0;
}

int resume_claim(struct resume *r, struct history *h, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct buf id = BUF_INIT(BUF_SMALL);
    struct append a;
    int result;

    if (r->adopt && session_trust(h, buf_str(&r->id), e) < 0)
        return -1;
    if (!r->make_current || !r->may_join)
        return 0;
    if (store_enter(h, e) < 0 || store_check(h, e) < 0)
        return -1;
    if (append_open(&a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    result = choose_current(&id, h, r->timeout_ms, e);
    if (result > 0) {
        buf_set(&r->id, buf_str(&id));
        r->fresh = false;
    } else if (result == 0) {
        result = write_pointer(h, buf_str(&r->id), STR(""), e);
    }
    append_close(&a);
    buf_release(&id);
    r->make_current = result < 0;
    return result < 0 ? -1 : 0;
}

int resume_finish(const struct resume *r, struct history *h, struct err *e)
{
    return r->make_current ? session_make_current(h, buf_str(&r->id), e) : 0;
}

void resume_release(struct resume *r)
{
    buf_release(&r->id);
}
