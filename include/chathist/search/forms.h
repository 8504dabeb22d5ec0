/*
 * forms - other forms of the words of a query that found nothing: for the box of hist-browse,
 * /search, hist-search --query and hist-sessions --match. The page's script does the same
 * (lib/convert/page/query.js).
 *
 * A word that no message holds is replaced by the first of these that some message holds:
 *
 *     id:WORD   a session, or a message, whose id the word begins or ends
 *     marks     the word with other marks, or without: `résumé` for `resume`
 *     stem      the word without its last one, two or three letters, of which five are left, if a
 *               word begins with that
 *     edit      a word that begins with this one but for one letter: changed, missing, added, or
 *               exchanged with the next one; from six letters on
 *
 * If each word is found, but no session holds all of them, every word is joined by all its forms.
 * Forms are looked for in the newest part of a large history only, some 32 megabytes, because neither the
 * skip index nor a fast scan helps much with parts of words.
 *
 * Expressions, phrases, words with quotes and those of more than 64 letters have no forms; an id
 * may be longer.
 *
 * The result is another query in the language of search/query.h, which the caller asks in place of
 * the first one.
 */
#ifndef CHATHIST_SEARCH_FORMS_H
#define CHATHIST_SEARCH_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/search/query.h"
#include "chathist/search/search.h"

struct forms {
    /* Set by the caller, and borrowed; other members start zeroed: */
    struct str text; /* the query that was typed, */
    const struct query *query;
    size_t histories;
    bool together; /* sessions were asked, too, and none has all words */
    bool may_lack; /* a word without other forms may be left out, if it is the only one */
    bool searched; /* a search for a query of one word has found nothing */
    bool newest;   /* words count as absent if the newest part does not hold them */
    /* Opens a search of a history for a pattern, as search_open does, with the options of the
     * caller. Returns 1; 0 if the history is not to be searched; -1 with *e set. */
    int (*open)(void *ctx, size_t history, struct search *s, struct pattern *p, struct err *e);
    void *ctx;
    /* The result: */
    struct buf asked; /* the other query; empty: no other forms */
    struct buf said;  /* what it does, for people: `no 'hapens'; showing 'happens'` */
    size_t absent;    /* how many words are in no message, */
    size_t lost;      /* and have no other form */
    /* private */
    struct form_of_word *words;
    size_t word, form, history; /* what is looked for now, and where */
    bool looked;                /* for the words unchanged */
    bool joining;               /* each word is joined by its forms */
    bool opened;
    struct pattern pattern;
    struct buf bare;
    struct query by_id; /* `id:WORD` */
    struct search search;
    struct hash_map found; /* the texts that were found, with the number of messages */
};

/* Returns the size of the newest part of each history, in which forms are looked for. It does not
 * depend on the clock, nor on the skip index, so that a history always gives the same answer. */
off_t forms_newest_part(size_t histories);
/* Looks for the words unchanged, and counts the absent ones; no session holds all words if there
 * are any. Returns as forms_run does, which calls this itself. */
int forms_look_for_words(struct forms *f, struct err *e);
/* Looks for the forms. Returns 0; -1 with *e set; or SEARCH_PAUSED if `open` sets `until` of struct
 * search, and the next call continues. To be released in any case. */
int forms_run(struct forms *f, struct err *e);
void forms_release(struct forms *f);

#endif
