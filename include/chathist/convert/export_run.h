/*
 * export_run - one export: selects lines of a history, converts them on several threads, and writes
 * the output. Files are created with mode 0600; only regular files are replaced or appended to.
 */
#ifndef CHATHIST_CONVERT_EXPORT_RUN_H
#define CHATHIST_CONVERT_EXPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/task.h"
#include "chathist/convert/export.h"
#include "chathist/history/filter.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"

/* Strings are borrowed. */
struct export_job {
    const struct export_format *format;
    const char *output;              /* a file or a directory; NULL: `sink` */
    bool directory;                  /* a file for each session */
    const char *messages;            /* a file of history lines, `-` for standard input; NULL: the
                                      * history */
    const char *state;               /* --incremental (export_select.h), or NULL */
    bool all;                        /* every session, else those of `named` */
    bool restricted;                 /* only sessions that `list` lists */
    bool raw;                        /* lines that do not count in their session's thread, too */
    bool redact;                     /* replace secrets (redact.h) */
    struct str place;                /* see struct export */
    const struct filter_list *named; /* the ids of sessions, borrowed */
    /* The document that the sessions are added to; NULL: this history has its own. With `directory`
     * it is the page of a folder (export_page.h), and gets only a line for each session; the names of
     * the files that have the messages are added to `parts`. */
    struct export *document;
    struct hash_map *parts;
    /* The functions are called with `arg`, from the thread of the caller. */
    void *arg;
    export_sink *sink;
    int (*flush)(void *arg); /* flushes what `sink` got: returns -1 if not all could be written */
    /* Lists the sessions that are chosen, those used last first. Returns 0, or -1 with *e set. */
    int (*list)(void *arg, struct session_list *l, struct err *e);
    void (*absent)(void *arg, struct str id); /* a named session has no lines */
    /* The file of a session has another content and stays, because another program may have added to
     * it. */
    void (*kept)(void *arg, const char *path);
    /* Called before a document of lines with this number of bytes is written, or NULL. */
    void (*expect)(void *arg, off_t bytes);
    task_report *work; /* NULL: nothing is reported */
    int cancel_fd;     /* once it is readable, the export ends; -1: none */
    /* The outcome. */
    size_t redacted;    /* secrets that were replaced */
    uint64_t bad_lines; /* bad lines of the history */
    size_t bad_entries; /* bad entries of `messages` */
};

/* An export_sink whose argument is a struct file_replace. */
int export_to_file(void *arg, struct str bytes, struct err *e);
/* Performs the export. Returns 0, also if no named session has lines; or -1 with *e set, ERR_SIGNAL
 * if cancel_fd became readable. */
int export_run(struct export_job *job, const struct history *h, struct err *e);

#endif
