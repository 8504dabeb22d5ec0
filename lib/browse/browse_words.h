/*
 * browse_words - what hist-browse says round its panels: titles, counts, the foot; names of files.
 */
#ifndef CHATHIST_BROWSE_BROWSE_WORDS_H
#define CHATHIST_BROWSE_BROWSE_WORDS_H

#include "chathist/base/buf.h"
#include "browse/browse_model.h"

/* Each adds a line made safe to show. Beside the box: which line of how many is chosen, the role
 * and the scope, when they are not the usual ones. Above the list, above the messages. At the foot:
 * a question, what there is to say, or the hints. */
void browse_title_box(struct buf *out, const struct browse *b);
void browse_title_list(struct buf *out, const struct browse *b);
void browse_title_text(struct buf *out, const struct browse *b);
void browse_foot(struct buf *out, const struct browse *b);
/* Adds the usual name of a file to which the session that was asked about is exported. */
void browse_add_file_name(struct buf *out, const struct browse *b);

#endif
