#include "chathist/history/fork.h"

#include <stdlib.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/history/message.h"
#include "chathist/history/store.h"
#include "chathist/history/thread.h"

/* A suffix that names a message is at least this long. */
#define SUFFIX_MIN 4

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
static size_t look(const struct outline *t, struct str name, enum how how, size_t *place)
{
    size_t found = 0;

    for (size_t i = 0; i < t->count && name.n > 0; i++) {
        if (is_called(t->line[i].id, name, how)) {
            *place = i;
            found++;
        }
    }
    return found;
}

/* The same in the first way in which any is. */
static size_t look_all_ways(const struct outline *t, struct str name, size_t *place)
{
    size_t found = 0;

    for (int how = WHOLE; how <= SUFFIX && found == 0; how++)
        found = look(t, name, (enum how)how, place);
    return found;
}

/* The place of the message. 0, -1. */
static int resolve(const struct outline *t, struct str name, size_t *place, struct err *e)
{
    size_t found = look_all_ways(t, name, place);

    if (found == 0)
        return err_set(e, ERR_ABSENT, "no message '%.*s' in the session", ERR_SHOWN(name));
    if (found > 1 && !str_eq(t->line[*place].id, name))
        return err_set(e, ERR_FAILURE, "message '%.*s' is ambiguous: %zu are called so",
                       ERR_SHOWN(name), found);
    return 0;
}

/* Turns the outline of all lines of a session into the thread of the time before the message was
 * replaced or reset. Sets *place to the place of the message. Returns 0, or -1 with *e set. */
static int turn_back(struct outline *t, struct str name, size_t *place, struct err *e)
{
    if (resolve(t, name, place, e) < 0)
        return -1;
    outline_turn_back(t, *place);
    return resolve(t, name, place, e);
}

/* Finds a message that the present thread lacks. If a line of the session has the name as its id,
 * *t becomes the earlier thread that has this line. Otherwise a part of an id names a message of
 * the present thread, or else of an earlier one. Returns 0, or -1 with *e set. */
static int load_earlier(struct outline *t, const struct history *h, struct str session,
                        struct str name, size_t *place, struct err *e)
{
    struct outline raw;

    if (outline_find(&raw, h, session, true, e) < 0)
        return -1;
    if (look(&raw, name, WHOLE, place) == 0 && look_all_ways(t, name, place) > 0) {
        outline_release(&raw);
        return resolve(t, name, place, e);
    }
    outline_release(t);
    *t = raw;
    return turn_back(t, name, place, e);
}

/* Loads the thread that has the message, and sets *place to its place; without a name, to the place
 * of the last message. Returns 0, or -1 with *e set and nothing to release. */
static int load(struct outline *t, const struct history *h, struct str session, struct str at,
                size_t *place, struct err *e)
{
    int result = 0;

    if (outline_find(t, h, session, false, e) < 0)
        return -1;
    if (t->count == 0)
        result = err_set(e, ERR_ABSENT, "session '%.*s' has no messages", ERR_SHOWN(session));
    else if (!at.p)
        *place = t->count - 1;
    else if (look(t, at, WHOLE, place) == 0)
        result = load_earlier(t, h, session, at, place, e);
    if (result < 0)
        outline_release(t);
    return result;
}

/* How many lines are copied, up to the one at that place. */
static size_t measure(const struct outline *t, size_t last)
{
    while (last + 1 < t->count && t->line[last + 1].role == ROLE_TOOL)
        last++;
    return last + 1;
}

/* ---- copying ---- */

/* The copy of a line that replies name. */
struct named {
    bool copied;
    size_t line; /* its place; of several lines with the same id, the last one counts */
    char *id;    /* of the copy; NULL until it is drawn */
};

/* A copy that is being made. */
struct copy {
    const struct outline *from;
    size_t count; /* of the lines to copy */
    struct str session;
    struct hash_map names; /* the ids that replies name -> their places in `named` */
    struct named *named;
    int64_t ms;            /* the time of the last new id */
    struct hash_map drawn; /* the new ids of that millisecond */
};

static void find_named(struct copy *c)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    for (size_t i = 0; i < c->count; i++) {
        struct str name = json_text(c->from->line[i].reply_to, &scratch);

        if (name.p)
            hash_map_add(&c->names, name);
    }
    buf_release(&scratch);
    c->named = mem_zalloc((c->names.count + 1) * sizeof(*c->named));
    for (size_t i = 0; i < c->count; i++) {
        const size_t *place = hash_map_find(&c->names, c->from->line[i].id);

        if (place)
            c->named[*place] = (struct named){true, i, NULL};
    }
}

