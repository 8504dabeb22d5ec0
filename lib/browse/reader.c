#include "browse/reader.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/memory.h"
#include "chathist/base/system.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/time.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/signals.h"
#include "chathist/history/filter.h"
#include "chathist/history/session_list.h"
#include "chathist/search/forms.h"
#include "chathist/search/pattern.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"
#include "chathist/search/search_merge.h"
#include "chathist/search/session_search.h"

/* The keyboard is looked at after this many milliseconds of a search. */
#define SLICE_MS 5
/* The first SCREENFUL hits are passed on after each slice, later ones in portions of PORTION and a
 * quarter of those before, or those found within PORTION_MS milliseconds. */
#define SCREENFUL 60
#define PORTION 100
#define PORTION_MS 20
/* In larger histories other forms of the words that the newest part does not hold are shown before
 * the rest has been searched. */
#define LARGE ((off_t)128 << 20)

/* A history in a search. */
struct place {
    struct finder *f;
    size_t history;              /* its number */
    bool entered, open;          /* the query does not exclude it; the search is open */
    const struct filter *filter; /* of the next search that is opened */
    struct query query;          /* a copy, prepared for this history */
    struct search search;
};

/* A search. It looks for messages that hold everything; without any, for each word; if all are there,
 * for sessions that hold everything; without these, for other forms of the words, with which it
 * begins again; and then for sessions that hold all texts but one.
 *
 * In large histories, whose words take long to be found missing, it first does that in the newest
 * part alone, as far as the messages with other forms. Their list has the place of the answer until
 * this comes; keys that need the list wait. */
struct finder {
    struct browse_reader *r;
    enum {
        FINDER_NONE,
        FINDER_MESSAGES,
        FINDER_SESSIONS,
        FINDER_READING,
        FINDER_FORMS,
        FINDER_ENDED
    } step;
    bool newest; /* only the newest part is searched */
    enum browse_fit fit;
    int64_t until; /* time (time_ticks) at which this slice ends */
    struct query query;
    struct session_texts texts;
    struct pattern pattern; /* all texts in one message */
    struct forms forms;
    bool formed; /* the forms were looked for */
    bool lost;   /* one word has none, and the others are searched for */
    struct filter filter;
    /* Of several words, messages that are no results of tools are listed first. */
    struct filter listed;
    struct place *places; /* the first `count` histories */
    size_t count, at;     /* at: the next place to be searched or counted */
    struct search_merge merge;
    struct session_search of; /* the search of places[at] for sessions, if `running` */
    bool running;
    struct session_hits found; /* in sessions */
    size_t next;               /* of `found`, to be read */
    struct browse_hits hits;   /* to be passed on */
    size_t given;              /* number of hits that were passed on */
    int64_t since;             /* when that was */
    /* When enough messages are listed, another search counts all: */
    struct search counter;           /* of places[at], if `counting` */
    bool counting, listing, counted; /* listing: it has to look at each; counted: in all places */
    uint64_t count_here, total;      /* in places[at], and in those before it */
};

struct browse_reader {
    struct source {
        struct history history;
        struct stat file;               /* when its list was read; zeros: it did not exist */
        bool known;                     /* its list was read, or cannot be read */
        struct search_learned *learned; /* by the last search of the whole file; may be NULL */
    } * sources;
    size_t count;
    struct finder finder;
};

/* Reports the failure, unless a signal has stopped it. */
static void report_error(struct browse *b, struct err *e)
{
    if (e->kind != ERR_NONE && e->kind != ERR_SIGNAL)
        browse_say(b, err_text(e));
    err_release(e);
}

/* ---- sessions ---- */

/* Returns whether the file has changed since the last call. That shows in the inode, the size, or
 * the time of the last status change, which programs cannot set. */
static bool has_changed(struct source *s)
{
    struct stat now = {0}, before = s->file;

    if (stat(s->history.path, &now) < 0)
        now = (struct stat){0};
    s->file = now;
    return now.st_dev != before.st_dev || now.st_ino != before.st_ino ||
           now.st_size != before.st_size || system_ctime(&now) != system_ctime(&before);
}

