#include "chathist/history/fork.h"

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"

/* A suffix that names a message is at least this long. */
#define SUFFIX_MIN 4

/* ---- where it ends ---- */

enum how { WHOLE, PREFIX, SUFFIX };

static bool id_is_called(struct str id, struct str name, enum how how)
{
    switch (how) {
    case WHOLE:
        return str_eq(id, name);
    case PREFIX:
        return str_starts(id, name);
    case SUFFIX:
        return name.n >= SUFFIX_MIN && str_ends(id, name);
    }
    return false;
}

/* How many messages are called so in that way; *place is that of the last one. */
static size_t count_called(const struct thread *t, struct str name, enum how how, size_t *place)
{
    size_t found = 0;

    for (size_t i = 0; i < t->count && name.n > 0; i++) {
        if (id_is_called(t->at[i].id, name, how)) {
            *place = i;
            found++;
        }
    }
    return found;
}

/* The same in the first way in which any is. */
static size_t find_called(const struct thread *t, struct str name, size_t *place)
{
    size_t found = 0;

    for (int how = WHOLE; how <= SUFFIX && found == 0; how++)
        found = count_called(t, name, (enum how)how, place);
    return found;
}

/* The place of the message. 0, -1. */
static int resolve_message(const struct thread *t, struct str name, size_t *place, struct err *e)
{
    size_t found = find_called(t, name, place);

    if (found == 0)
        return err_set(e, ERR_ABSENT, "no message '%.*s' in the session", ERR_SHOWN(name));
    if (found > 1 && !str_eq(t->at[*place].id, name))
        return err_set(e, ERR_FAILURE, "message '%.*s' is ambiguous: %zu are called so",
                       ERR_SHOWN(name), found);
    return 0;
}

/* Finds a message that the present thread lacks. If a line of the session has the name as its id,
 * *t becomes the earlier thread that has this line. Otherwise a part of an id names a message of
 * the present thread, or else of an earlier one. Returns 0, or -1 with *e set. */
static int load_earlier(struct thread *t, const struct history *h, struct str session,
                        struct str name, size_t *place, struct err *e)
{
    struct thread raw;

    if (thread_find(&raw, h, session, true, e) < 0)
        return -1;
    if (count_called(&raw, name, WHOLE, place) == 0 && find_called(t, name, place) > 0) {
        thread_release(&raw);
        return resolve_message(t, name, place, e);
    }
    thread_release(t);
    *t = raw;
    if (resolve_message(t, name, place, e) < 0)
        return -1;
    thread_turn_back(t, *place);
    return resolve_message(t, name, place, e);
}

/* Loads the thread that has the message, and sets *place to its place; without a name, to the place
 * of the last message. Returns 0, or -1 with *e set and nothing to release. */
static int load_named_thread(struct thread *t, const struct history *h, struct str session,
                             struct str at, size_t *place, struct err *e)
{
    int result = 0;

    if (thread_find(t, h, session, false, e) < 0)
        return -1;
    if (t->count == 0)
        result = err_set(e, ERR_ABSENT, "session '%.*s' has no messages", ERR_SHOWN(session));
    else if (!at.p)
        *place = t->count - 1;
    else if (count_called(t, at, WHOLE, place) == 0)
        result = load_earlier(t, h, session, at, place, e);
    if (result < 0)
        thread_release(t);
    return result;
}

/* ---- copying ---- */

/* A copy that is being made. */
struct copy {
    const struct thread *from;
    size_t count; /* the number of the lines to copy */
    struct str session;
    struct hash_map places; /* ids -> the places of the last copied lines with them; borrowed */
    struct hash_map ids;    /* the ids of the copies, by place */
};

static int copy_line(struct copy *c, size_t i, struct buf *lines, struct err *e)
{
    const struct message *m = &c->from->at[i];
    struct buf now = BUF_INIT(BUF_SMALL), scratch = BUF_INIT(BUF_LINE);
    struct err why = ERR_INIT;
    struct draft d;
    const size_t *place;
    struct str name;
    int result = 0;

    draft_init(&d);
    if (draft_from_json(&d, m->line, &why) < 0)
        result = err_set(e, ERR_FAILURE, "cannot copy message '%.*s': %s", ERR_SHOWN(m->id),
                         err_text(&why));
    err_release(&why);
    if (result == 0) {
        time_add_iso(&now, time_now());
        draft_set_text(&d, FIELD_ID, c->ids.entries[i].key);
        /* An answer names the copy of its prompt, or none when that is not copied. */
        name = message_text(m, FIELD_REPLY_TO, &scratch);
        place = name.p ? hash_map_find(&c->places, name) : NULL;
        buf_clear(&d.field[FIELD_REPLY_TO]);
        if (place)
            draft_set_text(&d, FIELD_REPLY_TO, c->ids.entries[*place].key);
        draft_set_text(&d, FIELD_SESSION_ID, c->session);
        draft_set_text(&d, FIELD_FORKED_FROM, m->id);
        draft_set_text(&d, FIELD_TIMESTAMP, buf_str(&now));
        buf_clear(&d.field[FIELD_REPLACES]);
        result = draft_storable(&d, e);
    }
    if (result == 0)
        result = draft_format(&d, lines, e);
    buf_release(&now);
    buf_release(&scratch);
    draft_release(&d);
    return result;
}

static int copy_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct copy *c = arg;

    (void)at;
    for (size_t i = 0; i < c->count; i++)
        if (copy_line(c, i, lines, e) < 0)
            return -1;
    return 0;
}

int fork_session(struct history *to, struct history *from, struct str session, struct str at,
                 struct str fresh, size_t *count, uint64_t *bad_lines, struct err *e)
{
    struct thread t;
    struct buf id = BUF_INIT(BUF_SMALL);
    struct copy copy;
    size_t last = 0;
    int result;

    /* The session may lack the answer of a turn that was killed; if it cannot be stored, neither
     * can the copies. */
    (void)store_recover(from, NULL);
    if (load_named_thread(&t, from, session, at, &last, e) < 0)
        return -1;
    *bad_lines = t.bad_lines;
    /* The results of its calls belong to it. */
    while (last + 1 < t.count && t.at[last + 1].role == ROLE_TOOL)
        last++;
    *count = last + 1;
    copy = (struct copy){.from = &t, .count = *count, .session = fresh};
    for (size_t i = 0; i < *count; i++) {
        hash_map_set(&copy.places, t.at[i].id, i);
        do {
            buf_clear(&id);
            id_add_message(&id, time_now() / 1000);
        } while (!hash_map_add(&copy.ids, buf_str(&id)));
    }
    result = store_append_lines(to, copy_lines, &copy, e);
    hash_map_release(&copy.places);
    hash_map_release(&copy.ids);
    buf_release(&id);
    thread_release(&t);
    return result;
}
