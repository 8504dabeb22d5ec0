/*
 * scratch - a directory for a fuzz target's files, in memory where that is possible: what is tried
 * syncs them. It is made once and stays as long as the process does; a target that is killed leaves
 * it.
 */
#ifndef CHATHIST_FUZZ_SCRATCH_H
#define CHATHIST_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/path.h"
#include "demand.h"

static char scratch_dir[64];

static inline void scratch_remove(void)
{
    static const char *const names[] = {"h", "h.idx", "h.quarantine", "state"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = path_join(scratch_dir, names[i]);

        unlink(path);
        free(path);
    }
    rmdir(scratch_dir);
}

/* The path of a file of it; the caller frees it. Its names are `h`, `h.idx`, `h.quarantine`
 * and `state`. */
static inline char *scratch_path(const char *name)
{
    if (scratch_dir[0] == '\0') {
        snprintf(scratch_dir, sizeof scratch_dir, "%s/chathist_fuzz.XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        demand(mkdtemp(scratch_dir) != NULL);
        atexit(scratch_remove);
    }
    return path_join(scratch_dir, name);
}

static inline void scratch_write(const char *path, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    demand(fd >= 0 && file_write_all(fd, text.p, text.n) == 0);
    close(fd);
}

/* What the file holds, nothing when it is not there; the caller releases it. */
static inline struct buf scratch_read(const char *path)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        demand(file_read_all(fd, &text) == 0);
        close(fd);
    }
    return text;
}

#endif
