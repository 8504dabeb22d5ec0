#include "tui/browse_watch.h"

#include <sys/stat.h>

struct browse_stamp browse_stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct browse_stamp){.exists = false};
    return (struct browse_stamp){.exists = true,
                                 .dev = st.st_dev,
                                 .ino = st.st_ino,
                                 .size = st.st_size,
                                 .changed = st.st_ctim};
}

static bool same_file(const struct browse_stamp *a, const struct browse_stamp *b)
{
    return a->exists && b->exists && a->dev == b->dev && a->ino == b->ino;
}

bool browse_stamp_same(const struct browse_stamp *a, const struct browse_stamp *b)
{
    if (!a->exists && !b->exists)
        return true;
    return same_file(a, b) && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

bool browse_stamp_grown(const struct browse_stamp *then, const struct browse_stamp *now)
{
    return same_file(then, now) && now->size > then->size;
}
