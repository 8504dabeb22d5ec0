/*
 * session_rows - the sessions of one or several histories as one list, sorted and selected.
 */
#ifndef CHATHIST_CLI_SESSION_ROWS_H
#define CHATHIST_CLI_SESSION_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/cli/choose.h"
#include "chathist/history/session_list.h"

/* By what the rows are sorted. Times and numbers begin with the largest, titles with the first of
 * the alphabet. */
enum rows_by { ROWS_LAST, ROWS_CREATED, ROWS_COUNT, ROWS_SIZE, ROWS_TITLE };

struct row {
    const struct session *session;
    size_t history; /* its number in the choice */
    /* private */
    int64_t time;    /* the time of the last use, or of the creation */
    uint64_t number; /* the number of messages or bytes, or 0 */
};

/* Zero-initialise and set the wishes. */
struct session_rows {
    enum rows_by by;
    bool reverse;
    const char *id; /* only ids that begin, or else end, with it; NULL: all */
    size_t limit;
    /* Results: */
    struct row *at;
    size_t count;
    struct session_list *lists; /* one for each history of the choice */
    struct buf said; /* if the sessions meet another form of --match, what that does; else empty */
};

/* Opens the histories (choose_open), and lists the chosen sessions of all, or with --remote those
 * of the database. Without one that meets --match, lists those that meet it with other forms of its
 * words (search/forms.h). Returns 0, or -1 with *e set. The caller releases it in either case. */
int session_rows_load(struct session_rows *r, struct choice *c, struct err *e);
void session_rows_release(struct session_rows *r, size_t histories);

/* Adds rows for the list of a history. They stand in order after session_rows_sort, which also
 * applies r->limit. */
void session_rows_add(struct session_rows *r, size_t history);
void session_rows_sort(struct session_rows *r);

#endif