/* If a list cannot be read, the one before it stays until the file changes. */
static bool read_lists(struct browse_reader *r, struct browse *b)
{
    bool changed = false;

    for (size_t i = 0; i < (b->all ? r->count : 1); i++) {
        struct source *s = &r->sources[i];
        struct session_list list;
        struct err e = ERR_INIT;
        bool known = s->known;

        s->known = true;
        if (!has_changed(s))
            continue;
        if (session_list_newest(&list, &s->history, SIZE_MAX, &e) == 0)
            browse_set_sessions(b, i, &list);
        report_error(b, &e);
        browse_changed(b, i);
        changed = changed || known;
    }
    browse_finish_sessions(b);
    return changed;
}

/* ---- messages ---- */

/* If the hit is not in the thread, because it was replaced or reset, reads every line of the
 * session instead. */
static void read_shown_messages(struct browse_reader *r, struct browse *b)
{
    const struct history *h = &r->sources[b->shown.history].history;
    struct str id = buf_str(&b->shown.id), hit = browse_chosen_hit(b);
    struct browse_parts parts;
    struct thread thread = {0}, all;
    struct err e = ERR_INIT;
    bool every = false;

    (void)thread_find(&thread, h, id, false, &e);
    if (hit.n > 0 && browse_find_message(&thread, hit) == SIZE_MAX &&
        thread_find(&all, h, id, true, NULL) == 0) {
        every = browse_find_message(&all, hit) != SIZE_MAX;
        thread_release(every ? &thread : &all);
        if (every)
            thread = all;
    }
    browse_parts_make(&parts, &thread);
    browse_set_messages(b, &thread, &parts, every);
    report_error(b, &e);
}

/* ---- the search ---- */

/* Opens a search of a place. Returns 0, or -1 with *e set. */
static int open_place_search(void *place, struct search *s, struct pattern *pattern, struct err *e)
{
    struct place *p = place;
    const struct history *h = &p->f->r->sources[p->history].history;
    size_t threads = thread_pool_size();

    if (search_open(s, h->dir_fd, h->path, pattern, p->filter, e) < 0)
        return -1;
    s->cancel = h->cancel;
    s->until = &p->f->until;
    s->history = h;
    /* One processor remains for the terminal. */
    s->threads = threads > 1 ? threads - 1 : 1;
    s->query = &p->query;
    if (p->f->newest)
        s->most = forms_newest_part(p->f->count);
    return 0;
}

static bool place_open(struct place *p, struct pattern *pattern, struct err *e)
{
    p->open = p->entered && open_place_search(p, &p->search, pattern, e) == 0;
    return p->open;
}

static void place_close(struct place *p)
{
    struct source *s = &p->f->r->sources[p->history];
    struct search_learned *learned = p->open ? search_learned(&p->search) : NULL;

    if (learned) {
        search_learned_free(s->learned, NULL, false);
        s->learned = learned;
    }
    if (p->open)
        search_close(&p->search);
    p->open = false;
}

static void drop_query(struct finder *f)
{
    search_merge_release(&f->merge);
    /* There are no places if the query that took the place of another one could not be used. */
    for (size_t i = 0; f->places && i < f->count; i++) {
        place_close(&f->places[i]);
        query_release(&f->places[i].query);
    }
    free(f->places);
    f->places = NULL;
    query_release(&f->query);
    session_texts_release(&f->texts);
    pattern_release(&f->pattern);
}

/* Ends the search, and drops what it has not passed on. */
static void finder_end(struct finder *f)
{
    if (f->step == FINDER_NONE)
        return;
    if (f->running)
        session_search_release(&f->of);
    if (f->counting)
        search_close(&f->counter);
    forms_release(&f->forms);
    drop_query(f);
    session_hits_release(&f->found);
    browse_hits_release(&f->hits);
    filter_release(&f->filter);
    *f = (struct finder){.r = f->r};
}

/* Opens the search for messages: of all, of those that are no results of tools, or of these. */
static void open_messages(struct finder *f, struct browse *b, enum filter_results results)
{
    struct err e = ERR_INIT;

    f->step = FINDER_MESSAGES;
    f->listed = f->filter;
    f->listed.results = results;
    for (size_t i = 0; i < f->count; i++) {
        struct place *p = &f->places[i];

        place_close(p);
        p->filter = &f->listed;
        if (place_open(p, &f->pattern, &e))
            (void)search_merge_add(&f->merge, i, &p->search, &e);
        p->filter = &f->filter;
        report_error(b, &e);
    }
}

