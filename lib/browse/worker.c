#include "browse/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/child.h"
#include "chathist/base/clock.h"
#include "chathist/base/crew.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/pipe.h"
#include "chathist/base/spawn.h"
#include "chathist/history/filter.h"
#include "chathist/history/session_list.h"
#include "chathist/search/pattern.h"
#include "chathist/search/search.h"
#include "browse/actions.h"

/* The search waits to be asked for more after so many hits. */
#define ENOUGH 300
#define NICE 10
/* The end waits so long in silence, in milliseconds. */
#define SILENCE_MS 500

enum lane { LANE_SESSIONS, LANE_THREAD, LANE_SEARCH, LANE_RUN, LANE_COPY, LANES };

static const struct {
    browse_serve *serve;
    enum browse_result_kind kind;
    bool each; /* no request is given up for the next one */
    bool owed; /* nor for the end */
} lanes[LANES] = {
    [LANE_SESSIONS] = {browse_serve_sessions, BROWSE_SESSIONS, false, false},
    [LANE_THREAD] = {browse_serve_thread, BROWSE_THREAD, false, false},
    [LANE_SEARCH] = {browse_serve_search, BROWSE_HITS, false, false},
    [LANE_RUN] = {browse_serve_run, BROWSE_RAN, true, true},
    [LANE_COPY] = {browse_serve_copy, BROWSE_COPIED, false, true},
};

struct browse_work {
    int wake[2];
    struct worker {
        struct browse_work *work;
        enum lane lane;
        bool started;
        pthread_t thread;
        struct browse_server server;
        struct browse_request *request; /* that waits */
        bool over;                      /* the thread has nothing more to do */
    } workers[LANES];

    pthread_mutex_t lock; /* over the requests and all that follows */
    pthread_cond_t changed;
    bool stop;
    size_t more; /* how many hits are wanted */
    struct browse_result *first, *last;
};

/* ---- results ---- */

static void wake(struct browse_work *w)
{
    /* A full pipe wakes as well. */
    (void)!write(w->wake[1], "", 1);
}

/* Empties the pipe. */
static void drain(struct browse_work *w)
{
    char bytes[64];

    while (read(w->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        continue;
}

static void give(void *worker, struct browse_result *r)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_mutex_unlock(&w->lock);
    wake(w);
}

struct browse_result *browse_work_next(struct browse_work *w)
{
    struct browse_result *r;

    drain(w);
    pthread_mutex_lock(&w->lock);
    r = w->first;
    if (r)
        w->first = r->next;
    if (!w->first)
        w->last = NULL;
    pthread_mutex_unlock(&w->lock);
    return r;
}

int browse_work_fd(const struct browse_work *w)
{
    return w->wake[0];
}

/* ---- the threads ---- */

static void rest(void *worker, size_t given)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    pthread_mutex_lock(&w->lock);
    while (given >= w->more && !w->stop && !k->request)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Where it can be done for a thread alone, as on Linux, the keyboard comes first. */
static void give_way(void)
{
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, 0, NICE);
#endif
}

static void *serve(void *worker)
{
    struct worker *k = worker;
    struct browse_work *w = k->work;

    give_way();
    pthread_mutex_lock(&w->lock);
    while (!w->stop || (lanes[k->lane].owed && k->request)) {
        struct browse_request *q = k->request;

        if (!q) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        k->request = q->next;
        q->next = NULL;
        atomic_store(&k->server.cancel, false);
        pthread_mutex_unlock(&w->lock);
        lanes[k->lane].serve(&k->server, q);
        browse_request_free(q);
        pthread_mutex_lock(&w->lock);
    }
    k->over = true;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    return NULL;
}

/* ---- requests ---- */

/* Under the lock: takes a request over. false: there is no thread for it. */
static bool accept_request(struct worker *k, struct browse_request *q)
{
    struct browse_request **end = &k->request;

    if (!k->started)
        k->started = crew_start(&k->thread, serve, k);
    if (!k->started)
        return false;
    while (lanes[k->lane].each && *end)
        end = &(*end)->next;
    browse_request_free(*end);
    *end = q;
    pthread_cond_broadcast(&k->work->changed);
    return true;
}

static void refuse(struct worker *k, struct browse_request *q)
{
    struct browse_result *r = browse_result_new(lanes[k->lane].kind);

    err_set(&r->error, ERR_FAILURE, "cannot start a thread");
    r->number = q->number;
    r->about = q->about;
    r->status = -1;
    r->sent = q->sent;
    r->done = true;
    browse_request_free(q);
    give(k, r);
}

