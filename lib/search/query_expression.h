/*
 * query_expression - the regular expression of a word or phrase of a query (search/query).
 */
#ifndef CHATHIST_SEARCH_QUERY_EXPRESSION_H
#define CHATHIST_SEARCH_QUERY_EXPRESSION_H

#include "chathist/base/buf.h"

/* Adds an expression for base/regex that matches the text, which must be valid UTF-8, as the query
 * means it: white space is any white space, beside which markup may stand, and a character with an
 * accent has its composed or its decomposed form. The page's script makes the same one. */
void query_expression_add(struct buf *out, struct str text);

#endif
