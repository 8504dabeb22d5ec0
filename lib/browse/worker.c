#include "browse/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/history/filter.h"
#include "chathist/history/session_list.h"
#include "chathist/search/pattern.h"
#include "chathist/search/search.h"
#include "browse/actions.h"
#include "browse/list.h"

/* A search pauses after this many hits until more are wanted. */
#define ENOUGH 300
#define NICE 10
/* browse_work_end reports that it waits after this many milliseconds. */
#define SILENCE_MS 500

/* The first list of a large history comes from this many bytes at its end. */
#define RECENT ((off_t)1 << 20)
/* The first SCREENFUL hits are handed over one by one, later ones in portions of PORTION, or of what
 * was found within PORTION_MS milliseconds. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20

enum lane { LANE_SESSIONS, LANE_THREAD, LANE_SEARCH, LANE_RUN, LANE_COPY, LANES };

/* A task for one of the threads; each uses only some of the fields. */
struct request {
    unsigned number;             /* comes back with the result (messages, hits) */
    struct browse_wish wish;     /* which sessions to read */
    struct browse_target target; /* whose messages to read */
    struct buf text;             /* to search for or to copy; or the file that the program writes */
    const char *role;            /* search only messages of this role; NULL: all */
    bool all;                    /* search all histories, not only the first */
    bool sent;                   /* the text was also sent to the terminal, which does not answer */
    enum browse_command about;   /* why the program is run */
    struct words argv;
    struct request *next;
};

struct worker {
    struct browse_work *work;
    enum lane lane;
    bool started;
    pthread_t thread;
    struct request *request; /* the next one; under the lock */
    bool over;               /* the thread has ended; under the lock */
    /* Only the thread uses these, but for `cancel`, by which others stop the request under way. */
    atomic_bool cancel;
    struct history *histories;
    size_t count;
    struct browse_source source;
    bool looked; /* the end of the file was read for a first list */
};

struct browse_work {
    int wake[2];
    struct worker workers[LANES];

    pthread_mutex_t lock; /* guards the requests and the following members */
    pthread_cond_t changed;
    bool stop;
    size_t more; /* the search pauses when it has given this many hits */
    struct browse_result *first, *last;
};

static struct browse_result *result_new(enum browse_result_kind kind)
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

