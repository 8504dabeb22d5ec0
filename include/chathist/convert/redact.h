/*
 * redact - replaces keys, tokens and passwords in text by `[redacted KIND]`.
 *
 * A table of regular expressions (base/regex) in lib/convert/redact.c says what a secret looks
 * like: prefixes that services give to their secrets, JSON Web Tokens (RFC 7515, RFC 7516), private
 * keys in PEM (RFC 7468), credentials in headers (RFC 6750, RFC 7617) and in URLs (RFC 3986), and
 * values whose name says that they are secret, such as `AWS_SECRET_ACCESS_KEY=…` or
 * `"password":"…"`. A secret that has neither such a form nor such a name is not found.
 * Placeholders such as `$VAR`, `<your key>` and `AKIA…EXAMPLE` stay.
 *
 * Characters without a width, such as U+200B and U+00AD, are ignored when text is compared with the
 * table, and are removed with the secret that they stand in.
 */
#ifndef CHATHIST_CONVERT_REDACT_H
#define CHATHIST_CONVERT_REDACT_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct redactor;

/* Returns NULL with *e set if PCRE2 refuses an expression of the table; those that only some texts
 * need are compiled then, and a text whose expression is refused is replaced as a whole. */
struct redactor *redactor_new(struct err *e);
void redactor_free(struct redactor *r);

/* Appends a JSON value that json_check accepted to out, with the secrets in its strings and member
 * names replaced. Returns how many were replaced. The result is valid JSON, and a string without a
 * secret stays byte for byte. A string in which a search exceeds the limits of base/regex is
 * replaced as a whole. */
size_t redact_json(struct redactor *r, struct str json, struct buf *out);

#endif
