#include "chathist/search/match_context.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"

struct context_session {
    struct context_group later; /* messages in no group; the last `after` of them count */
    bool gap;                   /* messages between the group and `later` were dropped */
    size_t group;               /* SIZE_MAX: it has no group yet */
    size_t left;                /* how many more messages belong to the group */
};

void match_context_init(struct match_context *c, size_t before, size_t after)
{
    *c = (struct match_context){.before = before, .after = after};
}

void match_context_release(struct match_context *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->groups[i].at);
    for (size_t i = 0; i < c->sessions_count; i++)
        free(c->sessions[i].later.at);
    free(c->groups);
    free(c->sessions);
    hash_map_release(&c->by_id);
    *c = (struct match_context){0};
}

static void push_item(struct context_group *items, struct context_item item)
{
    items->at = mem_grow(items->at, &items->cap, items->count + 1, sizeof *items->at);
    items->at[items->count++] = item;
}

static struct context_session *context_session_of(struct match_context *c, struct str id)
{
    size_t number = hash_map_number(&c->by_id, &id);

    if (number < c->sessions_count)
        return &c->sessions[number];
    c->sessions =
        mem_grow(c->sessions, &c->sessions_cap, c->sessions_count + 1, sizeof *c->sessions);
    c->sessions[c->sessions_count] = (struct context_session){.group = SIZE_MAX};
    return &c->sessions[c->sessions_count++];
}

/* Keeps a message for the case that a hit follows soon. */
static void add_later(struct match_context *c, struct context_session *s, struct context_item item)
{
    struct context_group *later = &s->later;

    push_item(later, item);
    if (later->count <= c->after)
        return;
    s->gap = true;
    /* The array is moved now and then, not for each message that is dropped. */
    if (later->count > 2 * c->after) {
        for (size_t i = 0; i < c->after; i++)
            later->at[i] = later->at[later->count - c->after + i];
        later->count = c->after;
    }
}

/* Returns the group that a hit belongs to, with the messages in between added. */
static struct context_group *group_of(struct match_context *c, struct context_session *s)
{
    size_t kept = s->later.count < c->after ? s->later.count : c->after;

    if (s->group == SIZE_MAX || s->gap) {
        c->groups = mem_grow(c->groups, &c->cap, c->count + 1, sizeof *c->groups);
        c->groups[c->count] = (struct context_group){0};
        s->group = c->count++;
    }
    for (size_t i = s->later.count - kept; i < s->later.count; i++)
        push_item(&c->groups[s->group], s->later.at[i]);
    s->later.count = 0;
    s->gap = false;
    return &c->groups[s->group];
}

void match_context_add(struct match_context *c, struct str session, struct context_item item)
{
    struct context_session *s = context_session_of(c, session);

    if (item.hit) {
        push_item(group_of(c, s), item);
        if (s->left == 0 && c->before > 0)
            c->waiting++;
        s->left = c->before;
    } else if (s->left > 0) {
        push_item(&c->groups[s->group], item);
        s->left--;
        c->waiting -= s->left == 0;
    } else {
        add_later(c, s, item);
    }
}

bool match_context_wants_more(const struct match_context *c)
{
    return c->waiting > 0;
}