static void ask(struct browse_work *w, enum lane lane, struct browse_request *q)
{
    struct worker *k = &w->workers[lane];
    bool accepted;

    pthread_mutex_lock(&w->lock);
    if (lane == LANE_SEARCH) {
        atomic_store(&k->server.cancel, true);
        w->more = ENOUGH;
    }
    accepted = accept_request(k, q);
    pthread_mutex_unlock(&w->lock);
    if (!accepted)
        refuse(k, q);
}

void browse_work_sessions(struct browse_work *w, const struct browse *b)
{
    struct browse_request *q = browse_request_new();

    browse_wish(b, &q->wish);
    ask(w, LANE_SESSIONS, q);
}

void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target)
{
    struct browse_request *q = browse_request_new();

    q->number = number;
    q->target.history = target->history;
    q->target.first = target->first;
    q->target.end = target->end;
    buf_add_str(&q->target.id, buf_str(&target->id));
    buf_add_str(&q->target.hit, buf_str(&target->hit));
    ask(w, LANE_THREAD, q);
}

void browse_work_search(struct browse_work *w, unsigned number, struct str text, const char *role,
                        bool all)
{
    struct browse_request *q = browse_request_new();

    q->number = number;
    q->role = role;
    q->all = all;
    buf_add_str(&q->text, text);
    ask(w, LANE_SEARCH, q);
}

void browse_work_more(struct browse_work *w, size_t held)
{
    pthread_mutex_lock(&w->lock);
    w->more = held + ENOUGH;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void browse_work_run(struct browse_work *w, enum browse_command about, struct str name,
                     struct words *argv)
{
    struct browse_request *q = browse_request_new();

    q->about = about;
    buf_add_str(&q->text, name);
    q->argv = *argv;
    *argv = (struct words){0};
    ask(w, LANE_RUN, q);
}

void browse_work_copy(struct browse_work *w, struct str text, bool sent)
{
    struct browse_request *q = browse_request_new();

    q->sent = sent;
    buf_add_str(&q->text, text);
    ask(w, LANE_COPY, q);
}

/* ---- beginning and end ---- */

/* What of a history is for the thread that draws is left out: to speak on the terminal. */
static struct history *borrow(struct worker *k, const struct history *histories, size_t count)
{
    struct history *copies = mem_zalloc(count * sizeof *copies);

    for (size_t i = 0; i < count; i++) {
        copies[i] = histories[i];
        copies[i].work = NULL;
        copies[i].tell = NULL;
        copies[i].cancel = &k->server.cancel;
    }
    return copies;
}

static void set_up(struct browse_work *w, enum lane lane, const struct history *histories,
                   size_t count)
{
    struct worker *k = &w->workers[lane];
    struct browse_server *s = &k->server;

    k->work = w;
    k->lane = lane;
    atomic_init(&s->cancel, false);
    s->histories = borrow(k, histories, count);
    s->count = count;
    s->give = give;
    s->rest = rest;
    s->ctx = k;
    browse_source_init(&s->source, s->histories, count);
}

struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e)
{
    struct browse_work *w = mem_zalloc(sizeof *w);

    if (pipe_open_wake(w->wake) < 0) {
        err_sys(e, errno, "cannot make a pipe");
        free(w);
        return NULL;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (size_t i = 0; i < LANES; i++)
        set_up(w, (enum lane)i, histories, count);
    return w;
}

/* Is something owed that goes on? */
static bool is_at_work(struct browse_work *w)
{
    bool at_work = false;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < LANES; i++)
        at_work |= lanes[i].owed && w->workers[i].started && !w->workers[i].over;
    pthread_mutex_unlock(&w->lock);
    return at_work;
}

/* Under the lock. */
static void give_up(struct worker *k)
{
    browse_request_free(k->request);
    k->request = NULL;
    atomic_store(&k->server.cancel, true);
}

/* Waits for what is owed, or until the user does not want to. */
static void wait_for_owed(struct browse_work *w, const struct browse_patience *patience)
{
    struct pollfd fds[2] = {{.fd = patience->fd, .events = POLLIN},
                            {.fd = w->wake[0], .events = POLLIN}};
    int silence = SILENCE_MS;

    while (is_at_work(w)) {
        int ready = poll(fds, 2, silence);

        if (ready == 0) {
            silence = -1;
            if (patience->tell)
                patience->tell();
        }
        if (ready <= 0)
            continue;
        drain(w);
        if (!fds[0].revents)
            continue;
        fds[0].fd = -1;
        silence = -1;
        pthread_mutex_lock(&w->lock);
        for (size_t i = 0; i < LANES; i++)
            give_up(&w->workers[i]);
        pthread_mutex_unlock(&w->lock);
    }
}

