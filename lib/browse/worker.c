#include "browse/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/cli/choose.h"
#include "chathist/history/filter.h"
#include "chathist/history/session_list.h"
#include "chathist/search/pattern.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"
#include "chathist/search/search_merge.h"
#include "chathist/search/session_search.h"

#define NICE 10
/* A search pauses after this many hits until more are wanted. It begins anew each time, so the
 * pauses must become rarer. */
#define ENOUGH ((size_t)300)
/* The first SCREENFUL hits are handed over one by one, later ones in portions of PORTION and a
 * quarter of those before, or of what was found within PORTION_MS milliseconds. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20

/* The most urgent kind first. */
enum kind { MESSAGES, HITS, SESSIONS, COUNT, KINDS };

/* Each kind uses some of the fields. */
struct request {
    unsigned number;             /* comes back with the result */
    bool all;                    /* all histories, not only the first */
    struct browse_target target; /* whose messages to read */
    struct buf text;             /* to search for */
    const char *role;            /* search only messages of this role; NULL: all */
    size_t given;                /* number of hits that were handed over already */
    size_t until;                /* the search pauses when it has given this many */
    bool at_once;                /* its first result has these all */
};

struct result {
    enum kind kind;
    struct err error;
    unsigned number; /* of the request */
    size_t history;  /* whose sessions these are; SIZE_MAX: that was the last list */
    struct session_list list;
    struct thread thread;
    struct browse_parts parts;
    bool every; /* the thread holds every line of the session */
    struct browse_hits hits;
    bool done; /* this is the last result of the search */
    enum browse_fit fit;
    uint64_t total; /* the number of all hits of the search */
    struct result *next;
};

struct browse_work {
    int wake[2];
    pthread_t thread;
    atomic_bool cancel; /* stops the request at work */

    pthread_mutex_t lock; /* guards these */
    pthread_cond_t changed;
    bool stop;
    enum kind at_work; /* KINDS: none */
    struct request *waits[KINDS];
    struct request *paused; /* the search, until more hits are wanted */
    size_t more;            /* the number of hits that is wanted */
    unsigned search_number; /* of the search that is wanted */
    unsigned counted;       /* the number of the search whose hits were counted last */
    struct result *first, *last;

    /* Only the thread uses these. */
    struct history *histories;
    struct browse_stamp *stamps; /* of the files when their lists were read */
    size_t count;
};

static struct request *request_new(unsigned number, bool all)
{
    struct request *q = mem_zalloc(sizeof *q);

    q->number = number;
    q->all = all;
    browse_target_init(&q->target);
    buf_init(&q->text, BUF_SMALL);
    return q;
}

/* Frees the request at this place, if there is one, and puts another one (or NULL) there. */
static void put(struct request **at, struct request *q)
{
    if (*at) {
        browse_target_release(&(*at)->target);
        buf_release(&(*at)->text);
    }
    free(*at);
    *at = q;
}

/* ---- results ---- */

static struct result *result_new(enum kind kind, unsigned number)
{
    struct result *r = mem_zalloc(sizeof *r);

    r->kind = kind;
    r->number = number;
    return r;
}

static void result_free(struct result *r)
{
    err_release(&r->error);
    session_list_release(&r->list);
    browse_parts_release(&r->parts);
    thread_release(&r->thread);
    browse_hits_release(&r->hits);
    free(r);
}

static void give(struct browse_work *w, struct result *r)
{
    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    pthread_mutex_unlock(&w->lock);
    /* A full pipe wakes as well. */
    (void)!write(w->wake[1], "", 1);
}

static struct result *next_result(struct browse_work *w)
{
    struct result *r;

    pthread_mutex_lock(&w->lock);
    r = w->first;
    if (r)
        w->first = r->next;
    if (!w->first)
        w->last = NULL;
    pthread_mutex_unlock(&w->lock);
    return r;
}

