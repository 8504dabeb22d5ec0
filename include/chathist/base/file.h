/*
 * file - file descriptors, directories and names of files: opening files safely, complete reads and
 * writes, files that replace others, and who may have written a file.
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
/* Are they of one file? */
bool file_is_same(const struct stat *a, const struct stat *b);
/* Is the path now a name of the open file? A link is not. */
bool file_is_named(int dir, const char *path, int fd);

/* Opens a regular file: a symbolic link, FIFO, device or directory is refused with a message that
 * names it (links in the directories above are followed). `flags` as for open(2); O_CLOEXEC,
 * O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added. With O_CREAT a file that this call makes has
 * exactly `mode`, whatever the umask; one that was there is not changed. `st` (may be NULL) gets
 * its fstat. Returns the descriptor, or -1 with *e set and errno in *errnum (may be NULL). */
int file_open_regular(const char *path, int flags, mode_t mode, struct stat *st, int *errnum,
                      struct err *e);
int file_open_regular_at(int dir, const char *path, int flags, mode_t mode, struct stat *st,
                         int *errnum, struct err *e);

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
/* Writes as many bytes as are accepted without waiting, also to a blocking descriptor. Returns
 * their number; or -1 with errno set, EAGAIN if it would have to wait. Fails always if the system
 * has no such call. */
ssize_t file_write_now(int fd, const void *p, size_t n);
/* Reads n bytes, or fewer if the file ends before. Returns their number, or -1 with errno set. */
ssize_t file_read_full(int fd, void *p, size_t n);
ssize_t file_pread_full(int fd, void *p, size_t n, off_t offset);
/* Writes n bytes of another file, those from `at` on. Returns 0, or -1 with errno set: EIO if that
 * file ends before. */
int file_copy(int to, int from, off_t at, off_t n);
/* Does the file, whose fstat is *st, have holes of 1 MiB or more in total, which read as zeros? */
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
    bool one_of_many; /* or this: the caller syncs the directory, once for all of its files */
    struct buf name;  /* private: of the new file */
};
int file_replace_begin(struct file_replace *r, const char *path, struct err *e);
int file_replace_begin_at(struct file_replace *r, int dir, const char *path, struct err *e);
int file_replace_end(struct file_replace *r, struct err *e);
/* Keeps the old content. Does not change errno. */
void file_replace_drop(struct file_replace *r);

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

/* ---- names ---- */

/* Returns `dir/name`, or `name` if that is absolute or dir is empty. The caller frees it. */
char *path_join(const char *dir, const char *name);
/* Returns `path` with `suffix` right after it. The caller frees it. */
char *path_with_suffix(const char *path, const char *suffix);
/* Returns the directory part: `/a/b` and `/a/b/` -> `/a`, `a` -> `.`, `/` -> `/`. The caller frees
 * it. */
char *path_parent(const char *path);
/* Returns the part after the last slash, borrowed from path. */
const char *path_base(const char *path);
/* Returns the path of a program in the directory of another one that was started as `self`; or only
 * its name if `self` has no slash, because it was found in PATH then. The caller frees it. */
char *path_beside(const char *self, const char *name);

/* Returns the absolute path of the file, without `.`, `..` or links. The caller frees it. Returns
 * NULL with *e set on failure, also if the file does not exist. */
char *path_real(const char *path, struct err *e);
/* Do both paths name one file, or would they if it were created? */
bool path_same(const char *a, const char *b);

/* ---- who may have written a file ---- */

/*
 * Decides whether a file, or a server on this machine, is trusted. Some files act for the user:
 * configuration names commands, and a history is sent to a model. They are used only if no other
 * user can have written them.
 *
 * A file is trusted if it belongs to the user, or also to root where the caller allows that, and if
 * others cannot write it. A file that its group can write is trusted only if that group is the
 * user's private one: it has the user's name, is the user's primary group, and has no other member.
 * On file systems that have no modes (FAT, NTFS, SMB, 9p), the owner alone counts.
 */

enum owner { OWNER_USER, OWNER_USER_OR_ROOT };

/* Returns NULL if the open file or directory is trusted, else the reason as the end of a message,
 * such as "it belongs to another user". Check the descriptor that is then read: a path may name
 * another file the next time. */
const char *owner_fault(int fd, enum owner allowed);
/* Like owner_fault, for a file that is not opened here, such as a program; links are followed. A
 * file that does not exist has no fault. */
const char *owner_fault_at(const char *path, enum owner allowed);

/* Does a user other than this one listen on the port of this machine's loopback addresses? Then
 * returns true with the user's number in *uid. The accounts of the system (below 1000, root among
 * them) do not count: only root can start something as one of them. Linux says who listens
 * (proc_net_tcp(5)); returns false elsewhere. */
bool owner_foreign_listener(unsigned port, uid_t *uid);

#endif
