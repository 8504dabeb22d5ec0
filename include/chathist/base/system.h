/*
 * system: syncs and times of files, and random numbers, which the systems name or do in different
 * ways.
 *
 * The other differences are in the modules that they belong to, after #ifdef __linux__: base/owner
 * (file systems without permissions, who listens on a port) and base/process (pipes, orphans, core
 * dumps).
 */
#ifndef CHATHIST_BASE_SYSTEM_H
#define CHATHIST_BASE_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Writes a file to the disk: system_sync_data its content and length (fdatasync), system_sync also
 * its other attributes (fsync). On macOS, where fsync leaves the bytes in the cache of the drive,
 * both use F_FULLFSYNC (fcntl(2) there). Return 0, or -1 with errno set. */
int system_sync_data(int fd);
int system_sync(int fd);

/* The times of the last change of the content and of the inode, in nanoseconds since 1970. */
int64_t system_mtime(const struct stat *st);
int64_t system_ctime(const struct stat *st);

/* Returns when the open file was made, in nanoseconds since 1970; 0 if the file system, or the
 * system, does not say. It never changes. */
int64_t system_birth(int fd);

/* Lets the process have as many open files as the system allows it, or 10,240, the most of macOS. */
void system_open_many(void);

/* Fills p with at most 256 random bytes that cannot be guessed. Returns 0, or -1 with errno set. */
int system_random(void *p, size_t n);

#endif