/* Begins to look for the messages that meet a query. Returns -1 with *e set if it is none. */
static int ask(struct finder *f, struct browse *b, struct str text, struct err *e)
{
    if (query_open(&f->query, &f->pattern, text, time_now(), e) < 0)
        return -1;
    if (session_texts_of(&f->texts, &f->query, e) < 0) {
        query_release(&f->query);
        pattern_release(&f->pattern);
        return -1;
    }
    f->fit = BROWSE_FIT_MESSAGE;
    f->places = mem_zalloc(f->count * sizeof *f->places);
    for (size_t i = 0; i < f->count; i++) {
        const struct history *h = &f->r->sources[i].history;
        struct place *p = &f->places[i];
        struct buf repo = BUF_INIT(BUF_LINE);

        *p = (struct place){.f = f, .history = i, .filter = &f->filter};
        query_copy(&p->query, &f->query);
        history_name_add(&repo, h);
        p->entered = query_enter(&p->query, h, buf_str(&repo), e) > 0;
        buf_release(&repo);
        report_error(b, e);
    }
    open_messages(f, b, f->texts.count > 1 && !b->role ? FILTER_NO_RESULTS : FILTER_ANY);
    return 0;
}

/* Starts a search in the place of the one before. An empty text only ends that. */
static void finder_begin(struct finder *f, struct browse *b)
{
    struct browse_hits none = {0};
    struct err e = ERR_INIT;
    off_t size = 0;

    b->wants.search = false;
    finder_end(f);
    if (b->searched.len == 0 || browse_asks_meaning(b))
        return;
    if (b->role)
        filter_add(&f->filter.roles, str_of(b->role));
    f->since = time_ticks();
    f->count = b->all ? f->r->count : 1;
    for (size_t i = 0; i < f->count; i++)
        size += f->r->sources[i].file.st_size;
    f->newest = size > LARGE && !b->repeating;
    if (ask(f, b, buf_str(&b->searched), &e) < 0) {
        filter_release(&f->filter);
        browse_add_hits(b, &none, BROWSE_FIT_MESSAGE, true);
        report_error(b, &e);
    }
}

/* Returns whether the search for messages that are no results of tools has met such results. */
static bool leaves_results(const struct finder *f)
{
    bool found = false;

    for (size_t i = 0; i < f->count && f->listed.results == FILTER_NO_RESULTS; i++)
        found |= f->places[i].open && search_refused(&f->places[i].search);
    return found;
}

/* Begins to look for the sessions that hold all texts, or all but one. */
static void want_sessions(struct finder *f, enum browse_fit fit)
{
    f->at = f->next = 0;
    f->found.count = 0;
    f->step = FINDER_SESSIONS;
    f->fit = fit;
}

/* Goes on to the words alone, to the sessions, or to the sessions that hold all texts but one, if
 * nothing was found and that can help; else ends the search for hits. */
static void next_fit(struct finder *f, struct browse *b)
{
    bool none = f->given + f->hits.count == 0;

    search_merge_release(&f->merge);
    if (f->step == FINDER_MESSAGES && leaves_results(f)) {
        open_messages(f, b, FILTER_RESULTS);
        return;
    }
    for (size_t i = 0; i < f->count; i++)
        place_close(&f->places[i]);
    f->at = 0;
    f->step = none && !f->formed ? FINDER_FORMS : FINDER_ENDED;
    if (f->step == FINDER_FORMS || !none || f->newest)
        return;
    if (f->fit == BROWSE_FIT_MESSAGE && session_texts_help(&f->texts, &f->query, 0))
        want_sessions(f, BROWSE_FIT_SESSION);
    else if (f->fit != BROWSE_FIT_NEARLY && !f->lost && session_texts_help(&f->texts, &f->query, 1))
        want_sessions(f, BROWSE_FIT_NEARLY);
}

static int open_box_for_forms(void *finder, size_t place, struct search *s, struct pattern *pattern,
                              struct err *e)
{
    struct finder *f = finder;
    struct place *p = &f->places[place];

    p->query.in_session = true;
    return !p->entered ? 0 : open_place_search(p, s, pattern, e) == 0 ? 1 : -1;
}

/* Looks for the words, and if all are there for the sessions that have them; else, or without such
 * sessions, for other forms of the words, and begins again with the words in their place. */
