/*
 * query_offer - completes a query (search/query.h): for the box of hist-browse, /search, and the
 * completions of the shells.
 */
#ifndef CHATHIST_CLI_QUERY_OFFER_H
#define CHATHIST_CLI_QUERY_OFFER_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/process.h"
#include "chathist/history/location.h"

/* Adds the texts to which the query can be completed: with the names of fields that its last term
 * begins, or the values of the field in it. Models, programs, tools and sessions are those of the
 * latest messages of the histories. */
void query_offer(struct words *out, struct str query, const struct history *histories,
                 size_t count);

#endif