static void give(struct worker *k, struct browse_result *r)
{
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

/* ---- requests ---- */

static struct request *request_new(void)
{
    struct request *q = mem_zalloc(sizeof *q);

    browse_target_init(&q->target);
    buf_init(&q->text, BUF_LINE);
    return q;
}

static void request_free(struct request *q)
{
    while (q) {
        struct request *next = q->next;

        browse_wish_release(&q->wish);
        browse_target_release(&q->target);
        buf_release(&q->text);
        words_release(&q->argv);
        free(q);
        q = next;
    }
}

/* ---- sessions ---- */

/* Gives a first list from the end of a large history, because reading that is quick. */
static void look(struct worker *k)
{
    struct session_list recent;
    struct browse_result *r;
    bool whole = true;

    k->looked = true;
    if (session_list_recent(&recent, k->histories[0].dir_fd, k->histories[0].path, RECENT, &whole,
                            NULL) < 0)
        return;
    if (!whole) {
        r = result_new(BROWSE_SESSIONS);
        r->sessions.partial = true;
        r->sessions.total = recent.count;
        for (size_t i = 0; i < recent.count; i++)
            browse_sessions_add(&r->sessions, 0, &recent.at[i]);
        give(k, r);
    }
    session_list_release(&recent);
}

static void serve_sessions(struct worker *k, const struct request *q)
{
    struct browse_result *r;

    if (!k->looked)
        look(k);
    r = result_new(BROWSE_SESSIONS);
    if (browse_source_read(&k->source, &q->wish, &r->sessions, &r->error) < 0 &&
        r->error.kind == ERR_SIGNAL)
        browse_result_free(r);
    else
        give(k, r);
}

/* ---- messages ---- */

static bool has_message(const struct thread *t, struct str id)
{
    for (size_t i = 0; i < t->count; i++)
        if (str_eq(t->at[i].id, id))
            return true;
    return false;
}

/* If the wanted hit is not in the thread, because it was replaced or reset, reads every line of the
 * session instead. Returns true if it did. A part of a file is not extended. */
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

static void serve_thread(struct worker *k, const struct request *q)
{
    const struct browse_target *t = &q->target;
    const struct history *h = &k->histories[t->history];
    struct browse_result *r = result_new(BROWSE_THREAD);

    r->number = q->number;
    if (t->end < 0)
        (void)thread_find(&r->thread, h, buf_str(&t->id), false, &r->error);
    else
        (void)thread_load_between(&r->thread, h->dir_fd, h->path, buf_str(&t->id), t->first, t->end,
                                  &r->error);
    r->every = read_every(&r->thread, h, t);
    browse_parts_make(&r->parts, &r->thread);
    give(k, r);
}

/* ---- hits ---- */

/* Waits until more than `given` hits are wanted, or there is another request. */
static void rest(struct worker *k, size_t given)
{
    struct browse_work *w = k->work;

    pthread_mutex_lock(&w->lock);
    while (given >= w->more && !w->stop && !k->request)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Hands over the hits found so far and pauses if these are enough. */
static void hand_over(struct worker *k, struct browse_result **r, size_t *given)
{
    unsigned number = (*r)->number;

    *given += (*r)->hits.count;
    give(k, *r);
    *r = result_new(BROWSE_HITS);
    (*r)->number = number;
    rest(k, *given);
}

static int search_one(struct worker *k, size_t history, struct pattern *pattern,
                      const struct filter *filter, struct browse_result **r, size_t *given)
{
    const struct history *h = &k->histories[history];
    struct search s;
    struct hit hit;
    int64_t since = time_ticks();
    size_t threads = thread_pool_size();
    int result;

    if (search_open(&s, h->dir_fd, h->path, pattern, filter, SCAN_BACKWARD, &(*r)->error) < 0)
        return -1;
    s.cancel = &k->cancel;
    s.history = h;
    /* One processor remains for the thread that draws. */
    s.threads = threads > 1 ? threads - 1 : 1;
    while ((result = search_next(&s, &hit, &(*r)->error)) > 0 && !atomic_load(&k->cancel)) {
        if (result == SEARCH_FAILED)
            continue;
        browse_hits_add(&(*r)->hits, history, &hit);
        if (*given < SCREENFUL || (*r)->hits.count >= PORTION ||
            time_ticks() - since >= PORTION_MS) {
            hand_over(k, r, given);
            since = time_ticks();
        }
    }
    search_close(&s);
    return result;
}

static void serve_search(struct worker *k, const struct request *q)
{
    struct browse_result *r;
    struct pattern pattern;
    struct filter filter = {0};
    size_t given = 0;

    if (q->text.len == 0)
        return;
    r = result_new(BROWSE_HITS);
    r->number = q->number;
    pattern_init(&pattern);
    (void)pattern_add(&pattern, buf_str(&q->text), NULL);
    if (q->role)
        filter_add(&filter.roles, str_of(q->role));
    for (size_t i = 0; i < (q->all ? k->count : 1) && !atomic_load(&k->cancel); i++)
        (void)search_one(k, i, &pattern, &filter, &r, &given);
    r->done = true;
    give(k, r);
    filter_release(&filter);
    pattern_release(&pattern);
}

/* ---- other programs ---- */

static void serve_run(struct worker *k, const struct request *q)
{
    struct browse_result *r = result_new(BROWSE_RAN);

    r->about = q->about;
    buf_add_str(&r->name, buf_str(&q->text));
    r->status = browse_child_run(q->argv.at, &r->out, &r->said, &k->cancel, &r->error);
    r->ended = atomic_load(&k->cancel);
    give(k, r);
}

static void serve_copy(struct worker *k, const struct request *q)
{
    struct browse_result *r = result_new(BROWSE_COPIED);

    r->status = browse_clipboard_programs(buf_str(&q->text), &k->cancel);
    r->sent = q->sent;
    if (r->status < 0 && !q->sent && q->text.len > BROWSE_CLIPBOARD_MAX)
        err_set(&r->error, ERR_FAILURE,
                "cannot copy %zu bytes: terminals take %zu, and there is no wl-copy, xclip, xsel "
                "or pbcopy",
                q->text.len, BROWSE_CLIPBOARD_MAX);
    give(k, r);
}

/* ---- the threads ---- */

static const struct {
    void (*serve)(struct worker *k, const struct request *q);
    enum browse_result_kind kind;
    bool each; /* a newer request does not replace a waiting one */
    bool owed; /* browse_work_end waits for the requests */
} lanes[LANES] = {
    [LANE_SESSIONS] = {serve_sessions, BROWSE_SESSIONS, false, false},
    [LANE_THREAD] = {serve_thread, BROWSE_THREAD, false, false},
    [LANE_SEARCH] = {serve_search, BROWSE_HITS, false, false},
    [LANE_RUN] = {serve_run, BROWSE_RAN, true, true},
    [LANE_COPY] = {serve_copy, BROWSE_COPIED, false, true},
};

/* Lowers the priority of this thread, so that keys are answered first. Only Linux can do this for a
 * single thread. */
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
        struct request *q = k->request;

        if (!q) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        k->request = q->next;
        q->next = NULL;
        atomic_store(&k->cancel, false);
        pthread_mutex_unlock(&w->lock);
        lanes[k->lane].serve(k, q);
        request_free(q);
        pthread_mutex_lock(&w->lock);
    }
    k->over = true;
    pthread_mutex_unlock(&w->lock);
    wake(w);
    return NULL;
}

