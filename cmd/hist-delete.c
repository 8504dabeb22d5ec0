/* hist-delete - erase sessions by rewriting the history without their lines. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/memory.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/confirm.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/session.h"
#include "chathist/search/search.h"

enum { KEY_OLDER_THAN = OPT_LONG, KEY_KEEP, KEY_MAX_SIZE, KEY_MATCH, KEY_DRY_RUN, KEY_FORCE };

static const struct opt options[] = {
    CHOOSE_SESSIONS,
    {KEY_OLDER_THAN, "older-than", OPT_TIME, "TIME",
     "last used longer ago, as 30d, or before a date"},
    {KEY_KEEP, "keep", OPT_NUMBER, "N", "not among the N sessions used last"},
    {KEY_MAX_SIZE, "max-size", OPT_TEXT, "SIZE",
     "the oldest, until the file has at most SIZE, as 10M"},
    {KEY_MATCH, "match", OPT_TEXT, "TEXT", "with a message that holds TEXT"},
    CHOOSE_LIMIT("at most N sessions, those used first"),
    {KEY_DRY_RUN, "dry-run", OPT_FLAG, NULL, "list what would go, and delete nothing"},
    {KEY_FORCE, "force", OPT_FLAG, NULL, "do not ask"},
    {OPT_JSON, "json", OPT_FLAG, NULL, "print summaries as JSON lines"},
    {0, NULL, OPT_FLAG, NULL, NULL},
};
static const struct program program = {"hist-delete", "erase sessions", "[SESSION|-]...",
                                       OPT_SESSION, options};

/* Which sessions are deleted: those that meet all of the criteria that are set. The current session
 * is not deleted for its age, its size or its place among the others, unless `keep` is 0. */
struct wish {
    struct choice choice; /* a line whose time cannot be read is not old */
    bool named;
    bool keeps; /* it is not among the `keep` sessions that were used last */
    size_t keep;
    /* The other criteria choose it, and the history would have more than max_size bytes without
     * deleting it. The sessions used first are deleted first. */
    bool limited;
    uint64_t max_size;
    struct str match; /* a message of it contains this text, as hist-search finds it; STR_NONE: not
                       * set */
    bool dry_run, force;
};

/* The lines of other sessions are kept byte for byte, also those that name deleted messages, and so
 * are bad lines. */
struct deletion {
    const struct wish *wish;
    struct session_list list; /* the chosen sessions, the last used first; later the deleted ones */
    uint64_t messages;        /* in the sessions of the list */
    uint64_t bytes;           /* of their lines */
    uint64_t size;            /* of the history */
    size_t spared; /* the number of chosen sessions that were kept because they were used since */
    bool current;  /* the current session is kept although it meets the criteria */
};

/* ---- the command line ---- */

/* A session of the day that is given is not older than the day. */
static void set_age(struct filter *f, const char *value)
{
    int64_t first, last;

    opt_when("--older-than", value, &first, &last);
    f->has_until = true;
    f->until = first - 1;
}

static void take(struct wish *w, int key, const char *value)
{
    switch (key) {
    case KEY_OLDER_THAN:
        set_age(&w->choice.filter, value);
        break;
    case KEY_KEEP:
        w->keeps = true;
        w->keep = opt_number("--keep", value);
        break;
    case KEY_MAX_SIZE:
        w->limited = true;
        w->max_size = opt_size("--max-size", value);
        break;
    case KEY_MATCH:
        if (*value == '\0')
            die_usage("bad value '' for --match: a text is expected");
        w->match = str_of(value);
        break;
    case KEY_DRY_RUN:
        w->dry_run = true;
        break;
    case KEY_FORCE:
        w->force = true;
        break;
    }
}

/* Is any criterion set but the names of sessions? */
static bool is_narrow(const struct wish *w)
{
    return choose_restricts(&w->choice) || w->keeps || w->limited || w->match.p;
}

static void parse(struct wish *w, struct opt_parser *args)
{
    char *value;
    int key;

    while ((key = choose_next(&w->choice, args, &value)) != 0)
        take(w, key, value);
    w->named = w->choice.names.count > 0;
    if (!w->named && !is_narrow(w))
        die_usage("no session is given, and none of --since, --until, --role, --model, "
                  "--older-than, --keep, --max-size and --match");
}