void browse_work_take(struct browse_work *w, struct browse *b)
{
    char bytes[64];
    struct result *r;

    while (read(w->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        continue;
    while ((r = next_result(w))) {
        if (r->kind == SESSIONS && r->history == SIZE_MAX)
            browse_take_all_sessions(b, r->number);
        else if (r->kind == SESSIONS)
            browse_take_sessions(b, r->history, &r->list);
        else if (r->kind == MESSAGES)
            browse_take_thread(b, r->number, &r->thread, &r->parts, r->every);
        else if (r->kind == COUNT)
            browse_take_count(b, r->number, r->total);
        else
            browse_take_hits(b, r->number, &r->hits, r->fit, r->done);
        if (r->error.kind != ERR_NONE)
            browse_say(b, err_text(&r->error));
        result_free(r);
    }
}

int browse_work_fd(const struct browse_work *w)
{
    return w->wake[0];
}

/* ---- sessions ---- */

static void give_list(struct browse_work *w, size_t history, struct session_list *list)
{
    struct result *r = result_new(SESSIONS, 0);

    r->history = history;
    r->list = *list;
    give(w, r);
}

/* Gives the lists of the histories that have changed. If one cannot be read, the list before it
 * stays until the file changes. Returns false if it was cancelled. */
static bool serve_sessions(struct browse_work *w, struct request *q)
{
    struct result *r = result_new(SESSIONS, q->number);

    r->history = SIZE_MAX;
    for (size_t i = 0; i < (q->all ? w->count : 1); i++) {
        struct session_list list;
        struct err e = ERR_INIT;

        if (!browse_stamp_renew(&w->stamps[i], w->histories[i].path))
            continue;
        if (session_list_newest(&list, &w->histories[i], SIZE_MAX, &e) == 0) {
            give_list(w, i, &list);
        } else if (e.kind == ERR_SIGNAL) {
            w->stamps[i] = (struct browse_stamp){0};
            err_release(&e);
            result_free(r);
            return false;
        } else {
            err_release(&r->error);
            r->error = e;
        }
    }
    give(w, r);
    return true;
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
 * session instead. Returns true if it did. */
static bool read_every(struct thread *t, const struct history *h, const struct browse_target *of)
{
    struct thread every;

    if (of->hit.len == 0 || has_message(t, buf_str(&of->hit)) ||
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

static bool serve_messages(struct browse_work *w, struct request *q)
{
    const struct browse_target *t = &q->target;
    const struct history *h = &w->histories[t->history];
    struct result *r = result_new(MESSAGES, q->number);

    (void)thread_find(&r->thread, h, buf_str(&t->id), false, &r->error);
    r->every = read_every(&r->thread, h, t);
    browse_parts_make(&r->parts, &r->thread);
    give(w, r);
    return true;
}

/* ---- hits ---- */

/* A history that is searched. */
struct place {
    struct searching *g;
    size_t history;     /* its number */
    bool entered, open; /* the query does not exclude it; the search is open */
    struct query query; /* a copy, prepared for this history */
    struct search search;
};

/* A search at work. */
struct searching {
    struct browse_work *w;
    struct request *request;
    struct result *r; /* to be given */
    size_t passed;    /* hits that were given before */
    int64_t since;
    struct query query;
    struct session_texts texts;
    struct pattern pattern; /* all texts in one message */
    struct filter filter;
    struct place *places; /* the first `count` histories */
    size_t count;
};

static bool is_enough(const struct searching *g)
{
    return g->request->given + g->r->hits.count >= g->request->until || atomic_load(&g->w->cancel);
}

static void hand_over(struct searching *g)
{
    struct result *r = g->r;

    g->request->given += r->hits.count;
    g->r = result_new(HITS, r->number);
    g->r->fit = r->fit;
    g->since = time_ticks();
    give(g->w, r);
}

static void searching_release(struct searching *g)
{
    for (size_t i = 0; i < g->count; i++)
        query_release(&g->places[i].query);
    free(g->places);
    query_release(&g->query);
    session_texts_release(&g->texts);
    pattern_release(&g->pattern);
    filter_release(&g->filter);
}

/* Prepares the query for a history. */
static void enter(struct place *p, struct err *e)
{
    const struct history *h = &p->g->w->histories[p->history];
    struct buf repo = BUF_INIT(BUF_LINE);

    query_copy(&p->query, &p->g->query);
    history_name_add(&repo, h);
    p->entered = query_enter(&p->query, h, buf_str(&repo), e) > 0;
    buf_release(&repo);
}

/* Reads the query of a request, and prepares it for the histories. Returns 0, or -1 with *e set and
 * nothing to release. */
static int searching_init(struct searching *g, struct browse_work *w, struct request *q,
                          struct err *e)
{
    *g = (struct searching){.w = w, .request = q, .since = time_ticks()};
    if (query_open(&g->query, &g->pattern, buf_str(&q->text), time_now(), e) < 0)
        return -1;
    if (session_texts_of(&g->texts, &g->query, e) < 0) {
        query_release(&g->query);
        pattern_release(&g->pattern);
        return -1;
    }
    if (q->role)
        filter_add(&g->filter.roles, str_of(q->role));
    g->count = q->all ? w->count : 1;
    g->places = mem_zalloc(g->count * sizeof *g->places);
    for (size_t i = 0; i < g->count; i++) {
        g->places[i] = (struct place){.g = g, .history = i};
        if (!atomic_load(&w->cancel))
            enter(&g->places[i], e);
    }
    return 0;
}

/* Opens a search of a place. Returns 0, or -1 with *e set. */
static int open_search(void *place, struct search *s, struct pattern *pattern, struct err *e)
{
    struct place *p = place;
    const struct history *h = &p->g->w->histories[p->history];
    size_t threads = thread_pool_size();

    if (search_open(s, h->dir_fd, h->path, pattern, &p->g->filter, e) < 0)
        return -1;
    s->cancel = &p->g->w->cancel;
    s->history = h;
    /* One processor remains for the thread that draws. */
    s->threads = threads > 1 ? threads - 1 : 1;
    s->query = &p->query;
    return 0;
}

static bool place_open(struct place *p, struct pattern *pattern, struct err *e)
{
    p->open = p->entered && open_search(p, &p->search, pattern, e) == 0;
    return p->open;
}

static void close_places(struct searching *g)
{
    for (size_t i = 0; i < g->count; i++) {
        if (g->places[i].open)
            search_close(&g->places[i].search);
        g->places[i].open = false;
    }
}

static void add_hit(struct searching *g, size_t history, const struct hit *hit)
{
    browse_hits_add(&g->r->hits, history, hit);
    if (!g->request->at_once &&
        (g->request->given < SCREENFUL || g->r->hits.count >= PORTION + g->request->given / 4 ||
         time_ticks() - g->since >= PORTION_MS))
        hand_over(g);
}

/* Finds the messages that hold everything. */
static void search_messages(struct searching *g, struct err *e)
{
    struct search_merge merge = {0};
    struct hit hit;
    size_t number;
    int result = 1;

    for (size_t i = 0; i < g->count; i++)
        if (place_open(&g->places[i], &g->pattern, e))
            (void)search_merge_add(&merge, i, &g->places[i].search, e);
    while (!is_enough(g) && (result = search_merge_next(&merge, &number, &hit, e)) != 0)
        if (result == 1 && g->passed++ >= g->request->given)
            add_hit(g, number, &hit);
    search_merge_release(&merge);
    close_places(g);
}

/* Reads the hits of sessions again, from the first that was not given yet. */
static void read_hits(struct searching *g, const struct session_hits *hits, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct hit hit = {0};

    for (size_t i = 0; i < hits->count && !is_enough(g); i++) {
        struct place *p = &g->places[hits->at[i].history];

        if (g->passed++ < g->request->given)
            continue;
        if ((p->open || place_open(p, &g->texts.any, e)) &&
            session_search_read(&p->search, hits->at[i].place, &line, &hit, e) == 0)
            add_hit(g, p->history, &hit);
    }
    close_places(g);
    buf_release(&line);
}

/* Finds the sessions that hold everything, or all texts but one. */
static void search_sessions(struct searching *g, struct err *e)
{
    struct session_hits hits = {0};

    for (size_t i = 0; i < g->count && !is_enough(g); i++) {
        struct place *p = &g->places[i];
        struct session_search of = {.wanted = g->texts.at,
                                    .wanted_count = g->texts.count,
                                    .may_lack = g->r->fit == BROWSE_FIT_NEARLY,
                                    .query = &p->query,
                                    .newest_only = true,
                                    .history = i,
                                    .open = open_search,
                                    .ctx = p};

        if (p->entered && session_search_run(&of, e) == 0)
            session_hits_add_all(&hits, &of.hits);
        session_search_release(&of);
        p->query.in_session = false;
    }
    session_hits_group(&hits);
    read_hits(g, &hits, e);
    session_hits_release(&hits);
}

/* Searches the histories. */
static void search_all(struct searching *g, enum browse_fit fit)
{
    struct err e = ERR_INIT;

    g->r->fit = fit;
    if (fit == BROWSE_FIT_MESSAGE)
        search_messages(g, &e);
    else
        search_sessions(g, &e);
    if (g->r->error.kind == ERR_NONE)
        g->r->error = e;
    else
        err_release(&e);
}

/* Searches for messages with all words; if there are none, for sessions with all of them, and then
 * for sessions with all but one. */
static void search_until_found(struct searching *g)
{
    search_all(g, BROWSE_FIT_MESSAGE);
    if (g->passed == 0 && !is_enough(g) && session_texts_help(&g->texts, &g->query, 0))
        search_all(g, BROWSE_FIT_SESSION);
    if (g->passed == 0 && !is_enough(g) && session_texts_help(&g->texts, &g->query, 1))
        search_all(g, BROWSE_FIT_NEARLY);
}

/* Returns false if it was cancelled or pauses. */
static bool serve_search(struct browse_work *w, struct request *q)
{
    struct result *r = result_new(HITS, q->number);
    struct searching g;
    bool done;

    if (searching_init(&g, w, q, &r->error) < 0) {
        r->done = true;
        give(w, r);
        return true;
    }
    g.r = r;
    search_until_found(&g);
    if (atomic_load(&w->cancel))
        err_release(&g.r->error);
    done = g.r->done = !is_enough(&g);
    if (q->at_once && !done && g.r->hits.count < q->until) {
        result_free(g.r);
    } else {
        q->given += g.r->hits.count;
        q->at_once = false;
        give(w, g.r);
    }
    searching_release(&g);
    return done;
}

/* Counts the hits in a place: at once if the search can do that. */
static uint64_t count_one(struct place *p, struct err *e)
{
    uint64_t count = 0;
    struct hit hit;
    int result;

    if (!place_open(p, &p->g->pattern, e))
        return 0;
    p->search.any_order = true;
    result = search_count(&p->search, false, &count, e);
    if (result == 0)
        while (!atomic_load(&p->g->w->cancel) && (result = search_next(&p->search, &hit, e)) > 0)
            count += result != SEARCH_FAILED;
    return count;
}

/* Counts the hits of a search that pauses. Returns false if it was cancelled. */
static bool serve_count(struct browse_work *w, struct request *q)
{
    struct result *r = result_new(COUNT, q->number);
    struct searching g;

    if (searching_init(&g, w, q, &r->error) == 0) {
        for (size_t i = 0; i < g.count && !atomic_load(&w->cancel); i++)
            r->total += count_one(&g.places[i], &r->error);
        close_places(&g);
        searching_release(&g);
    }
    if (atomic_load(&w->cancel)) {
        result_free(r);
        return false;
    }
    give(w, r);
    return true;
}

/* ---- the thread ---- */

static enum kind most_urgent(const struct browse_work *w)
{
    enum kind kind = 0;

    while (kind < KINDS && !w->waits[kind])
        kind++;
    return kind;
}

/* Has the hits of a search counted that pauses for the first time. */
static void count_later(struct browse_work *w, const struct request *search)
{
    struct request *q = request_new(search->number, search->all);

    q->role = search->role;
    buf_add_str(&q->text, buf_str(&search->text));
    put(&w->waits[COUNT], q);
    w->counted = q->number;
}

/* Sets the clock by which lists and searches are ordered. A search that goes on keeps its own. */
static void read_clock(struct browse_work *w)
{
    int64_t now = time_now();

    for (size_t i = 0; i < w->count; i++)
        w->histories[i].now = now;
}

/* Keeps a request that was not finished, unless a newer one has taken its place. */
static void keep(struct browse_work *w, enum kind kind, struct request *q)
{
    struct request **at = &w->waits[kind];

    if (w->waits[kind] || ((kind == HITS || kind == COUNT) && q->number != w->search_number)) {
        put(&q, NULL);
        return;
    }
    if (kind == HITS && q->given >= q->until) {
        if (w->counted != q->number)
            count_later(w, q);
        /* More hits may have been wanted after the last ones were given, but before this. */
        if (w->more > q->until)
            q->until = w->more;
        else
            at = &w->paused;
    }
    put(at, q);
}

static void *serve(void *work)
{
    static bool (*const serves[KINDS])(struct browse_work *,
                                       struct request *) = {[MESSAGES] = serve_messages,
                                                            [HITS] = serve_search,
                                                            [SESSIONS] = serve_sessions,
                                                            [COUNT] = serve_count};
    struct browse_work *w = work;

#ifdef __linux__
    /* Keys are answered first. Only Linux can do this for a single thread. */
    (void)setpriority(PRIO_PROCESS, 0, NICE);
#endif
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        enum kind kind = w->at_work = most_urgent(w);
        struct request *q;
        bool served;

        if (kind == KINDS) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        q = w->waits[kind];
        w->waits[kind] = NULL;
        atomic_store(&w->cancel, false);
        pthread_mutex_unlock(&w->lock);
        if (q->given == 0)
            read_clock(w);
        served = serves[kind](w, q);
        pthread_mutex_lock(&w->lock);
        if (served)
            put(&q, NULL);
        else
            keep(w, kind, q);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- requests ---- */

static void ask_messages(struct browse_work *w, const struct browse *b)
{
    struct request *q = request_new(b->thread_number, false);

    q->target.history = b->target.history;
    buf_add_str(&q->target.id, buf_str(&b->target.id));
    buf_add_str(&q->target.hit, buf_str(&b->target.hit));
    put(&w->waits[MESSAGES], q);
}

/* An empty text only ends the search before it. */
static void ask_search(struct browse_work *w, const struct browse *b)
{
    struct request *q = request_new(b->search_number, b->all);

    q->role = b->role;
    q->until = ENOUGH + (b->repeating ? b->hits.count : 0);
    q->at_once = b->repeating;
    buf_add_str(&q->text, buf_str(&b->searched));
    w->search_number = q->number;
    w->more = 0;
    put(&w->paused, NULL);
    put(&w->waits[HITS], q);
    put(&w->waits[COUNT], NULL);
    if (b->searched.len == 0)
        put(&w->waits[HITS], NULL);
    if (w->at_work == HITS || w->at_work == COUNT)
        atomic_store(&w->cancel, true);
}

static void ask_more(struct browse_work *w, size_t hits)
{
    w->more = hits;
    if (!w->paused || hits <= w->paused->until)
        return;
    w->paused->until = hits;
    put(&w->waits[HITS], w->paused);
    w->paused = NULL;
}

void browse_work_ask(struct browse_work *w, struct browse *b)
{
    pthread_mutex_lock(&w->lock);
    if (b->wants.thread)
        ask_messages(w, b);
    if (b->wants.search)
        ask_search(w, b);
    else if (b->wants.hits > 0)
        ask_more(w, b->wants.hits);
    if (b->wants.sessions)
        put(&w->waits[SESSIONS], request_new(b->sessions_number, b->all));
    if (most_urgent(w) < w->at_work && w->at_work < KINDS)
        atomic_store(&w->cancel, true);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    b->wants.sessions = b->wants.thread = b->wants.search = false;
    b->wants.hits = 0;
}

/* ---- beginning and end ---- */

static void release(struct browse_work *w)
{
    struct result *r;

    while ((r = next_result(w)))
        result_free(r);
    for (size_t i = 0; i < KINDS; i++)
        put(&w->waits[i], NULL);
    put(&w->paused, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->wake[0]);
    close(w->wake[1]);
    free(w->histories);
    free(w->stamps);
    free(w);
}

struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e)
{
    struct browse_work *w = mem_zalloc(sizeof *w);

    if (pipe_open_wake(w->wake) < 0) {
        err_sys(e, errno, "cannot make a pipe");
        free(w);
        return NULL;
    }
    w->at_work = KINDS;
    w->count = count;
    w->stamps = mem_zalloc(count * sizeof *w->stamps);
    w->histories = mem_zalloc(count * sizeof *w->histories);
    atomic_init(&w->cancel, false);
    for (size_t i = 0; i < count; i++) {
        w->histories[i] = histories[i];
        /* The thread reports nothing on the terminal. */
        w->histories[i].work = NULL;
        w->histories[i].tell = NULL;
        w->histories[i].cancel = &w->cancel;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (!thread_pool_start(&w->thread, serve, w)) {
        err_set(e, ERR_FAILURE, "cannot start a thread");
        release(w);
        return NULL;
    }
    return w;
}

void browse_work_free(struct browse_work *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    atomic_store(&w->cancel, true);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    release(w);
}