static void copy_release(struct copy *c)
{
    for (size_t i = 0; i < c->names.count; i++)
        free(c->named[i].id);
    free(c->named);
    hash_map_release(&c->names);
    hash_map_release(&c->drawn);
}

/* Draws an id that differs from the other new ids of the same millisecond. */
static void draw_id(struct copy *c, struct buf *id)
{
    do {
        int64_t ms = time_now() / 1000;

        if (ms != c->ms)
            hash_map_release(&c->drawn);
        c->ms = ms;
        buf_clear(id);
        id_add_message(id, ms);
    } while (!hash_map_add(&c->drawn, buf_str(id)));
}

static struct str id_of_named(struct copy *c, struct named *n)
{
    if (!n->id) {
        struct buf id = BUF_INIT(BUF_SMALL);

        draw_id(c, &id);
        n->id = buf_detach(&id);
    }
    return str_of(n->id);
}

static void set_id(struct copy *c, size_t i, struct draft *d)
{
    const size_t *place = hash_map_find(&c->names, c->from->line[i].id);
    struct buf id = BUF_INIT(BUF_SMALL);

    if (place && c->named[*place].line == i) {
        draft_set_text(d, FIELD_ID, id_of_named(c, &c->named[*place]));
        return;
    }
    draw_id(c, &id);
    draft_set_text(d, FIELD_ID, buf_str(&id));
    buf_release(&id);
}

/* An answer names the copy of its prompt, or none when that is not copied. */
static void set_reply(struct copy *c, size_t i, struct draft *d)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str name = json_text(c->from->line[i].reply_to, &scratch);
    const size_t *place = name.p ? hash_map_find(&c->names, name) : NULL;

    buf_clear(&d->field[FIELD_REPLY_TO]);
    if (place && c->named[*place].copied)
        draft_set_text(d, FIELD_REPLY_TO, id_of_named(c, &c->named[*place]));
    buf_release(&scratch);
}

static int copy_line(struct copy *c, size_t i, const struct message *m, struct group *group,
                     struct err *e)
{
    struct err why = ERR_INIT;
    struct draft d;
    int result = 0;

    draft_init(&d);
    if (draft_from_json(&d, m->line, &why) < 0)
        result = err_set(e, ERR_FAILURE, "cannot copy message '%.*s': %s", ERR_SHOWN(m->id),
                         err_text(&why));
    err_release(&why);
    if (result == 0) {
        set_id(c, i, &d);
        set_reply(c, i, &d);
        draft_set_text(&d, FIELD_SESSION_ID, c->session);
        draft_set_text(&d, FIELD_FORKED_FROM, m->id);
        buf_clear(&d.field[FIELD_TIMESTAMP]);
        buf_clear(&d.field[FIELD_REPLACES]);
        result = store_group_add(group, &d, e);
    }
    draft_release(&d);
    return result;
}

/* The lines are read again one by one, so that only one is in memory. */
static int copy_lines(void *arg, struct group *group, struct err *e)
{
    struct copy *c = arg;
    struct buf line = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;
    int result = 0;

    for (size_t i = 0; i < c->count && result == 0; i++) {
        result = outline_message(c->from, i, &m, &line, e);
        if (result == 0)
            result = copy_line(c, i, &m, group, e);
    }
    message_release(&m);
    buf_release(&line);
    return result;
}

int fork_session(struct history *to, struct history *from, struct str session, struct str at,
                 struct str fresh, size_t *count, uint64_t *bad_lines, struct err *e)
{
    struct outline t;
    struct copy copy;
    size_t last = 0;
    int result;

    /* The session may lack lines of a writer that was killed; if they cannot be stored, neither can
     * the copies. */
    (void)store_recover(from, NULL);
    if (load(&t, from, session, at, &last, e) < 0)
        return -1;
    *bad_lines = t.bad_lines;
    *count = measure(&t, last);
    copy = (struct copy){.from = &t, .count = *count, .session = fresh};
    find_named(&copy);
    result = store_append_group(to, copy_lines, &copy, e);
    copy_release(&copy);
    outline_release(&t);
    return result;
}
