/*
 * query - the language in which people say what they look for, the same in hist-search --query, in
 * the box of hist-browse, in /search, and in the HTML page (lib/convert/page/query.js).
 *
 *     retry "exponential backoff" -python role:user since:7d file:main.c
 *
 * White space separates the terms, which all count:
 *
 *     word           the message holds it, as a part of any of the texts that are searched
 *     "some words"   it holds these words one after the other
 *     /expression/   it has a match of this regular expression (Perl's), which has no white space
 *     -word          it does not hold it; also -"some words", -/expression/ and -FIELD:VALUE
 *     FIELD:VALUE    it has this property; the value may be quoted
 *
 * Case does not count. White space in a phrase stands for any white space. The characters
 * * _ ` ~ of Markdown beside white space do not hinder a match, and accents may be written in
 * either normalization form. Several values of one field are alternatives, except of since: and
 * until:. The fields are:
 *
 *     role:      the role
 *     since:     the time, as time_parse_when reads it, or later; after: is the same
 *     until:     that time or earlier; before: is the same
 *     model:     a part of the name of the model, or of `provider:model`
 *     from:      a part of the name of the program that it was imported from
 *     file:      a part of a path in `files`, in `files_modified`, or in the arguments of a tool
 *                call whose names contain "file" or "path"
 *     tool:      a part of the name of a tool that the message calls
 *     title:     a part of the title of its session; without one, of the preview
 *     repo:      a part of the path of the repository, as lists show it; in: is the same
 *     session:   the beginning or the end of the id of the session
 *     id:        the same of the message or of the session
 *
 * A quote that is not closed ends with the text. In quotes, a backslash before a quote or a
 * backslash removes the meaning of that character, also outside of quotes. A term that begins with
 * a quote or a backslash is never a field or a `-`, and a term that begins with two hyphens is a
 * word. `name:value` with any other name is an error, so that no field is taken for a word, but
 * `C:\dir`, `https://`, `std::` and `localhost:80` are words, while `befor:2026`, which misses the
 * name of a field for dates by one letter, is such an error.
 */
#ifndef CHATHIST_SEARCH_QUERY_H
#define CHATHIST_SEARCH_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/search/pattern.h"

/* The language in two lines, for help, short enough for /help on 80 columns; and an example for a
 * box that is empty. */
#define QUERY_HELP_WORDS "words in any order, \"a phrase\", -without, /expression/"
#define QUERY_HELP_FIELDS "since:7d role:user file:a.c tool:bash in:shop model: title:"
#define QUERY_EXAMPLE "retry \"a phrase\" -word since:7d file:main.c"

/* Returns the name of the field of that number, from 0, or NULL after the last one. */
const char *query_field(size_t number);

struct query {
    /* private */
    struct query_term *terms;
    size_t count, cap;
    struct pattern unwanted; /* the words after a `-` */
    bool fields;             /* there are terms other than words */
    /* Set by the caller: the query asks about whole sessions. Then query_accepts does not look at
     * model:, file: and tool:, and query_has_unwanted is false. */
    bool in_session;
};

/* Reads a query. `now` is the time that `7d` and `yesterday` count from. Returns 0, or -1 with *e
 * set (ERR_USAGE) and nothing to release: an unknown field, a field without a value, a bad time or
 * a bad expression. */
int query_parse(struct query *q, struct str text, int64_t now, struct err *e);
/* Makes `to`, an uninitialised query, a copy for another history (query_enter); the caller releases
 * it before the original. */
void query_copy(struct query *to, const struct query *from);
void query_release(struct query *q);
/* Returns whether the text has no term: every message is a hit. */
bool query_is_empty(const struct query *q);

/* Adds the wanted words and phrases to a pattern, each as a new group after those that it
 * has: for a search, and to mark the words in a text. If the pattern is empty then, an empty text
 * is added, which matches everywhere. Returns 0, or -1 with *e set (ERR_USAGE: too many). */
int query_add_words(const struct query *q, struct pattern *p, struct err *e);

/* The same one by one, for a search that asks for each word on its own: returns the number of
 * wanted words and phrases, and adds one of them, from 0, as an alternative to the current
 * group. */
size_t query_words(const struct query *q);
int query_add_word(const struct query *q, size_t number, struct pattern *p, struct err *e);
/* Returns one of them, borrowed, and the *n bytes at *at that it has in the text of the query.
 * It is empty if it is an expression or has quotes: then it is meant as it is. */
struct str query_word(const struct query *q, size_t number, size_t *at, size_t *n);

/* Reads a query, and puts its wanted words and phrases into a new pattern: for a search. Returns 0,
 * or -1 with *e set (ERR_USAGE) and nothing to release. The caller releases both. */
int query_open(struct query *q, struct pattern *p, struct str text, int64_t now, struct err *e);

/* Prepares the query for a history that is shown as `repo` (history_name_add): to be called before
 * each search. Returns 1; 0 if repo: excludes the history; -1 with *e set. */
int query_enter(struct query *q, const struct history *h, struct str repo, struct err *e);
/* Returns whether a message has the properties that the fields demand, in the history that was
 * entered last. Several threads may call this at once. */
bool query_accepts(const struct query *q, const struct message *m);
/* What the messages of a session must have between them: a bit for each of model:, file: and tool:
 * that the query has. */
unsigned query_needs(const struct query *q);
/* Returns whether the query has any of these fields, wanted or not. */
bool query_has_needs(const struct query *q);
/* Adds the bits of query_needs that the message has. Returns false if it has a model, file or tool
 * that no message of the session may have. */
bool query_meets(const struct query *q, const struct message *m, unsigned *met);
/* Returns whether it demands anything of the fields of a message, or of its absent words. */
bool query_has_fields(const struct query *q);
bool query_has_unwanted(const struct query *q);
/* Returns whether the words of query_add_words are all that it demands. */
bool query_is_words(const struct query *q);

#endif
