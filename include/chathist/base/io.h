/*
 * io - file descriptors: opening what is safe to open, whole reads and writes.
 *
 * Nothing here buffers. Interrupted calls (EINTR) are repeated, and a descriptor that somebody made
 * non-blocking is waited for. Every descriptor opened here is close-on-exec, the standard streams
 * excepted.
 */
#ifndef CHATHIST_BASE_IO_H
#define CHATHIST_BASE_IO_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* Opens /dev/null on each of fds 0 to 2 that is closed, so that no file opened later gets the
 * number of a standard stream. A closed stdout or stderr is opened read-only,
 * a closed stdin write-only: using it fails, as it did when it was closed. 0, or -1 with errno
 * set. */
int io_fill_std_fds(void);

/* Where a function takes `dir` and `path`, dir is a descriptor of the directory that holds the file:
 * the last part of path is opened, renamed or removed in that directory, whatever another process
 * puts at the path meanwhile; path as a whole stands in messages. */
#define IO_CWD AT_FDCWD /* path is used as it is */
#define IO_ABSENT (-1)  /* the directory does not exist: errno is ENOENT */

/* fstatat(2) without following a link, unlinkat(2) and renameat(2) within one directory. 0, or -1
 * with errno set. */
int io_stat(int dir, const char *path, struct stat *st);
int io_unlink(int dir, const char *path);
int io_rename(int dir, const char *from, const char *to);

/* Opens a regular file: a symbolic link, FIFO, device or directory is refused with a message that
 * names it (links in the directories above are followed). `flags` as for open(2); O_CLOEXEC,
 * O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added. With O_CREAT a file that this call makes has
 * exactly `mode`, whatever the umask; one that was there is not changed. `st` (may be NULL) gets
 * its fstat. Returns the descriptor, or -1 with the reason in *errnum (may be NULL), so that ENOENT
 * can be told from the rest. */
int io_open_regular(const char *path, int flags, mode_t mode, struct stat *st, int *errnum,
                    struct err *e);
int io_open_regular_at(int dir, const char *path, int flags, mode_t mode, struct stat *st,
                       int *errnum, struct err *e);

/* Waits for `ms` milliseconds, or until fd (-1: none) can be read: 1 when it can, 0 when the time
 * is up, -1 with errno set. */
int io_wait(int fd, int64_t ms);

/* Opens an input that a user named, for reading: links, FIFOs and devices are fine, and opening a
 * FIFO waits for its writer; a directory is refused. The descriptor, or -1. */
int io_open_input(const char *path, struct err *e);
/* Is it a regular file, or a link to one? Where opening a FIFO would wait for ever. 0 or -1. */
int io_check_regular(const char *path, struct err *e);

/* Writes all n bytes, over short writes. 0, or -1 with errno set; how much was written by then is
 * not known. */
int io_write_all(int fd, const void *p, size_t n);
/* The same at an offset, 0 or more, whatever the descriptor's place is; that stays. */
int io_pwrite_all(int fd, const void *p, size_t n, off_t offset);
/* Writes what goes at once, also to a descriptor that blocks: how much, or -1 when it would have to
 * wait (errno is EAGAIN), failed, or the system cannot tell (then as often as it is asked). */
ssize_t io_write_now(int fd, const void *p, size_t n);
/* Reads until n bytes came or the end. The number read, or -1 with errno set. */
ssize_t io_read_full(int fd, void *p, size_t n);
ssize_t io_pread_full(int fd, void *p, size_t n, off_t offset);
/* Does the file, of which *st is the fstat, have holes of 1 MiB or more in all, which read as zeros? */
bool io_is_sparse(int fd, const struct stat *st);
/* Returns where the hole ends that has the byte at `at`, or begins that ends at `at`; `at` if there is
 * none. */
off_t io_hole_end(int fd, off_t at, off_t size);
off_t io_hole_begin(int fd, off_t at);
/* Adds what one read gives to b, waiting for it: 1, 0 at the end, -1 with errno set (EFBIG above
 * the maximum of b, which then holds the beginning). */
int io_read_some(int fd, struct buf *b);
/* The same until the end: 0 or -1. */
int io_read_all(int fd, struct buf *b);
/* Adds the whole of a file that a user named to b. 0 or -1. `-` is not special. */
int io_read_file(const char *path, struct buf *b, struct err *e);
/* The same for a small file of ours, which need not be there: 1, 0 when it is not, -1 also when it
 * is no regular file. */
int io_read_state(const char *path, struct buf *b, struct err *e);
int io_read_state_at(int dir, const char *path, struct buf *b, struct err *e);

/* Makes a new file beside `path`, open for reading and writing, mode 0600, with an exclusive flock(2)
 * where the file system has locks. Its name, `path`, two numbers with a dot before each, and
 * IO_TEMPORARY, is put into *name; the caller renames or removes it. Returns the descriptor, or -1
 * with errno set. */
#define IO_TEMPORARY ".tmp"
int io_open_temporary(int dir, const char *path, struct buf *name);
/* Counts the files in the directory of `path` that io_open_temporary made and a killed program left:
 * regular files of this user, without a lock, whose names have that form. `beside`: only those whose
 * names begin with the name of `path` and a dot. With `remove` they are removed. Returns the number,
 * or -1 if one cannot be removed; a directory that cannot be listed has none. */
int io_sweep(int dir, const char *path, bool beside, bool remove, struct err *e);
/* Replaces the content of `path` by writing a new file beside it (mode 0600), syncing it, renaming
 * it over and syncing the directory. For small state files: a reader finds the old content or the
 * new one, never a part. Anything but a regular file in its place is refused. 0 or -1. */
int io_replace_file(const char *path, struct str content, struct err *e);
/* The same with a choice: without `sync` a power cut may leave an empty file. */
int io_replace_file_at(int dir, const char *path, struct str content, bool sync, struct err *e);
/* The same for what is not in memory at once: what is written to `fd`, which can be read, replaces
 * the file when io_replace_end succeeds. After io_replace_begin one of io_replace_end and
 * io_replace_drop must be called; both close fd and leave no other file behind. `path` is borrowed
 * until then. */
struct io_replace {
    int fd;
    int dir; /* as it was given */
    const char *path;
    bool unsynced;   /* to be set by the caller: nothing is synced */
    struct buf name; /* private: of the new file */
};
int io_replace_begin(struct io_replace *r, const char *path, struct err *e);
int io_replace_begin_at(struct io_replace *r, int dir, const char *path, struct err *e);
int io_replace_end(struct io_replace *r, struct err *e);
/* Leaves the old content; errno is kept. */
void io_replace_drop(struct io_replace *r);

/* Opens the directory `path`, or, when dir is a descriptor, that directory. NULL on failure; the
 * caller closes it. */
DIR *io_open_dir(int dir, const char *path);

/* fsync of the directory that holds `path`. 0, or -1 with errno set. */
int io_sync_dir_of(const char *path);
int io_sync_dir(int dir, const char *path);

#endif
