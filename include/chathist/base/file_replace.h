/*
 * file_replace - files that replace others: a new file is written beside the old one and renamed
 * over it, and what killed programs leave of such files is swept.
 */
#ifndef CHATHIST_BASE_FILE_REPLACE_H
#define CHATHIST_BASE_FILE_REPLACE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* Makes a new file beside `path`, open for reading and writing, mode 0600, with an exclusive
 * flock(2) where the file system has locks. Its name, `path`, two numbers with a dot before each,
 * and FILE_TEMPORARY, is put into *name; the caller renames or removes it. Returns the descriptor,
 * or -1 with errno set. */
#define FILE_TEMPORARY ".tmp"
int file_open_temporary(int dir, const char *path, struct buf *name);
/* Counts the files in the directory of `path` that file_open_temporary made and a killed program
 * left: regular files of this user, without a lock, whose names have that form. `beside`: only
 * those whose names begin with the name of `path` and a dot. With `remove` they are removed, else
 * empty ones are not counted: such a file can be so new that its program has not locked it yet.
 * Returns the number, or -1 if one cannot be removed; a directory that cannot be listed has
 * none. */
int file_sweep(int dir, const char *path, bool beside, bool remove, struct err *e);
/* Removes those in the directory `dir` whose names begin with a name that ends with a dot and
 * `suffix`. */
void file_sweep_dir(const char *dir, const char *suffix);
/* Replaces the content of `path`: writes a new file beside it (mode 0600), syncs it, renames it
 * over `path` and syncs the directory. For small state files: a reader finds the old content or the
 * new one, never a part. Removes what killed programs have left of such files first. If something
 * else than a regular file has the name, that is an error. Returns 0, or -1 with *e set. */
int file_replace(const char *path, struct str content, struct err *e);
/* The same, but without `sync` nothing is synced, and a power cut may leave an empty file. */
int file_replace_at(int dir, const char *path, struct str content, bool sync, struct err *e);
/* The same for content that is not in memory as a whole: the caller writes it to `fd`, from which
 * it can also be read, and file_replace_end puts it in place. After file_replace_begin the caller
 * calls file_replace_end or file_replace_drop; both close fd and leave no other file. `path` is
 * borrowed until then. */
struct file_replace {
    int fd;
    int dir; /* private: below which `path` is */
    const char *path;
    bool unsynced;    /* the caller may set this: nothing is synced */
    bool one_of_many; /* the caller syncs the directory, once for all of its files */
    struct buf name;  /* private: of the new file */
};
int file_replace_begin(struct file_replace *r, const char *path, struct err *e);
int file_replace_begin_at(struct file_replace *r, int dir, const char *path, struct err *e);
int file_replace_end(struct file_replace *r, struct err *e);
/* Keeps the old content. Does not change errno. */
void file_replace_drop(struct file_replace *r);

#endif
