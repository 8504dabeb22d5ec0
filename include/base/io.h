/*
 * io - file descriptors: opening what is safe to open, whole reads and writes.
 *
 * Nothing here buffers. Interrupted calls (EINTR) are repeated, and a descriptor that somebody made
 * non-blocking is waited for. Every descriptor opened here is close-on-exec, the standard streams
 * excepted.
 */
#ifndef CHATHIST_BASE_IO_H
#define CHATHIST_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Opens /dev/null on each of fds 0 to 2 that is closed, so that no file opened later gets the
 * number of a standard stream. A closed stdout or stderr is opened read-only,
 * a closed stdin write-only: using it fails, as it did when it was closed. 0, or -1 with errno
 * set. */
int io_fill_std_fds(void);

/* Opens a regular file: a symbolic link, FIFO, device or directory is refused with a message that
 * names it (links in the directories above are followed). `flags` as for open(2); O_CLOEXEC,
 * O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added. With O_CREAT a file that this call makes has
 * exactly `mode`, whatever the umask; one that was there is not changed. `st` (may be NULL) gets
 * its fstat. Returns the descriptor, or -1 with the reason in *errnum (may be NULL), so that ENOENT
 * can be told from the rest. */
int io_open_regular(const char *path, int flags, mode_t mode, struct stat *st, int *errnum,
                    struct err *e);

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

/* Makes a new file beside `path`, open for writing, mode 0600: `path`, two numbers with a dot
 * before each, and IO_TEMPORARY. Its name is put into *name, and whoever calls this renames or
 * removes it. The descriptor, or -1 with errno set. */
#define IO_TEMPORARY ".tmp"
int io_open_temporary(const char *path, struct buf *name);
/* Replaces the content of `path` by writing a new file beside it (mode 0600), syncing it, renaming
 * it over and syncing the directory. For small state files: a reader finds the old content or the
 * new one, never a part. Anything but a regular file in its place is refused. 0 or -1. */
int io_replace_file(const char *path, struct str content, struct err *e);
/* The same for what is not in memory at once: what is written to `fd`, which can be read, replaces
 * the file when io_replace_end succeeds. After io_replace_begin one of io_replace_end and
 * io_replace_drop must be called; both close fd and leave no other file behind. `path` is borrowed
 * until then. */
struct io_replace {
    int fd;
    const char *path;
    struct buf name; /* private: of the new file */
};
int io_replace_begin(struct io_replace *r, const char *path, struct err *e);
int io_replace_end(struct io_replace *r, struct err *e);
/* Leaves the old content; errno is kept. */
void io_replace_drop(struct io_replace *r);

/* fsync of the directory that holds `path`. 0, or -1 with errno set. */
int io_sync_dir_of(const char *path);

#endif
