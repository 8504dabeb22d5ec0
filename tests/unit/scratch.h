/*
 * scratch.h: a directory of its own for each test that needs files, which is its working directory
 * from scratch_enter to scratch_leave. Whatever is in it then goes with it. To be included after
 * test.h.
 */
#ifndef CHATHIST_TESTS_LIB_SCRATCH_H
#define CHATHIST_TESTS_LIB_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"

static char scratch_dir[64];

static inline void scratch_enter(void)
{
    const char name[] = "/tmp/chathist_test.XXXXXX";

    memcpy(scratch_dir, name, sizeof(name));
    if (!mkdtemp(scratch_dir) || chdir(scratch_dir) < 0)
        abort();
}

/* Removes what is in the working directory. */
static inline void scratch_empty(void)
{
    DIR *d = opendir(".");
    struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (lstat(entry->d_name, &st) == 0 && S_ISDIR(st.st_mode)) {
            chmod(entry->d_name, 0700);
            if (chdir(entry->d_name) == 0) {
                scratch_empty();
                if (chdir("..") < 0)
                    abort();
            }
            rmdir(entry->d_name);
        } else {
            unlink(entry->d_name);
        }
    }
    if (d)
        closedir(d);
}

static inline void scratch_leave(void)
{
    if (chdir(scratch_dir) < 0)
        abort();
    scratch_empty();
    CHECK_INT(chdir("/"), 0);
    CHECK_INT(rmdir(scratch_dir), 0);
}

static inline void scratch_put_bytes(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || file_write_all(fd, p, n) < 0)
        abort();
    close(fd);
}

static inline void scratch_put(const char *path, const char *content)
{
    scratch_put_bytes(path, content, strlen(content));
}

/* The content of a file; the caller releases it. */
static inline struct buf scratch_get(const char *path)
{
    struct buf b = BUF_INIT((size_t)1 << 30);

    if (!CHECK(file_read(path, &b, NULL) == 0))
        fprintf(stderr, "    %s\n", path);
    return b;
}

static inline void scratch_check(const char *path, const char *want)
{
    struct buf b = scratch_get(path);

    CHECK_MEM(buf_c(&b), b.len, want, strlen(want));
    buf_release(&b);
}

/* The permission bits, -1 when there is no such file. */
static inline int scratch_mode(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

/* Makes an existing directory the main work tree of a repository, as git init does. */
static inline void make_repository(const char *dir)
{
    static const char *const names[] = {"", "/objects", "/refs"};
    char path[256];
    int fd;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/.git%s", dir, names[i]);
        if (mkdir(path, 0755) < 0)
            abort();
    }
    snprintf(path, sizeof path, "%s/.git/HEAD", dir);
    fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || file_write_all(fd, "ref: refs/heads/main\n", 21) < 0)
        abort();
    close(fd);
}

#endif
