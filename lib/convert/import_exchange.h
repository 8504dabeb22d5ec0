/*
 * import_exchange - the session of a file that has no id for it: named after the file, its first
 * prompt and the answer, so that the file can grow and move.
 */
#ifndef CHATHIST_CONVERT_IMPORT_EXCHANGE_H
#define CHATHIST_CONVERT_IMPORT_EXCHANGE_H

#include "convert/import_reader.h"

/* Sets `id` to NAME-HASH: the name of the file without directories, and a hash of the first prompt
 * and its answer. Where an earlier import named the session after the place of the file, or after
 * the prompt because there was no answer yet, it keeps that name. A source that is no file, or has
 * no prompt, is named after its first bytes, `head`.  A message is an object with `role`, as the
 * interfaces of OpenAI and Anthropic have it: a record of the file, or an element of one of the
 * arrays of a record called `arrays`. If `document` is absent, the records are the lines or values
 * of the file. Returns 0, or -1 with *e set. */
int exchange_name_session(struct source *s, const char *format, char *const *arrays, size_t count,
                          struct str document, struct str head, struct buf *id, struct err *e);

/* Returns whether the file has a record on each line, without one of these arrays in the first. */
bool exchange_has_lines(struct str head, char *const *arrays, size_t count);

#endif
