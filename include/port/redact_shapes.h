/*
 * redact_shapes - secrets that are known by what stands around them: private keys in PEM,
 * credentials in headers, passwords in URLs. See port/redact.
 *
 * Each find_… looks at the start of s only, but for what it may have to tell from it.
 */
#ifndef CHATHIST_PORT_REDACT_SHAPES_H
#define CHATHIST_PORT_REDACT_SHAPES_H

#include <stdbool.h>

#include "base/buf.h"
#include "port/redact_tokens.h"

/* From BEGIN to END, whatever stands before each line and between them; without an END within 32
 * KiB the lines that look like Base64. */
bool find_pem(struct str s, struct secret *found);
/* Behind the word `Bearer` or `Basic`. */
bool find_bearer(struct str s, struct secret *found);
bool find_basic(struct str s, struct secret *found);
/* Behind the name of a header such as x-api-key: in HTTP, in JSON, as an argument of a function. */
bool find_header(struct str s, struct secret *found);
/* Behind the scheme of a URL: the password, or a token in place of a user. */
bool find_userinfo(struct str s, struct secret *found);

#endif
