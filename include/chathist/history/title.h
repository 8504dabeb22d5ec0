/*
 * title - which title of a session counts.
 *
 * A line with the role `title` gives its session a title, or with an empty one removes it. It names
 * in `replaces` the titles that its writer replaced with it. A title that another title of the
 * session replaces does not count; of the others the one with the latest time does, then the one
 * with the greatest id, then the one with the greatest text. So the result depends on the set of
 * lines and not on their order, which differs between copies of a history (hist-sync), and the
 * person who sees a title can always replace it, whatever its clock said.
 */
#ifndef CHATHIST_HISTORY_TITLE_H
#define CHATHIST_HISTORY_TITLE_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/message.h"

struct title {
    struct str id, text; /* decoded; the text as message_title gives it */
    int64_t time;        /* microseconds since 1970; 0 if it cannot be read */
    size_t number;       /* how many titles were added before it */
};

/* The titles of one session. Initialise with zeros. */
struct titles {
    struct title *at;
    size_t count, cap;
    struct hash_map replaced; /* ids */
    char **texts;             /* memory of the ids and texts */
    size_t texts_count, texts_cap;
};

/* Adds a line for which message_is_title holds. Nothing is borrowed from it. */
void titles_add(struct titles *t, const struct message *m);
/* Adds the titles that titles_write wrote. Other texts are ignored. */
void titles_add_known(struct titles *t, struct str known);
/* Returns the title that counts, or NULL. It lives until the next title is added. */
const struct title *titles_find(const struct titles *t);
/* Adds a text that stands for these titles: the ones that are not replaced, and the ids of those
 * that are. Without titles nothing is added. */
void titles_write(const struct titles *t, struct buf *out);
void titles_release(struct titles *t);

/* Returns the one of these lines that gives the title, or NULL. */
const struct message *titles_find_line(const struct message *at, size_t count);
/* Makes d a line that gives its session that title, or with "" removes it, now, and replaces every
 * title in `known` that nothing else replaces. */
void titles_draft(const struct titles *known, struct str title, struct draft *d);

#endif