void browse_work_end(struct browse_work *w, const struct browse_patience *patience)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    for (size_t i = 0; i < LANES; i++)
        if (patience->none || !lanes[i].owed)
            give_up(&w->workers[i]);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    wait_for_owed(w, patience);
    for (size_t i = 0; i < LANES; i++) {
        if (w->workers[i].started)
            pthread_join(w->workers[i].thread, NULL);
        w->workers[i].started = false;
    }
}

void browse_work_free(struct browse_work *w)
{
    for (size_t i = 0; i < LANES; i++) {
        browse_source_release(&w->workers[i].server.source);
        free(w->workers[i].server.histories);
    }
    for (struct browse_result *r; (r = browse_work_next(w));)
        browse_result_free(r);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->wake[0]);
    close(w->wake[1]);
    free(w);
}

/* Of a file that was never read, so much of its end is looked at first. */
#define RECENT ((off_t)1 << 20)
/* The first hits, that fill a screen, are handed over one by one; the others when there are so
 * many, or after so many milliseconds. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20

/* ---- requests ---- */

struct browse_request *browse_request_new(void)
{
    struct browse_request *q = mem_zalloc(sizeof *q);

    browse_target_init(&q->target);
    buf_init(&q->text, BUF_LINE);
    return q;
}

void browse_request_free(struct browse_request *q)
{
    while (q) {
        struct browse_request *next = q->next;

        browse_wish_release(&q->wish);
        browse_target_release(&q->target);
        buf_release(&q->text);
        words_release(&q->argv);
        free(q);
        q = next;
    }
}

/* ---- sessions ---- */

/* What a first glance tells of a large file. */
static void look(struct browse_server *s)
{
    struct session_list recent;
    struct browse_result *r;
    bool whole = true;

    s->looked = true;
    if (session_list_recent(&recent, s->histories[0].dir_fd, s->histories[0].path, RECENT, &whole,
                            NULL) < 0)
        return;
    if (!whole) {
        r = browse_result_new(BROWSE_SESSIONS);
        r->sessions.partial = true;
        r->sessions.total = recent.count;
        for (size_t i = 0; i < recent.count; i++)
            browse_sessions_add(&r->sessions, 0, &recent.at[i]);
        s->give(s->ctx, r);
    }
    session_list_release(&recent);
}

void browse_serve_sessions(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r;

    if (!s->looked)
        look(s);
    r = browse_result_new(BROWSE_SESSIONS);
    if (browse_source_read(&s->source, &q->wish, &r->sessions, &r->error) < 0 &&
        r->error.kind == ERR_SIGNAL)
        browse_result_free(r);
    else
        s->give(s->ctx, r);
}

/* ---- messages ---- */

static bool has_message(const struct thread *t, struct str id)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(t->at[i].id, id))
            return true;
    return false;
}

/* Every line, if a message is among them that the thread does not have. Of a part of the file that
 * cannot be told. */
static bool read_every(struct thread *t, const struct history *h, const struct browse_target *of)
{
    struct thread every;

    if (of->hit.len == 0 || of->end >= 0 || has_message(t, buf_str(&of->hit)) ||
        thread_find(&every, h, buf_str(&of->id), true, NULL) < 0)
        return false;
    if (!has_message(&every, buf_str(&of->hit))) {
        thread_release(&every);
        return false;
    }
    thread_release(t);
    *t = every;
    return true;
}

void browse_serve_thread(struct browse_server *s, const struct browse_request *q)
{
    const struct browse_target *t = &q->target;
    const struct history *h = &s->histories[t->history];
    struct browse_result *r = browse_result_new(BROWSE_THREAD);

    r->number = q->number;
    if (t->end < 0)
        (void)thread_find(&r->thread, h, buf_str(&t->id), false, &r->error);
    else
        (void)thread_load_between(&r->thread, h->dir_fd, h->path, buf_str(&t->id), t->first, t->end,
                                  &r->error);
    r->every = read_every(&r->thread, h, t);
    browse_parts_make(&r->parts, &r->thread);
    s->give(s->ctx, r);
}

/* ---- hits ---- */

/* Hands over what was found, and waits when that is enough for now. */
static void hand_over(struct browse_server *s, struct browse_result **r, size_t *given)
{
    unsigned number = (*r)->number;

    *given += (*r)->hits.count;
    s->give(s->ctx, *r);
    *r = browse_result_new(BROWSE_HITS);
    (*r)->number = number;
    s->rest(s->ctx, *given);
}

