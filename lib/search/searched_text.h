/*
 * searched_text - the texts of a message in which a search looks: one after the other, because a
 * match lies within one of them.
 *
 * The name of a tool that the message calls is a text, and so is each string, number or word in the
 * arguments of the call; the keys of objects are none. Calls in the form of other programs count,
 * too (message_next_call).
 */
#ifndef CHATHIST_SEARCH_SEARCHED_TEXT_H
#define CHATHIST_SEARCH_SEARCHED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/json.h"
#include "chathist/history/message.h"
#include "chathist/search/pattern.h"

struct searched_text {
    const struct message *message;
    unsigned in;
    size_t part;            /* the next part of the message */
    struct str rest;        /* raw JSON: the rest of the current part */
    struct json_iter calls; /* the remaining calls */
    struct str args;        /* of the call whose name is the current part */
    struct buf unpacked;    /* holds args that were a text */
    struct buf decoded;     /* holds the text that was returned */
};

/* Once before the first message. */
void searched_text_init(struct searched_text *t);
void searched_text_release(struct searched_text *t);
/* Frees the memory of a long text. The text that was returned is no longer valid. */
void searched_text_shrink(struct searched_text *t);
/* Begins with a message and borrows it; `in` has bits of enum search_in. */
void searched_text_begin(struct searched_text *t, const struct message *m, unsigned in);
/* Returns true and the next text, decoded and borrowed until the next call that returns true, or
 * false at the end. A message without content has an empty one. */
bool searched_text_next(struct searched_text *t, struct str *text);

struct text_match {
    size_t number;   /* of the text with the first match, from 0; SIZE_MAX: none */
    size_t at, len;  /* the match in that text */
    size_t count;    /* texts that were looked at */
    struct str text; /* the last of them, borrowed from searched_text_next */
};
/* Looks in the texts of a message for a match of each group of the pattern, up to the last text
 * that is needed. Returns 1 if all have one, 0 if not, or -1 with *e set as pattern_find does. */
int searched_text_find(struct searched_text *t, struct pattern *p, struct text_match *m,
                       struct err *e);

#endif
