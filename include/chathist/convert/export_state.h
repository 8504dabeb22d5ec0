/*
 * export_state - what was exported before: the state file of `hist-export --incremental`.
 *
 * One JSON object, replaced as a whole:
 *
 *     {"format":1,"offset":N,"line":N,"length":N,"sessions":{"ID":"16 hex digits",…},
 *      "lost":["16 hex digits",…],"growing":{"device":N,"inode":N,"length":N}}
 *
 * `offset` is where the first line that is not exported begins, `line` and `length` tell of the
 * last one that is. When that line still stands there, the history has only grown, and reading goes
 * on at the offset. Else it was rewritten, its lines in the same order but some of them gone, and
 * of each session the lines behind its last exported one, which `sessions` knows by a number made
 * of its bytes, are new; of a session whose last exported line is gone, or that is not known, all.
 *
 * `lost` are the messages that stood on bad lines before the offset, each as a number made of its
 * bytes: a repair makes lines of them (hist/mend), which are then new, wherever they stand.
 *
 * `growing` is there while bytes are being added to an output file: it had that length before. When
 * a run finds it, the one before was killed, and what is behind that length is not exported.
 *
 * The file is locked from export_state_open to export_state_close: the state of two runs at once
 * would be that of one.
 */
#ifndef CHATHIST_CONVERT_EXPORT_STATE_H
#define CHATHIST_CONVERT_EXPORT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/keymap.h"
#include "chathist/history/append.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"

struct export_state_session {
    struct str id; /* what name holds */
    char *name;    /* owned */
    uint64_t last; /* its last exported line, as a number */
    off_t after;   /* after a rewrite: where that line is; -1: gone */
};

struct export_state_marks {
    uint64_t *at;
    size_t count, cap;
};

struct export_state {
    bool rewritten; /* the history was: set by export_state_find */
    bool moved;     /* a line was passed: there is something to save */
    bool growing;   /* the run before was killed: what grew, from which length */
    dev_t device;
    ino_t inode;
    off_t grown_from;
    /* private */
    const char *path; /* borrowed */
    struct append file;
    off_t offset, line;
    size_t length;
    struct export_state_session *sessions;
    size_t sessions_count, sessions_cap;
    struct keymap places;
    struct export_state_marks lost;   /* that the state knows; once it was compared, recovered */
    struct export_state_marks on_bad; /* met in this pass */
    size_t on_bad_passed;             /* of them, before a line that was passed */
    off_t bad_from;                   /* where they are new */
    struct buf saved;                 /* the members as they were read */
};

/* Locks and reads the state in `path`, which is made when it is missing (0600). An empty one knows
 * nothing. -1: it is no state, or another program holds it for longer than `wait` says. */
int export_state_open(struct export_state *s, const char *path, struct append_wait *wait,
                      struct err *e);
/* Compares it with a history that was just opened for a forward scan, and has that begin where
 * something new can be, when `from_there`. From then on it is told of the scan's bad lines. */
int export_state_find(struct export_state *s, struct scan *history, bool from_there, struct err *e);
/* Is a line new that begins there? */
bool export_state_is_new(const struct export_state *s, const struct message *m, off_t at);
/* A line, new or not, is exported once the state is saved. */
void export_state_pass(struct export_state *s, const struct message *m, const struct line *l);
/* Says that a file, of that fstat, is about to grow: on the disk on return, without what was
 * passed. */
int export_state_begin(struct export_state *s, const struct stat *file, struct err *e);
/* Saves what was passed, on the disk on return. */
int export_state_save(struct export_state *s, struct err *e);
void export_state_close(struct export_state *s);

#endif
