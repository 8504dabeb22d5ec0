/*
 * match_context - the messages around hits: for each hit some messages before and after it in its
 * session. Groups that touch are joined into one.
 *
 * The messages of a history are added from its end to its beginning. Only places in the file are
 * kept, no text. Messages of other sessions that were written in between do not count.
 */
#ifndef CHATHIST_SEARCH_MATCH_CONTEXT_H
#define CHATHIST_SEARCH_MATCH_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/hash_map.h"

/* Where the line of a message is in the file, as in struct line. */
struct context_item {
    off_t at;
    size_t n;
    bool hit;
    int64_t time; /* of a hit; see struct hit */
};

struct context_group {
    struct context_item *at; /* the last in the file first */
    size_t count, cap;
};

struct match_context {
    struct context_group *groups; /* the one with the last hit in the file first */
    size_t count, cap;
    /* private */
    size_t before, after;
    struct hash_map by_id;
    struct context_session *sessions;
    size_t sessions_count, sessions_cap;
    size_t waiting; /* the number of sessions whose group may get older messages */
};

/* Keeps this many messages before and after each hit. */
void match_context_init(struct match_context *c, size_t before, size_t after);
void match_context_release(struct match_context *c);
/* Adds the message before. */
void match_context_add(struct match_context *c, struct str session, struct context_item item);
/* Returns whether an older message that is not a hit can still belong to a group. */
bool match_context_wants_more(const struct match_context *c);

#endif
