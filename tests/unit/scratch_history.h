/*
 * scratch_history.h: a history `h` with its sidecar files in the scratch directory. To be included
 * after scratch.h.
 */
#ifndef CHATHIST_TESTS_LIB_SCRATCH_HISTORY_H
#define CHATHIST_TESTS_LIB_SCRATCH_HISTORY_H

#include "chathist/history/location.h"
#include "chathist/history/store.h"

static char scratch_path[] = "h", scratch_index[] = "h.idx", scratch_skip[] = "h.skip",
            scratch_pointer[] = "h.session";

static struct history history = {.dir_fd = FILE_CWD,
                                 .now = INT64_MAX,
                                 .pointer_fd = FILE_CWD,
                                 .path = scratch_path,
                                 .index = scratch_index,
                                 .skip = scratch_skip,
                                 .pointer = scratch_pointer,
                                 .trusted = true,
                                 .dir_exists = true,
                                 .cancel_fd = -1};

/* As another program does. */
static inline void append(const char *bytes, size_t n)
{
    int fd = open("h", O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (fd < 0 || file_write_all(fd, bytes, n) < 0)
        abort();
    close(fd);
}

static inline void append_text(const char *text)
{
    append(text, strlen(text));
}

/* As our programs do. */
static inline void append_own(struct str session, struct str text)
{
    struct draft d;

    draft_init(&d);
    draft_message(&d, ROLE_USER, text);
    draft_set_text(&d, FIELD_SESSION_ID, session);
    CHECK_INT(store_append(&history, &d, 1, NULL), 0);
    draft_release(&d);
}

/* In place, as somebody does by hand. */
static inline void overwrite(const char *path, off_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);

    if (fd < 0 || pwrite(fd, bytes, n, at) != (ssize_t)n)
        abort();
    close(fd);
}

/* -1: there is none. */
static inline off_t size_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? st.st_size : -1;
}

/* Where a text is in the history. */
static inline off_t place_of(const char *text)
{
    struct buf b = scratch_get("h");
    const char *at = str_find(buf_str(&b), str_of(text));
    off_t place = at ? at - b.data : -1;

    buf_release(&b);
    return place;
}

#endif