static int search_one(struct browse_server *server, size_t history, struct pattern *pattern,
                      const struct filter *filter, struct browse_result **r, size_t *given)
{
    const struct history *h = &server->histories[history];
    struct search s;
    struct hit hit;
    int64_t since = clock_ticks();
    size_t threads = crew_size();
    int result;

    if (search_open(&s, h->dir_fd, h->path, pattern, filter, SCAN_BACKWARD, &(*r)->error) < 0)
        return -1;
    s.cancel = &server->cancel;
    s.history = h;
    /* One processor is the keyboard's. */
    s.threads = threads > 1 ? threads - 1 : 1;
    while ((result = search_next(&s, &hit, &(*r)->error)) > 0 && !atomic_load(&server->cancel)) {
        if (result == SEARCH_FAILED)
            continue;
        browse_hits_add(&(*r)->hits, history, &hit);
        if (*given < SCREENFUL || (*r)->hits.count >= PORTION ||
            clock_ticks() - since >= PORTION_MS) {
            hand_over(server, r, given);
            since = clock_ticks();
        }
    }
    search_close(&s);
    return result;
}

void browse_serve_search(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r;
    struct pattern pattern;
    struct filter filter = {0};
    size_t given = 0;

    if (q->text.len == 0)
        return;
    r = browse_result_new(BROWSE_HITS);
    r->number = q->number;
    pattern_init(&pattern);
    (void)pattern_add(&pattern, buf_str(&q->text), NULL);
    if (q->role)
        filter_add(&filter.roles, str_of(q->role));
    for (size_t i = 0; i < (q->all ? s->count : 1) && !atomic_load(&s->cancel); i++)
        (void)search_one(s, i, &pattern, &filter, &r, &given);
    r->done = true;
    s->give(s->ctx, r);
    filter_release(&filter);
    pattern_release(&pattern);
}

/* ---- other programs ---- */

void browse_serve_run(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r = browse_result_new(BROWSE_RAN);

    r->about = q->about;
    buf_add_str(&r->name, buf_str(&q->text));
    r->status = browse_child_run(q->argv.at, &r->out, &r->said, &s->cancel, &r->error);
    r->ended = atomic_load(&s->cancel);
    s->give(s->ctx, r);
}

void browse_serve_copy(struct browse_server *s, const struct browse_request *q)
{
    struct browse_result *r = browse_result_new(BROWSE_COPIED);

    r->status = browse_clipboard_programs(buf_str(&q->text), &s->cancel);
    r->sent = q->sent;
    if (r->status < 0 && !q->sent && q->text.len > BROWSE_CLIPBOARD_MAX)
        err_set(&r->error, ERR_FAILURE,
                "cannot copy %zu bytes: terminals take %zu, and there is no wl-copy, xclip, xsel "
                "or pbcopy",
                q->text.len, BROWSE_CLIPBOARD_MAX);
    s->give(s->ctx, r);
}

struct browse_result *browse_result_new(enum browse_result_kind kind)
{
    struct browse_result *r = mem_zalloc(sizeof *r);

    r->kind = kind;
    buf_init(&r->name, BUF_LINE);
    buf_init(&r->out, BUF_LINE);
    buf_init(&r->said, BUF_SMALL);
    return r;
}

void browse_result_free(struct browse_result *r)
{
    if (!r)
        return;
    err_release(&r->error);
    browse_sessions_release(&r->sessions);
    browse_parts_release(&r->parts);
    thread_release(&r->thread);
    browse_hits_release(&r->hits);
    buf_release(&r->name);
    buf_release(&r->out);
    buf_release(&r->said);
    free(r);
}

/* ---- into the state ---- */

bool browse_take_failure(struct buf *out, const struct browse_result *r)
{
    size_t before = out->len;

    if (r->kind != BROWSE_RAN || r->status == 0 || r->ended)
        return false;
    buf_add_str(out, str_trim(buf_str(&r->said)));
    if (r->error.kind != ERR_NONE)
        buf_add_c(out, err_text(&r->error));
    if (out->len == before)
        buf_addf(out, "failed with status %d", r->status);
    return true;
}

/* It is chosen when the sessions are read again, for it may be among them already, and the file is
 * no other then. */
static void choose_fork(struct browse *b, struct str id)
{
    buf_clear(&b->back.session);
    buf_add_str(&b->back.session, id);
    b->back.row = 0;
    b->back.list = true;
    b->back.text = false;
    b->wants.sessions = true;
}

