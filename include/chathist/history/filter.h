/*
 * filter - selects messages by role, session, model, program, file and time.
 *
 * A message must meet all of these criteria. It meets one if it has any of the values in the list.
 * A criterion with an empty list accepts every message.
 */
#ifndef CHATHIST_HISTORY_FILTER_H
#define CHATHIST_HISTORY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/message.h"

struct filter_list {
    struct str *at;
    size_t count, cap;
    struct hash_map places; /* private: of the values in `at` */
};

/* Results of tools are most of what a search finds, and seldom what a person looks for. */
enum filter_results { FILTER_ANY, FILTER_NO_RESULTS, FILTER_RESULTS };

/* A zero-initialised filter accepts every message. The strings in the lists are borrowed. */
struct filter {
    struct filter_list roles;    /* may be roles that these programs do not know */
    struct filter_list sessions; /* complete ids */
    struct filter_list models;   /* names as stored, or `provider:model` */
    struct filter_list files;    /* in `files` or `files_modified`; a leading `./` is ignored */
    struct filter_list tools;    /* programs that messages were imported from (message_tool) */
    enum filter_results results;
    bool has_since, has_until;
    /* In microseconds, both inclusive. If either is set, a message whose time cannot be read is not
     * accepted. */
    int64_t since, until;
};

/* Adds a value to one of the lists; the caller keeps its text until filter_release. */
void filter_add(struct filter_list *l, struct str value);
/* Returns whether a list holds exactly this value. */
bool filter_has(const struct filter_list *l, struct str value);
/* Empties one of the lists. */
void filter_clear(struct filter_list *l);
void filter_release(struct filter *f);
/* Returns whether the filter accepts every message. */
bool filter_is_empty(const struct filter *f);
/* Returns whether the filter accepts this message. */
bool filter_match(const struct filter *f, const struct message *m);

#endif
