/*
 * browse_watch - has a history changed since it was looked at last? Told by its inode, its size and
 * the time of its last change, which nobody can set, without opening it. Only when that has changed
 * is it read, to see whether what was there is still before what is new.
 */
#ifndef CHATHIST_BROWSE_BROWSE_WATCH_H
#define CHATHIST_BROWSE_BROWSE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Zero-initialise: a file that is not there. Private. */
struct browse_watch {
    bool exists;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
    uint64_t sample; /* of what was there */
};

enum browse_change {
    BROWSE_SAME,
    BROWSE_GROWN, /* by what is behind that which was there. Of a file that is too large for it to
                     be read without an index (hist/index), its beginning and its end tell that */
    BROWSE_OTHER,
};

/* Looks at the file: one that cannot be looked at does not exist. */
enum browse_change browse_watch_look(struct browse_watch *w, const char *path);

#endif