static void take_run(struct browse *b, const struct browse_result *r)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct str id = str_trim(buf_str(&r->out));

    if (browse_take_failure(&text, r)) {
        /* It says why. */
    } else if (r->about == BROWSE_EXPORT) {
        buf_addf(&text, "exported to '%s'", buf_c(&r->name));
    } else if (r->about == BROWSE_DELETE) {
        buf_add_c(&text, "deleted");
    } else {
        buf_addf(&text, "forked: '%.*s'", (int)id.n, id.p ? id.p : "");
        if (!b->searching)
            choose_fork(b, id);
    }
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

static void take_copied(struct browse *b, const struct browse_result *r)
{
    if (r->status == 0)
        browse_say(b, "copied");
    else if (r->sent)
        browse_say(b, "sent to the terminal");
    else if (r->error.kind != ERR_NONE)
        browse_say(b, err_text(&r->error));
    else
        browse_say(b, "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot");
}

bool browse_take(struct browse *b, struct browse_result *r)
{
    switch (r->kind) {
    case BROWSE_SESSIONS:
        /* A list that cannot be read again stays as it was, and is tried again when its file
         * changes. */
        if (r->error.kind == ERR_NONE || !b->sessions_known)
            browse_take_sessions(b, &r->sessions);
        break;
    case BROWSE_THREAD:
        browse_take_thread(b, r->number, &r->thread, &r->parts, r->every);
        break;
    case BROWSE_HITS:
        browse_take_hits(b, r->number, &r->hits, r->done);
        break;
    case BROWSE_RAN:
        take_run(b, r);
        return true;
    case BROWSE_COPIED:
        take_copied(b, r);
        return false;
    }
    if (r->error.kind != ERR_NONE)
        browse_say(b, err_text(&r->error));
    return false;
}

/* How often it is looked whether it has ended, and how long it may take to, in milliseconds. */
#define LOOK_MS 20
#define GRACE_MS 2000

int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e)
{
    struct child c;

    if (child_start(&c, argv, NULL, NULL, e) < 0)
        return -1;
    child_close(&c.in);
    while (!atomic_load(cancel) && (!child_ended(&c) || c.out >= 0 || c.err >= 0)) {
        struct pollfd fds[2] = {{.fd = c.out, .events = POLLIN}, {.fd = c.err, .events = POLLIN}};
        bool ended = child_ended(&c);

        if (poll(fds, 2, LOOK_MS) <= 0 && ended)
            break;
        if (fds[0].revents)
            child_read(&c.out, out);
        if (fds[1].revents)
            child_read(&c.err, said);
    }
    child_term(&c);
    child_end(&c, child_ended(&c) ? 0 : GRACE_MS);
    return c.status;
}

/* How much of what was written has not been read yet, where the system tells; else 0. */
static int unread(int fd)
{
    int count = 0;

    return ioctl(fd, FIONREAD, &count) < 0 ? 0 : count;
}

/* Writes it as fast as it is read. false: not all of it was. Closes the descriptor. */
static bool write_to_child(int fd, struct str text, const atomic_bool *cancel)
{
    int64_t until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    int left = 0;

    while (fd >= 0 && !atomic_load(cancel) && clock_ticks() < until) {
        struct pollfd to = {.fd = fd, .events = text.n > 0 ? POLLOUT : 0};
        int ready = poll(&to, 1, LOOK_MS), before = left;
        size_t taken = 0;

        if (ready > 0 && to.revents & POLLERR)
            break; /* nobody reads there any more */
        if (ready > 0)
            taken = child_write(&fd, text);
        text.p += taken;
        text.n -= taken;
        left = unread(fd);
        if (text.n == 0 && left == 0)
            break;
        if (taken > 0 || left < before)
            until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    }
    left = fd < 0 ? 0 : unread(fd);
    child_close(&fd);
    return text.n == 0 && left == 0;
}

/* Is it content with what it has read? One that does not end keeps it. */
static bool has_taken(pid_t pid, const atomic_bool *cancel)
{
    int64_t until = clock_ticks() + BROWSE_CHILD_GIVE_MS;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return false;
        if (clock_ticks() >= until || atomic_load(cancel))
            return true;
        io_wait(-1, LOOK_MS);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_NULL, SPAWN_NULL, SPAWN_NULL}, .apart = true};
    int ends[2], failed;
    pid_t pid;

    if (pipe_open(ends) < 0)
        return -1;
    s.fd[0] = ends[0];
    sigfillset(&s.reset);
    failed = fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 || spawn(&pid, &s) != 0;
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return -1;
    }
    if (write_to_child(ends[1], text, cancel))
        return has_taken(pid, cancel) ? 0 : -1;
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return -1;
}
