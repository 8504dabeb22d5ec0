/*
 * import_source - a file, or standard input, that another program's messages are read from: by
 * lines, by the elements of a JSON array, or as a whole.
 *
 * Only what is being looked at is in memory. Nothing here knows what the bytes mean.
 */
#ifndef CHATHIST_CONVERT_IMPORT_SOURCE_H
#define CHATHIST_CONVERT_IMPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/keymap.h"

/* The longest value of an array, and the longest file that is read as a whole. */
#define SOURCE_VALUE_MAX ((size_t)256 << 20)
/* How much of the beginning source_head gives. */
#define SOURCE_HEAD ((size_t)64 << 10)

struct source {
    const char *name; /* for messages, borrowed; `-` is standard input */
    const char *path; /* NULL for what is no file with a name */
    int64_t time;     /* when it was changed last (µs): for messages without a time */
    size_t number;    /* of the line or the value that was given last, from 1 */
    bool terminated;  /* the line that was given last ended with a newline */
    /* private */
    int fd;           /* -1: all of it is in `block` */
    struct buf block; /* block.data[from…) was not given yet */
    size_t from, seen;
    bool ended, in_array, in_row;
};

/* Opens a file, or `-` for standard input, which is not closed later. -1: nothing to close. */
int source_open(struct source *s, const char *path, struct err *e);
/* The same for text that is in memory; copied. */
void source_of_text(struct source *s, const char *name, struct str text);
void source_close(struct source *s);

/* How it begins, at most SOURCE_HEAD bytes; nothing is taken. Borrowed until the next call. */
int source_head(struct source *s, struct str *head, struct err *e);
/* The next line without its newline: 1, 0 at the end, -1. Borrowed until the next call. A line over
 * BUF_LINE is given as STR_NONE. */
int source_line(struct source *s, struct str *line, struct err *e);
/* The next value, of those in the array when the file is one, else of those that stand one behind
 * another: 1, 0, -1. Values are told apart by their brackets and strings alone, so that one that is
 * not valid spoils no other; one over SOURCE_VALUE_MAX is a failure. */
int source_value(struct source *s, struct str *value, struct err *e);
/* Passes over so many bytes of what source_head gives. */
void source_skip(struct source *s, size_t n);
/* All that is left. */
int source_rest(struct source *s, struct str *text, struct err *e);

/* ---- the files that a name stands for ---- */

struct import_file {
    char *path;
    bool named;   /* by the user, not found in a directory: it must be something to import */
    int64_t last; /* µs: the last `timestamp` in a file of JSON lines, else when it was changed */
};

/* Zero-initialise but for the first two. */
struct import_files {
    /* Told of each file and directory that cannot be read; what else there is is added all the
     * same. Releases e. */
    void (*failed)(void *arg, struct err *e);
    void *arg;
    struct import_file *at;
    size_t count, cap;
    /* private */
    struct keymap seen; /* device and inode of each directory that was gone into */
    char **keys;        /* owns them */
    size_t keys_count, keys_cap;
};

/* Adds a file or, of a directory and those below it, each file named *.jsonl, *.json, *.yaml, *.yml
 * or *.db. Links are followed; no directory is gone into twice. `-` stays what it is. */
void import_files_add(struct import_files *f, const char *path);
/* By the time of their last message, the oldest first; what is as old by its name. */
void import_files_sort(struct import_files *f);
void import_files_release(struct import_files *f);

#endif
