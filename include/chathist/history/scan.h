/*
 * scan - the lines of a history, without a lock.
 *
 * A scan reads large blocks at fixed offsets (pread), up to the size that the file had when the
 * scan was opened. So it does not see lines that are appended later, and if the file is replaced it
 * continues to read the old one.
 *
 * A last line without a newline is returned if it is a valid message, and otherwise ignored,
 * because a writer may not have finished it. Other invalid lines are counted and not returned;
 * blank lines are ignored. A line longer than BUF_LINE is a bad line. At most one line and one
 * block are in memory.
 */
#ifndef CHATHIST_HISTORY_SCAN_H
#define CHATHIST_HISTORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/task.h"
#include "chathist/history/message.h"

struct line {
    struct str text; /* the line without its newline; borrowed until the next call */
    off_t at;        /* its offset in the file */
    bool terminated; /* a newline follows */
    bool too_long;   /* longer than BUF_LINE: text is only its beginning */
};

struct scan {
    int fd; /* -1: the file does not exist, so the history has no lines */
    off_t
        size; /* the size of the file when opened; may be made smaller before the first line is read */
    uint64_t bad; /* bad lines parsed so far */
    /* Set after scan_open: reports how far the scan is, as a task of that name; NULL: nothing does. */
    task_report *work;
    const char *task;
    /* private */
    char *path;
    size_t block_size; /* SCAN_BLOCK; tests make it and the next one small */
    size_t line_max;   /* BUF_LINE */
    off_t next;        /* the offset after the window */
    struct buf block;  /* the read bytes; the window block.data[from…to) was not returned yet */
    size_t from, to;
    bool shared;   /* the descriptor belongs to another scan */
    char *session; /* scan_only: owned, NULL for every session */
    size_t session_len;
    bool session_plain;      /* it can only be escaped as \uXXXX */
    unsigned char skip[256]; /* how far the search for it may advance at each byte */
};

#define SCAN_BLOCK ((size_t)256 << 10)

/* Opens `path`. A missing file is an empty history. Anything except a regular file without holes is
 * refused. Returns 0, or -1 with *e set and nothing to close. */
int scan_open(struct scan *s, int dir, const char *path, struct err *e);
void scan_close(struct scan *s);
/* Opens a scan of the same file for the bytes from `at` to `end`. Close it before s.
 * Different threads may use the two scans. */
void scan_share(struct scan *part, const struct scan *s, off_t at, off_t end);
/* Returns only lines of this session from now on. Most other lines are skipped without parsing, and
 * are then not counted if they are bad. */
void scan_only(struct scan *s, struct str session_id);
/* Returns false if the line certainly belongs to another session than that of scan_only. */
bool scan_may_match(const struct scan *s, struct str line);

/* Makes the scan start, or start again, at `at`, the beginning of a line, or at the end of
 * the file if that is smaller. */
void scan_from(struct scan *s, off_t at);

/* Reads the next raw line of any session, also a bad or blank one. Returns 1, 0 at the end, or -1
 * with *e set. */
int scan_line(struct scan *s, struct line *l, struct err *e);
/* Returns the offset of the next line. */
off_t scan_offset(const struct scan *s);
/* Opens `part`, as scan_share does, for about n bytes of whole lines from *next on, and moves *next
 * to their end. Returns 1; 0 at the end of the file, with nothing to close; or -1 with *e set,
 * nothing to close, and *next at the end. */
int scan_split(const struct scan *s, off_t *next, off_t n, struct scan *part, struct err *e);
/* The same for about n bytes of whole lines before *end, which it moves to their beginning. Returns
 * 0 at the beginning of the file. */
int scan_before(const struct scan *s, off_t *end, off_t n, struct scan *part, struct err *e);

/* Decides whether a line is a message, and parses it into m (initialised with MESSAGE_INIT). */
enum scan_verdict {
    SCAN_NOTHING, /* blank, or a torn last line */
    SCAN_BAD,
    SCAN_MESSAGE,
};
enum scan_verdict scan_judge(const struct line *l, struct message *m);

/* Reads the next valid message. m (initialised with MESSAGE_INIT) borrows from s until the next
 * call; `l` (may be NULL) gets the line. Returns 1, 0 at the end, or -1 with *e set. */
int scan_message(struct scan *s, struct message *m, struct line *l, struct err *e);
/* Moves the scan to the last message whose id is one of these that are not empty, and reads it like
 * scan_message. Begins at the end of the file, and reads more of it until the message is found.
 * Returns 1, 0 without one, or -1 with *e set. */
int scan_find(struct scan *s, const struct str *ids, size_t count, struct message *m,
              struct err *e);
/* Reads the n bytes at `at`, which a scan has returned before, into `out`, which it clears
 * first. */
int scan_again(const struct scan *s, off_t at, size_t n, struct buf *out, struct err *e);

#endif