/* ---- choosing ---- */

static struct str id_of(const struct session *s)
{
    return (struct str){s->id, s->id_len};
}

static bool is_named(const struct wish *w, struct str id)
{
    const struct filter_list *ids = &w->choice.filter.sessions;

    for (size_t i = 0; i < ids->count; i++)
        if (str_eq(id, ids->at[i]))
            return true;
    return false;
}

/* Clears the marks of the sessions without a message that contains the text. */
static int clear_unmatched(const struct session_list *l, bool *marked, const struct history *h,
                           struct str text, struct err *e)
{
    bool *found = mem_zalloc(l->count);
    struct hash_map places = {0};
    struct pattern pattern;
    struct search search;
    struct hit hit;
    int result = -1;

    for (size_t i = 0; i < l->count; i++)
        hash_map_set(&places, id_of(&l->at[i]), i);
    pattern_init(&pattern);
    if (pattern_add(&pattern, text, e) == 0 &&
        search_open(&search, h->dir_fd, h->path, &pattern, NULL, SCAN_FORWARD, e) == 0) {
        while ((result = search_next(&search, &hit, e)) > 0) {
            const size_t *place = hash_map_find(&places, hit.message->session_id);

            if (place)
                found[*place] = true;
        }
        search_close(&search);
    }
    for (size_t i = 0; i < l->count; i++)
        marked[i] = marked[i] && found[i];
    free(found);
    hash_map_release(&places);
    pattern_release(&pattern);
    return result;
}

/* Clears the marks of the sessions that need not go: the oldest ones are deleted first, at most
 * `count`, until the history has at most max_size bytes. */
static void clear_beyond_limits(const struct deletion *d, bool *marked, size_t count)
{
    uint64_t size = d->size;

    for (size_t i = d->list.count; i-- > 0;) {
        if (!marked[i])
            continue;
        marked[i] = count > 0 && (!d->wish->limited || size > d->wish->max_size);
        if (marked[i]) {
            size -= d->list.at[i].bytes;
            count--;
        }
    }
}

/* Removes the sessions without a mark from the list, and counts the rest. */
static void keep_marked(struct deletion *d, const bool *marked)
{
    size_t kept = 0;

    d->messages = d->bytes = 0;
    for (size_t i = 0; i < d->list.count; i++) {
        if (!marked[i])
            continue;
        d->messages += d->list.at[i].count;
        d->bytes += d->list.at[i].bytes;
        d->list.at[kept++] = d->list.at[i];
    }
    d->list.count = kept;
}

/* Returns the place of the current session in the list, or the count of the list. *id is set to its
 * id, or left empty if no session is current. */
static size_t find_current(const struct deletion *d, const struct history *h, struct buf *id)
{
    size_t i = d->list.count;

    /* A pointer that cannot be read names nothing. */
    if (session_current(h, id, NULL, NULL) > 0)
        for (i = 0; i < d->list.count && !str_eq(id_of(&d->list.at[i]), buf_str(id));)
            i++;
    return i;
}

/* Adds the current session if it is named and has no lines yet. */
static void add_empty(struct deletion *d, const struct history *h)
{
    struct session_list *l = &d->list;
    struct buf id = BUF_INIT(BUF_SMALL);

    if (find_current(d, h, &id) == l->count && id.len > 0 && is_named(d->wish, buf_str(&id))) {
        struct session *s = session_list_add(l);

        s->id = session_list_keep(l, buf_str(&id));
        s->id_len = id.len;
        s->preview = s->first_role = s->created_at = s->last_used = session_list_keep(l, STR(""));
    }
    buf_release(&id);
}

/* Clears the mark of the current session: it is in use however old its last line is. It keeps its
 * mark if sessions were named, if a text is to be deleted, or if nothing is to be kept. Returns
 * true if a mark was cleared. */
static bool spare_current(const struct deletion *d, const struct history *h, bool *marked)
{
    const struct wish *w = d->wish;
    struct buf id = BUF_INIT(BUF_SMALL);
    bool spared = false;
    size_t i;

    if (w->named || w->match.p || (w->keeps && w->keep == 0))
        return false;
    i = find_current(d, h, &id);
    if (i < d->list.count && marked[i]) {
        marked[i] = false;
        spared = true;
    }
    buf_release(&id);
    return spared;
}

