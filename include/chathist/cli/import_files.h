/*
 * import_files - the files that hist-import reads: those that the user names, and those in the
 * places of other programs, which the importers name; and the importers themselves.
 */
#ifndef CHATHIST_CLI_IMPORT_FILES_H
#define CHATHIST_CLI_IMPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/process.h"
#include "chathist/cli/config.h"
#include "chathist/convert/import.h"
#include "chathist/convert/import_script.h"

/* What changes when a program writes to a file. */
struct import_stamp {
    int64_t size, time, inode; /* the time in microseconds */
    int64_t beside; /* a checksum of the files that its importer reads beside it, for a scan */
};

struct import_file {
    char *path; /* owned */
    bool named; /* the user named the file: it must be something to import */
    struct import_stamp stamp;
    struct import_point point; /* a scan can read on from here */
};

/* Zero-initialise all members but the first two. */
struct import_files {
    /* Called for each file and directory that cannot be read, with an error that it releases. The
     * other files are still added. */
    void (*failed)(void *arg, struct err *e);
    void *arg;
    struct import_file *at;
    size_t count, cap;
    /* private */
    size_t places;              /* the number of places of other programs that exist */
    struct words excluded;      /* by import.exclude, for a scan */
    uint64_t key;               /* see import_files_key */
    const struct words *beside; /* what the importer of the place reads beside a file, or NULL */
    struct hash_map seen;       /* device and inode of each directory that was searched */
};

/* Adds a file; or all files in a directory and below that are named *.jsonl, *.json, *.yaml, *.yml,
 * *.db or *.zst. Links are followed, but no directory is searched twice. `-` is standard input. */
void import_files_add(struct import_files *f, const char *path);
/* Adds the files of other programs, or of the one with the format `only` unless that is NULL, without
 * those that import.exclude names. Relative places are looked up in each of `dirs`. Returns false if
 * none of the places exists. */
bool import_files_scan(struct import_files *f, const struct config *c, const struct importers *all,
                       const struct import_format *only, const struct words *dirs);
/* Returns whether the beginning of a file has a string of JSON that is this directory or one below
 * it: a conversation was probably held there. */
bool import_file_names(const struct import_file *file, struct str dir);
/* Sorts by modification time, the oldest first, then by name. */
void import_files_sort(struct import_files *f);
void import_files_release(struct import_files *f);

/* Loads the scripts in the user's directory of importers, and those that came with the program that
 * was started as `self`, or only the one of that name; of two with the same name the user's own
 * counts. `failed` is called for each that cannot be used. The caller frees the result. */
struct importers *import_files_load(struct import_files *f, const char *self, const char *only);
/* Returns a checksum of these scripts. */
uint64_t import_files_key(const struct import_files *f);

#endif
