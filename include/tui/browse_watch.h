/*
 * browse_watch - has a history changed since it was read? Told by its inode, its size and the time
 * of its last change, which nobody can set, without opening it.
 */
#ifndef CHATHIST_TUI_BROWSE_WATCH_H
#define CHATHIST_TUI_BROWSE_WATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct browse_stamp {
    bool exists;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
};

/* As the file is now; one that cannot be looked at does not exist. */
struct browse_stamp browse_stamp(const char *path);
bool browse_stamp_same(const struct browse_stamp *a, const struct browse_stamp *b);
/* Is `now` the file of `then` with more behind it? */
bool browse_stamp_grown(const struct browse_stamp *then, const struct browse_stamp *now);

#endif