static void find_box_forms(struct finder *f, struct browse *b, struct err *e)
{
    struct buf said = BUF_INIT(SIZE_MAX);
    bool looked = f->forms.looked;
    int result;

    if (!f->forms.open)
        f->forms = (struct forms){.text = buf_str(&b->searched),
                                  .query = &f->query,
                                  .histories = f->count,
                                  .together = !f->newest,
                                  .searched = true,
                                  .may_lack = !f->newest,
                                  .newest = f->newest,
                                  .open = open_box_for_forms,
                                  .ctx = f};
    result = looked ? forms_run(&f->forms, e) : forms_look_for_words(&f->forms, e);
    if (result == SEARCH_PAUSED)
        return;
    for (size_t i = 0; i < f->count; i++)
        f->places[i].query.in_session = false;
    if (!looked && result == 0) {
        if (f->forms.absent == 0 && !f->newest && session_texts_help(&f->texts, &f->query, 0))
            want_sessions(f, BROWSE_FIT_SESSION);
        return;
    }
    f->formed = true;
    f->lost = f->forms.lost > 0;
    if (f->forms.asked.len == 0) {
        f->step = FINDER_ENDED;
        if (result == 0 && !f->lost)
            next_fit(f, b);
        return;
    }
    buf_addf(&said, "%s%s", f->newest ? "so far " : "", buf_c(&f->forms.said));
    browse_set_instead(b, buf_str(&f->forms.asked), buf_str(&said));
    buf_release(&said);
    forms_release(&f->forms);
    drop_query(f);
    if (ask(f, b, buf_str(&b->instead), e) < 0)
        f->step = FINDER_ENDED;
}

static void find_message(struct finder *f, struct browse *b, struct err *e)
{
    struct hit hit;
    size_t number;
    int found = search_merge_next(&f->merge, &number, &hit, e);

    if (found == 1 && f->newest && !f->formed)
        f->step = FINDER_ENDED;
    else if (found == 1)
        browse_hits_add(&f->hits, number, &hit);
    else if (found == 0)
        next_fit(f, b);
}

/* Finds the sessions of a history that hold enough. */
static void find_sessions(struct finder *f, struct err *e)
{
    struct place *p = &f->places[f->at];
    int result;

    if (!f->running)
        f->of = (struct session_search){.wanted = f->texts.at,
                                        .wanted_count = f->texts.count,
                                        .may_lack = f->fit == BROWSE_FIT_NEARLY,
                                        .query = &p->query,
                                        .newest_only = true,
                                        .history = f->at,
                                        .open = open_place_search,
                                        .ctx = p};
    f->running = p->entered;
    result = p->entered ? session_search_run(&f->of, e) : 0;
    if (result == SEARCH_PAUSED)
        return;
    if (f->running && result == 0)
        session_hits_add_all(&f->found, &f->of.hits);
    if (f->running)
        session_search_release(&f->of);
    f->running = p->query.in_session = false;
    if (++f->at < f->count)
        return;
    session_hits_group(&f->found, true);
    f->step = FINDER_READING;
}

/* Reads the next hit in a session again. */
static void read_hit(struct finder *f, struct browse *b, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE);
    struct hit hit = {0};

    if (f->next == f->found.count) {
        next_fit(f, b);
    } else {
        const struct session_hit *found = &f->found.at[f->next++];
        struct place *p = &f->places[found->history];

        if ((p->open || place_open(p, &f->texts.any, e)) &&
            session_search_read(&p->search, found->place, &line, &hit, e) == 0)
            browse_hits_add(&f->hits, p->history, &hit);
    }
    buf_release(&line);
}

/* Counts the hits, without looking at each if the search can do that. Returns true when all are
 * counted. */
static bool count_all_hits(struct finder *f, struct err *e)
{
    for (; f->at < f->count; f->at++) {
        struct place *p = &f->places[f->at];
        struct hit hit;
        int result = 0;

        if (!f->counting) {
            if (!p->entered || open_place_search(p, &f->counter, &f->pattern, e) < 0)
                continue;
            f->counting = f->counter.any_order = true;
            f->listing = false;
        }
        if (!f->listing)
            result = search_count(&f->counter, false, &f->count_here, e);
        f->listing = f->listing || result == 0;
        while (f->listing && (result = search_next(&f->counter, &hit, NULL)) > 0 &&
               result != SEARCH_PAUSED)
            f->count_here += result == 1;
        if (result == SEARCH_PAUSED)
            return false;
        f->total += f->count_here;
        f->counting = false;
        search_close(&f->counter);
    }
    return true;
}

static bool has_enough(const struct finder *f, const struct browse *b)
{
    return f->given + f->hits.count >= b->hits_wanted;
}

