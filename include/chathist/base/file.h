/*
 * file - file descriptors and directories: opening files safely, complete reads and writes.
 *
 * Nothing here buffers. Interrupted calls (EINTR) are repeated, and a descriptor that another
 * program made non-blocking is waited for. Every descriptor opened here is close-on-exec, except
 * the standard streams.
 */
#ifndef CHATHIST_BASE_FILE_H
#define CHATHIST_BASE_FILE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* Opens /dev/null on each of fds 0 to 2 that is closed, so that no file opened later gets the
 * number of a standard stream. A closed stdout or stderr is opened read-only, a closed stdin
 * write-only: using it fails, as if it were still closed. Returns 0, or -1 with errno set. */
int file_fill_std_fds(void);

/* If a function takes `dir` and `path`, dir is a descriptor of the directory that holds the file:
 * the last part of path is opened, renamed or removed in that directory, even if another process
 * puts another directory at the path. Messages contain the whole path. */
#define FILE_CWD AT_FDCWD /* the whole path is used */
#define FILE_ABSENT (-1)  /* the directory does not exist: errno is ENOENT */

/* fstatat(2) without following a link, unlinkat(2) and renameat(2) within one directory. They
 * return 0, or -1 with errno set. */
int file_stat(int dir, const char *path, struct stat *st);
int file_unlink(int dir, const char *path);
int file_rename(int dir, const char *from, const char *to);
/* Returns whether they are of one file. */
bool file_is_same(const struct stat *a, const struct stat *b);
/* Returns whether the path now is a name of the open file, which a link is not. */
bool file_is_named(int dir, const char *path, int fd);

/* Opens a regular file below the directory (FILE_CWD: the working directory): a symbolic link, FIFO, device or directory is refused with a message that
 * names it (links in the directories above are followed). `flags` as for open(2); O_CLOEXEC,
 * O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added. With O_CREAT a file that this call makes has
 * exactly `mode`, whatever the umask; one that was there is not changed. `st` (may be NULL) gets
 * its fstat. Returns the descriptor, or -1 with *e set and errno in *errnum (may be NULL). */
int file_open_regular_at(int dir, const char *path, int flags, mode_t mode, struct stat *st,
                         int *errnum, struct err *e);

/* openat(2) repeated over EINTR; a file that this makes has exactly `mode`, whatever the umask. */
int file_open_exact(int dir, const char *path, int flags, mode_t mode);
/* Returns the end of a message about a file that is not regular. */
const char *file_kind_name(mode_t mode);

/* Closes a descriptor, unless it is negative. */
void file_close(int fd);

/* Waits for `ms` milliseconds, or until fd (-1: none) can be read. Returns 1 if it can be read, 0
 * after that time, -1 with errno set. */
int file_wait(int fd, int64_t ms);

/* Opens an input that a user named, for reading. Links, FIFOs and devices are accepted, and opening
 * a FIFO waits for its writer; a directory is refused. Returns the descriptor, or -1 with *e
 * set. */
int file_open_input(const char *path, struct err *e);
/* Returns 0 if the path names a regular file or a link to one, else -1 with *e set. For callers
 * that must not wait for the writer of a FIFO. */
int file_check_regular(const char *path, struct err *e);

/* Writes all n bytes. Returns 0, or -1 with errno set; then a part may have been written. */
int file_write_all(int fd, const void *p, size_t n);
/* The same at an offset of 0 or more. The position of the descriptor does not change. */
int file_pwrite_all(int fd, const void *p, size_t n, off_t offset);
/* Writes as many bytes as a pipe or socket accepts without waiting, also if it is blocking; some
 * systems take at most PIPE_BUF at once. Returns their number; or -1 with errno set, EAGAIN if it
 * would have to wait. */
ssize_t file_write_now(int fd, const void *p, size_t n);
/* Reads n bytes, or fewer if the file ends before. Returns their number, or -1 with errno set. */
ssize_t file_read_full(int fd, void *p, size_t n);
ssize_t file_pread_full(int fd, void *p, size_t n, off_t offset);
/* Writes n bytes of another file, those from `at` on. Returns 0, or -1 with errno set: EIO if that
 * file ends before. */
int file_copy(int to, int from, off_t at, off_t n);
/* Returns whether the file, whose fstat is *st, has holes of 1 MiB or more in total, which read as
 * zeros. */
bool file_is_sparse(int fd, const struct stat *st);
/* Refuses such a file, because a small one can be endless to read. Returns 0, or -1 with *e set
 * (ERR_USAGE). */
int file_refuse_holes(int fd, const struct stat *st, const char *path, struct err *e);
/* Waits for data and adds the result of one read to b. Returns 1; 0 at the end; -1 with errno set,
 * EFBIG if b reaches its maximum, and then it has the beginning. */
int file_read_some(int fd, struct buf *b);
/* The same until the end. Returns 0 or -1. */
int file_read_all(int fd, struct buf *b);
/* Adds the content of a file that a user named to b. Returns 0, or -1 with *e set. `-` is a file
 * name like any other. */
int file_read(const char *path, struct buf *b, struct err *e);
/* The same for a small file of these programs. Returns 1; 0 if it does not exist; -1 with *e set,
 * also if it is no regular file. */
int file_read_state(const char *path, struct buf *b, struct err *e);

/* Opens the directory `path` for reading, or the directory `dir` if that is a descriptor. Returns
 * NULL with errno set on failure. The caller closes it. */
DIR *file_open_dir(int dir, const char *path);

/* Syncs the directory that holds `path`. Returns 0, or -1 with errno set. */
int file_sync_dir_of(const char *path);
int file_sync_dir(int dir, const char *path);

/* ---- directories ---- */

/* Makes the directory `path` and its missing parents. Each new directory has mode 0700 whatever the
 * umask, and its parent is synced. An existing directory, or a link to one, is not changed. Returns
 * 1 if path was created, 0 if it existed, -1 with *e set. */
int file_make_dirs(const char *path, struct err *e);

/* Calls `look` for the directory `from`, an absolute path, and for each of its parents, with an
 * open descriptor, until a call returns something else than 0, and returns that. The search
 * ends at the boundary of the file system. Of a directory that belongs to another user, or cannot
 * be opened, the descriptor is -1. Returns 0 at the end, or -1 with *e set if a directory could not
 * be examined. */
int file_search_upwards(const char *from, int (*look)(void *arg, int fd, const char *path),
                        void *arg, struct err *e);

#endif