/* ---- requests ---- */

/* Queues a request; the caller holds the lock. Returns false if no thread can be started. */
static bool accept_request(struct worker *k, struct request *q)
{
    struct request **end = &k->request;

    if (!k->started)
        k->started = thread_pool_start(&k->thread, serve, k);
    if (!k->started)
        return false;
    while (lanes[k->lane].each && *end)
        end = &(*end)->next;
    request_free(*end);
    *end = q;
    pthread_cond_broadcast(&k->work->changed);
    return true;
}

static void refuse(struct worker *k, struct request *q)
{
    struct browse_result *r = result_new(lanes[k->lane].kind);

    err_set(&r->error, ERR_FAILURE, "cannot start a thread");
    r->number = q->number;
    r->about = q->about;
    r->status = -1;
    r->sent = q->sent;
    r->done = true;
    request_free(q);
    give(k, r);
}

static void ask(struct browse_work *w, enum lane lane, struct request *q)
{
    struct worker *k = &w->workers[lane];
    bool accepted;

    pthread_mutex_lock(&w->lock);
    if (lane == LANE_SEARCH) {
        atomic_store(&k->cancel, true);
        w->more = ENOUGH;
    }
    accepted = accept_request(k, q);
    pthread_mutex_unlock(&w->lock);
    if (!accepted)
        refuse(k, q);
}

void browse_work_sessions(struct browse_work *w, const struct browse *b)
{
    struct request *q = request_new();

    browse_wish(b, &q->wish);
    ask(w, LANE_SESSIONS, q);
}

void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target)
{
    struct request *q = request_new();

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
    struct request *q = request_new();

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
    struct request *q = request_new();

    q->about = about;
    buf_add_str(&q->text, name);
    q->argv = *argv;
    *argv = (struct words){0};
    ask(w, LANE_RUN, q);
}

void browse_work_copy(struct browse_work *w, struct str text, bool sent)
{
    struct request *q = request_new();

    q->sent = sent;
    buf_add_str(&q->text, text);
    ask(w, LANE_COPY, q);
}

/* ---- beginning and end ---- */

/* Returns copies of the histories that report nothing on the terminal, for the use of one thread. */
static struct history *borrow(struct worker *k, const struct history *histories, size_t count)
{
    struct history *copies = mem_zalloc(count * sizeof *copies);

    for (size_t i = 0; i < count; i++) {
        copies[i] = histories[i];
        copies[i].work = NULL;
        copies[i].tell = NULL;
        copies[i].cancel = &k->cancel;
    }
    return copies;
}

static void set_up(struct browse_work *w, enum lane lane, const struct history *histories,
                   size_t count)
{
    struct worker *k = &w->workers[lane];

    k->work = w;
    k->lane = lane;
    atomic_init(&k->cancel, false);
    k->histories = borrow(k, histories, count);
    k->count = count;
    browse_source_init(&k->source, k->histories, count);
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

/* Returns true while a thread works on requests that browse_work_end waits for. */
static bool is_at_work(struct browse_work *w)
{
    bool at_work = false;

    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < LANES; i++)
        at_work |= lanes[i].owed && w->workers[i].started && !w->workers[i].over;
    pthread_mutex_unlock(&w->lock);
    return at_work;
}

/* The caller holds the lock. */
static void give_up(struct worker *k)
{
    request_free(k->request);
    k->request = NULL;
    atomic_store(&k->cancel, true);
}

/* Waits until the programs have ended; when patience->fd becomes readable, stops them. */
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
        browse_source_release(&w->workers[i].source);
        free(w->workers[i].histories);
    }
    for (struct browse_result *r; (r = browse_work_next(w));)
        browse_result_free(r);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->wake[0]);
    close(w->wake[1]);
    free(w);
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

/* Chooses the new session when the list has been read again. That is requested here because the list
 * may already contain the session, and then the file does not change any more. */
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
        /* The text is the reason. */
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
        /* If the list cannot be read again, the old one stays until its file changes. */
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