/* Chooses sessions. Changes nothing on disk. Ends the program on an error. */
static void choose_deletion(struct deletion *d, const struct history *h, const struct wish *w)
{
    struct err e = ERR_INIT;
    struct stat st = {0};
    bool *marked;

    *d = (struct deletion){.wish = w};
    if (session_list_load(&d->list, h->dir_fd, h->path, &e) < 0)
        die_err(&e);
    if (stat(h->path, &st) == 0)
        d->size = (uint64_t)st.st_size;
    if (!is_narrow(w))
        add_empty(d, h);
    marked = mem_zalloc(d->list.count);
    for (size_t i = 0; i < d->list.count; i++)
        marked[i] =
            (!w->named || is_named(w, id_of(&d->list.at[i]))) && (!w->keeps || i >= w->keep);
    if (choose_mark(&w->choice, &d->list, marked, h, &e) < 0 ||
        (w->match.p && clear_unmatched(&d->list, marked, h, w->match, &e) < 0))
        die_err(&e);
    d->current = spare_current(d, h, marked) && !w->limited;
    clear_beyond_limits(d, marked, w->choice.limit > 0 ? w->choice.limit : SIZE_MAX);
    keep_marked(d, marked);
    free(marked);
}

/* ---- deleting ---- */

/* A rewrite that leaves out the chosen sessions. */
struct leave_out {
    struct deletion *d;
    const struct history *h;
    struct hash_map places; /* id -> its place in the list */
    struct message message;
    uint64_t *seen; /* the number of lines of each session so far */
    bool *stays;
};

static void begin_deletion(void *arg)
{
    struct leave_out *o = arg;

    for (size_t i = 0; i < o->d->list.count; i++)
        o->seen[i] = 0;
}

static void delete_line(void *arg, struct rewrite *r, const struct line *l)
{
    struct leave_out *o = arg;
    const size_t *place = NULL;

    if (!l->too_long && message_parse(&o->message, l->text))
        place = hash_map_find(&o->places, o->message.session_id);
    if (place)
        o->seen[*place]++;
    if (!place || o->stays[*place])
        rewrite_keep(r, l);
}

/* Called at the end of a rewrite: sessions that were not chosen by name are kept if they were used,
 * or made current, since they were chosen. Returns false if that needs another pass. */
static bool is_settled(void *arg)
{
    struct leave_out *o = arg;
    size_t count = o->d->list.count;
    bool *marked = mem_zalloc(count);
    bool good = true;

    for (size_t i = 0; i < count; i++)
        marked[i] = o->d->wish->named || o->seen[i] <= o->d->list.at[i].count;
    (void)spare_current(o->d, o->h, marked);
    for (size_t i = 0; i < count; i++) {
        good = good && (marked[i] || o->stays[i]);
        o->stays[i] = o->stays[i] || !marked[i];
    }
    free(marked);
    return good;
}

static void settle_list(struct leave_out *o)
{
    size_t before = o->d->list.count;
    bool *marked = mem_zalloc(before);

    for (size_t i = 0; i < before; i++) {
        marked[i] = !o->stays[i];
        o->d->list.at[i].count = o->seen[i];
    }
    keep_marked(o->d, marked);
    o->d->spared = before - o->d->list.count;
    free(marked);
}

/* Removes the pointer if it names a deleted session. Returns 0, or -1 with *e set. */
static int delete_pointer(const struct deletion *d, const struct history *h, struct err *e)
{
    struct buf id = BUF_INIT(BUF_SMALL);
    bool names = find_current(d, h, &id) < d->list.count;

    buf_release(&id);
    if (names && file_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT)
        return err_sys(e, errno, "the sessions are erased, but cannot remove '%s'", h->pointer);
    return 0;
}

/* Deletes the chosen sessions in one rewrite (history/rewrite.h), and the pointer if it names one
 * of them. A session that was not named, but has got lines since it was chosen, is kept whole.
 * Returns 0; or -1 with *e set: the history is unchanged, unless the message says otherwise. */
