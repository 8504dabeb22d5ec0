/*
 * scan - the lines of a history, oldest or newest first, without a lock.
 *
 * Reads large blocks at fixed offsets (pread) up to the size that the file had when the scan was
 * opened: a line that is being appended meanwhile is not seen, and a file that is replaced
 * meanwhile stays readable (the old one). Backward gives exactly the lines that forward gives, in
 * the opposite order.
 *
 * A last line without newline is given when it is a valid message, else passed over in silence (a
 * writer may be at it). Other lines that are no valid message are counted, not given; blank lines
 * are neither. A line over BUF_LINE is a bad line; at no time is more than one line and a block in
 * memory.
 */
#ifndef CHATHIST_HISTORY_SCAN_H
#define CHATHIST_HISTORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/message.h"

enum scan_way { SCAN_FORWARD, SCAN_BACKWARD };

struct line {
    struct str text; /* without its newline; borrowed until the next call */
    off_t at;        /* where it begins in the file */
    bool terminated; /* a newline follows */
    bool too_long;   /* over BUF_LINE: text is its beginning only */
};

struct scan {
    int fd; /* -1: the file does not exist, a history without lines */
    enum scan_way way;
    off_t size;      /* of the file when opened */
    uint64_t bad;    /* lines parsed so far that are no valid message */
    off_t first_bad; /* where the first of them begins, when there are any */
    /* To be set by the caller: given each of them that scan_message passes; NULL: nobody. */
    void (*tell_bad)(void *arg, const struct line *l);
    void *tell_arg;
    /* private */
    char *path;
    size_t block_size; /* SCAN_BLOCK; tests make it and the next two small */
    size_t line_max;   /* BUF_LINE */
    size_t held_max;   /* backward: so much of a line is held before its beginning is known */
    off_t next;        /* forward: the offset behind the window; backward: of the window */
    struct buf block;  /* what was read; the window block.data[from…to) is not given yet */
    size_t from, to;
    bool sparse;      /* the file has holes, which are passed over: a line with one is bad */
    bool shared;      /* the file is another scan's */
    bool behind_line; /* scan_line_at has given the line before `from` */
    char *session;    /* scan_only: owned, NULL for every session */
    size_t session_len;
    bool session_plain;      /* it can only be escaped as \uXXXX */
    unsigned char skip[256]; /* how far a byte lets the search for it move on */
};

#define SCAN_BLOCK ((size_t)256 << 10)

/* Opens `path`. A missing file is an empty history. Anything but a regular file is refused. On
 * failure there is nothing to close. */
int scan_open(struct scan *s, int dir, const char *path, enum scan_way way, struct err *e);
void scan_close(struct scan *s);
/* Another reading of the file that s has open, of its bytes from `at` up to `end`: forward, to
 * be closed before s is. Each may be used by a thread of its own. */
void scan_share(struct scan *part, const struct scan *s, off_t at, off_t end);
/* Frees the memory of what was read, the last line too; nothing but scan_again is to follow. */
void scan_let_go(struct scan *s);
/* Gives only this session's lines from now on; most others are passed over unparsed (and then not
 * counted when bad). */
void scan_only(struct scan *s, struct str session_id);
/* Could it be a line of that session, or can it at once be seen that it is not? */
bool scan_may_give(const struct scan *s, struct str line);

/* Has a forward scan begin, again or in the first place, at `at`, the beginning of a line,
 * or at the end when that comes before it. */
void scan_from(struct scan *s, off_t at);

/* The next raw line of any session, valid or not, blank or not: 1, 0 at the end, -1. */
int scan_line(struct scan *s, struct line *l, struct err *e);
/* Goes forward from offset `at`, the beginning of a line, up to `end`. Before the first line. */
void scan_between(struct scan *s, off_t at, off_t end);
/* Going forward, where the line after the one that was given last begins. */
off_t scan_offset(const struct scan *s);
/* The line that begins at `at`, of a forward scan of which only this is asked: 1; 0 when no line
 * begins there, -1. Lines near each other are best asked for in their order. */
int scan_line_at(struct scan *s, off_t at, struct line *l, struct err *e);

/* What a line is. m (made with MESSAGE_INIT) is filled in for a message. */
enum scan_verdict {
    SCAN_NOTHING, /* blank, or a torn last line */
    SCAN_BAD,
    SCAN_MESSAGE,
};
enum scan_verdict scan_judge(const struct line *l, struct message *m);

/* The next valid message: 1, 0, -1. m (made with MESSAGE_INIT) borrows from s until the next call.
 * `l` (may be NULL) tells where it lies. */
int scan_message(struct scan *s, struct message *m, struct line *l, struct err *e);
/* Reads the n bytes at `at`, which a scan has given before, again into `out` (cleared first). */
int scan_again(const struct scan *s, off_t at, size_t n, struct buf *out, struct err *e);

#endif
