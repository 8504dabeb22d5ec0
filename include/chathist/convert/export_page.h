/*
 * export_page - the page of everything: the sessions of several histories in one HTML page, which
 * chooses among them by repository, program and day.
 *
 *     export_page_begin -> export_page_add for each history -> export_page_end
 *
 * Without `directory` in the job it is one file, or goes to the sink. With it, the directory gets
 * the page as index.html, and the messages in files below `parts`, which the page loads when a
 * session of theirs is shown or searched:
 *
 *     parts/DATE-HISTORY[-N].js    sessions that began on this day, in UTC, or `undated`; HISTORY is
 *                                  a hash of the history's path; with N, from 2, more of that day
 *
 * A part that would not change is not written. A part that no session needs any more is removed,
 * because its sessions may have been deleted, unless a history could not be read in this run.
 */
#ifndef CHATHIST_CONVERT_EXPORT_PAGE_H
#define CHATHIST_CONVERT_EXPORT_PAGE_H

#include "chathist/base/error.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/hash_map.h"
#include "chathist/convert/export.h"
#include "chathist/convert/export_run.h"
#include "chathist/history/location.h"

struct export_page {
    /* private */
    struct export document;
    struct hash_map parts; /* the names of the files that the document names */
    struct export_job *job;
    struct file_replace file;
    char *path; /* the path of the page; NULL: it goes to job->sink */
};

/* Begins the page. The job must stay until the end. An index.html that is not such a page is an
 * error. Returns 0, or -1 with *e set; after that the
 * caller calls nothing else. */
int export_page_begin(struct export_page *p, struct export_job *job, struct err *e);
/* Adds the sessions of a history, which the page calls `name`, as export_run does. Returns 0, or -1
 * with *e set: then the page has a part of the sessions, and others can still be added. */
int export_page_add(struct export_page *p, const struct history *h, struct str name, struct err *e);
/* Writes the end and puts the page in place. `whole`: all histories were added. Releases the page.
 * Returns 0, or -1 with *e set. */
int export_page_end(struct export_page *p, bool whole, struct err *e);
/* Releases the page without putting it in place. Parts that were written stay. */
void export_page_drop(struct export_page *p);

#endif
