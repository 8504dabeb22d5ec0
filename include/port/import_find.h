/*
 * import_find - the files that are meant by a file or a directory, the one used last at the end.
 */
#ifndef CHATHIST_PORT_IMPORT_FIND_H
#define CHATHIST_PORT_IMPORT_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/keymap.h"

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