static int delete_chosen(struct deletion *d, struct history *h, struct err *e)
{
    size_t count = d->list.count;
    struct leave_out out = {.d = d,
                            .h = h,
                            .message = MESSAGE_INIT,
                            .seen = mem_zalloc(count * sizeof(*out.seen)),
                            .stays = mem_zalloc(count * sizeof(*out.stays))};
    struct rewriter by = {
        .arg = &out, .begin = begin_deletion, .line = delete_line, .settled = is_settled};
    int result = -1;

    for (size_t i = 0; i < count; i++)
        hash_map_set(&out.places, id_of(&d->list.at[i]), i);
    if (rewrite_run(h, &by, e) >= 0) {
        settle_list(&out);
        result = delete_pointer(d, h, e);
    }
    hash_map_release(&out.places);
    message_release(&out.message);
    free(out.seen);
    free(out.stays);
    return result;
}

/* ---- the program ---- */

/* Asks the user. Ends the program if no terminal can be asked. */
static bool confirmed(const struct deletion *d)
{
    struct buf question = BUF_INIT(BUF_SMALL);
    size_t sessions = d->list.count;
    int yes;

    buf_addf(&question, "delete %zu session%s (%" PRIu64 " message%s, %" PRIu64 " KiB)? [y/N] ",
             sessions, sessions == 1 ? "" : "s", d->messages, d->messages == 1 ? "" : "s",
             (d->bytes + 1023) / 1024);
    yes = confirm_yes(buf_c(&question));
    buf_release(&question);
    if (yes < 0)
        die_usage("there is no terminal to ask on: nothing is deleted without --force");
    return yes > 0;
}

/* Erases the sessions in the list, unless the list is empty or the user says no. Afterwards the
 * list holds the erased sessions. */
static void erase(struct deletion *d, struct history *h)
{
    struct err e = ERR_INIT;
    int result;

    if (d->list.count == 0)
        return;
    if (!d->wish->force && !confirmed(d)) {
        session_list_release(&d->list);
        d->messages = d->bytes = 0;
        return;
    }
    h->cancel_fd = interrupt_begin(&e);
    if (h->cancel_fd < 0)
        die_err(&e);
    result = delete_chosen(d, h, &e);
    if (result < 0 && interrupt_signal() != 0)
        die_signal(interrupt_signal());
    if (result < 0)
        die_err(&e);
    interrupt_end();
}

static void say_rest(const struct deletion *d, const struct history *h)
{
    if (d->spared > 0)
        warnf("%zu session%s stay%s: used since %s chosen", d->spared, d->spared == 1 ? "" : "s",
              d->spared == 1 ? "s" : "", d->spared == 1 ? "it was" : "they were");
    if (d->current)
        hintf(false, "the current session stays: name it to erase it");
    if (d->wish->limited && d->size - d->bytes > d->wish->max_size)
        warnf("'%s' is still %" PRIu64 " bytes: the remaining sessions are protected", h->path,
              d->size - d->bytes);
}

int main(int argc, char **argv)
{
    struct opt_parser args;
    struct wish wish = {0};
    struct list_form form = {0};
    struct deletion deletion;
    struct history *h;
    struct out out;
    bool quiet;
    int status;

    opt_start(&args, &program, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    parse(&wish, &args);
    quiet = args.common.quiet;
    form.json = args.common.json;
    choose_open(&wish.choice, CHOOSE_ONE, NULL);
    h = wish.choice.at;
    out_start(&out, args.common.color);

    (void)choose_in(&wish.choice, h);
    status = choose_report(&wish.choice);
    choose_deletion(&deletion, h, &wish);
    start_report_bad(h, deletion.list.bad_lines, quiet);
    if (!wish.dry_run)
        erase(&deletion, h);
    for (size_t i = 0; i < deletion.list.count; i++)
        list_session(&out, &deletion.list.at[i], &form);
    if (!quiet)
        say_rest(&deletion, h);

    /* The message of out_close alone would sound as if nothing had been erased. */
    if (out_flush(&out) < 0 && errno != EPIPE && !wish.dry_run && deletion.list.count > 0)
        warnf("%zu session%s erased", deletion.list.count,
              deletion.list.count == 1 ? " is" : "s are");

    session_list_release(&deletion.list);
    choose_release(&wish.choice);
    return out_close(&out, status, exit_code(ERR_FAILURE));
}
