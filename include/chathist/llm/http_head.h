/*
 * http_head - the head of an answer, line by line: its status and the few fields that matter here.
 *
 * Interim answers (1xx, RFC 9110 section 15.2) are passed over. Whatever their lines and those of
 * the final head are, together they may not be longer than HTTP_HEAD_MAX.
 */
#ifndef CHATHIST_LLM_HTTP_HEAD_H
#define CHATHIST_LLM_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"

#define HTTP_HEAD_MAX ((size_t)256 << 10)

/* The final status and the headers that matter ("": absent); borrowed for the call. */
struct http_head {
    int status;
    const char *media_type;     /* in lower case, without parameters */
    const char *location;       /* of a redirect */
    const char *retry_after;    /* raw: seconds or an HTTP date */
    const char *retry_after_ms; /* OpenAI's own, as is x-should-retry */
    const char *should_retry;
};

enum {
    HTTP_HEAD_TYPE,
    HTTP_HEAD_LOCATION,
    HTTP_HEAD_RETRY_AFTER,
    HTTP_HEAD_RETRY_AFTER_MS,
    HTTP_HEAD_SHOULD_RETRY,
    HTTP_HEAD_FIELDS
};

struct http_head_reader {
    struct buf fields[HTTP_HEAD_FIELDS];
    size_t bytes; /* of all lines so far */
};

enum http_head_state { HTTP_HEAD_MORE, HTTP_HEAD_ENDS, HTTP_HEAD_TOO_LONG };

void http_head_init(struct http_head_reader *r);
void http_head_release(struct http_head_reader *r);
/* Takes one line with its end. HTTP_HEAD_ENDS at the blank line behind any head. */
enum http_head_state http_head_take(struct http_head_reader *r, struct str line);
/* What came of the head that has just ended, if `status` says that it is the final one; the strings
 * live as long as r is left alone. false: an interim answer, whose fields are forgotten. */
bool http_head_get(struct http_head_reader *r, int status, struct http_head *head);

#endif
