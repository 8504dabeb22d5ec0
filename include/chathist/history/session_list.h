/*
 * session_list - the sessions of a history with their summaries, the last used first
 * (history/order.h). A session that has titles and no message is not listed.
 *
 * A large history has an index (history/session_index.h), and then only the sessions that were
 * asked for are read. The result is the same without it.
 */
#ifndef CHATHIST_HISTORY_SESSION_LIST_H
#define CHATHIST_HISTORY_SESSION_LIST_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/session_summary.h"

/* A name that stands for the end of an id has at least this many bytes. */
#define SESSION_SUFFIX_MIN 4

/* Each function that fills a list overwrites it. They return 0 unless they say otherwise; or -1
 * with *err set, and the list is then empty. */

/* Lists all sessions, also those that have only titles, by reading the whole history, without the
 * index. */
int session_list_load(struct session_list *l, const struct history *h, struct err *e);
/* Lists the `limit` sessions that were used last. */
int session_list_newest(struct session_list *l, const struct history *h, size_t limit,
                        struct err *e);
/* Lists the `limit` last used sessions whose ids begin with `text`, or if no id does, and the
 * text has at least SESSION_SUFFIX_MIN bytes, those whose ids end with it. */
int session_list_named(struct session_list *l, const struct history *h, struct str text,
                       size_t limit, struct err *e);

/* Finds the session with that id, also one that has only titles. Returns 1, or 0 if the history has
 * no line of it and the list is empty. */
int session_list_find(struct session_list *l, const struct history *h, struct str id,
                      struct err *e);

/* Finds the title of the session with that id. Returns 0, and adds the title to `title`, nothing if
 * it has none, and its set of titles (titles_write) to `set`, unless that is NULL; or -1 with *err
 * set. */
int session_title(const struct history *h, struct str id, struct buf *title, struct buf *set,
                  struct err *e);

#endif
