#include "chathist/search/around.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/mem.h"

struct around_session {
    char *id;
    struct around_items later; /* not in a group; the last `after` of them count */
    bool gap;                  /* some of those behind the group were dropped */
    size_t group;              /* SIZE_MAX: none yet */
    size_t left;               /* so many more messages belong to the group */
};

void around_init(struct around *a, size_t before, size_t after)
{
    *a = (struct around){.before = before, .after = after};
}

void around_release(struct around *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->groups[i].at);
    for (size_t i = 0; i < a->sessions_count; i++) {
        free(a->sessions[i].id);
        free(a->sessions[i].later.at);
    }
    free(a->groups);
    free(a->sessions);
    keymap_release(&a->by_id);
    *a = (struct around){0};
}

static void push(struct around_items *items, struct around_item item)
{
    items->at = mem_grow(items->at, &items->cap, items->count + 1, sizeof *items->at);
    items->at[items->count++] = item;
}

static struct around_session *session_of(struct around *a, struct str id)
{
    size_t *known = a->by_id.size > 0 ? keymap_find(&a->by_id, id) : NULL;
    char *copy;

    if (known)
        return &a->sessions[*known];
    copy = mem_copy(id.p, id.n);
    keymap_set(&a->by_id, (struct str){copy, id.n}, a->sessions_count);
    a->sessions =
        mem_grow(a->sessions, &a->sessions_cap, a->sessions_count + 1, sizeof *a->sessions);
    a->sessions[a->sessions_count] = (struct around_session){.id = copy, .group = SIZE_MAX};
    return &a->sessions[a->sessions_count++];
}

/* Keeps a message in case that the next hit comes soon. */
static void keep(struct around *a, struct around_session *s, struct around_item item)
{
    struct around_items *later = &s->later;

    push(later, item);
    if (later->count <= a->after)
        return;
    s->gap = true;
    /* Moved together now and then, not for each that is dropped. */
    if (later->count > 2 * a->after) {
        for (size_t i = 0; i < a->after; i++)
            later->at[i] = later->at[later->count - a->after + i];
        later->count = a->after;
    }
}

/* The group that a hit belongs to, with what lies between. */
static struct around_items *group_of(struct around *a, struct around_session *s)
{
    size_t kept = s->later.count < a->after ? s->later.count : a->after;

    if (s->group == SIZE_MAX || s->gap) {
        a->groups = mem_grow(a->groups, &a->cap, a->count + 1, sizeof *a->groups);
        a->groups[a->count] = (struct around_items){0};
        s->group = a->count++;
    }
    for (size_t i = s->later.count - kept; i < s->later.count; i++)
        push(&a->groups[s->group], s->later.at[i]);
    s->later.count = 0;
    s->gap = false;
    return &a->groups[s->group];
}

void around_add(struct around *a, struct str session, struct around_item item)
{
    struct around_session *s = session_of(a, session);

    if (item.hit) {
        push(group_of(a, s), item);
        if (s->left == 0 && a->before > 0)
            a->waiting++;
        s->left = a->before;
    } else if (s->left > 0) {
        push(&a->groups[s->group], item);
        s->left--;
        a->waiting -= s->left == 0;
    } else {
        keep(a, s, item);
    }
}

bool around_wants_more(const struct around *a)
{
    return a->waiting > 0;
}
