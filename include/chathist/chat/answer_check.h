/*
 * answer_check - chat --schema: the answer has to be JSON that a JSON Schema of the user's
 * describes.
 */
#ifndef CHATHIST_CHAT_ANSWER_CHECK_H
#define CHATHIST_CHAT_ANSWER_CHECK_H

#include "chathist/base/err.h"
#include "chathist/llm/schema.h"

struct answer_check {
    const char *file;      /* borrowed; NULL: any answer will do */
    struct schema *schema; /* owned */
};

/* Reads the schema in a file (NULL: there is none). -1: ERR_USAGE, it cannot be read or is no
 * schema. */
int answer_check_load(struct answer_check *c, const char *file, struct err *e);
/* What is told to the server; STR_NONE: nothing. */
struct str answer_check_schema(const struct answer_check *c);
/* Is a whole answer what the schema says? -1 (ERR_FAILURE): no. It has to be JSON from its first
 * character to its last; a code fence round it is none. */
int answer_check_text(const struct answer_check *c, struct str text, struct err *e);
void answer_check_release(struct answer_check *c);

#endif
