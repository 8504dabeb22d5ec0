#include "chathist/history/fork.h"

#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"

/* A suffix that names a message is at least this long. */
#define SUFFIX_MIN 4

#define SHOWN(name) (int)((name).n > 200 ? 200 : (name).n), (name).n ? (name).p : ""

/* ---- where it ends ---- */

enum how { WHOLE, PREFIX, SUFFIX };

static bool is_called(struct str id, struct str name, enum how how)
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
static size_t look(const struct thread *t, struct str name, enum how how, size_t *place)
{
    size_t found = 0;

    for (size_t i = 0; i < t->count && name.n > 0; i++) {
        if (is_called(t->at[i].id, name, how)) {
            *place = i;
            found++;
        }
    }
    return found;
}

/* The same in the first way in which any is. */
static size_t look_all_ways(const struct thread *t, struct str name, size_t *place)
{
    size_t found = 0;

    for (int how = WHOLE; how <= SUFFIX && found == 0; how++)
        found = look(t, name, (enum how)how, place);
    return found;
}

/* The place of the message. 0, -1. */
static int resolve(const struct thread *t, struct str name, size_t *place, struct err *e)
{
    size_t found = look_all_ways(t, name, place);

    if (found == 0)
        return err_set(e, ERR_ABSENT, "no message '%.*s' in the session", SHOWN(name));
    if (found > 1 && !str_eq(t->at[*place].id, name))
        return err_set(e, ERR_FAILURE, "message '%.*s' is ambiguous: %zu are called so",
                       SHOWN(name), found);
    return 0;
}

/* Makes of every line of a session the thread as it was until the message was replaced or reset;
 * *place is that of the message. 0, -1. */
static int turn_back(struct thread *t, struct str name, size_t *place, struct err *e)
{
    if (resolve(t, name, place, e) < 0)
        return -1;
    thread_turn_back(t, *place);
    return resolve(t, name, place, e);
}

/* Goes from the thread of now, in which none has the name as its id, to an earlier one where there
 * is one that has it, or none of now is called so. 0, -1. */
static int load_earlier(struct thread *t, const struct history *h, struct str session,
                        struct str name, size_t *place, struct err *e)
{
    struct thread raw;

    if (thread_find(&raw, h, session, true, e) < 0)
        return -1;
    if (look(&raw, name, WHOLE, place) == 0 && look_all_ways(t, name, place) > 0) {
        thread_release(&raw);
        return resolve(t, name, place, e);
    }
    thread_release(t);
    *t = raw;
    return turn_back(t, name, place, e);
}

/* Loads the thread that has the message. 0 and its place, which is that of the last one when none
 * is named; -1: there is nothing to release. */
static int load(struct thread *t, const struct history *h, struct str session, struct str at,
                size_t *place, struct err *e)
{
    int result = 0;

    if (thread_find(t, h, session, false, e) < 0)
        return -1;
    if (t->count == 0)
        result = err_set(e, ERR_ABSENT, "session '%.*s' has no messages", SHOWN(session));
    else if (!at.p)
        *place = t->count - 1;
    else if (look(t, at, WHOLE, place) == 0)
        result = load_earlier(t, h, session, at, place, e);
    if (result < 0)
        thread_release(t);
    return result;
}

/* How many lines are copied, up to the one at that place. */
static size_t measure(const struct thread *t, size_t last)
{
    while (last + 1 < t->count && t->at[last + 1].role == ROLE_TOOL)
        last++;
    return last + 1;
}

/* ---- copying ---- */

/* Ids of the same millisecond, told apart within the copy. */
static void set_id(struct draft *d, struct hash_map *drawn, char **owned)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    do {
        buf_clear(&id);
        id_add_message(&id, time_now() / 1000);
    } while (hash_map_find(drawn, buf_str(&id)));
    draft_set_text(d, FIELD_ID, buf_str(&id));
    *owned = buf_detach(&id);
    hash_map_set(drawn, str_of(*owned), 1);
}

static int copy_line(struct draft *d, const struct message *m, struct str fresh, struct err *e)
{
    struct err why = ERR_INIT;

    if (draft_from_json(d, m->line, &why) < 0) {
        err_set(e, ERR_FAILURE, "cannot copy message '%.*s': %s", SHOWN(m->id), err_text(&why));
        err_release(&why);
        return -1;
    }
    draft_set_text(d, FIELD_SESSION_ID, fresh);
    draft_set_text(d, FIELD_FORKED_FROM, m->id);
    buf_clear(&d->field[FIELD_TIMESTAMP]);
    buf_clear(&d->field[FIELD_REPLACES]);
    return 0;
}

/* An answer names the copy of its prompt, or none when that is not copied. */
static void map_reply(struct draft *d, const struct message *m, const struct hash_map *places,
                      char *const *ids)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str named = message_text(m, FIELD_REPLY_TO, &scratch);
    const size_t *place = named.p ? hash_map_find(places, named) : NULL;

    buf_clear(&d->field[FIELD_REPLY_TO]);
    if (place)
        draft_set_text(d, FIELD_REPLY_TO, str_of(ids[*place]));
    buf_release(&scratch);
}

static int copy(struct history *h, const struct thread *t, size_t count, struct str fresh,
                struct err *e)
{
    struct draft *drafts = mem_zalloc(count * sizeof(*drafts));
    char **ids = mem_zalloc(count * sizeof(*ids));
    struct hash_map places = {0}; /* old id -> its place */
    struct hash_map drawn = {0};
    int result = 0;

    for (size_t i = 0; i < count; i++)
        draft_init(&drafts[i]);
    for (size_t i = 0; i < count && result == 0; i++) {
        result = copy_line(&drafts[i], &t->at[i], fresh, e);
        set_id(&drafts[i], &drawn, &ids[i]);
        hash_map_set(&places, t->at[i].id, i);
    }
    for (size_t i = 0; i < count && result == 0; i++)
        map_reply(&drafts[i], &t->at[i], &places, ids);
    if (result == 0)
        result = store_append_group(h, drafts, count, e);

    for (size_t i = 0; i < count; i++) {
        draft_release(&drafts[i]);
        free(ids[i]);
    }
    free(drafts);
    free(ids);
    hash_map_release(&places);
    hash_map_release(&drawn);
    return result;
}

int fork_session(struct history *h, struct str session, struct str at, struct str fresh,
                 size_t *count, uint64_t *bad_lines, struct err *e)
{
    struct thread t;
    size_t last = 0;
    int result;

    /* The session may lack lines of a writer that was killed; if they cannot be stored, neither can
     * the copies. */
    (void)store_recover(h, NULL);
    if (load(&t, h, session, at, &last, e) < 0)
        return -1;
    *bad_lines = t.bad_lines;
    *count = measure(&t, last);
    result = copy(h, &t, *count, fresh, e);
    thread_release(&t);
    return result;
}
