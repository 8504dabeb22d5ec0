/*
 * export_select - which lines of a history are exported, and which ones earlier runs exported.
 *
 * selection_load reads the history once, with several threads, and notes where its lines are, not
 * the lines themselves; they are read again when they are written. So a history of any size can be
 * exported session by session. Lines that are appended meanwhile are not seen; a file that is
 * replaced meanwhile stays readable, because it is still open.
 *
 * The state is the file of `hist-export --incremental`, one JSON object:
 *
 *     {"format":1,"offset":N,"line":N,"length":N,"sessions":{"ID":"16 hex digits",...},
 *      "growing":{"device":N,"inode":N,"born":N,"length":N}}
 *
 * `offset` is where the first line that is not exported begins; `line` and `length` are the place
 * of the last exported line; `sessions` has a hash of the last exported line of each session. If
 * the line at `line` still has the hash of its session, the history has only grown, and lines from
 * `offset` on are new. Otherwise the history was rewritten: its lines are in the same order, but
 * some may be gone. Then the lines of a session after its last exported line are new, and all lines
 * of a session whose last exported line is gone or unknown. A message that hist-check
 * recovers from a bad line before that is not new.
 *
 * `growing` exists while bytes are appended to an output file: `length` is the size that the file
 * had before, and `born` the time when it was made (system_birth), because another file may get its
 * inode. If a run finds `growing`, the run before was killed, and the bytes after that length are not
 * exported.
 *
 * The state file is replaced as a whole, and it is locked from selection_open_state to
 * selection_release, because two runs with one state would export lines twice.
 */
#ifndef CHATHIST_CONVERT_EXPORT_SELECT_H
#define CHATHIST_CONVERT_EXPORT_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/append.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"

#define SELECTION_NONE ((size_t)-1)

struct selection_line {
    off_t at;
    size_t n;
    size_t session; /* index in selection.sessions */
    size_t next;    /* index of the next line of this session, or SELECTION_NONE */
};

struct selection_session {
    struct str id;
    size_t first, last; /* indexes in selection.lines, or SELECTION_NONE */
    off_t bytes;        /* the bytes of its lines */
    bool grown;         /* it has a new line */
    bool wanted;        /* set by the caller */
    /* private: of the state */
    uint64_t exported; /* hash of its last exported line */
    off_t after;       /* the offset of that line in a rewritten history, or -1 if it is gone */
};

/* Initialise with SELECTION_INIT. */
struct selection {
    struct selection_line *lines; /* lines in the order of the file */
    size_t lines_count;
    struct selection_session *sessions; /* those of the state, then in the order of their lines */
    size_t sessions_count;
    uint64_t bad_lines;
    /* Of the state. */
    bool moved;   /* there are new lines: the state must be saved */
    bool growing; /* the run before was killed while this file grew from this length */
    dev_t device;
    ino_t inode;
    int64_t born;
    off_t grown_from;
    /* private */
    size_t lines_cap, sessions_cap;
    struct hash_map places;
    struct scan scan;
    off_t piece_size; /* how much of the history a thread reads at once; tests make it small */
    const char *path; /* the state's path, borrowed; NULL: there is no state */
    struct append file;
    bool rewritten;
    off_t offset, line;
    size_t length;
    struct buf saved; /* the members that were read */
};
#define SELECTION_INIT                                                                             \
    {                                                                                              \
        .scan = {.fd = -1}, .piece_size = (off_t)1 << 20, .saved = BUF_INIT(SIZE_MAX)              \
    }

/* A part of the history in memory. Each thread that reads lines has its own. */
struct selection_part {
    struct buf text; /* begins as BUF_INIT(BUF_LINE); the caller releases it */
    off_t at;
};

/* Locks and reads the state in `path`, and creates it (0600) if it does not exist. An empty file is
 * the state before the first run. Returns 0; -1 with *e set if the file is no state, or if another
 * process holds the lock for longer than `wait` says. */
int selection_open_state(struct selection *s, const char *path, struct append_wait *wait,
                         struct err *e);
/* Reads the history. With a state, only lines that are new for it are noted, and all of them count
 * as exported once the state is saved; with `whole`, all lines are noted, and `grown` marks the
 * sessions with new lines. Reports to `work`, which may be NULL. Returns 0, or -1
 * with *e set. */
int selection_load(struct selection *s, int dir, const char *history_path, bool whole,
                   task_report *work, struct err *e);
/* Returns the index of a session, or SELECTION_NONE if it has no line. */
size_t selection_find(const struct selection *s, struct str id);
/* Reads line i, unless `part` has it. *line is valid until another part is read. Returns 0, or -1
 * with *e set. */
int selection_read(const struct selection *s, struct selection_part *part, size_t i,
                   struct str *line, struct err *e);
/* Reads the n bytes at the offset `at`. Returns 0; or -1 with *e set, and the part is empty. */
int selection_read_part(const struct selection *s, struct selection_part *part, off_t at, size_t n,
                        struct err *e);

/* Records in the state that a file with this fstat and system_birth is about to grow, without the
 * lines that are new in this run. Returns 0 once that is on disk, or -1 with *e set. */
int selection_save_growth(struct selection *s, const struct stat *file, int64_t born,
                          struct err *e);
/* Records in the state that all lines up to the last one that selection_load saw are exported.
 * Returns 0 once that is on disk, or -1 with *e set. */
int selection_save(struct selection *s, struct err *e);
/* Releases everything, and the lock of the state; also after a failure. */
void selection_release(struct selection *s);

#endif
