/*
 * redact_tokens - secrets that begin with what their service gives them, or that are tokens by
 * their form; and the runs of characters that redact_shapes is made of, too. See port/redact.
 *
 * Each find_… looks at the start of s only; whether a word may begin there is the caller's
 * question.
 */
#ifndef CHATHIST_PORT_REDACT_TOKENS_H
#define CHATHIST_PORT_REDACT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define DIGITS "0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM DIGITS UPPER LOWER

/* A part of a text that is to be replaced: n bytes from at. */
struct secret {
    const char *kind; /* static */
    size_t at, n;
};

bool is_one_of(char c, const char *set);
/* A letter or digit of ASCII. */
bool is_alnum(char c);
/* How many bytes at the start of s are of the set. */
size_t run_of(struct str s, const char *set);
/* s without its first n bytes, of which it has as many. */
struct str skip(struct str s, size_t n);
/* The longest run of letters and digits; of those that have both when mixed. Words joined by
 * hyphens have none that is long. */
size_t longest_run(struct str s, bool mixed);

/* By its prefix. */
bool find_token(struct str s, struct secret *found);
/* A signed one of three parts (RFC 7515), an encrypted one of five (RFC 7516). */
bool find_jwt(struct str s, struct secret *found);
/* From the colon behind a bot's number on. */
bool find_telegram(struct str s, struct secret *found);

#endif
