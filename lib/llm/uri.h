/*
 * uri - references to resources, resolved (RFC 3986, section 5.2). Nothing is fetched.
 */
#ifndef CHATHIST_LLM_URI_H
#define CHATHIST_LLM_URI_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Adds what `reference` means in a document at `base` ("": a document without a place of its own),
 * without its fragment; *fragment is the part behind `#`, as it stands in the reference, STR_NONE
 * when there is none. */
void uri_resolve(struct buf *out, struct str base, struct str reference, struct str *fragment);
/* Adds text with its %XX decoded. false: a % that two hexadecimal digits do not follow. */
bool uri_decode(struct buf *out, struct str text);

#endif