bool browse_is_busy(const struct browse_reader *r, const struct browse *b)
{
    const struct finder *f = &r->finder;

    /* While a text is typed, the search for the one before it rests. */
    return f->step != FINDER_NONE && b->search_due == 0 &&
           (!has_enough(f, b) || (f->fit == BROWSE_FIT_MESSAGE && !f->counted));
}

/* Returns whether the hits that were found are to be passed on. A repeated search first finds as
 * many as the list has. */
static bool is_batch_due(const struct finder *f, const struct browse *b)
{
    if (f->step == FINDER_ENDED || has_enough(f, b))
        return true;
    return !b->repeating && f->hits.count > 0 &&
           (f->given < SCREENFUL || f->hits.count >= PORTION + f->given / 4 ||
            time_ticks() - f->since >= PORTION_MS);
}

/* Shows what the search of the newest part has found with other forms, and begins to search all. */
static bool look_everywhere(struct finder *f, struct browse *b)
{
    bool found = f->formed && f->hits.count > 0;
    struct err e = ERR_INIT;

    if (found) {
        browse_add_hits(b, &f->hits, BROWSE_FIT_MESSAGE, false);
        b->answered = false;
    }
    forms_release(&f->forms);
    drop_query(f);
    f->newest = f->formed = f->lost = false;
    if (ask(f, b, buf_str(&b->searched), &e) < 0)
        f->step = FINDER_ENDED;
    report_error(b, &e);
    return found;
}

bool browse_search_on(struct browse_reader *r, struct browse *b)
{
    struct finder *f = &r->finder;
    struct err e = ERR_INIT;

    f->until = time_ticks() + SLICE_MS;
    if (has_enough(f, b)) {
        f->counted = count_all_hits(f, &e);
        report_error(b, &e);
        b->hits_total = f->counted ? f->total : 0;
        return f->counted;
    }
    while (f->step != FINDER_ENDED && !has_enough(f, b) && time_ticks() < f->until) {
        if (f->step == FINDER_MESSAGES)
            find_message(f, b, &e);
        else if (f->step == FINDER_SESSIONS)
            find_sessions(f, &e);
        else if (f->step == FINDER_FORMS)
            find_box_forms(f, b, &e);
        else
            read_hit(f, b, &e);
        report_error(b, &e);
    }
    if (f->newest)
        return (f->step == FINDER_ENDED || f->hits.count >= SCREENFUL) && look_everywhere(f, b);
    if (!is_batch_due(f, b))
        return false;
    f->given += f->hits.count;
    f->since = time_ticks();
    if (!f->formed && b->instead.len > 0) {
        browse_set_instead(b, STR(""), STR(""));
        browse_say(b, "");
    }
    browse_add_hits(b, &f->hits, f->lost ? BROWSE_FIT_NEARLY : f->fit, f->step == FINDER_ENDED);
    if (f->step == FINDER_ENDED)
        finder_end(f);
    return true;
}

/* ---- all together ---- */

struct browse_reader *browse_reader_new(const struct history *histories, size_t count)
{
    struct browse_reader *r = mem_zalloc(sizeof *r);

    r->count = count;
    r->finder.r = r;
    r->sources = mem_zalloc(count * sizeof *r->sources);
    for (size_t i = 0; i < count; i++) {
        r->sources[i].history = histories[i];
        /* Nothing is reported on the terminal. */
        r->sources[i].history.work = NULL;
        r->sources[i].history.tell = NULL;
        r->sources[i].history.cancel = line_signals_cancel();
    }
    return r;
}

void browse_reader_free(struct browse_reader *r)
{
    finder_end(&r->finder);
    for (size_t i = 0; i < r->count; i++) {
        const struct history *h = &r->sources[i].history;

        search_learned_free(r->sources[i].learned, thread_pool_cancelled(h->cancel) ? NULL : h,
                            false);
    }
    free(r->sources);
    free(r);
}

bool browse_read(struct browse_reader *r, struct browse *b)
{
    bool changed = false;
    int64_t now = time_now();

    /* The clock by which lists and searches are ordered. */
    for (size_t i = 0; i < r->count && (b->wants.sessions || b->wants.search); i++)
        r->sources[i].history.now = now;
    if (b->wants.sessions)
        changed = read_lists(r, b);
    if (b->wants.search)
        finder_begin(&r->finder, b);
    if (b->wants.messages)
        read_shown_messages(r, b);
    return changed;
}
