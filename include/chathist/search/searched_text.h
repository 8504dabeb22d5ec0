/*
 * searched_text - the texts of a message in which a search looks: one after the other, because a
 * match lies within one of them.
 *
 * The name of a tool that the message calls is a text, and so is each string, number or word in the
 * arguments of the call; its keys are not searched. Calls in the form of other programs count,
 * too (message_next_call).
 */
#ifndef CHATHIST_SEARCH_SEARCHED_TEXT_H
#define CHATHIST_SEARCH_SEARCHED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/json.h"
#include "chathist/history/message.h"

/* The parts of a message that can be searched. */
enum search_in {
    SEARCH_CONTENT = 1 << 0,
    SEARCH_TOOLS = 1 << 1, /* the names of called tools, and each value in their arguments */
    SEARCH_FILES = 1 << 2, /* `files` and `files_modified` */
    SEARCH_MODEL = 1 << 3,
    SEARCH_ID = 1 << 4, /* of the message and of the session */
    /* The lines that give a session a title, which no other search returns. Their content is the
     * only text of them that is searched. */
    SEARCH_TITLE = 1 << 5,
};
#define SEARCH_IN_DEFAULT (SEARCH_CONTENT | SEARCH_TOOLS)

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

#endif
